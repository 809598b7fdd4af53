"""Scores term by term, switched terms, distances and mask decoders of the Terms tab. No Gradio."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import core_models as cm
from app.serving.ask import clean_text, whole_number
from app.serving.pieces import sentence_tokens
from core_models import InputError
from core_models.config import Disentangled
from core_models.network.terms.buckets import edges, exact_reach
from core_models.prediction import terms_view
from core_models.prediction.passes import seen_with
from core_models.prediction.terms_view import Pass, TermView
from core_models.tokenizer import Encoding

MOST_SHOWN = 40
"""Rows and columns of a map."""
REACHES = (16, 64, 160, 640)
"""How far the chart of distances may look."""
TOP = 5
MOST_PIECES = 1 << 17
"""More than any text of the page has: four bytes for each of 20,000 characters."""
MOST_STEP = 1_000

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the visitor chose; numbers beyond a smaller model's last one mean its last one."""

    text: str
    spans: tuple[Span, ...]
    """Characters [start, end) that are hidden, beside every [MASK] in the text."""
    layer: int
    head: int
    stream: str
    off: tuple[str, ...]
    scope: str
    gap: int | None
    """Position whose prediction is shown; None = the first hidden one."""
    first: int
    """First piece of the maps."""
    reach: int
    query: int | None
    """Position of the piece that looks, of a model with rotary positions."""
    key: int | None
    """Position of the piece that is set at every distance."""


def read_setting(values: Mapping[str, Any], spans: Sequence[Span]) -> Setting:
    """The setting in an event of the page; InputError for anything that does not fit.

    What the page shows only where it fits (terms, gap, first piece) counts as none where it does
    not: a link may hold anything.
    """
    off = values.get("off")
    first, gap, query, key = (
        value if isinstance(value := values.get(name), int) else None
        for name in ("first", "gap", "query", "key")
    )
    off = [name for name in off if isinstance(name, str)] if isinstance(off, list) else []
    stream, scope = values.get("stream"), values.get("scope", "head")
    if scope not in terms_view.SCOPES:
        shown = str(scope)[:40]
        raise InputError(f"The scope is {shown!r}; it must be head, layer or model.")
    reach = values.get("reach", REACHES[0])
    if reach not in REACHES:
        known = ", ".join(map(str, REACHES))
        raise InputError(f"The reach is {str(reach)[:40]!r}; it must be one of {known}.")
    return Setting(
        text=clean_text(values.get("text")),
        spans=tuple(spans),
        layer=whole_number(values.get("layer", 0), "layer", 0, MOST_STEP),
        head=whole_number(values.get("head", 0), "head", 0, MOST_STEP),
        stream=stream if stream in terms_view.STREAMS else "content",
        off=tuple(dict.fromkeys(off[:8])),
        scope=scope,
        gap=gap,
        first=first or 0,
        reach=int(reach),
        query=query,
        key=key,
    )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A setting fitted to a model."""

    model: cm.Model
    encoding: Encoding
    seen: Encoding
    gaps: tuple[int, ...]
    stream: str
    layer: int
    """Of the stream."""
    head: int
    off: tuple[str, ...]
    scope: str

    @property
    def step(self) -> int:
        """The encoder's layer whose weights the stream runs."""
        decoding = self.stream == "mask_decoder"
        return self.model.config.steps - 1 if decoding else self.layer

    def look(self, off: Sequence[str]) -> Pass:
        """One pass with some terms off."""
        edits = terms_view.switched_off(
            self.model.config, off, self.scope, step=self.step, head=self.head
        )
        return terms_view.look(
            self.model,
            self.seen,
            self.gaps,
            step=self.layer,
            head=self.head,
            stream=self.stream,
            edits=edits,
        )


def fit(model: cm.Model, setting: Setting) -> Asked:
    """Fit a setting to a model: gaps by characters, numbers to its size, terms that it has."""
    (encoding,) = model.encode([setting.text])
    tokenizer = model.tokenizer
    gaps: tuple[int, ...] = ()
    if terms_view.can_predict(model):
        gaps = tuple(
            position
            for position, (start, end) in enumerate(encoding.offsets)
            if encoding.ids[position] == tokenizer.mask_id
            or (
                not encoding.special[position]
                and any(start < last and first < end for first, last in setting.spans)
            )
        )
    known = terms_view.streams(model, gaps)
    stream = setting.stream if setting.stream in known else known[0]
    decoder = model.config.mask_decoder
    decoding = stream == "mask_decoder" and decoder is not None
    steps = decoder.steps if decoding and decoder else model.config.steps
    names = terms_view.term_names(model.config)
    return Asked(
        model=model,
        encoding=encoding,
        seen=seen_with(encoding, dict.fromkeys(gaps, tokenizer.mask_id)),
        gaps=gaps,
        stream=stream,
        layer=min(setting.layer, steps - 1),
        head=min(setting.head, model.config.attention.heads - 1),
        off=tuple(name for name in setting.off if name in names) if len(names) > 1 else (),
        scope=setting.scope,
    )


