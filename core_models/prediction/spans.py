"""Hidden spans, told by the masked-token head and by the two tokens around each (SpanBERT)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from core_models.errors import InputError, by_position, listed
from core_models.heads.pretraining import SpanBoundaryHead
from core_models.model import Model
from core_models.network.encoder import EncoderOutput
from core_models.prediction.fill import MAX_MASKS, Question, read_rows
from core_models.prediction.passes import HEAD_ROWS, head_of
from core_models.prediction.results import FillRequest, Plain, Prediction

HEAD = "span_boundary"
Span = tuple[int, int]
"""First position of a run of pieces, and the position after its last."""


@dataclass(frozen=True)
class SpanPiece(Plain):
    """One piece of a span."""

    place: int
    """Inside the span, from 0 as in the released code (the paper counts from 1)."""
    masked_token: Prediction
    """From the piece's own state."""
    span_boundary: Prediction | None
    """From the states around the span and the place. None where pretraining asks nothing: a span
    at the edge of the text, or a place beyond those that the head knows."""
    loss: float | None
    """``-log P`` of the text's piece in nats, summed over the heads that answer (arXiv 1907.10529,
    equation 1); None where the text itself has a gap."""


@dataclass(frozen=True)
class HiddenSpan(Plain):
    """A span with what both heads make of it."""

    before: int
    """Position of the boundary token before the span."""
    after: int
    """Position of the boundary token after it."""
    edge: bool
    """One of them is a special piece: pretraining leaves such a span out."""
    pieces: list[SpanPiece]


@dataclass(frozen=True)
class Shift(Plain):
    """How far states move when something else stands inside a span: |new - old| / |old|."""

    before: float
    """Of the boundary token before the span."""
    after: float
    inside: float
    """Mean over the pieces of the span."""


def fill_spans(
    model: Model,
    text: str,
    spans: Sequence[Span],
    *,
    replaced: Mapping[int, int] | None = None,
    kept: bool = False,
    masks: Sequence[int] = (),
    top_k: int = 5,
) -> list[HiddenSpan]:
    """What a model puts into hidden spans, by both of its heads, from one forward pass.

    Args:
        model: In eval mode, with the heads masked_token and span_boundary.
        text: The sentence.
        spans: Runs that neither overlap nor touch; touching ones are one span.
        replaced: Piece ids that stand inside the spans in place of [MASK].
        kept: Whether the text's own pieces stand there, in place of [MASK].
        masks: Further positions that the model does not see.
        top_k: Best pieces of each position and head.

    Raises:
        InputError: A span is empty, beyond the text, touches another or a piece that is hidden, or
            a head is missing.
    """
    _check(model)
    spans = _spans(spans)
    question = _question(model, text, spans, replaced, kept, masks, top_k)
    places = [(n, p) for n, (start, stop) in enumerate(spans) for p in range(start, stop)]
    with torch.inference_mode():
        output, hidden = _pass(model, question)
        own = hidden[0, [p for _, p in places]]
        masked = _read(model, "masked_token", own, question, [p for _, p in places])
        rows = _rows(question, spans, cast(SpanBoundaryHead, model.heads[HEAD]).places)
        told: dict[int, Prediction] = {}
        if rows:
            spots = torch.tensor([row for _, row in rows], device=hidden.device)
            start = cast(SpanBoundaryHead, model.heads[HEAD]).boundaries(output.hidden, spots)
            asked = [position for position, _ in rows]
            told = dict(zip(asked, _read(model, HEAD, start, question, asked), strict=True))
    found: list[list[SpanPiece]] = [[] for _ in spans]
    for (n, position), prediction in zip(places, masked, strict=True):
        other = told.get(position)
        place = position - spans[n][0]
        found[n].append(SpanPiece(place, prediction, other, _loss(prediction, other)))
    return [
        HiddenSpan(start - 1, stop, _at_edge(question, start, stop), pieces)
        for (start, stop), pieces in zip(spans, found, strict=True)
    ]


def shift(
    model: Model,
    text: str,
    span: Span,
    *,
    replaced: Mapping[int, int] | None = None,
    kept: bool = False,
    masks: Sequence[int] = (),
) -> Shift:
    """How the last states change when other pieces stand in a span where [MASK] stood.

    The boundary head reads the two states around the span and nothing inside it, so whatever it
    says otherwise must have come through the encoder. For the arguments see `fill_spans`.
    """
    _check(model)
    spans = _spans([span])
    first = _question(model, text, spans, None, False, masks, 1)
    second = _question(model, text, spans, replaced, kept, masks, 1)
    with torch.inference_mode():
        old, new = (_pass(model, question)[0].hidden[0].float() for question in (first, second))
    moved = ((new - old).norm(dim=-1) / old.norm(dim=-1)).tolist()
    ((start, stop),) = spans
    inside = moved[start:stop]
    return Shift(moved[start - 1], moved[stop], sum(inside) / len(inside))


