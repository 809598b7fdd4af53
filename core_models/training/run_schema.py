"""What the files of all runs and races have in common, and how a setting is made.

Strict on purpose: an unknown or misspelt field is an error with a suggestion, never ignored. No
PyTorch here: a page can check a form.

A field that is :func:`labelled` stands in the page's forms, too: with that label, the text below it
as its help, and the bounds of its type. Nothing else says them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def labelled(
    label: str,
    *,
    first: bool = False,
    scale: float = 1.0,
    names: Mapping[str, str] | None = None,
    none: str = "as its family",
) -> Any:
    """A setting, or a part of them, that forms show, with the text below it as its help.

    There an empty field is null, and so it is called in these texts.

    Args:
        label: What people read beside it, with its unit; the title of a part.
        first: Whether it is seen before anything is unfolded.
        scale: How many of its own units the unit of the label is.
        names: What values are called that would say nothing as they are.
        none: What null is called.
    """
    told: dict[str, Any] = {"label": label, "first": first, "scale": scale, "none": none}
    return Field(json_schema_extra={**told, "names": dict(names or {})})


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
MOST_STEPS = 10_000_000
"""Ten times the steps of BERT; more is a slip of the hand."""
Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Precision = Literal["fp32", "bf16", "auto"]
TrackerName = Literal["tensorboard", "trackio", "wandb"]
PRECISIONS = {"auto": "the faster one here"}


class Part(BaseModel):
    """A part of ``config.json``."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Checkpoints(Part):
    """When a run is saved."""

    every: Annotated[Count | None, labelled("Saved every (steps)", none="after each epoch")] = None
    """Steps between checkpoints from which the run can resume; empty = after each epoch."""
    keep: Annotated[Count, labelled("How many are kept")] = 1
    """How many of them are kept."""
    snapshots: Annotated[bool, labelled("Keep snapshots")] = False
    """Whether the model alone is also kept at steps 1, 2, 4, 8, ... (to look back later)."""


class Named(Part):
    """What every file says, be it of a run or of a race."""

    name: Annotated[str, labelled("Name", first=True)] = ""
    """What people call it."""
    description: str = ""
    """What it is for."""
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    """CPU threads; null = one for each core this process may use."""


class RunSettings(Named):
    """What every ``config.json`` says, whatever is trained."""

    tracker: TrackerName | None = None
    """Where reports go beside the run's folder."""

    if TYPE_CHECKING:  # each kind has its own place in the form, and its own default, for these
        precision: str
        report_every: int | None
        validate_every: int | None
        checkpoints: Checkpoints
