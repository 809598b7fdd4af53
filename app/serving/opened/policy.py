"""Who may open which models, and how large these may be, as the environment says."""

import os
from dataclasses import dataclass, field
from typing import Literal

from app.serving.shelf import memory_of
from core_models import InputError
from core_models.training.host import container_memory

Mode = Literal["any", "list", "off"]
PARAMETERS = 500_000_000
SHARE = 3
"""Opened models take one of so many parts of the machine's memory."""
SOMEWHAT = 4 << 30
"""Bytes that a machine is taken to have which does not say."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What visitors may open."""

    mode: Mode = "any"
    """CLOZE_OPEN. ``any``: every hub id, and folders of the server; ``list``: hub ids of the list;
    ``off``: nothing. By itself ``any`` where only this machine reaches the server, else ``list``.
    """
    ids: tuple[str, ...] = ()
    """Hub ids in CLOZE_MODELS."""
    parameters: int = PARAMETERS
    """CLOZE_MODEL_PARAMETERS, most numbers of one model."""
    memory: int = 0
    """CLOZE_MODEL_MEMORY in MB, here in bytes: of all opened models that are loaded."""
    token: str | None = field(default=None, repr=False)
    """HF_TOKEN, for gated models; it is sent to the hub and told to nobody."""

    def __post_init__(self) -> None:
        if not self.memory:
            object.__setattr__(self, "memory", machine_memory() // SHARE)

    @property
    def opens(self) -> bool:
        """Whether there is anything that may be opened."""
        return self.mode == "any" or (self.mode == "list" and bool(self.ids))

    def allows(self, name: str) -> bool:
        """Whether a hub id may be opened."""
        return self.mode == "any" or (self.mode == "list" and name in self.ids)

    def check(self, name: str) -> None:
        """InputError where a hub id may not be opened."""
        if self.mode == "off":
            raise InputError(
                "Opening models is switched off on this server. Run Cloze on a machine of your own "
                "to open any: `make app`."
            )
        if not self.allows(name):
            known = ", ".join(self.ids) or "none is on it"
            raise InputError(f"This server opens the models of its list only: {known}.")

    def check_size(self, name: str, parameters: int) -> None:
        """InputError where a model is larger than one may be, or than all may be together."""
        if parameters > self.parameters:
            raise InputError(
                f"{name} has {parameters:,} parameters; this server opens models of up to "
                f"{self.parameters:,} (CLOZE_MODEL_PARAMETERS)."
            )
        if (needed := memory_of(parameters)) > self.memory:
            raise InputError(
                f"{name} needs {needed >> 20:,} MB of memory and opened models have "
                f"{self.memory >> 20:,} MB here (CLOZE_MODEL_MEMORY)."
            )


def machine_memory() -> int:
    """Bytes of memory of this machine, or of the container that this server is in."""
    most, _ = container_memory()
    try:
        return int(min(most, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    except (AttributeError, OSError, ValueError):
        return int(min(most, SOMEWHAT))
