"""XLNet's relative attention (arXiv 1906.08237, section 2.4; Transformer-XL: arXiv 1901.02860).

    score(i, j) = ( (q_i + u).k_j  +  (q_i + v).Kr[i - j]  +  (q_i + w).s[differs(i,j)] ) / sqrt(d)
                       content            position                  segment

u, v and w are learned per block; Kr projects sinusoids of the distance; s has one vector for "same
segment" and one for "other segment", per block. The bias u folds into the queries of the content
score.
"""

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention, Config, TransformerXL
from core_models.network.terms.cache import Cache, casting, keeping
from core_models.network.terms.distances import (
    Prepared,
    at_targets,
    by_distance,
    by_key,
    columns_of,
    fill_by_key,
    hide,
    mirror,
    reach_for,
    weights,
    writes_in_place,
)

MOST_KEPT = 2047
"""Sinusoids and projections of longer distances than this are not kept between passes."""


class TransformerXLTable(nn.Module):
    """Sinusoids of the distances and the segment comparison; no parameters."""

    keeps = True
    """Whether results may be kept between passes (``cache.py``)."""

    def __init__(self, config: Config, terms: TransformerXL) -> None:
        super().__init__()
        self.width, self.clamp, self.segments = config.width, terms.clamp, terms.segments
        self.dropout = config.dropout
        self.cache = Cache()
        self.reach = 0

    def forward(self, batch: Batch, memory: int) -> Prepared:
        """Rows for every distance of a pass over L tokens after ``memory`` remembered ones."""
        length = batch.shape[1]
        keys = memory + length
        reach = keys - 1
        device = batch.device
        kept = self.keeps and keeping(device) and not self.training and reach <= MOST_KEPT
        if kept:
            reach = self.reach = reach_for(reach, self.reach)
            (rows,) = self.cache.get(
                (reach, device), None, [], lambda: (self._rows(reach, device),)
            )
        else:
            rows = self._rows(reach, device)
        if self.training:  # once for all blocks, and for all sequences of the batch
            rows = F.dropout(rows, self.dropout)
        differs = None
        if self.segments and batch.segment_ids is not None:
            ids = batch.segment_ids
            before = ids.new_zeros(ids.shape[0], memory)  # memory counts as segment 0
            differs = ids[:, :, None] != torch.cat([before, ids], 1)[:, None, :]
        return Prepared(
            rows=rows,
            queries=length,
            keys=keys,
            differs=differs,
            reversed=batch.reversed,
            kept=kept,
        )

    def _rows(self, reach: int, device: torch.device) -> Tensor:
        """Distances -reach..reach as [T, D]: sines, then cosines."""
        distance = torch.arange(-reach, reach + 1, device=device).float()
        if self.clamp is not None:
            distance = distance.clamp(-self.clamp, self.clamp)
        steps = torch.arange(0, self.width, 2, device=device).float()
        angles = distance[:, None] * (1 / 10_000 ** (steps / self.width))
        return torch.cat([angles.sin(), angles.cos()], -1)


class TransformerXLTerms(nn.Module):
    """``position`` and ``segment`` of one block, and its content bias."""

    names: tuple[str, ...] = ("position", "segment")

    def __init__(self, width: int, config: Attention, terms: TransformerXL) -> None:
        super().__init__()
        self.scale = config.head_width**-0.5
        shape = (config.heads, config.head_width)
        self.position_key = nn.Linear(width, config.heads * config.head_width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(shape))
        self.position_bias = nn.Parameter(torch.zeros(shape))
        self.segment_bias = nn.Parameter(torch.zeros(shape))
        self.segment_vectors = nn.Parameter(torch.zeros(2, *shape))
        self.cache = Cache()

    def project(self, prepared: Prepared | None, query: nn.Module, key: nn.Module) -> Tensor:
        """Relative keys by falling distance [H, d, T], scaled."""
        assert prepared is not None
        layer, heads = self.position_key, self.content_bias.shape[0]

        def project() -> Tensor:
            rows = mirror(layer(prepared.rows.to(self.content_bias.dtype))) * self.scale
            return columns_of(rows, heads)

        if not prepared.kept:
            return project()
        state = casting(prepared.rows.device)
        kept = self.cache.get(
            state, prepared.rows, weights(layer), lambda: (project().contiguous(),)
        )
        return kept[0]

    def forward(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, relative: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Biased queries, and the scaled terms [B, H, Q, K]."""
        assert prepared is not None
        assert relative is not None
        terms = {"position": self._position(q, prepared, relative)}
        if prepared.differs is not None:
            same, other = self._segment(q)
            terms["segment"] = torch.where(prepared.differs[:, None], other, same)
        return q + self.content_bias[:, None], terms

    def bias(
        self,
        q: Tensor,
        k: Tensor,
        prepared: Prepared | None,
        relative: Tensor | None,
        visible: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Biased queries, and the terms' sum [B, H, Q, K], -inf where not visible.

        What a query adds to all keys alike changes no probability, so the segment term is taken
        relative to that of one segment.
        """
        assert prepared is not None
        assert relative is not None
        in_place = writes_in_place(q) and prepared.targets is None and prepared.reversed is None
        if in_place:
            square = prepared.square(q)
            fill_by_key(square, q + self.position_bias[:, None], prepared.window(relative))
        else:
            square = self._position(q, prepared, relative)
        if prepared.differs is not None:
            same, other = self._segment(q)
            differs = prepared.differs[:, None].to(q.dtype)
            add = square.addcmul_ if in_place else square.addcmul
            square = add(differs, other - same)
        return q + self.content_bias[:, None], hide(square, visible)

    def _segment(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """What a query gives to keys of its own segment and of the other, each [B, H, Q, 1]."""
        vectors = self.segment_vectors.transpose(0, 1).transpose(-1, -2) * self.scale
        scores = (q + self.segment_bias[:, None]) @ vectors  # [B, H, Q, 2]
        return scores[..., :1], scores[..., 1:]

    def _position(self, q: Tensor, prepared: Prepared, relative: Tensor) -> Tensor:
        q = q + self.position_bias[:, None]
        scores = self._scores(q, relative, prepared)
        if prepared.reversed is not None:
            opposite = self._scores(q, relative.flip(-1), prepared)
            scores = torch.where(prepared.reversed[:, None, None, None], opposite, scores)
        return scores

    def _scores(self, q: Tensor, relative: Tensor, prepared: Prepared) -> Tensor:
        falling = prepared.window(relative)
        if prepared.targets is None:
            return by_key(q, falling, prepared.keys)
        return at_targets(by_distance(q, falling), prepared.targets, prepared.keys)

    def train(self, mode: bool = True) -> Self:
        """Also forgets what is kept."""
        self.cache.clear()
        return super().train(mode)
