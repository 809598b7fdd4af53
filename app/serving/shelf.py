"""Models in memory by their folders, within a bound. No Gradio in it."""

import os
from collections import OrderedDict
from collections.abc import Callable
from errno import ESTALE
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import core_models as cm
from app.serving.gpu import LARGE
from core_models import InputError
from core_models.hub.fetch import CONFIG

Mark = tuple[tuple[str, int, int], ...]
"""Name, time of change and size of each file that makes a folder the model that it is."""


def mark(place: Path) -> Mark:
    """What tells the model of a folder from one that is written there later; nothing is read.

    Raises:
        OSError: the folder or a file of it is not there (any more).
    """
    found = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name == CONFIG or entry.name.endswith(".safetensors"):
                told = entry.stat()
                found.append((entry.name, told.st_mtime_ns, told.st_size))
    return tuple(sorted(found))


class Held(NamedTuple):
    """A model in memory."""

    model: cm.Model
    weight: int
    mark: Mark
    """Of its folder when it was read."""


class Shelf:
    """Loads a model when it is asked for; the longest unused ones make room for it.

    A folder that is written anew holds another model, which is loaded in place of the old one.

    Args:
        load: loads the model of a folder; one at a time, and nobody who asks for a model that is
            here waits for it.
        most: together the models here weigh no more; one alone may.
        weigh: what the model of a folder weighs, before it is loaded.
    """

    def __init__(
        self, load: Callable[[Path], cm.Model], most: int, weigh: Callable[[Path], int]
    ) -> None:
        self.most = most
        self._load, self._weigh = load, weigh
        self._models: OrderedDict[Path, Held] = OrderedDict()
        self._lock, self._loading = Lock(), Lock()

    def get(self, place: Path) -> cm.Model:
        """The model of a folder.

        Raises:
            InputError: the folder holds no model.
            OSError: it is not there, or is replaced at this moment.
        """
        if (model := self.here(place)) is not None:
            return model
        with self._loading:
            now = mark(place)  # before the files are read: what is written meanwhile is news
            if (model := self._here(place, now)) is not None:
                return model
            weight = self._weigh(place)
            with self._lock:
                self._models.pop(place, None)
                while self._models and weight + self._weight() > self.most:
                    self._models.popitem(last=False)
            try:
                model = self._load(place)
            except InputError as error:
                if mark(place) == now:
                    raise
                raise OSError(ESTALE, "they are just being replaced") from error
            with self._lock:
                self._models[place] = Held(model, weight, now)
        return model

    def here(self, place: Path) -> cm.Model | None:
        """The model of a folder where it is in memory; OSError where the folder is not there."""
        return self._here(place, mark(place))

    def renew(self, place: Path) -> cm.Model:
        """The model of a folder of which other files may have changed, such as its vocabulary."""
        with self._lock:
            self._models.pop(place, None)
        return self.get(place)

    def _here(self, place: Path, now: Mark) -> cm.Model | None:
        with self._lock:
            found = self._models.get(place)
            if found is None or found.mark != now:
                return None
            self._models.move_to_end(place)
            return found.model

    def _weight(self) -> int:
        return sum(found.weight for found in self._models.values())


def written(place: Path) -> int:
    """Bytes of the weights in the folder of a model of a run."""
    return sum(path.stat().st_size for path in place.glob("*.safetensors"))


def memory_of(parameters: int) -> int:
    """Bytes of so many numbers: float32, and as much again for the packed copy of a large model."""
    return 4 * parameters * (2 if parameters >= LARGE else 1)
