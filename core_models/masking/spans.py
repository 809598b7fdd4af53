"""Masking runs of words: SpanBERT's spans, the n-grams of ALBERT and DeBERTa.

Pure functions like those of `core_models.masking.tokens`, with the same arguments; what is masked
is chosen row by row, the replacing is done for the whole batch::

    spans            SpanBERT (arXiv 1907.10529, section 3.1; facebookresearch/SpanBERT)
    ngrams           ALBERT (arXiv 1909.11942, section 3.1; google-research/albert)
    windowed_ngrams  DeBERTa (arXiv 2006.03654; microsoft/DeBERTa, NGramMaskGenerator)

MacBERT (`core_models.data.similar`) chooses as `ngrams` with ``weights=MACBERT_WEIGHTS``.

A run never goes on behind a special piece. The released code of ALBERT and DeBERTa leaves special
pieces out before it counts words, so that there the last word of one text and the first of the
next may be one n-gram; SpanBERT's examples have one text.
"""

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from core_models.masking.tokens import Generators, Masked, draw, prepare, replace_pieces

ALBERT_WEIGHTS = (1.0, 1 / 2, 1 / 3)
"""Shares of n-grams of 1, 2 and 3 words: 6/11, 3/11, 2/11."""
MACBERT_WEIGHTS = (4.0, 3.0, 2.0, 1.0)
"""Shares of n-grams of 1 to 4 words (arXiv 2004.13922, section 3)."""


@dataclass(frozen=True)
class SpanMasked(Masked):
    """A masked input with its spans."""

    spans: Tensor
    """int64 [N, 3]: row, first position, position after the last one. Chosen pieces that touch
    are one span, however they were chosen; sorted by row and position."""


def geometric(p: float = 0.2, longest: int = 10) -> tuple[float, ...]:
    """Shares of span lengths 1..longest, ``p (1 - p)^(n - 1)`` renormalised; mean 3.797.

    Raises:
        ValueError: p is not between 0 and 1, or ``longest`` is below 1.
    """
    if not 0.0 < p < 1.0 or longest < 1:
        raise ValueError(f"p {p} must lie between 0 and 1, longest {longest} be at least 1")
    raw = [p * (1 - p) ** n for n in range(longest)]
    return tuple(share / sum(raw) for share in raw)


def draw_lengths(numbers: Sequence[float], shares: Sequence[float]) -> list[int]:
    """Lengths from uniform numbers in [0, 1), by the shares of the lengths 1, 2, ..."""
    edges = list(itertools.accumulate(shares))[:-1]
    return [1 + bisect.bisect_right(edges, number * sum(shares)) for number in numbers]


