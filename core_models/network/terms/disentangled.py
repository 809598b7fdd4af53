"""DeBERTa's disentangled attention (arXiv 2006.03654, section 3.1; v3: arXiv 2111.09543).

    score(i, j) = ( q_i . k_j  +  q_i . Kr[delta(i,j)]  +  k_j . Qr[delta(i,j)] ) / sqrt(3 d)
                     content          c2p                     p2c

Kr and Qr are the relative table projected as keys and as queries. A model may have one of the two
alone; it then divides by sqrt(2 d). The paper indexes the third term
with delta(j,i); the released code uses delta(i,j) for both, and so does this.
"""

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention, Config, Disentangled
from core_models.network.norms import build_norm
from core_models.network.terms.cache import Cache, casting, keeping
from core_models.network.terms.distances import (
    Prepared,
    at_targets,
    by_distance,
    by_key,
    columns_of,
    distances,
    fill_by_key,
    from_targets,
    hide,
    mirror,
    reach_for,
    weights,
    writes_in_place,
)

MOST_GATHERED = 1023
"""Distances of 512 tokens; what longer passes gather is not kept: 6 MB a block at base size."""


def bucket(distance: Tensor, buckets: int, span: int) -> Tensor:
    """Log-spaced buckets of v2 and v3: exact up to buckets/2, then logarithmic, any shape.

    ``sign(r) * (ceil(ln(|r| / m) / ln((span - 1) / m) * (m - 1)) + m)`` for |r| above m =
    buckets/2. Later releases of the original code first clamp |r| to span - 1; its first release
    and transformers do not. All are equal up to a length of ``span``; beyond it this follows
    transformers.
    """
    middle = buckets // 2
    size = distance.abs().clamp(min=1) / middle  # float32, as in transformers: ceil is sensitive
    widest = torch.full((), (span - 1) / middle, device=distance.device).log()
    far = torch.ceil(torch.log(size) / widest * (middle - 1))
    logarithmic = (far + middle) * distance.sign()
    return torch.where(distance.abs() <= middle, distance, logarithmic.long())


class DisentangledTable(nn.Module):
    """The relative table, one row per distance or bucket."""

    keeps = True
    """Whether results may be kept between passes (``cache.py``)."""

    def __init__(self, config: Config, terms: Disentangled) -> None:
        super().__init__()
        self.span, self.buckets = terms.span, terms.buckets
        self.centre = terms.buckets or terms.span
        # Within this distance each has a row of its own, in order.
        self.exact = terms.buckets // 2 if terms.buckets else terms.span - 1
        self.relative = nn.Embedding(2 * self.centre, config.width)
        self.norm = build_norm(config, config.width) if terms.normed else nn.Identity()
        self.dropout = config.dropout
        self.cache = Cache()
        self.reach = 0

    def index(self, distance: Tensor) -> Tensor:
        """Row of the table for each distance."""
        rows = bucket(distance, self.buckets, self.span) if self.buckets else distance
        return (rows + self.centre).clamp(0, 2 * self.centre - 1)

    def forward(self, batch: Batch, memory: int) -> Prepared:
        """The rows that a pass over [B, L] needs."""
        length = batch.shape[1]
        kept = self.keeps and keeping(self.relative.weight.device) and not self.training
        reach = length - 1
        if kept:
            reach = self.reach = reach_for(reach, self.reach)
        first, last = 0, 2 * self.centre
        if reach <= self.exact:
            first, last = self.centre - reach, self.centre + reach + 1
        index = None
        if length - 1 > self.exact:
            index = self.index(distances(length, length, self.relative.weight.device))

        def normed() -> tuple[Tensor, ...]:
            return (self.norm(self.relative.weight[first:last]),)

        parameters = [*self.parameters()]
        (rows,) = self.cache.get((first, last), None, parameters, normed) if kept else normed()
        return Prepared(
            rows=rows,
            queries=length,
            keys=length,
            index=index,
            dropout=self.dropout if self.training else 0.0,
            kept=kept,
        )

    def train(self, mode: bool = True) -> Self:
        """Also forgets what is kept."""
        self.cache.clear()
        return super().train(mode)


