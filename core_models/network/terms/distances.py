"""Scores by relative distance, without gathering.

A relative score depends on a query and a distance, so it is first computed for every distance that
can occur and then read along the diagonals of the [Q, K] square. With Q queries after M remembered
tokens and K = M + Q keys there are R = Q + K - 1 distances; column c of a by-distance matrix is
the distance (query position - key position) = K - 1 - c:

    by distance, Q = K = 3            by key
        c   0  1  2  3  4             j   0  1  2
      i=0   .  .  a  b  c           i=0   a  b  c      distances  0 -1 -2
      i=1   .  d  e  f  .     ->    i=1   d  e  f      distances  1  0 -1
      i=2   g  h  k  .  .           i=2   g  h  k      distances  2  1  0

In row-major memory the wanted entries of successive rows are R - 1 apart: one slice and one view.

Relative keys and queries are columns [H, d, T], one for each distance, and never rows: a product
with contiguous columns takes about half the time of one with the same numbers as rows.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the score terms of one forward pass share."""

    rows: Tensor
    """Rows of the relative table [T, D], by ascending distance."""
    queries: int
    """Number of tokens of the content stream, Q."""
    keys: int
    """Number of keys, K."""
    index: Tensor | None = None
    """Row of each distance, K-1 down to -(Q-1) [R]; None = every distance of the pass has its own
    row, in order, and distance 0 has row T // 2."""
    differs: Tensor | None = None
    """Bool [B, Q, K]: query and key are of different segments; None = all of one segment."""
    reversed: Tensor | None = None
    """Bool [B]: distances change sign in these sequences."""
    targets: Tensor | None = None
    """Positions [B, M] of the queries where they are not simply 0..Q-1."""
    dropout: float = 0.0
    """Rate of dropout that every block applies to ``rows`` for itself, 0 outside training."""
    kept: bool = False
    """Whether ``rows``, and so what is made of them, stay the same in later passes."""
    scratch: list[Tensor] = field(default_factory=list, compare=False)
    """What :meth:`square` hands out; one pass is one thread's, so its blocks may share it."""

    def square(self, q: Tensor) -> Tensor:
        """Memory [B, H, Q, K] of the pass for one block's summed terms, with any contents.

        A fresh tensor per block would cost more in page faults than the terms that go into it.
        """
        if not self.scratch:
            self.scratch.append(q.new_empty(*q.shape[:2], self.queries, self.keys))
        return self.scratch[0]

    def at(self, targets: Tensor) -> Self:
        """The same for queries at the given positions [B, M] only."""
        differs = self.differs
        if differs is not None:
            differs = differs.gather(1, targets[:, :, None].expand(-1, -1, differs.shape[2]))
        return replace(self, targets=targets, differs=differs)

    def window(self, columns: Tensor) -> Tensor:
        """The distances K-1 down to -(Q-1) [H, d, R] of columns that stand for all distances.

        Args:
            columns: :func:`columns_of` mirrored rows [H, d, T].
        """
        start = columns.shape[-1] // 2 - (self.keys - 1)
        return columns[..., start : start + self.queries + self.keys - 1]


def mirror(rows: Tensor) -> Tensor:
    """Rows [T, ...] by falling distance, with distance 0 in row T // 2 as before."""
    flipped = rows.flip(0)
    return flipped if rows.shape[0] % 2 else flipped.roll(1, 0)


def columns_of(rows: Tensor, heads: int) -> Tensor:
    """Rows [T, H * d] as columns [H, d, T], a view."""
    return rows.view(rows.shape[0], heads, -1).permute(1, 2, 0)


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """The distances of by-distance columns, K-1 down to -(Q-1) [R], int64."""
    return torch.arange(keys - 1, -queries, -1, device=device)


def by_distance(x: Tensor, columns: Tensor) -> Tensor:
    """Products of queries or keys [B, H, L, d] with columns [H, d, R]: [B, H, L, R].

    Heads are the batch of one matrix product and sequences are stacked in its rows, so the columns
    are not repeated per sequence.
    """
    batch, heads, length, width = x.shape
    stacked = x.transpose(0, 1).reshape(heads, batch * length, width)  # a view for split heads
    products = torch.bmm(stacked, columns)
    return products.view(heads, batch, length, columns.shape[-1]).transpose(0, 1)


