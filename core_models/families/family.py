"""What the registry knows of a family."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from core_models.config import Config


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family: its name for people, its paper, its published sizes."""

    name: str
    """Name in code, as in ``Config.family``."""
    title: str
    """Name in text."""
    paper: str
    """Title, authors' short form and arXiv id."""
    sizes: Mapping[str, Config]
    """Published sizes with the values of the released checkpoints."""
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Other names for sizes."""
