"""Reading the ``config.json`` of a fine-tuning, and the labelled files that it names."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from core_models.errors import InputError
from core_models.tasks import sets
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings as Tuning
from core_models.training import settings
from core_models.training.settings import Settings, read_values, resolve_texts, validated
from core_models.training.task_schema import TaskSettings, is_task

_NAMED = (
    ("task", "set"),
    ("task", "dev"),
    ("tokenizer", "folder"),
    ("model", "checkpoint"),
    ("model", "encoder_from"),
    ("generator", "encoder_from"),
)
"""Settings that may name a file or a folder."""


def parse(values: Any) -> TaskSettings:
    """Check plain values as read from JSON; InputError lists everything that is wrong."""
    found = validated(TaskSettings, values)
    if found.from_scratch and found.compare_from_scratch:
        raise InputError(
            "compare_from_scratch: the run itself is from_scratch; leave one of the two out."
        )
    return found


def tuning(settings: TaskSettings) -> Tuning:
    """The same for :class:`~core_models.training.finetune.FineTuning`."""
    same = {field.name for field in fields(Tuning)} & TaskSettings.model_fields.keys()
    return Tuning(
        **{name: getattr(settings, name) for name in same},
        frozen=settings.frozen_layers,
        apart=settings.task.apart,
        every_step=settings.task.every_step,
        pretrained=not settings.from_scratch,
    )


def steps(settings: TaskSettings, inputs: int) -> int:
    """Updates of a run over so many inputs; the rest that fills no batch is left out each epoch."""
    return settings.epochs * max(1, inputs // settings.batch_size)


def parse_any(values: Any) -> Settings | TaskSettings:
    """The same for any run: a fine-tuning, or a pretraining."""
    return parse(values) if is_task(values) else settings.parse(values)


def read_any(path: Path) -> Settings | TaskSettings:
    """Read ``config.json`` of any run; InputError when it is missing, not JSON or not valid."""
    values = read_values(path)
    try:
        return parse_any(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def named_in_full(values: dict[str, Any], beside: Path) -> dict[str, Any]:
    """The values of any run with what lies beside a recipe named in full, for a copy elsewhere."""
    found: dict[str, Any] = json.loads(json.dumps(values))
    if not is_task(values):
        found["data"] = settings.texts_in_full(found["data"], beside)
    for part, name in _NAMED:
        here = beside / (found.get(part, {}).get(name) or "")
        if here != beside and (here.is_file() if part == "task" else here.is_dir()):
            found[part][name] = str(here)
    return found


def load_set(settings: TaskSettings, beside: Path) -> TaskSet:
    """The set that the settings name.

    Args:
        settings: of the run.
        beside: folder where its files are looked up, before the project's assets.

    Raises:
        InputError: with the file, the row and what is wrong there.
    """
    task = settings.task
    columns = {str(role): column for role, column in task.columns.items()}
    if task.set in sets.shipped() and not (beside / task.set).exists():
        if task.dev or task.kind or columns:
            raise InputError(
                f"task: {task.set} is a shipped set; dev, kind and columns are for files."
            )
        return sets.load(task.set)
    file = _file(task.set, beside)
    dev = None if task.dev is None else _file(task.dev, beside)
    return sets.load(file, dev, kind=task.kind, columns=columns)


def _file(name: str, beside: Path) -> Path:
    try:
        return resolve_texts([name], beside)[0]
    except InputError:
        raise InputError(
            f"task: there is no labelled set {name!r}. By name: {', '.join(sets.shipped())}. "
            "Otherwise give a .jsonl, .csv or .tsv file beside config.json."
        ) from None
