"""Names of models in the model picker, and what the core loads for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core_models import InputError

RUN_PREFIX = "run/"
"""Before the name of a training run: its model is not among the installed ones."""
HUB_PREFIX = "hub/"
"""Before the hub id of a model that a visitor opened."""
FOLDER_PREFIX = "folder/"
"""Before the mark of a folder that a visitor opened."""
GENERATOR = "-generator"
"""A discriminator NAME belongs to the generator NAME-generator."""


def loadable(name: str) -> str:
    """What ``cm.load`` takes for a name of the model picker: a run's model lies in its folder."""
    if name.startswith(RUN_PREFIX):
        return f"runs/{name.removeprefix(RUN_PREFIX)}/model"
    return (
        "path/of/your/folder" if name.startswith(FOLDER_PREFIX) else name.removeprefix(HUB_PREFIX)
    )


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
