"""Models of runs that other runs begin with stay as long as they are needed. No Gradio in it."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from app.runs.names import TEACHER, leaves
from app.runs.process import read_json
from core_models import InputError
from core_models.training.folder import RunFolder

_FIELDS = ("checkpoint", "encoder_from", TEACHER, "folder")
"""Fields of a config that name a model; what stands in them was checked. Others are a visitor's."""


def hold(values: Mapping[str, Any], root: Path) -> None:
    """Keep the checkpoints that a config names: a run at work replaces its own by newer ones.

    Args:
        values: a config with its models as paths.
        root: the runs folder.

    Raises:
        InputError: a checkpoint was replaced a moment ago.
    """
    for path in _checkpoints(values, root):
        RunFolder(path.parents[2]).hold(int(path.parent.name.removeprefix("step-")))
    check_there(values, root)


def check_there(values: Mapping[str, Any], root: Path) -> None:
    """InputError where a checkpoint that a config names was replaced a moment ago."""
    if not all(path.is_dir() for path in _checkpoints(values, root)):
        raise InputError(
            "The checkpoint that this run begins with was just replaced by a newer one. Start "
            "it once more."
        )


def check_unused(folder: Path, others: Iterable[RunFolder]) -> None:
    """InputError where another run has still to read a model of this one.

    Args:
        folder: of the run whose models are to go.
        others: the runs that wait or are at work.
    """
    for other in others:
        values = read_json(other.config_path)
        if _models(values, folder, (TEACHER,)):  # it is asked until the end
            raise InputError(
                f"“{other.path.name}” learns from a model of this run. Wait until it has finished, "
                "or stop it first."
            )
        if _models(values, folder) and not int(other.status().get("step") or 0):
            raise InputError(
                f"“{other.path.name}” begins with a model of this run and has not read it yet. "
                "Wait until it has begun, or stop it first."
            )


def _checkpoints(values: Mapping[str, Any], root: Path) -> list[Path]:
    """Models of a config that lie in a checkpoint of a run."""
    return [each for each in _models(values, root) if each.parent.parent.name == "checkpoints"]


def _models(values: Mapping[str, Any], root: Path, fields: Collection[str] = _FIELDS) -> list[Path]:
    """Paths of models below a folder that a config names."""
    named = [Path(text) for field, text in leaves(values) if field.rpartition(".")[2] in fields]
    return [path for path in named if path.is_absolute() and path.is_relative_to(root)]
