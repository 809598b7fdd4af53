"""Every checkpoint format by the ``model_type`` of its config.json."""

from core_models.checkpoints import bert
from core_models.checkpoints.table import Format

FORMATS: dict[str, Format] = {bert.FORMAT.model_type: bert.FORMAT}

BY_FAMILY: dict[str, Format] = {"bert": bert.FORMAT}
"""The format that a family is saved in."""
