"""Reading the ``config.json`` of a fine-tuning, and the labelled files that it names."""

from pathlib import Path
from typing import Any

from core_models.errors import InputError
from core_models.tasks import sets
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings as Tuning
from core_models.training.settings import read_values, resolve_texts, validated
from core_models.training.task_schema import TaskSettings


def parse(values: Any) -> TaskSettings:
    """Check plain values as read from JSON; InputError lists everything that is wrong."""
    settings = validated(TaskSettings, values)
    if settings.from_scratch and settings.compare_from_scratch:
        raise InputError(
            "compare_from_scratch: the run itself is from_scratch; leave one of the two out."
        )
    return settings


def read(path: Path) -> TaskSettings:
    """Read ``config.json``; InputError when it is missing, not JSON or not valid."""
    values = read_values(path)
    try:
        return parse(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def tuning(settings: TaskSettings) -> Tuning:
    """The same for :class:`~core_models.tasks.finetune.FineTuning`."""
    return Tuning(
        learning_rate=settings.learning_rate,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seed=settings.seed,
        layer_decay=settings.layer_decay,
        frozen=settings.frozen_layers,
        warmup=settings.warmup,
        dropout=settings.dropout,
        weight_decay=settings.weight_decay,
        clip=settings.clip,
        max_length=settings.max_length,
        stride=settings.stride,
        precision=settings.precision,
        apart=settings.task.apart,
        every_step=settings.task.every_step,
        pretrained=not settings.from_scratch,
    )


def steps(settings: TaskSettings, inputs: int) -> int:
    """Updates of a run over so many inputs; the rest that fills no batch is left out each epoch."""
    return settings.epochs * max(1, inputs // settings.batch_size)


def named_in_full(values: dict[str, Any], beside: Path) -> dict[str, Any]:
    """The values with files that lie beside a recipe named in full, for a copy elsewhere."""
    task, model = dict(values["task"]), dict(values["model"])
    for name in ("set", "dev"):
        if task.get(name) and (beside / task[name]).is_file():
            task[name] = str(beside / task[name])
    if (beside / model["checkpoint"]).is_dir():
        model["checkpoint"] = str(beside / model["checkpoint"])
    return values | {"task": task, "model": model}


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
