"""Attention with named score terms.

Every family computes, per head,

    softmax( scale * q.k  +  sum of named terms  +  visibility ) . v

A query that may see no key at all attends to nothing: its output is zero, on both paths. (The
released XLNet code gives such a query the mean of all keys, its own target among them; a padded
DeBERTa row is zero in the original code as here.)
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.config import Attention as AttentionConfig
from core_models.network.fused import attend_fused
from core_models.network.rotary import Rotation
from core_models.network.terms import Prepared, Terms, build_terms
from core_models.network.trace import Sites
from core_models.network.visibility import visible_at
from core_models.network.windows import Windows, band


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    terms: Mapping[str, Tensor] | None = None,
    visible: Tensor | None = None,
    dropout: float = 0.0,
    sites: Sites | None = None,
) -> Tensor:
    """Weighted values.

    Args:
        q: queries [B, H, Q, d].
        k: keys [B, H, K, d].
        v: values [B, H, K, d].
        scale: factor of the content score.
        terms: named summands of the score, already scaled, each broadcastable to [B, H, Q, K].
        visible: bool, broadcastable to [B, H, Q, K]; True = the query may see the key.
        dropout: rate on the probabilities, 0 outside training.
        sites: where the trace listens; None takes the fused path.

    Returns:
        [B, H, Q, d].
    """
    terms = terms or {}
    if sites is None or not sites.wants_scores(terms):
        bias = visible
        if terms:
            bias = functools.reduce(torch.add, terms.values())
            if visible is not None:
                bias = torch.where(visible, bias, float("-inf"))
        return attend_fused(q, k, v, bias, scale, dropout)
    scores = sites.offer("content_score", (q @ k.transpose(-1, -2)) * scale)  # [B, H, Q, K]
    for name, term in terms.items():
        scores = scores + sites.offer(f"term:{name}", term)
    if visible is not None:
        scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    probabilities = sites.offer("scores", scores).softmax(-1)
    if visible is not None:
        probabilities = probabilities * visible  # a row that sees nothing becomes zero
    probabilities = sites.offer("probabilities", probabilities)
    return F.dropout(probabilities, dropout) @ v


@dataclass(frozen=True)
class Shared:
    """What all steps of one kind share in a forward pass, made once."""

    visible: Tensor | None = None
    """Bool, broadcastable to [B, H, Q, K]; None = all, or what ``windows`` say."""
    prepared: Prepared | None = None
    """What the score terms need."""
    rotation: Rotation | None = None
    """How queries and keys are turned."""
    windows: Windows | None = None
    """Local attention that is computed in blocks."""

    def at(self, places: Tensor) -> Self:
        """The same for queries at the given positions [B, M] only."""
        visible = visible_at(self.visible, places)
        if self.windows is not None:
            near = band(self.windows.window, places, self.windows.length)[:, None]
            visible = near if visible is None else visible & near
        return replace(
            self,
            visible=visible,
            prepared=None if self.prepared is None else self.prepared.at(places),
            rotation=None if self.rotation is None else self.rotation.at(places),
            windows=None,
        )


_NOTHING = Shared()


@dataclass(frozen=True)
class Source:
    """What several passes over the same hidden states share in one block."""

    k: Tensor
    """Keys [B, H, K, d], turned where positions are rotary."""
    v: Tensor
    """Values [B, H, K, d]."""
    relative: Tensor | None
    """What the score terms made of the relative rows."""


class Attention(nn.Module):
    """Multi-head attention whose queries may come from elsewhere; groups may share keys."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__()
        inner = config.heads * config.head_width
        keys = inner // config.group
        self.heads = config.heads
        self.group = config.group
        self.dropout = config.dropout
        self.query = nn.Linear(width, inner, bias=config.query_bias)
        self.key = nn.Linear(width, keys, bias=config.key_bias)
        self.value = nn.Linear(width, keys, bias=config.value_bias)
        self.output = nn.Linear(inner, width, bias=config.output_bias)
        self.terms: Terms = build_terms(width, config)

    def source(
        self,
        hidden: Tensor,
        shared: Shared = _NOTHING,
        memory: Tensor | None = None,
        sites: Sites | None = None,
    ) -> Source:
        """What every pass over ``hidden`` [B, L, D] starts from; arguments as in ``forward``."""
        before = hidden if memory is None else torch.cat([memory, hidden], 1)
        k, v = self._shared(self.key(before)), self._shared(self.value(before))
        if shared.rotation is not None:
            k = shared.rotation.of_keys(k if sites is None else sites.offer("k_unturned", k))
        return Source(k, v, self.terms.project(shared.prepared, self.query, self.key))

    def forward(
        self,
        hidden: Tensor,
        shared: Shared = _NOTHING,
        *,
        queries: Tensor | None = None,
        memory: Tensor | None = None,
        source: Source | None = None,
        sites: Sites | None = None,
    ) -> Tensor:
        """One attention pass.

        Args:
            hidden: keys and values come from here, and the queries too unless given [B, L, D].
            shared: what was made once for this forward pass, for these queries.
            queries: other inputs for the queries [B, Q, D] (query stream, mask decoder).
            memory: earlier inputs of this step that come before ``hidden`` as keys [B, M, D].
            source: :meth:`source` of ``hidden`` and ``memory``, where it is there already.
            sites: where the trace listens.

        Returns:
            [B, Q, D], before residual and norm.
        """
        q = self._split(self.query(hidden if queries is None else queries))
        if shared.rotation is not None:
            q = shared.rotation.of_queries(q if sites is None else sites.offer("q_unturned", q))
        source = source or self.source(hidden, shared, memory, sites)
        k, v = source.k, source.v
        if sites is not None:
            q, k, v = sites.offer("q", q), sites.offer("k", k), sites.offer("v", v)
        dropout = self.dropout if self.training else 0.0
        scale = self.terms.scale
        if sites is not None and sites.wants_scores(self.terms.names):
            q, terms = self.terms(q, k, shared.prepared, source.relative)
            visible = shared.visible
            context = attend(
                q, k, v, scale=scale, terms=terms, visible=visible, dropout=dropout, sites=sites
            )
        elif shared.windows is not None:
            context = shared.windows.attend(q, k, v, scale, dropout)
        else:
            q, bias = self.terms.bias(q, k, shared.prepared, source.relative, shared.visible)
            context = attend_fused(q, k, v, bias, scale, dropout)
        if sites is not None:
            context = sites.offer("head_output", context)
        output: Tensor = self.output(context.transpose(1, 2).flatten(2))  # [B, Q, H * d] -> D
        return output if sites is None else sites.offer("attention_output", output)

    def _shared(self, x: Tensor) -> Tensor:
        # [B, L, G * d] -> [B, H, L, d]: a head of keys or values stands once for each that reads it
        heads = self._split(x, self.heads // self.group)
        return heads if self.group == 1 else heads.repeat_interleave(self.group, 1)

    def _split(self, x: Tensor, heads: int | None = None) -> Tensor:
        # [B, L, H * d] -> [B, H, L, d]; the width is given, as there may be no targets to tell it.
        heads = heads or self.heads
        return x.view(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)