def along_diagonals(scores: Tensor, keys: int) -> Tensor:
    """By-distance scores [..., Q, R] to scores by key [..., Q, K]."""
    queries, columns = scores.shape[-2:]
    if queries == 1:
        return scores  # R = K, in order already
    flat = scores.flatten(-2)[..., queries - 1 : queries * columns - 1]
    return flat.view(*flat.shape[:-1], queries, columns - 1)[..., :keys]


def writes_in_place(x: Tensor) -> bool:
    """Whether :func:`fill_by_key` serves queries [B, H, Q, d]: long, on a CPU, without a graph."""
    short = x.shape[2] < 2 * BLOCK
    return not (short or torch.is_grad_enabled() or torch.compiler.is_compiling()) and (
        x.device.type == "cpu"
    )


def fill_by_key(square: Tensor, x: Tensor, columns: Tensor, *, add: bool = False) -> None:
    """Write :func:`by_key` into ``square`` [B, H, Q, K], or add it to what is there."""
    queries, keys = square.shape[-2:]
    for start in range(0, queries, BLOCK):
        stop = min(start + BLOCK, queries)
        window = columns[..., queries - stop : queries - start + keys - 1]
        block = along_diagonals(by_distance(x[:, :, start:stop], window), keys)
        part = square[:, :, start:stop]
        _ = part.add_(block) if add else part.copy_(block)


def by_key(x: Tensor, columns: Tensor, keys: int) -> Tensor:
    """Relative scores [B, H, Q, K] of x [B, H, Q, d] with columns [H, d, R], R = Q + K - 1.

    Entry (i, j) is the product of x_i and column Q - 1 - i + j. Half of the products that a long
    square computes lie outside its diagonals; in blocks of queries few do.
    """
    queries = x.shape[2]
    if torch.compiler.is_compiling() or x.device.type != "cpu" or queries < 2 * BLOCK:
        return along_diagonals(by_distance(x, columns), keys)
    parts = []
    for start in range(0, queries, BLOCK):
        stop = min(start + BLOCK, queries)
        window = columns[..., queries - stop : queries - start + keys - 1]
        parts.append(along_diagonals(by_distance(x[:, :, start:stop], window), keys))
    return torch.cat(parts, 2)


BLOCK = 64
"""Queries per block, by measurement on a CPU: 1.3 to 1.5 times faster from 200 tokens on.
Elsewhere more and smaller products cost more than they save, and a compiled graph would be bound
to one length."""


def at_targets(scores: Tensor, targets: Tensor, keys: int) -> Tensor:
    """By-distance scores [B, H, M, R] of queries at positions [B, M] to scores by key [B, H, M, K].

    Column K - 1 - distance of R = Q + K - 1, as everywhere; M queries stand anywhere in 0..Q-1.
    """
    length = scores.shape[-1] - keys + 1  # Q of the content stream
    index = torch.arange(keys, device=scores.device) - targets[..., None] + (length - 1)
    return scores.gather(-1, index[:, None].expand(-1, scores.shape[1], -1, -1))


def from_targets(scores: Tensor, targets: Tensor) -> Tensor:
    """By-distance scores [B, H, K, R] of keys to scores by target [B, H, M, K].

    Column distance + K - 1 of R = 2 K - 1: a key meets its queries by rising distance.
    """
    keys = scores.shape[-2]
    index = targets[:, None, :] - torch.arange(keys, device=scores.device)[:, None] + (keys - 1)
    chosen = scores.gather(-1, index[:, None].expand(-1, scores.shape[1], -1, -1))
    return chosen.transpose(-1, -2)


def hide(bias: Tensor, visible: Tensor | None) -> Tensor:
    """``bias`` with -inf where not visible, in its own memory where no graph needs it."""
    if visible is None:
        return bias
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return torch.where(visible, bias, float("-inf"))
    return bias.masked_fill_(~visible, float("-inf"))


def weights(*layers: nn.Module) -> list[Tensor]:
    """Every parameter of some linear layers."""
    return [p for layer in layers for p in layer.parameters()]


def reach_for(farthest: int, kept: int) -> int:
    """How far rows that are kept between passes should reach: a power of two less one.

    Lengths that share a power of two, and all shorter ones, then share one projection.

    Args:
        farthest: largest distance of this pass.
        kept: what is kept already.
    """
    return max(kept, (1 << max(farthest, 31).bit_length()) - 1)
