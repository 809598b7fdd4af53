"""Attention scores term by term, and predictions with some of the terms switched off.

Every family computes ``softmax(scale * q.k + sum of named terms)``; the content score counts as the
term ``content`` here. DeBERTa adds ``c2p`` and ``p2c``, XLNet ``position`` and ``segment``; its
content score holds the bias that it adds to each query.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.config import Config, Disentangled, TransformerXL
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.layer import Layer
from core_models.network.terms.buckets import rows_of
from core_models.network.terms.disentangled import DisentangledTable
from core_models.network.trace import Edit, Trace, patch
from core_models.prediction.ablation import check_heads
from core_models.prediction.passes import head_name, head_of, hidden_at, ready
from core_models.tokenizer import Encoding

CONTENT = "content"
SCOPES = ("head", "layer", "model")
"""Where a term is switched off: in one head of one layer, in one layer, everywhere."""
STREAMS = ("content", "query", "mask_decoder")
HIDDEN_SCORE = -1e30
"""Scores below this are those of keys that a query may not see."""


@dataclass(frozen=True)
class TermView:
    """One head of one pass. Q queries, K keys."""

    names: tuple[str, ...]
    """``content`` first, then the family's terms."""
    rows: tuple[int, ...]
    """Position of each query."""
    terms: Tensor
    """[T, Q, K], scaled as they enter the sum."""
    scores: Tensor
    """[Q, K], what the trace recorded after the sum and the visibility."""
    visible: Tensor
    """Bool [Q, K], which keys the query may see."""
    probabilities: Tensor
    """[Q, K]."""

    def residue(self) -> float:
        """Largest difference between the sum of the terms and the recorded score; 0 is exact."""
        total = self.terms[0]
        for term in self.terms[1:]:
            total = total + term
        return float(torch.where(self.visible, total - self.scores, 0).abs().max())


@dataclass(frozen=True)
class Pass:
    """One forward pass, looked at."""

    view: TermView
    queries: Tensor
    """[Q, d] of the head, without XLNet's biases."""
    keys: Tensor
    """[K, d] of the head."""
    answers: Tensor | None
    """[N, D], what the head predicts the hidden pieces from; None without gaps or such a head."""
    hidden: Tensor | None
    """[L, D] after the last step, where there is nothing to predict."""


def term_names(config: Config) -> tuple[str, ...]:
    """The summands of a score; a batch without segments lacks ``segment``."""
    terms = config.attention.terms
    if isinstance(terms, Disentangled):
        return (CONTENT, *terms.kinds)
    if isinstance(terms, TransformerXL):
        return (CONTENT, "position", "segment") if terms.segments else (CONTENT, "position")
    return (CONTENT,)


def streams(model: Model, gaps: Sequence[int]) -> tuple[str, ...]:
    """Streams that a pass has: the content's, and what answers for hidden pieces."""
    found = ["content"]
    if "permutation" in model.heads and gaps:
        found.append("query")
    if model.config.mask_decoder is not None and "masked_token" in model.heads:
        found.append("mask_decoder")
    return tuple(found)


def switched_off(
    config: Config, names: Iterable[str], scope: str, *, step: int = 0, head: int = 0
) -> list[Edit]:
    """Edits that set terms to zero, in every stream that a block serves.

    The mask decoder runs the last layer again, so what is switched off in the last layer is off in
    the decoder, too.

    Args:
        config: of the model.
        names: of :func:`term_names`.
        scope: one of :data:`SCOPES`; ``head`` means one head of one layer.
        step: the layer, unless the scope is the model.
        head: of that layer, where the scope is the head.

    Raises:
        InputError: The scope, a name or the head does not exist.
    """
    if scope not in SCOPES:
        raise InputError(f"The scope is {scope[:40]!r}; it must be one of {', '.join(SCOPES)}.")
    if scope == "head":
        check_heads(config, [(step, head)])

    def zero(score: Tensor) -> Tensor:
        if scope != "head":
            return torch.zeros_like(score)
        keep = torch.ones(config.attention.heads, dtype=score.dtype, device=score.device)
        keep[head] = 0
        return score * keep[None, :, None, None]

    steps: dict[str, int | None] = dict.fromkeys(STREAMS, None if scope == "model" else step)
    if scope != "model":
        if step == config.steps - 1:
            steps["mask_decoder"] = None
        else:
            del steps["mask_decoder"]
    known = term_names(config)
    edits = []
    for name in names:
        if name not in known:
            raise InputError(
                f"This model has no term {name[:40]!r}; its terms are {', '.join(known)}."
            )
        site = "content_score" if name == CONTENT else f"term:{name}"
        edits += [Edit(site, zero, at, stream) for stream, at in steps.items()]
    return edits


