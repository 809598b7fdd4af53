"""How long a run has to wait for its place: from what is left of those before it.

An estimate from this machine's own runs: seconds per step times the work of a step, which is taken
as proportional to the model's layers, its width squared, and the tokens of a batch. No PyTorch.
"""

import contextlib
import heapq
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from app.runs import config as run_config
from app.runs import damage
from app.runs import process as run_process
from app.runs.runs import Runs
from core_models import InputError
from core_models.families import size
from core_models.training.folder import read_json
from core_models.training.settings import ASSETS

_MEASURED = 20
"""Newest runs that the speed of the machine is taken from."""
_FAST = 5
"""The median of so many of them: what was measured last says most."""


class Looks(Protocol):
    """What is needed of the reports: they are read once and kept there."""

    runs: Runs

    def records_of(self, run: str) -> Sequence[Mapping[str, Any]]:
        """The reports of a run."""
        ...


def waits(reports: Looks, waiting: Sequence[str]) -> dict[str, float | None]:
    """Seconds until each of the waiting runs starts; None where that cannot be known.

    Args:
        reports: of the service.
        waiting: ids in the order of the queue.
    """
    if not waiting:
        return {}
    runs = reports.runs
    ids = runs.ids()
    busy = runs.at_work()
    speed, start = _speed(reports, ids), _start(reports, ids, busy)
    # When each place is free; None: nobody knows, so that place may never be.
    free = [_known(reports, run, speed, start) for run in busy][: runs.slots]
    places: list[float] = [0.0] * max(0, runs.slots - len(free))
    unknown = free.count(None)
    places += [each for each in free if each is not None]
    heapq.heapify(places)
    found: dict[str, float | None] = {}
    for run in waiting:
        # With an unknown place the order of what comes free is not known either.
        if unknown or not places:
            found[run] = None
            continue
        starts = heapq.heappop(places)
        found[run] = starts
        needs = _known(reports, run, speed, start)
        if needs is None:
            unknown += 1
        else:
            heapq.heappush(places, starts + needs)
    return found