def spans(
    ids: Tensor,
    maskable: Tensor,
    words: Tensor | None = None,
    *,
    generator: Generators,
    mask_id: int,
    vocabulary: int,
    unigram: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    shares: Sequence[float] | None = None,
) -> SpanMasked:
    """Mask spans of whole words; all pieces of a span share one draw among the three cases.

    A piece not chosen yet is drawn uniformly, so long words are favoured; the span begins at its
    word and runs over words already chosen. ``ceil(rate * n)`` of the n maskable pieces are
    chosen, and the last span is cut where the budget ends. Spans that overlap or touch merge
    before the draw.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape: False for [CLS], [SEP] and padding.
        words: Word group of each piece, same shape, int64; -1 = none. None = pieces are words.
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].
        vocabulary: V.
        unigram: Probabilities [V] of random pieces, those of the corpus in the released code;
            None = uniform.
        rate: Share to mask, of the maskable pieces.
        split: Shares of [MASK], random pieces and kept pieces among the spans.
        shares: Shares of the lengths 1, 2, ... in words; None = `geometric`.

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    if unigram is not None and unigram.shape != (vocabulary,):
        raise ValueError(f"unigram {tuple(unigram.shape)} must have the shape ({vocabulary},)")
    rows, open_, _ = prepare(ids, maskable, None, rate, split, None)
    wanted = geometric() if shares is None else shares
    chosen = torch.zeros(rows.shape, dtype=torch.bool)
    for row, (groups, source) in enumerate(rows_by_words(open_, words, generator)):
        budget = math.ceil(rate * sum(map(len, groups)))
        chosen[row, _take_spans(groups, budget, wanted, source)] = True
    chosen = chosen.to(rows.device)
    numbers, case, pieces = draw(rows.shape, vocabulary, generator, rows.device)
    if unigram is not None:
        edges = unigram.to(numbers).cumsum(0)
        pieces = torch.searchsorted(edges, numbers * edges[-1], right=True)
        pieces = pieces.clamp(max=vocabulary - 1)
    # Every piece takes the draw of the first piece of its span.
    first = chosen & ~functional.pad(chosen, (1, 0))[:, :-1]
    columns = torch.arange(rows.shape[1], device=rows.device)
    begins = torch.where(first, columns, 0).cummax(1).values
    return with_spans(
        replace_pieces(ids, chosen, case.gather(1, begins), pieces, mask_id, split), chosen
    )


def _take_spans(
    groups: list[list[int]], budget: int, shares: Sequence[float], generator: torch.Generator
) -> list[int]:
    """Positions of one row."""
    flat = [piece for group in groups for piece in group]
    word_of = [word for word, group in enumerate(groups) for _ in group]
    taken: dict[int, None] = {}
    while len(taken) < budget:
        at, length = _numbers(2, generator)
        anchor = int(at * len(flat))
        if flat[anchor] in taken:
            continue
        word = word_of[anchor]
        stop = _behind(groups, word, draw_lengths([length], shares)[0])
        for piece in itertools.chain.from_iterable(groups[word:stop]):
            if len(taken) >= budget:
                break
            taken[piece] = None
    return list(taken)


def ngrams(
    ids: Tensor,
    maskable: Tensor,
    words: Tensor | None = None,
    *,
    generator: Generators,
    mask_id: int,
    vocabulary: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    most: int | None = None,
    weights: Sequence[float] = ALBERT_WEIGHTS,
) -> SpanMasked:
    """Mask n-grams of whole words as ALBERT does; the draw among the cases is made per piece.

    Words are visited in random order; each begins an n-gram of a random n, shortened until it fits
    what is left of the budget. One that does not fit, or touches a chosen piece, is skipped.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape.
        words: Word group of each piece, same shape; -1 = none. None = pieces are words.
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].
        vocabulary: V.
        lengths: Pieces per row without padding but with [CLS] and [SEP], [B]; None = no padding.
        rate: Share to mask, of `lengths`.
        split: Shares of [MASK], random piece and kept piece.
        most: Most pieces to mask per row (20 in the released code); None = no limit.
        weights: Shares of n = 1, 2, ...

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    rows, open_, budget = prepare(ids, maskable, lengths, rate, split, most)
    chosen = torch.zeros(rows.shape, dtype=torch.bool)
    quotas = budget.tolist()
    for row, (groups, source) in enumerate(rows_by_words(open_, words, generator)):
        chosen[row, take_ngrams(groups, quotas[row], weights, source)] = True
    return _per_piece(ids, chosen.to(rows.device), vocabulary, generator, mask_id, split)


def take_ngrams(
    groups: list[list[int]], budget: int, weights: Sequence[float], generator: torch.Generator
) -> list[int]:
    """Positions that `ngrams` chooses in one row, given its pieces by words."""
    numbers = _numbers(2 * len(groups), generator)
    turns = sorted(range(len(groups)), key=numbers[::2].__getitem__)
    taken: dict[int, None] = {}
    for word, n in zip(turns, draw_lengths(numbers[1::2], weights), strict=True):
        for shorter in range(n, 0, -1):
            stop = _behind(groups, word, shorter)
            pieces = list(itertools.chain.from_iterable(groups[word:stop]))
            if len(taken) + len(pieces) <= budget:
                if not any(piece in taken for piece in pieces):
                    taken.update(dict.fromkeys(pieces))
                break
        if len(taken) >= budget:
            break
    return list(taken)