def look(
    model: Model,
    seen: Encoding,
    gaps: Sequence[int] = (),
    *,
    step: int = 0,
    head: int = 0,
    stream: str = "content",
    edits: Sequence[Edit] = (),
) -> Pass:
    """Run a model once and take one head of one step apart.

    Args:
        model: In eval mode.
        seen: What the model reads.
        gaps: Positions to predict; their pieces in ``seen`` are the mask piece.
        step: Of the stream (the mask decoder counts its own).
        head: Number of the head.
        stream: One of :func:`streams`.
        edits: Changes on the way, such as :func:`switched_off`.

    Raises:
        InputError: The stream, the step or the head does not exist.
    """
    _check(model, gaps, step, head, stream)
    sites = ["content_score", "term:*", "scores", "probabilities", "q", "k"]
    trace = Trace(sites, steps=[step], edits=edits)
    answers, hidden = None, None
    with torch.inference_mode():
        if gaps and can_predict(model):
            places = [(0, position) for position in gaps]
            answers = hidden_at(model, [seen], places, trace)
        else:
            batch = model.collate([seen])
            out = model.encoder(batch, trace)
            hidden = out.hidden[0]
            if stream == "mask_decoder":
                model.encoder.decode(batch, out, trace)
    rows = tuple(gaps) if stream == "query" else tuple(range(len(seen)))
    found = [
        n for n in term_names(model.config)[1:] if (f"term:{n}", step, stream) in trace.records
    ]
    scores = trace.get("scores", step, stream)[0, head]
    size = scores.shape
    parts = [trace.get("content_score", step, stream)[0, head]]
    parts += [trace.get(f"term:{n}", step, stream)[0, head].expand(size) for n in found]
    view = TermView(
        names=(CONTENT, *found),
        rows=rows,
        terms=torch.stack(parts),
        scores=scores,
        visible=scores > HIDDEN_SCORE,
        probabilities=trace.get("probabilities", step, stream)[0, head],
    )
    q, k = (trace.get(site, step, stream)[0, head] for site in ("q", "k"))
    return Pass(view, q, k, answers, hidden)


def can_predict(model: Model) -> bool:
    """Whether the model has a head that predicts pieces."""
    try:
        head_name(model)
    except InputError:
        return False
    return True


def _check(model: Model, gaps: Sequence[int], step: int, head: int, stream: str) -> None:
    ready(model)
    known = streams(model, gaps)
    if stream not in known:
        raise InputError(f"There is no stream {stream[:40]!r} here; there is {', '.join(known)}.")
    steps = model.config.steps
    if stream == "mask_decoder" and model.config.mask_decoder is not None:
        steps = model.config.mask_decoder.steps
    for name, value, count in (
        ("layer", step, steps),
        ("head", head, model.config.attention.heads),
    ):
        if not 0 <= value < count:
            raise InputError(f"The {name} is {value}; this model has 0 to {count - 1} here.")


# --- by distance ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceMean:
    """Mean of each term over all visible pairs of one distance."""

    distance: int
    """Position of the query less position of the key."""
    pairs: int
    means: tuple[float, ...]


