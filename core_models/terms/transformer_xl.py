"""XLNet's relative attention (arXiv 1906.08237, section 2.4; Transformer-XL: arXiv 1901.02860).

    score(i, j) = ( (q_i + u).k_j  +  (q_i + v).Kr[i - j]  +  (q_i + w).s[differs(i,j)] ) / sqrt(d)
                       content            position                  segment

u, v and w are learned per block; Kr projects sinusoids of the distance; s has one vector for "same
segment" and one for "other segment", per block. The bias u folds into the queries of the content
score.
"""

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention, Config, TransformerXL
from core_models.terms.distances import (
    Prepared,
    ProjectionCache,
    along_diagonals,
    distances,
    split_heads,
    weights,
)


class TransformerXLTable(nn.Module):
    """Sinusoids of the distances and the segment comparison; no parameters."""

    def __init__(self, config: Config, terms: TransformerXL) -> None:
        super().__init__()
        self.width, self.clamp, self.segments = config.width, terms.clamp, terms.segments
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, batch: Batch, memory: int) -> Prepared:
        """Rows for every distance of a pass over L tokens after ``memory`` remembered ones."""
        length = batch.shape[1]
        keys = memory + length
        distance = distances(length, keys, batch.device).float()
        if self.clamp is not None:
            distance = distance.clamp(-self.clamp, self.clamp)
        rows = self._sinusoids(distance)
        if batch.reversed is not None:
            rows = torch.where(batch.reversed[:, None, None], self._sinusoids(-distance), rows)
        differs = None
        if self.segments and batch.segment_ids is not None:
            ids = batch.segment_ids
            before = torch.zeros_like(ids[:, :1]).expand(-1, memory)  # memory counts as segment 0
            differs = ids[:, :, None] != torch.cat([before, ids], 1)[:, None, :]
        dropped = self.training and self.dropout.p > 0
        fixed = not dropped and batch.reversed is None
        return Prepared(
            rows=self.dropout(rows),
            keys=keys,
            differs=differs,
            version=(self, 0) if fixed else None,
        )

    def _sinusoids(self, distance: Tensor) -> Tensor:
        """Distances [R] to rows [R, D]: sines, then cosines."""
        steps = torch.arange(0, self.width, 2, device=distance.device).float()
        angles = distance[:, None] * (10_000 ** (-steps / self.width))
        return torch.cat([angles.sin(), angles.cos()], -1)


class TransformerXLTerms(nn.Module):
    """``position`` and ``segment`` of one block, and its content bias."""

    def __init__(self, width: int, config: Attention, terms: TransformerXL) -> None:
        super().__init__()
        self.scale = config.head_width**-0.5
        self.heads = config.heads
        shape = (config.heads, config.head_width)
        self.position_key = nn.Linear(width, config.heads * config.head_width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(shape))
        self.position_bias = nn.Parameter(torch.zeros(shape))
        self.segment_bias = nn.Parameter(torch.zeros(shape))
        self.segment_vectors = nn.Parameter(torch.zeros(2, *shape))
        self.cache = ProjectionCache()

    def forward(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, query: nn.Linear, key: nn.Linear
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Biased queries, and the scaled terms [B, H, Q, K]."""
        assert prepared is not None
        rows = prepared.rows

        def project() -> list[Tensor]:
            keys = split_heads(self.position_key(rows), self.heads)  # [(B,) H, R, d]
            return [(keys * self.scale).transpose(-1, -2).contiguous()]

        (keys,) = self.cache.get(prepared, weights(self.position_key), project)
        by_distance = (q + self.position_bias[:, None]) @ keys
        terms = {"position": along_diagonals(by_distance, prepared.keys, prepared.targets)}
        if prepared.differs is not None:
            vectors = self.segment_vectors.transpose(0, 1).transpose(-1, -2) * self.scale
            scores = (q + self.segment_bias[:, None]) @ vectors  # [B, H, Q, 2]
            same, other = scores[..., :1], scores[..., 1:]
            terms["segment"] = torch.where(prepared.differs[:, None], other, same)
        return q + self.content_bias[:, None], terms
