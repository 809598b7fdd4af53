"""Checkpoints in the format of transformers, both directions."""

from core_models.checkpoints.files import load_checkpoint, save_checkpoint
from core_models.checkpoints.table import Format, Ignored, Row

__all__ = ["Format", "Ignored", "Row", "load_checkpoint", "save_checkpoint"]
