"""Local attention: each query sees a window of keys around it.

Time and memory grow with L, not with its square: queries are taken in blocks, and each block meets
the keys of its own positions and of one window on either side.

    keys   . . a b c d e f . .        window 2, blocks of 4 queries
               |-----|                queries a b c d
           |-------------|            their keys: two before the block and two behind it
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from core_models.network.fused import attend_fused


def band(window: int, queries: Tensor, keys: int) -> Tensor:
    """Bool [..., Q, K]: keys at most ``window`` tokens from the queries' positions [..., Q]."""
    distance = queries[..., None] - torch.arange(keys, device=queries.device)
    return distance.abs() <= window


def block_length(window: int) -> int:
    """Queries per block: as many as a window, by measurement on a CPU.

    At width 12 x 64 and 2,048 tokens twice as many take a fifth longer.
    """
    return window


@dataclass(frozen=True)
class Windows:
    """What local layers share in a pass over [B, L] that is computed in blocks of S queries."""

    window: int
    length: int
    """L."""
    seen: Tensor
    """Bool [1 or B, n, 1, S, S + 2 * window], which of a block's keys its queries see."""

    @classmethod
    def of(cls, window: int, length: int, real: Tensor | None, device: torch.device) -> "Windows":
        """For keys of which ``real`` [B, L] may be seen; None = all."""
        size = block_length(window)
        blocks = -(-length // size)
        start = torch.arange(blocks, device=device)[:, None] * size
        places = start + torch.arange(-window, size + window, device=device)  # [n, S + 2 w]
        inside = (places >= 0) & (places < length)
        near = band(window, torch.arange(window, window + size, device=device), size + 2 * window)
        seen = (inside[:, None, None, :] & near)[None]
        if real is not None:
            padded = F.pad(real, (window, blocks * size - length + window))
            own = padded.unfold(1, size + 2 * window, size)  # [B, n, S + 2 w]
            seen = seen & own[:, :, None, None, :]
        return cls(window, length, seen)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float, dropout: float) -> Tensor:
        """Weighted values [B, H, L, d] of queries, keys and values of that shape."""
        rows, blocks = q.shape[0], self.seen.shape[1]
        size = self.seen.shape[3]
        behind = blocks * size - self.length
        queries = F.pad(q, (0, 0, 0, behind)).unflatten(2, (blocks, size))  # [B, H, n, S, d]
        seen = self.seen.expand(rows, -1, -1, -1, -1).flatten(0, 1)
        context = attend_fused(
            queries.transpose(1, 2).flatten(0, 1),
            self._around(k, behind),
            self._around(v, behind),
            seen,
            scale,
            dropout,
        )
        parted: Tensor = context.unflatten(0, (rows, blocks)).transpose(1, 2)  # [B, H, n, S, d]
        return parted.flatten(2, 3)[:, :, : self.length]

    def _around(self, x: Tensor, behind: int) -> Tensor:
        """Keys or values of every block and around it: [B, H, L, d] -> [B * n, H, S + 2 w, d]."""
        size = self.seen.shape[3]
        padded = F.pad(x, (0, 0, self.window, behind + self.window))
        found = padded.unfold(2, size + 2 * self.window, size)  # [B, H, n, d, S + 2 w]
        return found.permute(0, 2, 1, 4, 3).flatten(0, 1)
