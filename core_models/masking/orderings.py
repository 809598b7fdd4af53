"""Orders in which pieces are predicted, and what each stream may see (XLNet, arXiv 1906.08237).

Two readings of the same objective, as pure functions that fill ``visibility``, ``targets`` and
``target_visibility`` of a `core_models.Batch`. The input ids are never altered::

    paper     `draw_order`, `last_targets`, `paper`: one permutation of the whole input, of which
              the last pieces are predicted (section 2.2 to 2.3, equations 4 and 5)
    released  `sample_spans`, `local_ranks`, `released`: spans are predicted, in an order drawn
              inside blocks, and what is not predicted is seen by all (zihangdai/xlnet,
              data_utils.py, _sample_mask and _local_perm)

The content stream sees a piece itself, the query stream does not. A query that comes first in an
order over the whole input sees nothing at all.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.masking.spans import draw_lengths
from core_models.masking.tokens import IGNORED, Generators


@dataclass(frozen=True)
class Ordering:
    """Fields of a `core_models.Batch` for two streams."""

    visibility: Tensor
    """Content stream, bool [B, L, L], True = the row may see the column."""
    targets: Tensor
    """Positions to predict, int64 [B, M]; rows with fewer repeat position 0 at the end."""
    target_visibility: Tensor
    """Query stream, bool [B, M, L]."""
    counts: Tensor
    """How many of the targets are real, int64 [B]."""

    def labels(self, ids: Tensor) -> Tensor:
        """The piece at each target itself, -100 where the target is not real.

        Args:
            ids: Piece ids [B, L].

        Returns:
            int64 [B, M].
        """
        real = torch.arange(self.targets.shape[1], device=ids.device) < self.counts[:, None]
        return ids.gather(1, self.targets).masked_fill(~real, IGNORED)


def draw_order(
    count: int, length: int, *, generator: Generators, first: Tensor | None = None
) -> Tensor:
    """Uniformly random orders.

    Args:
        count: Rows B.
        length: Pieces L of a row.
        generator: One for the batch, or one per row.
        first: Bool [B, L], pieces that come before all others, in the order of the text, so that
            they are never predicted: special pieces and padding. None = none.

    Returns:
        int64 [B, L], the position that is taken at each step.
    """
    keys = _uniform(count, length, generator)
    if first is not None:
        early = torch.arange(length, dtype=keys.dtype) - length
        keys = torch.where(first.to(keys.device), early, keys)
    return keys.argsort(dim=1)


def last_targets(order: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The last pieces of each order: partial prediction (section 2.3, equation 5).

    Args:
        order: int64 [B, L].
        counts: How many pieces of each row are predicted, [B]; the paper takes 1/K, K = 6 or 7.

    Returns:
        Targets [B, M] in the order of their prediction, M the largest count, padded with
        position 0 at the end; and the counts, int64 [B].

    Raises:
        ValueError: A count is below 0 or above L.
    """
    length = order.shape[1]
    counts = counts.to(order.device).long()
    if bool(((counts < 0) | (counts > length)).any()):
        raise ValueError(f"counts {counts.tolist()} must lie between 0 and the length {length}")
    steps = torch.arange(max([0, *counts.tolist()]), device=order.device)
    real = steps < counts[:, None]
    places = (length - counts[:, None] + steps).clamp(max=length - 1)
    return order.gather(1, places).masked_fill(~real, 0), counts


def paper(order: Tensor, counts: Tensor) -> Ordering:
    """What each stream sees under an order over the whole input.

    Args:
        order: int64 [B, L], the position taken at each step.
        counts: Pieces to predict, the last ones of each order, [B].
    """
    targets, counts = last_targets(order, counts)
    ranks = order.argsort(dim=1)
    earlier = ranks[:, None, :] < ranks[:, :, None]  # the column comes before the row
    return _ordering(earlier, targets, counts)


def sample_spans(
    starts: Tensor,
    goal: int,
    *,
    generator: Generators,
    longest: int = 5,
    context: float = 6.0,
    whole_words: bool = False,
) -> Tensor:
    """Choose spans to predict, by the procedure of the released code.

    A row is walked from its beginning (turn the row for reversed text): n is drawn with p ~ 1/n, a
    context of ``context * n`` pieces follows, and the span begins at the first word start from a
    random place inside that context on. Single pieces fill up what is missing in the end.

    Args:
        starts: Bool [B, L], whether a piece starts a word; special pieces do. The released code
            samples the reused half and the rest by themselves, each with half of the goal.
        goal: Pieces to choose in each row (85 of 512 in all).
        generator: One for the batch, used row after row, or one per row.
        longest: Largest n.
        context: Pieces of context per piece of a span (mask_alpha / mask_beta), about K.
        whole_words: Spans of n words, as the paper says, rather than of n pieces, as the released
            loop counts them because it asks about the span's first piece every time. The last
            span may then overshoot the goal.

    Returns:
        Bool [B, L].

    Raises:
        ValueError: The goal is not between 0 and L, or ``longest`` or ``context`` is below 1.
    """
    rows, length = starts.shape
    if not 0 <= goal <= length:
        raise ValueError(f"goal {goal} must lie between 0 and the length {length}")
    if longest < 1 or context < 1:
        raise ValueError(f"longest {longest} and context {context} must be at least 1")
    sources = [generator] * rows if isinstance(generator, torch.Generator) else list(generator)
    if len(sources) != rows:
        raise ValueError(f"{len(sources)} generators for {rows} rows: give one, or one per row")
    weights = [1.0 / n for n in range(1, longest + 1)]
    # A step passes one piece of a span and its context at least.
    steps = length // (1 + int(context)) + 1
    chosen = torch.zeros(rows, length, dtype=torch.bool)
    for row, flags, source in zip(chosen, starts.tolist(), sources, strict=True):
        drawn = torch.rand(2, steps, generator=source, device=source.device, dtype=torch.float64)
        numbers, places = drawn.tolist()
        spans = draw_lengths(numbers, weights)
        taken = _walk(flags, goal, spans, places, context, whole_words)
        row[taken] = True
        missing = goal - len(taken)
        if missing > 0:
            free = (~row).nonzero().squeeze(1)
            picked = torch.randperm(len(free), generator=source, device=source.device)[:missing]
            row[free[picked.cpu()]] = True
    return chosen.to(starts.device)