def by_distance(view: TermView) -> list[DistanceMean]:
    """Mean terms at every signed distance that occurs, ascending."""
    terms, visible = view.terms.cpu().double(), view.visible.cpu()
    rows = torch.tensor(view.rows)[:, None]
    distance = (rows - torch.arange(terms.shape[2])[None])[visible]
    least = int(distance.min()) if len(distance) else 0
    counts = torch.bincount(distance - least)
    sums = [torch.bincount(distance - least, weights=term[visible]) for term in terms]
    means = torch.stack(sums, 1) / counts[:, None]  # [distances, T]
    return [
        DistanceMean(least + n, count, tuple(means[n].tolist()))
        for n, count in enumerate(counts.tolist())
        if count
    ]


def bias_curves(
    model: Model, found: Pass, distances: Sequence[int], *, step: int, head: int
) -> dict[str, list[float]]:
    """What a head's queries and keys give to any distance, whether two pieces stand so or not.

    ``c2p`` at r is the mean over the pass's queries of ``scale * q . Kr[row(r)]``, ``p2c`` that
    over its keys of ``scale * k . Qr[row(r)]`` (arXiv 2006.03654, section 3.1).

    Args:
        model: DeBERTa of any version.
        found: a pass that looked at this step and head.
        distances: query position less key position.
        step: of the encoder; the last one for a mask decoder.
        head: as in :func:`look`.

    Returns:
        One number for each distance, by the term's name.

    Raises:
        InputError: The model has no table of distances.
    """
    config, table = model.config.attention.terms, model.encoder.table
    if not isinstance(config, Disentangled) or not isinstance(table, DisentangledTable):
        raise InputError("Only DeBERTa has a learned table of distances.")
    block = cast(Layer, model.encoder.blocks[model.config.schedule[step]]).attention
    own = block.terms
    with torch.inference_mode():
        rows = table.norm(table.relative.weight)
        key = getattr(own, "position_key", None) or block.key
        query = getattr(own, "position_query", None) or block.query
        index = rows_of(config, torch.tensor(list(distances), device=rows.device))
        relative = {}
        sides = {"c2p": (key, found.queries), "p2c": (query, found.keys)}
        for name in config.kinds:
            project, content = sides[name]
            part = project(rows).unflatten(1, (block.heads, -1))[:, head]  # [T, d]
            scores = (content.mean(0) @ part.T) * own.scale
            relative[name] = scores[index].tolist()
    return relative


# --- predictions ----------------------------------------------------------------------------------


def distribution(model: Model, answers: Tensor) -> Tensor:
    """Log-probabilities [N, V] of the tokenizer's pieces at what :class:`Pass` answers from."""
    with torch.inference_mode():
        logs = head_of(model)(answers).float().log_softmax(-1)
    return cast(Tensor, logs)[:, : model.tokenizer.vocabulary]


def verdicts(model: Model, hidden: Tensor) -> Tensor:
    """Probability [L] that each token was replaced, of a model with that head."""
    with torch.inference_mode():
        return cast(Tensor, model.heads["replaced_token"](hidden[None])[0].float().sigmoid())


def decoder_variants(model: Model, seen: Encoding, gap: int) -> dict[str, Tensor]:
    """What a model with a mask decoder predicts with it, without its positions, and past it.

    Returns:
        Log-probabilities [V] by ``decoder`` (as it was trained), ``no_positions`` (the decoder
        runs, but its queries start from the input of the last layer alone) and ``no_decoder`` (the
        head reads the last layer, which it was never trained on).

    Raises:
        InputError: The model has no mask decoder or no head of masked tokens.
    """
    if model.config.mask_decoder is None or "masked_token" not in model.heads:
        raise InputError(f"{model.name or 'This model'} has no mask decoder.")
    ready(model)
    batch: Batch = model.collate([seen])
    with torch.inference_mode():
        out = model.encoder(batch)
        assert out.last_input is not None
        every = range(batch.shape[1])
        bare = patch("residual_in", 0, out.last_input, every, stream="mask_decoder")
        states = torch.stack(
            [
                model.encoder.decode(batch, out)[0, gap],
                model.encoder.decode(batch, out, Trace(edits=[bare]))[0, gap],
                out.hidden[0, gap],
            ]
        )
    logs = distribution(model, states)
    return dict(zip(("decoder", "no_positions", "no_decoder"), logs, strict=True))
