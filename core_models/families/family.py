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
    tokenizer: str = "wordpiece"
    """Kind of the released vocabulary: ``wordpiece``, ``byte_bpe`` or ``unigram``."""
    lowercase: bool = True
    """Whether the released vocabulary is lower-cased."""
    template: str = "enclosing"
    """Where special pieces go: ``enclosing``, ``doubled`` or ``trailing``, as the constructors of
    `core_models.tokenizer.files.Template`."""
    signs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Spelling of the released special pieces by their names in
    `core_models.tokenizer.files.Specials`, where it is not that of the template."""
    sharing: str = "tied"
    """How a generator shares its piece table with the model it is trained for: ``tied``,
    ``gradient_disentangled`` or ``none``."""