def loss_of(prediction: Prediction | None) -> float | None:
    """``-log P`` of the text's own piece in nats; None where there is no such piece."""
    if prediction is None or prediction.original is None:
        return None
    chance = prediction.original.probability
    return -math.log(chance) if chance > 0 else math.inf


def _check(model: Model) -> None:
    head_of(model)
    if missing := [name for name in ("masked_token", HEAD) if name not in model.heads]:
        raise InputError(
            f"{model.name or 'This model'} has no {missing[0]} head (heads: "
            f"{', '.join(model.heads) or 'none'}). Choose a SpanBERT that was trained with both."
        )


def _spans(spans: object) -> list[Span]:
    """Checked for what they are, not yet against a text."""
    found = listed(spans, "spans")
    for span in found:
        pair = isinstance(span, tuple | list) and len(span) == 2
        if not pair or not all(type(place) is int for place in span):
            raise InputError(
                f"A span is {repr(span)[:40]}; it must be two positions, the first of its pieces "
                "and the one after its last, as in (2, 4)."
            )
    return [(start, stop) for start, stop in found]


def _question(
    model: Model,
    text: str,
    spans: Sequence[Span],
    replaced: Mapping[int, int] | None,
    kept: bool,
    masks: Sequence[int],
    top_k: int,
) -> Question:
    """What the model sees; checks the spans against the text."""
    runs = sorted(spans)
    for start, stop in runs:
        if not 0 < start < stop or stop - start > MAX_MASKS:
            raise InputError(
                f"The span {start} to {stop} must hold 1 to {MAX_MASKS} pieces behind position 0."
            )
    for (_, stop), (start, _) in itertools.pairwise(runs):
        if start <= stop:
            raise InputError(
                f"The spans meet at position {start}. Touching spans are one span: join them."
            )
    inside = {p for start, stop in spans for p in range(start, stop)}
    replaced = by_position({} if replaced is None else replaced, "replaced")
    if stray := [p for p in replaced if p not in inside]:
        raise InputError(f"Position {stray[0]} is replaced but stands in no span.")
    others = [p for p in listed(masks, "masks") if type(p) is not int or p not in inside]
    open_ = sorted(inside - set(replaced))
    hidden, shown = ([], open_) if kept else (open_, [])
    question = Question(
        model,
        FillRequest(text, [*hidden, *others], top_k, replaced=replaced, kept=shown),
    )
    mask_id, seen = model.tokenizer.mask_id, question.seen.ids
    for start, stop in runs:
        if mask_id in (seen[start - 1], *seen[stop : stop + 1]):
            raise InputError(
                f"The piece before or after the span {start} to {stop} is hidden, too."
            )
    return question


def _pass(model: Model, question: Question) -> tuple[EncoderOutput, Tensor]:
    """The encoder's output, and the states [1, L, D] that the masked-token head reads."""
    batch = model.collate([question.seen])
    output = model.encoder(batch)
    return output, model.encoder.decode(batch, output)


def _at_edge(question: Question, start: int, stop: int) -> bool:
    special = question.encoding.special
    return special[start - 1] or all(special[stop : stop + 1])


def _rows(
    question: Question, spans: Sequence[Span], most: int
) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Positions that the boundary head answers for, each with a row of `boundaries`."""
    return [
        (start + place, (0, start - 1, stop, place))
        for start, stop in spans
        if not _at_edge(question, start, stop)
        for place in range(min(stop - start, most))
    ]


def _read(
    model: Model, head: str, states: Tensor, question: Question, positions: Sequence[int]
) -> list[Prediction]:
    """Predictions of a head from N states."""
    found: list[Prediction] = []
    for first in range(0, len(positions), HEAD_ROWS):
        part = slice(first, first + HEAD_ROWS)
        logs = model.heads[head](states[part]).float().log_softmax(-1)
        found += read_rows(model.tokenizer, [(question, p) for p in positions[part]], logs)
    return found


def _loss(masked: Prediction, boundary: Prediction | None) -> float | None:
    losses = [each for each in (loss_of(masked), loss_of(boundary)) if each is not None]
    return sum(losses) if losses else None
