"""One number that a model computes from a text, as a function of the vectors of its pieces.

Methods that ask "why" (gradients, integrated gradients, occlusion) need a function from inputs that
can be moved a little to one number per row. The inputs are rows of the piece table [B, L, E];
positions and segments are added inside, as always.

========  ==================================================  ====================================
kind      head                                                what ``answer`` counts
========  ==================================================  ====================================
piece     masked_token, permutation or causal                 pieces of the vocabulary
replaced  replaced_token                                      0 = real, 1 = replaced
class     classify, multilabel, next_sentence or              labels
          sentence_order
score     regress                                             only 0, the score itself
tag       tag                                                 labels
start     span                                                positions of the input
end       span                                                positions of the input
========  ==================================================  ====================================
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.heads.task import MixedTagHead, TaskHead
from core_models.model import Model
from core_models.network.initialise import initialise
from core_models.prediction.judge import PAIR_HEADS
from core_models.prediction.passes import KINDS as WAYS
from core_models.prediction.passes import check_told, head_name, hidden_of, ready
from core_models.tokenizer import Encoding

HEADS: Mapping[str, tuple[str, ...]] = {
    "piece": tuple(WAYS),
    "replaced": ("replaced_token",),
    "class": ("classify", "multilabel", *PAIR_HEADS),
    "score": ("regress",),
    "tag": ("tag",),
    "start": ("span",),
    "end": ("span",),
}
"""Heads that answer each kind of question."""
AT_A_PLACE = ("piece", "replaced", "tag")
"""Kinds that are asked at a position."""
SCALES = ("log_probability", "probability", "logit")
BASELINES = ("mask", "pad", "zero")
VERDICTS = ("real", "replaced")


@dataclass(frozen=True, kw_only=True)
class Target:
    """The number in question."""

    kind: str
    position: int | None = None
    """Where it is asked (piece, replaced, tag)."""
    answer: int = 0
    """Which answer, counted as the table of this module says."""
    against: int | None = None
    """The number is how far the score of ``answer`` exceeds the score of this one; None = the
    answer alone."""
    scale: str = "log_probability"
    """Of an answer alone: ``log_probability`` (nats), ``probability`` or ``logit`` (the raw score).
    A difference of logits is a difference of log-probabilities, too. A ``score`` has no scale."""


def kinds(model: Model) -> tuple[str, ...]:
    """What can be asked of a model, by the heads that it has."""
    return tuple(kind for kind, heads in HEADS.items() if any(h in model.heads for h in heads))


def names(model: Model, kind: str) -> tuple[str, ...]:
    """Names of the answers by number; empty where they are pieces, positions or one score."""
    if kind == "replaced":
        return VERDICTS
    if kind not in ("class", "tag"):
        return ()
    head = head_for(model, kind)
    if head in PAIR_HEADS:
        return PAIR_HEADS[head]
    return cast(TaskHead, model.heads[head]).labels


class TargetFunction:
    """Vectors of pieces [B, L, E] -> the number in question, of each row [B].

    Differentiable in the vectors. Which pieces are hidden from the attention of a model that
    predicts in an order (XLNet) is settled by ``seen`` and does not change with the vectors.

    Args:
        model: In eval mode; give it a `frozen_copy` where other threads use the same one.
        seen: What the model reads, with the mask piece where pieces are hidden.
        target: What is asked.

    Raises:
        InputError: The model has no such head, or a number of the target is out of range.
    """

    def __init__(self, model: Model, seen: Encoding, target: Target) -> None:
        ready(model)
        self.model = model
        self.target = target
        self.seen = seen
        self.head = head_for(model, target.kind)
        self._batch = model.collate([seen])
        assert self._batch.input_ids is not None
        self.vectors = vectors_of(model, self._batch.input_ids)
        """What the model reads [1, L, E]."""
        _check_place(target, seen)
        if target.kind == "piece":
            check_told(model, self._place)
        with torch.no_grad():
            self.given = self.scores(self.vectors)
            """Scores of every answer to what the model reads [1, N]."""
        _check_answer(target, self.given.shape[1])

    def __call__(self, vectors: Tensor) -> Tensor:
        """[B, L, E] -> [B]."""
        return self._number(self.scores(vectors))

    @property
    def value(self) -> float:
        """The number for what the model reads."""
        return float(self._number(self.given))

    def _number(self, scores: Tensor) -> Tensor:
        """[B, N] -> [B]."""
        target = self.target
        if target.against is not None:
            return scores[:, target.answer] - scores[:, target.against]
        if target.scale == "logit" or target.kind == "score":
            return scores[:, target.answer]
        logs = self.logs(scores)[:, target.answer]
        return logs if target.scale == "log_probability" else logs.exp()

    def logs(self, scores: Tensor) -> Tensor:
        """Scores [B, N] -> log-probabilities: of each label by itself where several may hold."""
        if self.head == "multilabel":
            return functional.logsigmoid(scores)
        return scores.log_softmax(-1)

    def scores(self, vectors: Tensor) -> Tensor:
        """[B, L, E] -> scores of every answer [B, N], before any softmax."""
        kind = self.target.kind
        if kind == "piece":
            return self._pieces(self._rows(vectors)).float()
        if kind in AT_A_PLACE:
            return self.everywhere(vectors, self._place)[:, self._place]
        batch, encoder, head = self._rows(vectors), self.model.encoder, self.model.heads[self.head]
        if self.head in PAIR_HEADS:
            first = torch.zeros(batch.shape[0], 1, dtype=torch.long, device=batch.device)
            found = head(encoder(batch, places=first).hidden)
        else:
            found = cast(TaskHead, head).answer(encoder, batch)
        if kind == "score":
            found = found[:, None]
        elif kind in ("start", "end"):
            found = found[..., ("start", "end").index(kind)]
        return cast(Tensor, found).float()

    def everywhere(self, vectors: Tensor, place: int | None = None) -> Tensor:
        """[B, L, E] -> scores of every answer at every position [B, L, N] (replaced, tag).

        With a place only its scores mean anything.
        """
        batch, encoder, head = self._rows(vectors), self.model.encoder, self.model.heads[self.head]
        if self.target.kind == "tag":
            return cast(TaskHead, head).answer(encoder, batch).float()
        places = None
        if place:  # DeBERTa v3's head reads the first token, too
            places = torch.tensor([[0, place]], device=batch.device).expand(batch.shape[0], -1)
        logits = cast(Tensor, head(encoder(batch, places=places).hidden)).float()
        return torch.stack([torch.zeros_like(logits), logits], -1)  # softmax = sigmoid

    @property
    def _place(self) -> int:
        assert self.target.position is not None
        return self.target.position

    def _rows(self, vectors: Tensor) -> Batch:
        """The same input with other vectors, once for each row."""
        rows = vectors.shape[0]
        ids, segments = self._batch.input_ids, self._batch.segment_ids
        return Batch(
            input_ids=None if ids is None else ids.expand(rows, -1),
            embeddings=vectors,
            segment_ids=None if segments is None else segments.expand(rows, -1),
        )

    def _pieces(self, batch: Batch) -> Tensor:
        """Scores of the vocabulary at the one position [B, V], each family through its head."""
        model, place, rows = self.model, self._place, batch.shape[0]
        head, way = model.heads[self.head], WAYS[self.head]
        places = torch.full((rows, 1), place, device=batch.device)
        if way == "masked":
            return cast(Tensor, head(hidden_of(model, batch, places)[:, 0]))
        assert self._batch.input_ids is not None
        shown = self._batch.input_ids != model.tokenizer.mask_id  # [1, L]
        itself = torch.eye(batch.shape[1], dtype=torch.bool, device=batch.device)
        options = {}
        if way == "order" or model.config.left_to_right:
            options["visibility"] = (shown[:, None, :] | itself).expand(rows, -1, -1)
        if way == "order":
            options["targets"] = places
            options["target_visibility"] = (shown & ~itself[place]).expand(rows, 1, -1)
        asked = Batch(**(vars(batch) | options))
        if way == "order":
            output = model.encoder(asked, places=places[:, :0])  # the query stream answers
            return cast(Tensor, head(output.streams["query"][:, 0]))
        return cast(Tensor, head(hidden_of(model, asked, places - 1)[:, 0]))


def vectors_of(model: Model, ids: Tensor) -> Tensor:
    """Rows of the piece table for ids [B, L] -> [B, L, E], detached."""
    return model.encoder.embeddings.pieces.weight.detach()[ids]


def nothing(model: Model, kind: str) -> Tensor:
    """What stands in a word's place where it is taken away, a vector [E].

    Args:
        model: Whose table is read.
        kind: ``mask`` (the mask piece), ``pad`` (the padding piece) or ``zero`` (a zero vector).

    Raises:
        InputError: No such kind.
    """
    if kind not in BASELINES:
        raise InputError(f"The baseline is {kind!r}; it must be one of {', '.join(BASELINES)}.")
    table = model.encoder.embeddings.pieces.weight.detach()
    if kind == "zero":
        return torch.zeros_like(table[0])
    pad = model.config.embeddings.pad_id
    return table[model.tokenizer.mask_id if kind == "mask" else pad]


def baseline(model: Model, seen: Encoding, kind: str) -> Tensor:
    """An input that says nothing [1, L, E]: every piece but the special ones is replaced.

    Args:
        model: Whose table is read.
        seen: What the model reads.
        kind: By what, see `nothing`.

    Raises:
        InputError: No such kind.
    """
    row = nothing(model, kind)
    ids = model.collate([seen]).input_ids
    assert ids is not None
    words = torch.tensor([not special for special in seen.special], device=ids.device)
    return torch.where(words[None, :, None], row, vectors_of(model, ids))


def frozen_copy(model: Model) -> Model:
    """A model with modules of its own over the same numbers, none of which asks for a gradient.

    Threads that use the two do not meet: what a module keeps between passes is its own. The
    numbers are shared, so that even a large model costs no memory; write to neither.
    """
    memo: dict[int, object] = {id(model.tokenizer): model.tokenizer}
    for parameter in model.parameters():
        memo[id(parameter)] = nn.Parameter(parameter.detach(), requires_grad=False)
    return copy.deepcopy(model, memo)


def top_blocks(model: Model, count: int) -> list[int]:
    """The blocks that run last, without repetitions (ALBERT has one)."""
    return list(dict.fromkeys(reversed(model.config.schedule)))[:count]


def redrawn(model: Model, blocks: int, generator: torch.Generator) -> Model:
    """A frozen copy that has forgotten its top: heads and the last blocks as before training.

    For the check of Adebayo et al. 2018 (arXiv 1810.03292): an explanation that stays the same on
    such a model says nothing of what was learnt. The piece table stays, also where a head shares
    it.

    Args:
        model: Is not changed.
        blocks: How many blocks to draw anew beside the heads, from the last one down.
        generator: Of the draw.
    """
    made = frozen_copy(model)
    table = made.encoder.embeddings.pieces.weight
    made.heads = copy.deepcopy(made.heads, {id(table): table})
    std = model.config.initial_std
    for part in made.heads.modules():
        if getattr(part, "weight", None) is table:
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
        elif not list(part.children()):
            initialise(part, std, generator)
        if isinstance(part, MixedTagHead):
            nn.init.zeros_(part.weights)
            nn.init.ones_(part.scale)
    for block in top_blocks(model, blocks):
        made.encoder.blocks[block] = copy.deepcopy(made.encoder.blocks[block])
        initialise(made.encoder.blocks[block], std, generator)
    return made


def head_for(model: Model, kind: str) -> str:
    """The head that answers a kind of question; InputError where the model has none."""
    if kind not in HEADS:
        raise InputError(f"The kind is {str(kind)[:40]!r}; it must be one of {', '.join(HEADS)}.")
    if kind == "piece":
        return head_name(model)
    found = next((head for head in HEADS[kind] if head in model.heads), None)
    if found is None:
        raise InputError(
            f"{model.name or 'This model'} cannot be asked for “{kind}” (heads: "
            f"{', '.join(model.heads) or 'none'}; needed is {' or '.join(HEADS[kind])})."
        )
    return found


def _check_place(target: Target, seen: Encoding) -> None:
    if target.scale not in SCALES:
        raise InputError(f"The scale is {target.scale!r}; it must be one of {', '.join(SCALES)}.")
    if target.kind not in AT_A_PLACE:
        return
    place = target.position
    there = hasattr(place, "__index__") and 0 <= cast(int, place) < len(seen)
    if not there or seen.special[cast(int, place)]:
        words = [p for p, special in enumerate(seen.special) if not special]
        raise InputError(
            f"Position {place} holds no word; words stand at {min(words, default=0)} to "
            f"{max(words, default=0)}."
        )


def _check_answer(target: Target, count: int) -> None:
    asked = (target.answer,) if target.against is None else (target.answer, target.against)
    for answer in asked:
        if not hasattr(answer, "__index__") or not 0 <= answer < count:
            raise InputError(f"The answer {answer} is out of range; there are {count} (from 0).")
    if target.answer == target.against:
        raise InputError("An answer cannot be set against itself; choose two different ones.")
