"""What lies beside the models of a folder: figures, scores, sizes."""

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from core_models.checkpoints.files import CONFIG, read_format, read_headers, read_json, their_names
from core_models.training import folder as run_folder
from zoo.cards import FIGURES
from zoo.weights import SCORES, kept_scores

KINDS = ("pretrained", "fresh")


@dataclass(frozen=True)
class Entry:
    """A model of the set."""

    name: str
    parameters: int
    """Numbers in the files, each shared tensor once."""
    figures: Mapping[str, Any]
    """``evaluation.json``; empty where there is none."""
    tasks: Mapping[str, Any]
    """Tasks of ``scores.json``; empty where there is none that belongs to these weights."""
    outdated: bool
    """Whether there are scores of other weights."""

    leftward: bool
    """Whether it reads from left to right."""

    @property
    def training(self) -> Mapping[str, Any]:
        """What is known of the training; empty where nothing is."""
        found: Mapping[str, Any] = self.figures.get("run", {})
        return found

    def values(self, task: str, kind: str) -> list[float]:
        """Main metric of a task for each seed; ``kind`` is pretrained or fresh."""
        return list(self.tasks.get(task, {}).get(kind, {}).values())


class Spread(NamedTuple):
    """Values of several seeds."""

    mean: float
    deviation: float
    """Standard deviation of the sample; 0 for one value."""
    seeds: int

    @property
    def variance_of_mean(self) -> float:
        """Square of the standard error."""
        return self.deviation**2 / self.seeds


def spread(values: Iterable[float]) -> Spread | None:
    """Mean and deviation; None for no values."""
    known = list(values)
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return Spread(math.fsum(known) / len(known), deviation, len(known))


def unlearnt(models: Iterable[Entry], task: str) -> bool:
    """Whether no model's mean over seeds is two standard errors above the commonest answer.

    Such figures tell how rare that answer is, and nothing of the models. A task that was never
    scored is not meant.
    """
    found = [entry for entry in models if task in entry.tasks]
    scores = [spread(entry.values(task, kind)) for entry in found for kind in KINDS]
    known = [one for one in scores if one is not None]
    least = next((e.tasks[task].get("baselines", {}).get("majority") for e in found), None)
    if not known or least is None:
        return False
    return all(one.mean - 2 * math.sqrt(one.variance_of_mean) <= least for one in known)


def entries(folder: Path, order: Iterable[str] = ()) -> dict[str, Entry]:
    """The models of a folder by name: first those of an order, then the others by name."""
    names = [path.parent.name for path in sorted(folder.glob(f"*/{CONFIG}"))]
    known = list(order)
    names.sort(key=lambda name: known.index(name) if name in known else len(known))
    return {name: _entry(folder / name) for name in names}


def reads_left(folder: Path) -> bool:
    """Whether a model reads from left to right, so that its first token sees nothing else."""
    values = read_json(folder / CONFIG)
    return read_format(values).read_config(values).attention.direction == "left"


def _entry(folder: Path) -> Entry:
    form = read_format(read_json(folder / CONFIG))
    tensors = their_names(form, read_headers(folder))
    scores = kept_scores(folder)
    return Entry(
        name=folder.name,
        parameters=sum(t.numel() for n, t in tensors.items() if not form.ignores(n)),
        figures=run_folder.read_json(folder / FIGURES),
        tasks=scores.get("tasks", {}),
        outdated=not scores and (folder / SCORES).exists(),
        leftward=reads_left(folder),
    )
