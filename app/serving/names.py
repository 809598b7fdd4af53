"""Names of models in the model picker, and what the core loads for them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from core_models import InputError

RUN_PREFIX = "run/"
"""Before the name of a training run: its model is not among the installed ones."""
HUB_PREFIX = "hub/"
"""Before the hub id of a model that a visitor opened."""
FOLDER_PREFIX = "folder/"
"""Before the mark of a folder that a visitor opened."""
GENERATOR = "-generator"
"""A discriminator NAME belongs to the generator NAME-generator."""


class Library(Protocol):
    """Where models of training runs are found (:class:`app.runs.runs.Runs`)."""

    root: Path
    """The folder of all runs."""

    def models(self) -> list[tuple[str, str]]:
        """Names and titles."""

    def model_path(self, name: str) -> Path:
        """The folder of ``run/...`` now; InputError for one that is not there."""


def loadable(name: str, runs: Library | None) -> str:
    """What ``cm.load`` takes for a name of the model picker.

    A run's model lies in its folder: in ``model`` when the run has finished, among its checkpoints
    before that, a snapshot among its snapshots. Of a run that is not there, what it would leave at
    its end is named. Where the folder of all runs lies is nobody's business: it is called ``runs``.
    """
    if name.startswith(FOLDER_PREFIX):
        return "path/of/your/folder"
    if not name.startswith(RUN_PREFIX):
        return name.removeprefix(HUB_PREFIX)
    if runs is not None:
        with suppress(InputError):
            return f"runs/{runs.model_path(name).relative_to(runs.root).as_posix()}"
    return f"runs/{name.removeprefix(RUN_PREFIX)}/model"


@contextmanager
def called(name: str, place: Path) -> Iterator[None]:
    """Tell what goes wrong in a folder by its model's name: where it lies is nobody's business.

    Raises:
        InputError: as it was raised, or because a file cannot be read.
    """
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(place), name)) from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"The files of {name} cannot be read: {reason}.") from None
