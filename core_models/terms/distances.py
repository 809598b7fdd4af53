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
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the score terms of one forward pass share."""

    rows: Tensor
    """One row per distance, K-1 down to -(Q-1): [R, D], or [B, R, D] where sequences differ."""
    keys: int
    """Number of keys, K."""
    differs: Tensor | None = None
    """Bool [B, Q, K]: query and key are of different segments; None = all of one segment."""
    targets: Tensor | None = None
    """Positions [B, M] of the queries where they are not simply 0..Q-1 (query stream)."""
    version: tuple[object, int] | None = None
    """What ``rows`` were computed from and its version, for caches of projections; None forbids."""

    def at(self, targets: Tensor) -> Self:
        """The same for queries at the given positions [B, M] only."""
        differs = self.differs
        if differs is not None:
            differs = differs.gather(1, targets[:, :, None].expand(-1, -1, differs.shape[2]))
        return replace(self, targets=targets, differs=differs)


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """The distances of by-distance columns, K-1 down to -(Q-1) [R], int64."""
    return torch.arange(keys - 1, -queries, -1, device=device)


def along_diagonals(scores: Tensor, keys: int, targets: Tensor | None = None) -> Tensor:
    """By-distance scores [..., Q, R] to scores by key [..., Q, K].

    Args:
        scores: column c is the distance K - 1 - c; [B, H, M, R] with targets.
        keys: number of keys, K.
        targets: positions [B, M] of the queries if they are not 0..Q-1.
    """
    queries, columns = scores.shape[-2:]
    if targets is not None:
        length = columns - keys + 1  # Q of the content stream
        index = torch.arange(keys, device=scores.device) - targets[..., None] + (length - 1)
        return scores.gather(-1, index[:, None].expand(-1, scores.shape[1], -1, -1))
    flat = scores.flatten(-2)[..., queries - 1 : queries * columns - 1]
    return flat.view(*flat.shape[:-1], queries, columns - 1)[..., :keys]


class ProjectionCache:
    """Keeps projections of a prepared table per length while no parameter changes.

    Only used without gradients: then the relative projections of a length never change between
    calls, and computing them is a large share of a short pass. Entries hold the tensors that they
    were computed from and their versions, so a training step or a load makes them stale.
    """

    LENGTHS = 8
    """Lengths kept; the oldest goes first."""

    def __init__(self) -> None:
        self.entries: dict[tuple[int, int], tuple[list[tuple[object, int]], list[Tensor]]] = {}

    def get(
        self,
        prepared: Prepared,
        parameters: Sequence[Tensor],
        compute: Callable[[], list[Tensor]],
    ) -> list[Tensor]:
        """The cached result of ``compute`` or a fresh one."""
        if prepared.version is None or torch.is_grad_enabled() or torch.compiler.is_compiling():
            return compute()
        source: list[tuple[object, int]] = [prepared.version]
        source += [(p, p._version) for p in parameters]
        key = (prepared.rows.shape[-2], prepared.keys)
        entry = self.entries.get(key)
        if entry and all(
            a is c and b == d for (a, b), (c, d) in zip(entry[0], source, strict=True)
        ):
            return entry[1]
        result = compute()
        while len(self.entries) >= self.LENGTHS:
            self.entries.pop(next(iter(self.entries)), None)
        self.entries[key] = (source, result)
        return result

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A copied module starts with an empty cache."""
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """A serialised module carries no cache."""
        return type(self), ()


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[..., R, H * d] -> [..., H, R, d]."""
    return x.view(*x.shape[:-1], heads, -1).transpose(-2, -3)


def weights(*layers: nn.Linear) -> list[Tensor]:
    """Every parameter of some linear layers."""
    return [p for layer in layers for p in layer.parameters()]
