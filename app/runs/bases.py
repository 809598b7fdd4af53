"""Models of runs that other runs begin with stay as long as they are needed. No Gradio in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.runs.names import leaves
from core_models import InputError
from core_models.training.folder import RunFolder

if TYPE_CHECKING:
    from app.runs.runs import Runs

_FIELDS = ("checkpoint", "encoder_from", "teacher", "folder")
"""Fields of a config that name a model; what stands in them was checked. Others are a visitor's."""
_WAITING = ("queued", "starting", "running", "stopping")


def hold(values: Mapping[str, Any], root: Path) -> None:
    """Keep the checkpoints that a config names: a run at work replaces its own by newer ones.

    Args:
        values: a config with its models as paths.
        root: the runs folder.

    Raises:
        InputError: a checkpoint was replaced a moment ago.
    """
    for path in _models(values, root):
        if path.parent.parent.name != "checkpoints":
            continue
        RunFolder(path.parents[2]).hold(int(path.parent.name.removeprefix("step-")))
        if not path.is_dir():
            raise InputError(
                "The checkpoint that this run begins with was just replaced by a newer one. Start "
                "it once more."
            )


def check_unused(runs: "Runs", run: str) -> None:
    """InputError where another run has still to read a model of this one."""
    path = runs.folder(run).path
    for other in runs.ids():
        if runs.state(other) not in _WAITING or not _models(runs.config(other), path):
            continue
        if not int(runs.folder(other).status().get("step") or 0):
            raise InputError(
                f"“{other}” begins with a model of this run and has not read it yet. Wait until it "
                "has begun, or stop it first."
            )


def _models(values: Mapping[str, Any], root: Path) -> list[Path]:
    """Paths of models below a folder that a config names."""
    named = [Path(text) for field, text in leaves(values) if field.rpartition(".")[2] in _FIELDS]
    return [path for path in named if path.is_absolute() and path.is_relative_to(root)]
