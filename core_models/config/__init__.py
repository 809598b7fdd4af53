"""Every value that a model is built from."""

from core_models.config.config import Config, Difference, ForeignConfig, check_ours, diff
from core_models.config.parts import (
    Attention,
    Convolution,
    Disentangled,
    Embeddings,
    FeedForward,
    MaskDecoder,
    Masking,
    Plain,
    Rotary,
    Terms,
    TransformerXL,
)

__all__ = [
    "Attention",
    "Config",
    "Convolution",
    "Difference",
    "Disentangled",
    "Embeddings",
    "FeedForward",
    "ForeignConfig",
    "MaskDecoder",
    "Masking",
    "Plain",
    "Rotary",
    "Terms",
    "TransformerXL",
    "check_ours",
    "diff",
]
