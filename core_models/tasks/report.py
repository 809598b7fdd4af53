"""Predictions against the truth: figures, tables, and what went wrong."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core_models.tasks import metrics
from core_models.tasks.decode import Prediction
from core_models.tasks.metrics import Calibration, LabelScores
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet

Said = str | float | tuple[str, ...]
"""What was said about a row in plain form: a label, several labels, a score, tags, or an answer
("" = none)."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A row that was answered wrongly."""

    row: int
    """Index among the rows that were measured."""
    number: int
    """Row or line in the file."""
    text: str
    pair: str | None
    expected: str
    said: str
    wrongness: float
    """What the list is sorted by; the worst comes first."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """How good the predictions for some rows are."""

    main: str
    """The metric by which models are compared."""
    metrics: dict[str, float]
    labels: dict[str, LabelScores]
    """Scores of each label, or type of entity."""
    confusion: list[list[int]]
    """Rows by true and predicted label, in the order of the set's labels; else empty."""
    calibration: Calibration | None
    threshold: float | None
    """Margin above which saying "no answer" is best on these very rows; minus infinity = always."""
    mistakes: tuple[Mistake, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; minus infinity, which JSON lacks, is null."""
        never = self.threshold == -math.inf
        return asdict(self) | {"threshold": None if never else self.threshold}


def main_metric(task: TaskSet) -> str:
    """The metric by which models are compared on a set."""
    if task.kind == "tag":
        return "entity_f1" if task.entities else "accuracy"
    mains = {"regress": "pearson", "answer": "f1", "multilabel": "micro_f1"}
    return mains.get(task.kind, "accuracy")


def measure(task: TaskSet, rows: Sequence[Row], said: Sequence[Said]) -> dict[str, float]:
    """The metrics of the set's kind.

    Args:
        task: the set that the rows belong to.
        rows: with the truth.
        said: one for each row.
    """
    if task.kind == "regress":
        return metrics.correlation([_score(row) for row in rows], [float(s) for s in said])  # type: ignore[arg-type]
    if task.kind == "answer":
        truths = [[answer.text for answer in row.answers] for row in rows]
        return metrics.answers([str(s) for s in said], truths)
    if task.kind == "tag":
        found = [tuple(s) for s in said if isinstance(s, tuple)]
        flat = metrics.classification(
            [tag for row in rows for tag in row.tags], [tag for tags in found for tag in tags]
        )
        if not task.entities:
            return flat
        whole = metrics.entity_scores([row.tags for row in rows], found)
        return whole | {"accuracy": flat["accuracy"]}
    if task.kind == "multilabel":
        several = [s for s in said if isinstance(s, tuple)]
        return metrics.several_labels([row.labels for row in rows], several, task.labels)
    return metrics.classification([str(row.label) for row in rows], [str(s) for s in said])


def said(task: TaskSet, predictions: Sequence[Prediction]) -> list[Said]:
    """Predictions in plain form."""
    if task.kind == "regress":
        return [p.score or 0.0 for p in predictions]
    if task.kind == "tag":
        return [p.tags for p in predictions]
    if task.kind == "answer":
        return [p.answer() for p in predictions]
    if task.kind == "multilabel":
        return [p.labels for p in predictions]
    return [p.label or "" for p in predictions]


def report(
    task: TaskSet, rows: Sequence[Row], predictions: Sequence[Prediction], *, mistakes: int = 20
) -> Report:
    """Everything about the predictions for some rows."""
    plain = said(task, predictions)
    values = measure(task, rows, plain)
    labels: dict[str, LabelScores] = {}
    confusion: list[list[int]] = []
    calibration = None
    threshold = None
    if task.kind in ("classify", "pair"):
        true, found = [str(row.label) for row in rows], [str(s) for s in plain]
        labels = metrics.per_label(true, found, task.labels)
        confusion = metrics.confusion(true, found, task.labels)
        sure = [max((p.probabilities or {"": 0.0}).values()) for p in predictions]
        calibration = metrics.calibration(sure, [a == b for a, b in zip(true, found, strict=True)])
        values["calibration_error"] = calibration.error
    elif task.kind == "multilabel":
        held = [row.labels for row in rows]
        labels = metrics.per_label_of_several(held, [p.labels for p in predictions], task.labels)
        chances = [
            (p.probabilities or {}, row.labels) for p, row in zip(predictions, rows, strict=True)
        ]
        calibration = metrics.calibration(
            [chance for named, _ in chances for chance in named.values()],
            [label in holding for named, holding in chances for label in named],
        )
        values["calibration_error"] = calibration.error
    elif task.entities:
        labels = metrics.per_entity([row.tags for row in rows], [p.tags for p in predictions])
    elif task.kind == "answer":
        threshold, best = _best_threshold(rows, predictions)
        values["best_f1"] = best
    return Report(
        main=main_metric(task),
        metrics=values,
        labels=labels,
        confusion=confusion,
        calibration=calibration,
        threshold=threshold,
        mistakes=tuple(_mistakes(task, rows, predictions, plain)[:mistakes]),
    )


def _best_threshold(rows: Sequence[Row], predictions: Sequence[Prediction]) -> tuple[float, float]:
    truths = [[answer.text for answer in row.answers] for row in rows]
    best = [p.answers[0].text if p.answers else "" for p in predictions]
    return metrics.best_threshold(
        [p.margin for p in predictions],
        [metrics.answer_f1(b, t) for b, t in zip(best, truths, strict=True)],
        [bool(t) for t in truths],
    )


def _mistakes(
    task: TaskSet, rows: Sequence[Row], predictions: Sequence[Prediction], plain: Sequence[Said]
) -> list[Mistake]:
    found = []
    for index, (row, prediction, one) in enumerate(zip(rows, predictions, plain, strict=True)):
        wrongness = _wrongness(task, row, prediction, one)
        if wrongness > 0:
            found.append(
                Mistake(
                    row=index,
                    number=row.number,
                    text=row.text or prediction.text,
                    pair=row.pair,
                    expected=_shown(task, _expected(task, row)),
                    said=_shown(task, one),
                    wrongness=wrongness,
                )
            )
    return sorted(found, key=lambda mistake: (-mistake.wrongness, mistake.row))


def _wrongness(task: TaskSet, row: Row, prediction: Prediction, one: Said) -> float:
    """0 for a right answer; else how wrong or how sure it was."""
    if task.kind == "regress":
        return abs(_score(row) - (prediction.score or 0.0))
    if task.kind == "tag":
        return float(sum(a != b for a, b in zip(row.tags, prediction.tags, strict=True)))
    if task.kind == "answer":
        return 1 - metrics.answer_f1(str(one), [answer.text for answer in row.answers])
    if task.kind == "multilabel":
        named = prediction.probabilities or {}
        wrong = set(row.labels).symmetric_difference(prediction.labels)
        return sum(abs((label in row.labels) - named.get(label, 0.0)) for label in wrong)
    right = one == row.label
    return 0.0 if right else 1 - (prediction.probabilities or {}).get(str(row.label), 0.0)


def _expected(task: TaskSet, row: Row) -> Said:
    if task.kind == "regress":
        return _score(row)
    if task.kind == "tag":
        return row.tags
    if task.kind == "answer":
        return row.answers[0].text if row.answers else ""
    return row.labels if task.kind == "multilabel" else str(row.label)


def _shown(task: TaskSet, value: Said) -> str:
    if isinstance(value, tuple):
        return (", " if task.kind == "multilabel" else " ").join(value)
    return f"{value:.2f}" if isinstance(value, float) else value


def _score(row: Row) -> float:
    assert row.score is not None
    return row.score
