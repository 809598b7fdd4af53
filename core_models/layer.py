"""One block: attention and feed-forward, each with residual and post-norm."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.attention import Attention, Source
from core_models.config import Config
from core_models.config import FeedForward as FeedForwardConfig
from core_models.terms import Prepared
from core_models.trace import Sites


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
    """``down(activation(up(x)))``."""

    def __init__(self, width: int, config: FeedForwardConfig, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, config.width)
        self.down = nn.Linear(config.width, width)
        self.activation = FUNCTIONS[config.activation]
        self.inner_dropout = nn.Dropout(dropout if config.inner_dropout else 0.0)

    def forward(self, x: Tensor, sites: Sites | None = None) -> Tensor:
        """[B, L, D] -> [B, L, D], before residual and norm."""
        x = self.activation(self.up(x))  # [B, L, F]
        if sites is not None:
            x = sites.offer("feed_forward_activation", x)
        result: Tensor = self.down(self.inner_dropout(x))
        return result


class Layer(nn.Module):
    """A block of the encoder; the same block serves any stream through ``queries``.

    x = norm(queries + attention(queries, hidden))
    y = norm(x + feed_forward(x))
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config.width, config.attention)
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.feed_forward = FeedForward(config.width, config.feed_forward, config.dropout)
        self.feed_forward_norm = nn.LayerNorm(config.width, eps=config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden: Tensor,
        *,
        queries: Tensor | None = None,
        visible: Tensor | None = None,
        prepared: Prepared | None = None,
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
        attended = self.attention(
            hidden,
            queries=queries,
            visible=visible,
            prepared=prepared,
            memory=memory,
            source=source,
            sites=sites,
        )
        x = self.attention_norm(start + self.dropout(attended))
        x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x, sites)))
        return x if sites is None else sites.offer("residual", x)