def windowed_ngrams(
    ids: Tensor,
    maskable: Tensor,
    words: Tensor | None = None,
    *,
    generator: Generators,
    mask_id: int,
    vocabulary: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    most: int | None = None,
    weights: Sequence[float] = ALBERT_WEIGHTS,
) -> SpanMasked:
    """Mask n-grams as DeBERTa does; the draw among the cases is made per piece.

    The words are walked in windows of ``int(1 / rate) * n`` words, each with one n-gram at a
    random place; from the front on these are masked until the quota is reached, so that the tail
    of a row is masked less. A word is never cut: the last one may exceed the quota. With a single
    weight pieces take the place of words, as in the released code (v3).

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape.
        words: Word group of each piece, same shape; -1 = none. None = pieces are words.
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].
        vocabulary: V.
        lengths: Pieces per row without padding but with [CLS] and [SEP], [B]; None = no padding.
        rate: Share to mask, of `lengths`.
        split: Shares of [MASK], random piece and kept piece; v3 masks with (1, 0, 0).
        most: Quota's limit (80 at 512 pieces in the released code); None = no limit.
        weights: Shares of n = 1, 2, ...

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    rows, open_, budget = prepare(ids, maskable, lengths, rate, split, most)
    window, quotas = int(1 / rate), budget.tolist()
    chosen = torch.zeros(rows.shape, dtype=torch.bool)
    single = len(weights) == 1
    for row, (groups, source) in enumerate(
        rows_by_words(open_, None if single else words, generator)
    ):
        taken: list[int] = []
        for word in _windows(groups, window, weights, source):
            taken += groups[word]
            if len(taken) >= quotas[row]:
                break
        chosen[row, taken] = True
    return _per_piece(ids, chosen.to(rows.device), vocabulary, generator, mask_id, split)


def _behind(groups: list[list[int]], word: int, n: int) -> int:
    """The word behind a run of n words that begins with ``word``, or of what there is of them.

    A run ends before a piece that must not be masked, such as a [SEP].
    """
    for stop in range(word + 1, min(word + n, len(groups))):
        if groups[stop][0] != groups[stop - 1][-1] + 1:
            return stop
    return min(word + n, len(groups))


def _windows(
    groups: list[list[int]], window: int, weights: Sequence[float], generator: torch.Generator
) -> list[int]:
    """Words of the n-grams of one row, from the front."""
    taken: list[int] = []
    offset, count = 0, len(groups)
    while offset < count:
        length, at = _numbers(2, generator)
        n = draw_lengths([length], weights)[0]
        size = min(n * window, count - offset)
        start = offset + int(at * size)
        stop = _behind(groups, start, n)
        taken += range(start, stop)
        offset = max(offset + size, stop)
    return taken


def _per_piece(
    ids: Tensor,
    chosen: Tensor,
    vocabulary: int,
    generator: Generators,
    mask_id: int,
    split: tuple[float, float, float],
) -> SpanMasked:
    """Replace every chosen piece by a draw of its own."""
    _, case, pieces = draw(chosen.shape, vocabulary, generator, chosen.device)
    return with_spans(replace_pieces(ids, chosen, case, pieces, mask_id, split), chosen)


def with_spans(masked: Masked, chosen: Tensor) -> SpanMasked:
    """Add the runs of chosen pieces [B, L]."""
    edges = functional.pad(chosen.to(torch.int8), (1, 1)).diff(dim=1)
    begins, ends = (edges == 1).nonzero(), (edges == -1).nonzero()
    found = torch.cat([begins, ends[:, 1:]], 1)
    return SpanMasked(masked.inputs, masked.labels, masked.cases, found)


def rows_by_words(
    open_: Tensor, words: Tensor | None, generator: Generators
) -> Iterable[tuple[list[list[int]], torch.Generator]]:
    """Positions of the maskable pieces of each row by words, and the generator of the row."""
    rows, length = open_.shape
    sources = [generator] * rows if isinstance(generator, torch.Generator) else list(generator)
    if len(sources) != rows:
        raise ValueError(f"{len(sources)} generators for {rows} rows: give one, or one per row")
    groups = torch.arange(length).expand(rows, -1) if words is None else words.reshape(rows, length)
    for flags, names, source in zip(open_.tolist(), groups.tolist(), sources, strict=True):
        places = [i for i in range(length) if flags[i] and names[i] >= 0]
        yield [list(run) for _, run in itertools.groupby(places, names.__getitem__)], source


def _numbers(count: int, generator: torch.Generator) -> list[float]:
    """Uniform numbers in [0, 1)."""
    drawn = torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
    numbers: list[float] = drawn.tolist()
    return numbers