class DisentangledTerms(nn.Module):
    """``c2p`` and ``p2c`` of one block."""

    def __init__(self, width: int, config: Attention, terms: Disentangled) -> None:
        super().__init__()
        self.names = terms.kinds
        self.scale = ((1 + len(terms.kinds)) * config.head_width) ** -0.5
        inner = config.heads * config.head_width
        self.position_key: nn.Linear | None = None
        self.position_query: nn.Linear | None = None
        if not terms.shared_projections and "c2p" in terms.kinds:
            self.position_key = nn.Linear(width, inner, bias=terms.position_key_bias)
        if not terms.shared_projections and "p2c" in terms.kinds:
            self.position_query = nn.Linear(width, inner)
        self.heads = config.heads
        self.cache = Cache()
        self.columns = Cache()

    def project(self, prepared: Prepared | None, query: nn.Module, key: nn.Module) -> Tensor:
        """Relative keys, then queries, of the pass [2 * H, d, R], scaled; or one kind [H, d, R].

        A query meets its keys by falling distance, a key its queries by rising distance: keys are
        mirrored, so that the same places of both are read.
        """
        assert prepared is not None
        sides = {"c2p": self.position_key or key, "p2c": self.position_query or query}
        layers = [sides[name] for name in self.names]
        index = prepared.index

        def project() -> tuple[Tensor, ...]:
            rows = F.dropout(prepared.rows, prepared.dropout, training=prepared.dropout > 0)
            return tuple(layer(rows) for layer in layers)

        def order() -> Tensor:
            parts = []
            for name, rows in zip(self.names, projected, strict=True):
                falling = name == "c2p"
                if index is None:
                    parts.append(mirror(rows) if falling else rows)
                else:
                    parts.append(rows.index_select(0, index if falling else index.flip(0)))
            return columns_of(torch.cat(parts, -1) * self.scale, len(parts) * self.heads)

        if prepared.kept:
            state = casting(prepared.rows.device)
            projected = self.cache.get(state, prepared.rows, weights(*layers), project)
            length = None if index is None else len(index)
            if length is None or length <= MOST_GATHERED:
                (columns,) = self.columns.get(
                    length, projected[0], [], lambda: (order().contiguous(),)
                )
            else:
                columns = order()
        else:
            projected = project()
            columns = order()
        return columns if index is not None else prepared.window(columns)

    def forward(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, relative: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """``c2p`` and ``p2c`` [B, H, Q, K], scaled."""
        assert prepared is not None
        targets = prepared.targets
        terms = {}
        for name, columns in self._columns(relative).items():
            if targets is None and name == "c2p":
                terms[name] = by_key(q, columns, prepared.keys)
            elif targets is None:
                terms[name] = by_key(k, columns, prepared.queries).transpose(-1, -2)
            elif name == "c2p":
                terms[name] = at_targets(by_distance(q, columns), targets, prepared.keys)
            else:
                terms[name] = from_targets(by_distance(k, columns), targets)
        return q, terms

    def _columns(self, relative: Tensor | None) -> dict[str, Tensor]:
        """What :meth:`project` gave, by the name of the term."""
        assert relative is not None
        return dict(zip(self.names, relative.chunk(len(self.names)), strict=True))

    def bias(
        self,
        q: Tensor,
        k: Tensor,
        prepared: Prepared | None,
        relative: Tensor | None,
        visible: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Their sum [B, H, Q, K], -inf where not visible."""
        assert prepared is not None
        assert relative is not None
        if prepared.targets is None and writes_in_place(q):
            square = prepared.square(q)
            columns = self._columns(relative)
            if "p2c" in columns:
                fill_by_key(square.transpose(-1, -2), k, columns["p2c"])
            if "c2p" in columns:
                fill_by_key(square, q, columns["c2p"], add="p2c" in columns)
            return q, hide(square, visible)
        if prepared.targets is None and len(self.names) == 2:  # one product for both
            both = by_key(torch.cat([q, k], 1), relative, prepared.keys)  # [B, 2 H, L, L]
            c2p, p2c = both.chunk(2, 1)
            return q, hide(c2p + p2c.transpose(-1, -2), visible)
        _, terms = self(q, k, prepared, relative)
        total, *others = terms.values()
        for term in others:
            total = total + term
        return q, hide(total, visible)

    def train(self, mode: bool = True) -> Self:
        """Also forgets what is kept."""
        self.cache.clear()
        self.columns.clear()
        return super().train(mode)
