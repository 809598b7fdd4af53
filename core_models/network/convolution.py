"""DeBERTa-v2's convolution beside the first layer."""

from torch import Tensor, nn

from core_models.config import Config, Convolution
from core_models.network.layer import FUNCTIONS
from core_models.network.norms import build_norm


class ConvolutionLayer(nn.Module):
    """DeBERTa-v2's convolution: ``norm(layer_0(x) + activation(conv(x)))``."""

    def __init__(self, config: Config, parts: Convolution) -> None:
        super().__init__()
        padding = (parts.kernel - 1) // 2
        self.conv = nn.Conv1d(config.width, config.width, parts.kernel, padding=padding)
        self.norm = build_norm(config, config.width)
        self.activation = FUNCTIONS[parts.activation]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, start: Tensor, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """Embedding output and first layer's output [B, L, D] -> [B, L, D]."""
        local = self.conv(start.transpose(1, 2)).transpose(1, 2)
        if mask is not None:
            local = local * mask[..., None]
        x: Tensor = self.norm(hidden + self.activation(self.dropout(local)))
        return x if mask is None else x * mask[..., None]
