"""DeBERTa's disentangled attention (arXiv 2006.03654, section 3.1; v3: arXiv 2111.09543).

    score(i, j) = ( q_i . k_j  +  q_i . Kr[delta(i,j)]  +  k_j . Qr[delta(i,j)] ) / sqrt(3 d)
                     content          c2p                     p2c

Kr and Qr are the relative table projected as keys and as queries. The paper indexes the third term
with delta(j,i); the released code uses delta(i,j) for both, and so does this.
"""

import math

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention, Config, Disentangled
from core_models.terms.distances import (
    Prepared,
    ProjectionCache,
    along_diagonals,
    distances,
    split_heads,
    weights,
)


def bucket(distance: Tensor, buckets: int, span: int) -> Tensor:
    """Log-spaced buckets of v2 and v3: exact up to buckets/2, then logarithmic, any shape.

    ``sign(r) * (ceil(ln(|r| / m) / ln((span - 1) / m) * (m - 1)) + m)`` for |r| above m =
    buckets/2. The released code first clamps |r| to span - 1; transformers does not. The two are
    equal up to a length of ``span``; beyond it this follows transformers.
    """
    middle = buckets // 2
    size = distance.abs().clamp(min=1).double()
    far = torch.ceil(torch.log(size / middle) / math.log((span - 1) / middle) * (middle - 1))
    logarithmic = (far + middle) * distance.sign()
    return torch.where(distance.abs() <= middle, distance, logarithmic.long())


class DisentangledTable(nn.Module):
    """The relative table, one row per distance or bucket."""

    def __init__(self, config: Config, terms: Disentangled) -> None:
        super().__init__()
        self.span, self.buckets = terms.span, terms.buckets
        self.relative = nn.Embedding(2 * (terms.buckets or terms.span), config.width)
        self.norm = (
            nn.LayerNorm(config.width, eps=config.norm_epsilon) if terms.normed else nn.Identity()
        )
        self.dropout = nn.Dropout(config.dropout)

    def index(self, distance: Tensor) -> Tensor:
        """Row of the table for each distance."""
        if self.buckets is None:
            return distance.clamp(-self.span, self.span - 1) + self.span
        rows = bucket(distance, self.buckets, self.span) + self.buckets
        return rows.clamp(0, 2 * self.buckets - 1)

    def forward(self, batch: Batch, memory: int) -> Prepared:
        """Rows for every distance of a pass, R = 2 L - 1."""
        length = batch.shape[1]
        table = self.dropout(self.norm(self.relative.weight))
        rows = table[self.index(distances(length, length, table.device))]
        version = (self.relative.weight, self.relative.weight._version)
        return Prepared(rows=rows, keys=length, version=version)


class DisentangledTerms(nn.Module):
    """``c2p`` and ``p2c`` of one block."""

    def __init__(self, width: int, config: Attention, terms: Disentangled) -> None:
        super().__init__()
        self.scale = (3 * config.head_width) ** -0.5
        self.heads = config.heads
        inner = config.heads * config.head_width
        self.position_key: nn.Linear | None = None
        self.position_query: nn.Linear | None = None
        if not terms.shared_projections:
            self.position_key = nn.Linear(width, inner, bias=terms.position_key_bias)
            self.position_query = nn.Linear(width, inner)
        self.cache = ProjectionCache()

    def forward(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, query: nn.Linear, key: nn.Linear
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """``c2p`` and ``p2c`` [B, H, L, L], scaled."""
        assert prepared is not None
        rows = prepared.rows
        to_key, to_query = self.position_key or key, self.position_query or query

        def project() -> list[Tensor]:
            keys = split_heads(to_key(rows), self.heads)  # [H, R, d]
            queries = split_heads(to_query(rows.flip(0)), self.heads)
            return [(x * self.scale).transpose(-1, -2).contiguous() for x in (keys, queries)]

        keys, queries = self.cache.get(prepared, weights(to_key, to_query), project)
        c2p = along_diagonals(q @ keys, prepared.keys)
        # Seen from key j the distance of query i grows with i, hence the flipped rows.
        p2c = along_diagonals(k @ queries, q.shape[2]).transpose(-1, -2)
        return q, {"c2p": c2p, "p2c": p2c}
