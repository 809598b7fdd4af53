"""Before a fine-tuning is started: whether the model fits the set, and how large both are."""

from collections.abc import Sequence

from core_models.checkpoints.start import task_config
from core_models.config import check_ours
from core_models.model import Model
from core_models.network.initialise import without_values
from core_models.tasks.encode import MEASURED, Coder
from core_models.tasks.heads import check_direction, choices, head_for
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings as Tuning
from core_models.training.task_schema import TaskSettings
from core_models.training.task_settings import tuning

SEVERAL = ("tag", "answer")
"""Kinds of sets of which a row may become several examples: those of others are cut."""


def inputs(
    settings: TaskSettings,
    task: TaskSet,
    model: Model,
    *,
    most: int | None = None,
    sample: int | None = None,
) -> int:
    """How many examples the training rows become; long texts, and rows of words, become several.

    The development rows are looked at, too.

    Args:
        settings: of the run.
        task: its set.
        model: that it begins with.
        most: where there are more, the rest is not counted.
        sample: count only so many rows, evenly spread over the set, and take the others to be like
            them.

    Raises:
        InputError: a row cannot be read by this model.
    """
    coder = Coder.of(model, task, max_length=settings.max_length, stride=settings.stride)
    train, dev = (_some(rows, sample) for rows in (task.train, task.dev))
    found = coder.count(train, most)
    coder.count(dev, of=MEASURED)
    return round(found * len(task.train) / len(train))


def _some(rows: Sequence[Row], sample: int | None) -> Sequence[Row]:
    """So many rows, evenly spread over all; None or fewer rows = all."""
    if sample is None or len(rows) <= sample:
        return rows
    return [rows[number * len(rows) // sample] for number in range(sample)]


def check_model(settings: TaskSettings, task: TaskSet, model: Model) -> None:
    """InputError for a model that cannot learn this set, as the run itself would say."""
    check_ours(model.config)
    check_direction(model.config, head_for(task, _tuning(settings)))


def parameters(settings: TaskSettings, task: TaskSet, model: Model) -> int:
    """How many numbers are trained: the encoder's, and those of the head that the set needs."""
    wanted = _tuning(settings)
    head = head_for(task, wanted)
    config = task_config(model.config, head, dropout=None, **choices(task, wanted))
    with without_values():
        made = Model(config, model.tokenizer, [head])
    return sum(p.numel() for p in made.parameters())


def _tuning(settings: TaskSettings) -> Tuning:
    """What is asked for; nothing is computed here, so an open precision need not be settled."""
    return tuning(settings.model_copy(update={"precision": "fp32"}))