def seconds_left(status: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> float | None:
    """Time to the last step at the speed of the last reports."""
    steps, step = status.get("steps"), status.get("step")
    pace = _pace(records)
    if not steps or step is None or pace is None:
        return None
    since = max(0.0, time.time() - float(status.get("updated") or time.time()))
    return max(0.0, float((steps - step) * pace[0] - min(since, pace[1])))


def still(
    status: Mapping[str, Any], records: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> float | None:
    """Seconds that a run still trains, a comparison from random weights included.

    None also once all steps are made: nobody knows what measuring and comparing take.
    """
    left = seconds_left(status, records)
    if not left:
        return None
    return left + _again(left, records, config)


def _again(left: float, records: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> float:
    """Everything once more from random weights, where that is wanted."""
    if config.get("compare_from_scratch") is not True:
        return 0.0
    return left + (float(records[-1]["seconds"]) if records else 0.0)


def steps_of(config: Mapping[str, Any], path: Path) -> int | None:
    """Updates that a run will make, before its process says so; None where nobody can tell."""
    kind = run_config.kind_of(config)
    if kind == "race":
        steps = (config.get("budget") or {}).get("steps")
        return steps * len(config["entrants"]) if isinstance(steps, int) else None
    value = run_process.read_json(path / "page.json").get("steps")
    steps = value if kind == "task" else config.get("steps")
    return steps if isinstance(steps, int) else None


def _pace(records: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Seconds of a step lately, and the seconds that this was measured over."""
    if len(records) < 2:
        return None
    first, last = records[-min(6, len(records))], records[-1]
    made, took = last["step"] - first["step"], last["seconds"] - first["seconds"]
    return (took / made, took) if made > 0 and took > 0 else None


def _speed(reports: Looks, ids: Sequence[str]) -> float | None:
    """Work a second: of the newest runs that were measured."""
    found: list[float] = []
    for run in ids[:_MEASURED]:
        try:
            pace = _pace(reports.records_of(run))
            work = _work(reports.runs.config(run))
        except (*damage.ODD, OSError):
            continue  # deleted since, or a file that a hand has changed
        if pace is not None and work:
            found.append(work / pace[0])
    return median(found[:_FAST]) if found else None


def _start(reports: Looks, ids: Sequence[str], busy: Sequence[str]) -> float:
    """Seconds that a process here needs beside its steps: to begin, prepare, measure and save.

    Until one has finished, what those at work have needed so far.
    """
    found = [
        beside
        for run in ids[:_MEASURED]
        if (beside := _beside(reports, run, "finished")) is not None
    ]
    begun = [beside for run in busy if (beside := _beside(reports, run, "running")) is not None]
    found = found[:_FAST] or begun
    return median(found) if found else 0.0


def _beside(reports: Looks, run: str, state: str) -> float | None:
    """Seconds that a process in this state has needed so far beside its steps."""
    with contextlib.suppress(*damage.ODD, OSError):
        folder = reports.runs.folder(run)
        status, records = folder.status(), reports.records_of(run)
        launched = float(run_process.read_json(folder.path / "launch.json")["time"])
        beside = float(status["updated"] - launched - records[-1]["seconds"])
        # One that was continued has the seconds of its earlier parts, too: nobody can tell.
        return beside if status["state"] == state and beside > 0 else None
    return None


def _known(reports: Looks, run: str, speed: float | None, start: float) -> float | None:
    """As :func:`_left`; None for a run whose files hold what no run writes."""
    try:
        return _left(reports, run, speed, start)
    except (*damage.ODD, OSError):
        return None


def _left(reports: Looks, run: str, speed: float | None, start: float) -> float | None:
    """Seconds that a run still needs once it has a place, beside its steps, too."""
    runs = reports.runs
    try:
        path, config = runs.folder(run).path, runs.config(run)
        status, state = runs.folder(run).status(), runs.state(run)
        begun = state in ("starting", "running")
        age = run_process.age_here(runs.folder(run)) if begun else None
        records = reports.records_of(run)
    except damage.DamagedError:
        raise
    except InputError:
        return 0.0  # deleted since
    if state == "stopping":
        return 0.0
    left = seconds_left(status, records)
    if left is None:
        steps, work = steps_of(config, path), _work(config)
        steps = int(status.get("steps") or 0) or steps
        if not steps or not work or not speed:
            return None
        left = max(0, steps - int(status.get("step") or 0)) * work / speed
    left += _again(left, records, config)
    if not begun:
        left += start
    elif age is not None:
        made = float(records[-1]["seconds"]) if records else 0.0
        left += max(0.0, start - max(0.0, age - made))
    if runs.limits.minutes is not None:
        left = min(left, max(0.0, 60.0 * runs.limits.minutes - (age or 0.0)))
    return left


def _work(config: Mapping[str, Any]) -> float | None:
    """Of one step, in a unit of its own."""
    if run_config.kind_of(config) == "race":
        shapes = [
            _shape(each | {"overrides": config.get("overrides") or {}})
            for each in config["entrants"]
        ]
        known = [shape for shape in shapes if shape is not None]
        shape = None
        if len(known) == len(shapes):
            shape = (sum(layers for layers, _ in known) / len(known), known[0][1])
    else:
        shape = _shape(config.get("model") or {})
    if shape is None:
        return None
    task = run_config.is_task(config)
    part = config if task else config.get("data") or {}
    tokens = (config.get("batch_size") or (16 if task else 32)) * (part.get("max_length") or 128)
    return float(shape[0] * shape[1] ** 2 * tokens)


def _shape(model: Mapping[str, Any]) -> tuple[float, float] | None:
    """Layers and width."""
    if name := model.get("checkpoint"):
        folder = Path(str(name))
        values = read_json(
            (folder if folder.is_absolute() else ASSETS / "models" / folder) / "config.json"
        )
        layers = values.get("num_hidden_layers") or values.get("n_layer")
        width = values.get("hidden_size") or values.get("d_model")
        return (layers, width) if layers and width else None
    try:
        published = size(str(model.get("size")))
    except InputError:
        return None
    changed = model.get("overrides") or {}
    layers = changed.get("layers") or len(published.schedule)
    return (layers, changed.get("width") or published.width)
