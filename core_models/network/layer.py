"""One block: attention and feed-forward, each with residual and norm."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.config import Config
from core_models.config import FeedForward as FeedForwardConfig
from core_models.network.attention import Attention, Shared, Source
from core_models.network.initialise import start_smaller
from core_models.network.norms import build_norm
from core_models.network.trace import Sites


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
}
"""Activation functions by the names of ``config_check.ACTIVATIONS``."""


class FeedForward(nn.Module):
    """``down(activation(up(x)))``, or gated ``down(activation(up(x)) * gate(x))``."""

    def __init__(self, width: int, config: FeedForwardConfig, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, config.width, bias=config.bias)
        self.gate = nn.Linear(width, config.width, bias=config.bias) if config.gated else None
        self.down = nn.Linear(config.width, width, bias=config.bias)
        self.activation = FUNCTIONS[config.activation]
        self.inner_dropout = nn.Dropout(dropout if config.inner_dropout else 0.0)

    def forward(self, x: Tensor, sites: Sites | None = None) -> Tensor:
        """[B, L, D] -> [B, L, D], before residual and norm."""
        inner = self.activation(self.up(x))  # [B, L, F]
        if self.gate is not None:
            inner = inner * self.gate(x)
        if sites is not None:
            inner = sites.offer("feed_forward_activation", inner)
        result: Tensor = self.down(self.inner_dropout(inner))
        return result


class Layer(nn.Module):
    """A block of the encoder; the same block serves any stream through ``queries``.

    post-norm   x = norm(queries + attention(queries, hidden))
                y = norm(x + feed_forward(x))
    pre-norm    x = queries + attention(norm(queries), norm(hidden))
                y = x + feed_forward(norm(x))

    Args:
        config: of the encoder.
        block: number of the block. Where norms come before and the embeddings are normed, the first
            step's attention needs none.
    """

    def __init__(self, config: Config, block: int = 0) -> None:
        super().__init__()
        self.norm_before = config.norm_place == "before"
        normed = self.norm_before and block == 0 and config.embeddings.normed
        bare = normed and config.schedule.count(0) == 1
        self.attention = Attention(config.width, config.attention)
        self.attention_norm = nn.Identity() if bare else build_norm(config, config.width)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.dropout)
        self.feed_forward_norm = build_norm(config, config.width)
        self.dropout = nn.Dropout(config.dropout)
        if config.initial_by_depth:
            for last in (self.attention.output, self.feed_forward.down):
                start_smaller(last, (2 * config.steps) ** -0.5)

    def forward(
        self,
        hidden: Tensor,
        shared: Shared,
        *,
        queries: Tensor | None = None,
        memory: Tensor | None = None,
        source: Source | None = None,
        sites: Sites | None = None,
    ) -> Tensor:
        """[B, L, D] -> [B, L, D], or [B, Q, D] for given queries; arguments as in Attention."""
        start = hidden if queries is None else queries
        if sites is not None:
            start = sites.offer("residual_in", start)
            if queries is None:
                hidden = start
            else:
                queries = start
        if self.norm_before:
            hidden = self.attention_norm(hidden)
            queries = None if queries is None else self.attention_norm(queries)
        attended = self.attention(
            hidden, shared, queries=queries, memory=memory, source=source, sites=sites
        )
        x = start + self.dropout(attended)
        if self.norm_before:
            x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x), sites))
        else:
            x = self.attention_norm(x)
            x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x, sites)))
        return x if sites is None else sites.offer("residual", x)

    def source(self, hidden: Tensor, shared: Shared, memory: Tensor | None = None) -> Source:
        """What several passes over ``hidden`` [B, L, D] share; arguments as in Attention."""
        return self.attention.source(hidden, shared, memory)