def examine(model: cm.Model, setting: Setting) -> dict[str, Any]:
    """Everything that the page shows of a model that has a sentence; runs on the model thread."""
    asked = fit(model, setting)
    before = asked.look(())
    now = asked.look(asked.off) if asked.off else before
    decoder = model.config.mask_decoder
    gap = setting.gap if setting.gap in asked.gaps else next(iter(asked.gaps), None)
    decoding = asked.stream == "mask_decoder" and decoder is not None
    return {
        "names": list(now.view.names),
        "turned": model.config.attention.rotary is not None,
        "layers": decoder.steps if decoding and decoder else model.config.steps,
        "heads": model.config.attention.heads,
        "layer": asked.layer,
        "head": asked.head,
        "streams": list(terms_view.streams(model, asked.gaps)),
        "stream": asked.stream,
        "off": list(asked.off),
        "scope": asked.scope,
        "gaps": list(asked.gaps),
        "gap": gap,
        "tokens": [
            {
                "position": token.position,
                "text": "[MASK]" if token.position in asked.gaps else token.text,
                "own": token.text,
            }
            for token in sentence_tokens(asked.encoding, model.tokenizer)
        ],
        "truncated": asked.encoding.truncated,
        "whole": _whole(asked),
        **_maps(now.view, before.view, setting.first, gap),
        "distances": _distances(now.view, setting.reach),
        "curves": _curves(asked, now, setting.reach),
        "prediction": None if gap is None else _prediction(asked, before, now, gap),
        "verdicts": _verdicts(model, before, now),
        "decoder": _decoder(asked, gap),
        "can_predict": terms_view.can_predict(model),
    }


def _whole(asked: Asked) -> int:
    """Pieces that the text would have, also those beyond the model's longest input."""
    if not asked.encoding.truncated:
        return len(asked.encoding.ids)
    tokenizer = asked.model.tokenizer
    return len(tokenizer.encode(asked.encoding.text, max_length=MOST_PIECES).ids)


def _maps(view: TermView, before: TermView, first: int, gap: int | None) -> dict[str, Any]:
    """The numbers of a window of the square, as little-endian float32 in base64."""
    columns = view.terms.shape[2]
    start = max(0, min(first, columns - MOST_SHOWN))
    across = slice(start, start + MOST_SHOWN)
    down = across if len(view.rows) == columns else slice(0, MOST_SHOWN)
    scores = torch.where(view.visible, view.scores, torch.nan)
    values = torch.cat([view.terms.flatten(), view.scores[view.visible]])
    return {
        "first": start,
        "rows": list(view.rows[down]),
        "columns": list(range(columns))[across],
        "terms": [_coded(term[down, across]) for term in view.terms],
        "scores": _coded(scores[down, across]),
        "probabilities": _coded(view.probabilities[down, across]),
        "before": _coded(before.probabilities[down, across]),
        "top": float(values.abs().max()),
        "residue": view.residue(),
    }


def _coded(numbers: Tensor) -> str:
    data = numbers.float().cpu().contiguous().numpy().astype("<f4").tobytes()
    return base64.b64encode(data).decode("ascii")


def decoded(text: str, columns: int) -> np.ndarray:
    """The numbers of a map [Q, K] as the page gets them."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(-1, columns)


def _distances(view: TermView, reach: int) -> list[list[float]]:
    """Distance, pairs, mean of each term."""
    return [
        [found.distance, found.pairs, *(round(mean, 6) for mean in found.means)]
        for found in terms_view.by_distance(view)
        if abs(found.distance) <= reach
    ]


def _curves(asked: Asked, now: Pass, reach: int) -> dict[str, Any] | None:
    terms = asked.model.config.attention.terms
    if not isinstance(terms, Disentangled):
        return None
    found = terms_view.bias_curves(
        asked.model, now, range(-reach, reach + 1), step=asked.step, head=asked.head
    )
    shown = {name: curve for name, curve in found.items() if name not in asked.off}
    return {
        **{name: [round(v, 6) for v in shown.get(name, [])] or None for name in ("c2p", "p2c")},
        "edges": edges(terms, reach),
        "exact": exact_reach(terms),
    }


# --- predictions ----------------------------------------------------------------------------------


def _prediction(asked: Asked, before: Pass, now: Pass, gap: int) -> dict[str, Any]:
    """The best pieces of both passes, and the piece of the text."""
    at = asked.gaps.index(gap)
    logs = {}
    for name, found in (("before", before), ("after", now)):
        assert found.answers is not None
        logs[name] = terms_view.distribution(asked.model, found.answers[at : at + 1])[0]
    return _compared(asked, logs, gap)


def _compared(asked: Asked, logs: Mapping[str, Tensor], gap: int) -> dict[str, Any]:
    """Candidates of several distributions [V], each with its chance and rank in all of them."""
    tokenizer = asked.model.tokenizer
    own = asked.encoding.ids[gap]
    wanted: dict[int, None] = {}
    for values in logs.values():
        wanted |= dict.fromkeys(values.topk(min(TOP, len(values))).indices.tolist())
    if own != tokenizer.mask_id:
        wanted |= {own: None}
    return {
        "own": None if own == tokenizer.mask_id else own,
        "columns": list(logs),
        "rows": [
            {
                "id": index,
                "piece": tokenizer.piece(index),
                "display": tokenizer.display(index),
                "chances": [float(values[index].exp()) for values in logs.values()],
                "ranks": [int((values > values[index]).sum()) + 1 for values in logs.values()],
            }
            for index in wanted
        ],
    }


def _verdicts(model: cm.Model, before: Pass, now: Pass) -> list[list[float]] | None:
    """P(replaced) of each token in both passes, of a discriminator."""
    if "replaced_token" not in model.heads or before.hidden is None or now.hidden is None:
        return None
    pair = [terms_view.verdicts(model, found.hidden).tolist() for found in (before, now)]
    return [list(values) for values in zip(*pair, strict=True)]


def _decoder(asked: Asked, gap: int | None) -> dict[str, Any] | None:
    """Predictions with the mask decoder, without its positions and past it."""
    model = asked.model
    if gap is None or model.config.mask_decoder is None or "masked_token" not in model.heads:
        return None
    found = terms_view.decoder_variants(model, asked.seen, gap)
    return {**_compared(asked, found, gap), "steps": model.config.mask_decoder.steps}
