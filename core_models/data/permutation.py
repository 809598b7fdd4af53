"""Orderings of packed examples: what `core_models.masking.orderings` needs, read from a batch.

::

    paper_ordering      one order over the whole row; any input format, padded or not; no memory
    released_ordering   spans as in the released code; made for `Recurrent`, also without memory
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from core_models.data.layout import TokenBatch
from core_models.masking.orderings import (
    Ordering,
    draw_order,
    local_ranks,
    paper,
    released,
    sample_spans,
)
from core_models.masking.tokens import Generators


def paper_ordering(batch: TokenBatch, *, generator: Generators, predict: float = 1 / 6) -> Ordering:
    """A random order of each row, of which the last pieces are predicted (XLNet, section 2.2).

    Special pieces and padding come first, so that they are never predicted.

    Args:
        batch: Rows of any format.
        generator: One for the batch, or one per row.
        predict: Share of the pieces to predict, special ones not counted (1/K); at least one piece
            of a row, if it has any.

    Raises:
        ValueError: The share is out of range, or the rows continue those of a batch before: then
            the memory would hold text that its own pieces had seen too early.
    """
    _check(predict)
    if batch.reuse is not None:
        raise ValueError("an order over whole rows has no memory: use released_ordering")
    open_ = batch.maskable
    available = open_.sum(1)
    counts = torch.minimum((available * predict).round().long().clamp(min=1), available)
    rows, length = open_.shape
    return paper(draw_order(rows, length, generator=generator, first=~open_), counts)


def released_ordering(
    batch: TokenBatch,
    *,
    generator: Generators,
    predict: float = 85 / 512,
    block: int | None = None,
    whole_words: bool = False,
) -> Ordering:
    """Spans to predict and what is seen of them, as in zihangdai/xlnet (data_utils.py).

    Both parts of a row, the reused one and the rest, are sampled by themselves. Rows of reversed
    text are sampled from the beginning of their text.

    Args:
        batch: Rows of `Recurrent`, or of any format: those have one part.
        generator: One for the batch, or one per row.
        predict: Share of the pieces to choose, special ones counted, which are then not predicted.
        block: See `orderings.local_ranks`.
        whole_words: See `orderings.sample_spans`.

    Raises:
        ValueError: The share is out of range, or blocks do not fill the parts.
    """
    _check(predict)
    rows, length = batch.input_ids.shape
    sources = _per_row(generator, rows)
    reuse = batch.reuse or 0
    chosen = torch.zeros(rows, length, dtype=torch.bool)
    words = batch.words.cpu()
    backwards = [False] * rows if batch.reversed is None else batch.reversed.tolist()
    first = batch.attention_mask.to(torch.uint8).argmax(1).tolist()
    for row, (begin, count) in enumerate(zip(first, batch.lengths.tolist(), strict=True)):
        goal = round(predict * count)
        rest = goal * (count - reuse) // count
        parts = [(begin + reuse, begin + count, rest)]
        if reuse:
            parts.insert(0, (begin, begin + reuse, goal - rest))
        for start, stop, wanted in parts:
            groups = words[row, start:stop]
            groups = groups.flip(0) if backwards[row] else groups
            spans = sample_spans(
                _starts(groups)[None], wanted, generator=[sources[row]], whole_words=whole_words
            )[0]
            chosen[row, start:stop] = spans.flip(0) if backwards[row] else spans
    ranks = local_ranks(rows, length, generator=generator, reuse=reuse, block=block)
    functional = ~batch.maskable
    return released(chosen.to(functional.device), functional, ranks, reuse=reuse)


def _starts(groups: Tensor) -> Tensor:
    """Whether a piece starts a word [L], from its word group; special pieces do."""
    starts = groups < 0
    starts[0] = True
    starts[1:] |= groups[1:] != groups[:-1]
    return starts


def _per_row(generator: Generators, rows: int) -> Sequence[torch.Generator]:
    return [generator] * rows if isinstance(generator, torch.Generator) else generator


def _check(predict: float) -> None:
    if not 0.0 < predict <= 1.0:
        raise ValueError(f"predict {predict} must lie above 0 and at most at 1")
