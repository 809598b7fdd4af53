"""A fine-tuning as a run folder: from its settings to its first update, and to its evaluation."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core_models.model import Model, load
from core_models.tasks.baselines import Baseline
from core_models.tasks.decode import Prediction
from core_models.tasks.report import main_metric, report, said
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet
from core_models.training import task_settings
from core_models.training.checkpoint import Saved
from core_models.training.finetune import FineTuning, finetune
from core_models.training.folder import RunFolder
from core_models.training.guard import DivergenceError
from core_models.training.host import on
from core_models.training.learning import Begun
from core_models.training.precision import settled
from core_models.training.settings import resolve_folder
from core_models.training.task_data import prepare
from core_models.training.task_schema import TaskSettings

SCRATCH = "from_scratch"
_EXAMPLES = 20
"""Best and worst rows that are kept, at most."""


def begin(run: RunFolder, settings: TaskSettings, saved: Saved | None) -> Begun:
    """Prepare the rows and open the model: that of a checkpoint, where there is one.

    Raises:
        InputError: the settings, the model or the set cannot be used.
    """
    task, baselines = prepare(run, settings)
    # What the run began with may be gone by now.
    if saved is not None:
        model = saved.model().to(on())
    else:
        model = load(resolve_folder(settings.model.checkpoint, run.path)).to(on())
    tuning = FineTuning(model, task, task_settings.tuning(settings))
    facts = _facts(settings, tuning, baselines)

    def conclude(measure: object, stop: Callable[[], bool]) -> dict[str, Any] | None:
        del measure
        if settings.compare_from_scratch:
            run.log("fine-tuning the same model from random weights, to compare")
            try:
                scratch = _from_scratch(model, task, settings, stop)
            except DivergenceError as error:
                run.log(f"from random weights it diverged, so there is no comparison: {error}")
            else:
                if scratch is None:
                    return None
                facts["baselines"] |= _main_values(task, [scratch])
                facts["task"]["baselines"].append(vars(scratch))
        return _evaluation(tuning)

    return Begun(tuning, facts, conclude, task.warnings)


def opened(settings: TaskSettings, beside: Path) -> FineTuning:
    """A fine-tuning at its first update; nothing is written.

    Args:
        settings: Of the run.
        beside: Where files that it names are looked up.

    Raises:
        InputError: the settings, the model or the set cannot be used.
    """
    return sampled(settings, beside)[0]


def sampled(
    settings: TaskSettings, beside: Path, most: int | None = None
) -> tuple[FineTuning, int]:
    """The same over at most so many of its rows, and about how many inputs all would be."""
    settings = settings.model_copy(update={"precision": settled(settings.precision)})
    model = load(resolve_folder(settings.model.checkpoint, beside)).to(on())
    task = task_settings.load_set(settings, beside)
    rows = len(task.train)
    if most is not None and rows > most:
        task = replace(task, train=tuple(task.train[n * rows // most] for n in range(most)))
    tuning = FineTuning(model, task, task_settings.tuning(settings))
    return tuning, round(len(tuning.features) * rows / len(task.train))


def _from_scratch(
    model: Model, task: TaskSet, settings: TaskSettings, stop: Callable[[], bool]
) -> Baseline | None:
    """What the same model reaches without its pretraining; None when it was stopped."""
    wanted = replace(task_settings.tuning(settings), pretrained=False)
    result = finetune(model, task, wanted, stop=stop)
    if result.stopped:
        return None
    return Baseline(
        name=SCRATCH, title="same model without pretraining", metrics=result.report.metrics
    )


def _facts(settings: TaskSettings, tuning: FineTuning, baselines: list[Baseline]) -> dict[str, Any]:
    objective = tuning.objective.name
    task = tuning.task
    return {
        "model": settings.model.checkpoint,
        "objectives": {objective: 1.0},
        "main": main_metric(task),
        "learning_rate": tuning.rate,
        "task": _facts_of(task, baselines),
        "baselines": _main_values(task, baselines),
    }


def _facts_of(task: TaskSet, baselines: Sequence[Baseline]) -> dict[str, Any]:
    """What is known before the first step, as plain values."""
    return {
        "set": task.name,
        "kind": task.kind,
        "main": main_metric(task),
        "labels": list(task.labels),
        "entities": task.entities,
        "scale": list(task.scale),
        "chinese": task.chinese,
        "paired": all(row.pair is not None for row in task.train),
        "train": asdict(task.statistics()),
        "dev": asdict(task.statistics(task.dev)),
        "warnings": list(task.warnings),
        "baselines": [asdict(baseline) for baseline in baselines],
    }


def _main_values(task: TaskSet, baselines: Sequence[Baseline]) -> dict[str, float]:
    """Each baseline's value of the metric by which models are compared."""
    main = main_metric(task)
    return {each.name: each.metrics[main] for each in baselines if main in each.metrics}


def _evaluation(tuning: FineTuning) -> dict[str, Any]:
    """Figures, tables and examples of the best epoch, whose weights the model has afterwards."""
    began = time.perf_counter()
    tuning.use_best()
    predictions = tuning.predict()
    task = tuning.task
    found = report(task, task.dev, predictions, mistakes=_EXAMPLES).to_json()
    found["worst"] = found.pop("mistakes")
    history = [record.to_json() for record in tuning.history]
    return {
        "best_epoch": tuning.best_epoch,
        **found,
        "best": _best(task, predictions),
        "history": history,
        "predicting_seconds": round(time.perf_counter() - began, 2),
    }


def _best(task: TaskSet, predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Rows that were answered rightly, the surest first; for scores those that came nearest."""
    rated = [
        (sureness, index)
        for index, (row, one) in enumerate(zip(task.dev, predictions, strict=True))
        if (sureness := _sureness(task, row, one)) is not None
    ]
    rated.sort(key=lambda item: (-item[0], item[1]))
    plain = said(task, predictions)
    return [
        {
            "row": index,
            "number": task.dev[index].number,
            "text": task.dev[index].text or predictions[index].text,
            "pair": task.dev[index].pair,
            "said": plain[index],
            "sureness": sureness,
        }
        for sureness, index in rated[:_EXAMPLES]
    ]


def _sureness(task: TaskSet, row: Row, one: Prediction) -> float | None:
    """How sure a right answer was; None for a wrong one."""
    if task.kind == "regress":
        low, high = task.scale
        return 1 - abs((row.score or 0.0) - (one.score or 0.0)) / (high - low)
    if task.kind == "tag":
        # A row without any name is right too easily.
        right = row.tags == one.tags and (not task.entities or set(row.tags) != {"O"})
        return min(one.tag_probabilities, default=0.0) if right else None
    if task.kind == "answer":
        wanted = {answer.text for answer in row.answers} or {""}
        return abs(one.margin) if one.answer() in wanted and math.isfinite(one.margin) else None
    if task.kind == "multilabel":  # as sure as of the label that it is least sure of
        sides = (
            abs(p - (label not in row.labels)) for label, p in (one.probabilities or {}).items()
        )
        return min(sides, default=0.0) if set(one.labels) == set(row.labels) else None
    return (one.probabilities or {}).get(str(row.label)) if one.label == row.label else None
