"""Fine-tune the models of the set on labelled sets, again and again; resumable at any point.

One fine-tuning at a time. Each leaves a file in the work folder; ``scores.json`` beside a model is
put together from them whenever one is added.
"""

import gc
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import core_models as cm
from core_models.errors import InputError
from core_models.evaluation.language import language_of
from core_models.tasks.baselines import baselines
from core_models.tasks.report import main_metric, report
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings
from core_models.tokenizer import Tokenizer
from core_models.training import durable
from core_models.training.finetune import FineTuning
from core_models.training.folder import read_json
from zoo.entries import reads_left
from zoo.score_recipe import Scores, task_set
from zoo.weights import SCORES, fingerprint, kept_scores

Say = Callable[[str], None]
KINDS = ("pretrained", "fresh")
"""From the weights, and the same architecture from random ones."""


@dataclass(frozen=True)
class Work:
    """What is to be scored."""

    recipe: Scores
    models: Path
    """Folder of the models."""
    folder: Path
    """Where each fine-tuning leaves its file."""
    data: Path | None
    """Folder of the open sets."""
    kinds: Sequence[str] = KINDS
    """Which of :data:`KINDS` are fine-tuned; what others have left stays."""


def score(
    work: Work, names: Sequence[str], tasks: Sequence[str] | None, *, seeds: int, say: Say
) -> None:
    """Fine-tune every model on every task of its language, over the seeds 1, 2, ...

    The seeds are the outermost loop, so that an interruption leaves something to compare.

    Args:
        work: Recipe and folders.
        names: Folders below ``work.models``.
        tasks: Of the recipe; None = all of a model's language.
        seeds: How many.
        say: Takes lines for people.

    Raises:
        InputError: no such model or task, or a set that cannot be read.
    """
    for task in tasks or ():
        if task not in work.recipe.tasks:
            known = ", ".join(work.recipe.tasks)
            raise InputError(f"No task {task!r} in the recipe; it has {known}.")
    for name in names:
        if not (work.models / name / "config.json").exists():
            raise InputError(f"There is no model {name!r} in {work.models}.")
    chosen = {name: tasks or _tasks_of(work, name) for name in names}
    for seed in range(1, seeds + 1):
        for task in work.recipe.tasks:
            for name in names:
                if task in chosen[name]:
                    _score(work, name, task, seed, say)


def _tasks_of(work: Work, name: str) -> list[str]:
    language = language_of(Tokenizer.from_folder(work.models / name))
    return [task for task, entry in work.recipe.tasks.items() if entry.language == language]


def _score(work: Work, name: str, task: str, seed: int, say: Say) -> None:
    """The fine-tunings of one model, task and seed, and the baselines; what is there stays."""
    folder = work.models / name
    if work.recipe.tasks[task].of_text and reads_left(folder):
        say(f"{name} {task}: left out, its first token sees nothing of the text")
        return
    marks = _marks(folder)
    facts = work.recipe.facts(task)
    todo = [
        (kind, path)
        for kind in work.kinds
        for path in [work.folder / name / f"{task}.{kind}.{seed}.json"]
        if not _holds(path, facts, marks[kind])
    ]
    base = work.folder / "baselines" / f"{task}.json"
    if todo or not _holds(base, facts):
        rows = task_set(work.recipe, task, work.data)
        if not _holds(base, facts):
            _write(base, {"task": facts, **_baseline_facts(rows)})
        for kind, path in todo:
            settings = work.recipe.settings_of(task, seed=seed, pretrained=kind == "pretrained")
            try:
                found = _tuned(folder, rows, settings)
            except InputError as error:
                say(f"{name} {task} {kind} seed {seed}: {error}")
                continue
            _write(path, {"task": facts, "weights": marks[kind], **found})
            value = found["metrics"][main_metric(rows)]
            say(f"{name} {task} {kind} seed {seed}: {value:.3f} in {found['seconds']:.0f} s")
            _merge(folder, task, work)
    _merge(folder, task, work)


def _marks(folder: Path) -> dict[str, str]:
    """What a model's scores belong to: those from random weights outlast a new training."""
    return {kind: fingerprint(folder, weights=kind != "fresh") for kind in KINDS}


def _tuned(folder: Path, rows: TaskSet, settings: Settings) -> dict[str, Any]:
    """Figures after the last epoch: choosing the best one would look at the measured rows."""
    clock = _Clock()
    tuning = FineTuning(cm.load(folder), rows, settings)
    for _ in range(tuning.steps):
        tuning.step()
    metrics = report(rows, rows.dev, tuning.predict()).metrics
    del tuning
    gc.collect()
    return {"metrics": metrics, "seconds": clock.seconds()}


class _Clock:
    """Seconds of processor time: comparable on a busy machine, unlike the time of day."""

    def __init__(self) -> None:
        self._began = time.process_time()

    def seconds(self) -> float:
        return round(time.process_time() - self._began, 1)


def _baseline_facts(rows: TaskSet) -> dict[str, Any]:
    return {
        "kind": rows.kind,
        "metric": main_metric(rows),
        "train_rows": len(rows.train),
        "dev_rows": len(rows.dev),
        "baselines": {
            found.name: {"title": found.title, "metrics": found.metrics}
            for found in baselines(rows)
        },
    }


def _merge(folder: Path, task: str, work: Work) -> None:
    """Put what is known of one model and task into ``scores.json``; other tasks stay."""
    facts = work.recipe.facts(task)
    base = read_json(work.folder / "baselines" / f"{task}.json")
    entry: dict[str, Any] = {
        "language": facts["language"],
        **{key: base[key] for key in ("kind", "metric", "train_rows", "dev_rows")},
        "baselines": {
            name: found["metrics"][base["metric"]] for name, found in base["baselines"].items()
        },
    }
    seconds = []
    marks = _marks(folder)
    for kind in KINDS:
        values = {}
        for path in sorted((work.folder / folder.name).glob(f"{task}.{kind}.*.json")):
            found = read_json(path)
            if found.get("task") == facts and found.get("weights") == marks[kind]:
                values[path.stem.rpartition(".")[2]] = found["metrics"][base["metric"]]
                seconds.append(found["seconds"])
        entry[kind] = values
    if not seconds:
        return
    entry["seconds"] = round(sum(seconds) / len(seconds), 1)
    tasks = kept_scores(folder).get("tasks", {}) | {task: entry}
    ordered = {name: tasks[name] for name in work.recipe.tasks if name in tasks}
    text = json.dumps({"weights": marks["pretrained"], "tasks": ordered}, indent=2)
    durable.write_text(folder / SCORES, text + "\n")


def _holds(path: Path, facts: dict[str, Any], weights: str | None = None) -> bool:
    """Whether a file has figures of this very task (and model)."""
    found = read_json(path)
    return found.get("task") == facts and found.get("weights") == weights


def _write(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write_text(path, json.dumps(values, indent=2) + "\n")