def _walk(
    starts: list[bool],
    goal: int,
    spans: list[int],
    places: list[float],
    context: float,
    whole_words: bool,
) -> list[int]:
    """Positions in the spans of one row.

    Args:
        starts: Whether a piece starts a word [L].
        goal: Pieces to choose.
        spans: n of each step.
        places: Uniform numbers in [0, 1): where in its context the span of a step begins.
        context: Pieces of context per piece of a span.
        whole_words: n counts words.
    """
    at, length = 0, len(starts)
    taken: list[int] = []
    for drawn, place in zip(spans, places, strict=True):
        if at >= length or len(taken) >= goal:
            break
        n = min(drawn, goal - len(taken))
        around = int(n * context)
        left = int(place * around)
        begin = at + left
        while begin < length and not starts[begin]:
            begin += 1
        end = begin + n
        if whole_words:
            following = [i for i in range(begin + 1, length) if starts[i]][:n]
            end = following[-1] if len(following) == n else length
        if end >= length:  # also where begin is
            break
        taken += range(begin, end)
        at = end + around - left
    return taken


def local_ranks(
    count: int, length: int, *, generator: Generators, reuse: int, block: int | None = None
) -> Tensor:
    """Ranks by which the released code orders pieces: a permutation inside each block.

    Both parts of a row, the reused one and the rest, are permuted independently. Several blocks of
    a part share its permutation (one shuffle of the rows of a [block, blocks] table); with the
    published sizes, 256 of 512, a part is one block.

    Args:
        count: Rows B.
        length: Pieces L of a row.
        generator: One for the batch, or one per row.
        reuse: Pieces of the first part; 0 = only one part.
        block: Pieces of a block (perm_size); None = each part is one block.

    Returns:
        int64 [B, L]; ranks of a later block are larger.

    Raises:
        ValueError: The parts do not fit the length, or blocks do not fill the parts.
    """
    if not 0 <= reuse <= length:
        raise ValueError(f"reuse {reuse} must lie between 0 and the length {length}")
    parts = [size for size in (reuse, length - reuse) if size]
    if block is not None and (block < 1 or any(size % block for size in parts)):
        raise ValueError(f"blocks of {block} do not fill the parts {parts}")
    keys = _uniform(count, length, generator)
    ranks = []
    begin = 0
    for size in parts:
        wide = block or size
        shuffled = keys[:, begin : begin + wide].argsort(dim=1)
        offsets = torch.arange(begin, begin + size, wide)
        ranks.append((offsets[:, None] + shuffled[:, None, :]).reshape(count, size))
        begin += size
    return torch.cat(ranks, 1)


def released(masked: Tensor, functional: Tensor, ranks: Tensor, *, reuse: int) -> Ordering:
    """What each stream sees in the released code.

    A piece that is neither chosen nor functional is seen by everyone, and itself sees no chosen
    and no functional piece. Chosen and functional pieces see those of lower rank. The first part
    is blind to the second, and the second sees all of the first.

    Args:
        masked: Bool [B, L], the pieces chosen by `sample_spans`.
        functional: Bool [B, L], separators and [CLS]: never predicted, chosen or not.
        ranks: int64 [B, L] of `local_ranks`.
        reuse: Pieces of the first part.
    """
    known = ~masked & ~functional
    wanted = masked & ~functional
    ranks = ranks.to(masked.device).masked_fill(known, -1)
    own = torch.where(wanted, ranks, ranks + 1)
    seen = (own[:, :, None] > ranks[:, None, :]) | known[:, None, :]
    seen[:, :reuse, reuse:] = False
    seen[:, reuse:, :reuse] = True
    counts = wanted.sum(1)
    # A stable sort of the flags puts the targets first, in the order of the text.
    targets = (~wanted).to(torch.uint8).argsort(dim=1, stable=True)[:, : max([0, *counts.tolist()])]
    real = torch.arange(targets.shape[1], device=targets.device) < counts[:, None]
    return _ordering(seen, targets.masked_fill(~real, 0), counts)


def _ordering(seen: Tensor, targets: Tensor, counts: Tensor) -> Ordering:
    """Both streams from what a query at each position sees [B, L, L]."""
    length = seen.shape[1]
    itself = torch.eye(length, dtype=torch.bool, device=seen.device)
    queries = seen.gather(1, targets[..., None].expand(-1, -1, length))
    return Ordering(seen | itself, targets, queries, counts)


def _uniform(count: int, length: int, generator: Generators) -> Tensor:
    """Numbers in [0, 1), float64 [B, L], on the CPU."""
    if isinstance(generator, torch.Generator):
        at = generator.device
        drawn = torch.rand(count, length, generator=generator, device=at, dtype=torch.float64)
        return drawn.cpu()
    if len(generator) != count:
        raise ValueError(f"{len(generator)} generators for {count} rows: give one, or one per row")
    return torch.stack([torch.rand(length, generator=g, dtype=torch.float64) for g in generator])
