"""``evaluation.json`` of a fine-tuning: everything about the predictions of the best epoch."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from core_models.tasks.baselines import Baseline
from core_models.tasks.decode import Prediction
from core_models.tasks.finetune import FineTuning
from core_models.tasks.report import main_metric, report, said
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet

_EXAMPLES = 20
"""Best and worst rows that are kept, at most."""


def facts(task: TaskSet, baselines: Sequence[Baseline]) -> dict[str, Any]:
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


def main_values(task: TaskSet, baselines: Sequence[Baseline]) -> dict[str, float]:
    """Each baseline's value of the metric by which models are compared."""
    main = main_metric(task)
    return {each.name: each.metrics[main] for each in baselines if main in each.metrics}


def evaluate(tuning: FineTuning) -> dict[str, Any]:
    """Figures, tables and examples of the best epoch, whose weights the model has afterwards."""
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
    return (one.probabilities or {}).get(str(row.label)) if one.label == row.label else None


def finite(values: Any) -> Any:
    """Plain values as JSON can hold them: infinity and "not a number" become null."""
    if isinstance(values, dict):
        return {name: finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
