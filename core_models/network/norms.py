"""The norm that a config asks for."""

from torch import nn

from core_models.config import Config


def build_norm(config: Config, width: int) -> nn.Module:
    """LayerNorm with or without bias, or RMSNorm, over the last ``width`` values."""
    if config.norm_kind == "rms":
        return nn.RMSNorm(width, eps=config.norm_epsilon)
    return nn.LayerNorm(width, eps=config.norm_epsilon, bias=config.norm_bias)
