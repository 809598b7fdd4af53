"""Models in memory by their folders, within a bound. No Gradio in it."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import core_models as cm
from app.serving.gpu import LARGE


class Shelf:
    """Loads a model when it is asked for; the longest unused ones make room for it.

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
        self._models: OrderedDict[Path, tuple[cm.Model, int]] = OrderedDict()
        self._lock, self._loading = Lock(), Lock()

    def get(self, place: Path) -> cm.Model:
        """The model of a folder; InputError for a folder that holds none."""
        if (model := self._here(place)) is not None:
            return model
        with self._loading:
            if (model := self._here(place)) is not None:
                return model
            weight = self._weigh(place)
            with self._lock:
                while self._models and weight + self._weight() > self.most:
                    self._models.popitem(last=False)
            model = self._load(place)
            with self._lock:
                self._models[place] = (model, weight)
        return model

    def renew(self, place: Path) -> cm.Model:
        """The model of a folder that may have been written anew."""
        with self._lock:
            self._models.pop(place, None)
        return self.get(place)

    def _here(self, place: Path) -> cm.Model | None:
        with self._lock:
            if place not in self._models:
                return None
            self._models.move_to_end(place)
            return self._models[place][0]

    def _weight(self) -> int:
        return sum(weight for _, weight in self._models.values())


def written(place: Path) -> int:
    """Bytes of the weights in the folder of a model of a run."""
    return sum(path.stat().st_size for path in place.glob("*.safetensors"))


def memory(place: Path) -> int:
    """Bytes that the model of a folder takes: float32, and as much again for a packed copy."""
    parameters = cm.inspect(place).parameters
    return 4 * parameters * (2 if parameters >= LARGE else 1)
