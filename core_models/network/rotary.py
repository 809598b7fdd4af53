"""Rotary positions: queries and keys turned by angles (arXiv 2104.09864, section 3.2).

Value ``n`` of a head and value ``n + d/2`` are one point of a plane, which position ``p`` turns by
``p * theta^(-2n/d)``; a product of a query and a key then depends on their distance alone. (The
paper pairs neighbours, ``2n`` and ``2n + 1``; released encoders pair the halves, as here.)
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rotation:
    """The turns of one pass for the layers of one kind, each [1 or B, 1, L, d / 2]."""

    cosines: Tensor
    sines: Tensor
    queries: tuple[Tensor, Tensor] | None = None
    """Cosines and sines of the queries, where these are not simply all positions."""

    @classmethod
    def of(cls, length: int, head_width: int, theta: float, device: torch.device) -> Self:
        """For positions 0..L-1; which position is the first is of no effect."""
        pairs = torch.arange(0, head_width, 2, device=device, dtype=torch.float32)
        rates = 1.0 / theta ** (pairs / head_width)
        angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * rates
        return cls(angles.cos()[None, None], angles.sin()[None, None])

    def at(self, places: Tensor) -> Self:
        """The same for queries at the given positions [B, M] only."""
        found = (self.cosines[0, 0][places][:, None], self.sines[0, 0][places][:, None])
        return replace(self, queries=found)

    def of_queries(self, q: Tensor) -> Tensor:
        """Turned queries [B, H, Q, d]."""
        return turn(q, *(self.queries or (self.cosines, self.sines)))

    def of_keys(self, k: Tensor) -> Tensor:
        """Turned keys [B, H, L, d]."""
        return turn(k, self.cosines, self.sines)


def turn(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn the pairs of values of [B, H, L, d]; in float32 at least, and back to the type of x."""
    first, second = x.chunk(2, -1)
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    return torch.cat(turned, -1).to(x.dtype)
