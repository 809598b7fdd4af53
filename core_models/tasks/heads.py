"""Which head answers a set, how it is made, and which models cannot have it."""

from collections.abc import Sequence
from typing import TypedDict

import torch

from core_models.config import Config
from core_models.config.task import LABELLED
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.initialise import initialise
from core_models.tasks.sets import TaskSet
from core_models.tasks.settings import Settings

_HEADS = {
    "classify": "classify",
    "pair": "classify",
    "multilabel": "multilabel",
    "tag": "tag",
    "answer": "span",
}


def head_for(task: TaskSet, settings: Settings) -> str:
    """The name of the head that answers a set; InputError where a setting is for other sets."""
    if settings.every_step and task.kind != "tag":
        raise InputError(f"A mix of all layers is for tags; this set is of kind {task.kind}.")
    if task.kind == "regress":
        if settings.apart and any(row.pair is None for row in task.train):
            raise InputError("apart compares two texts; this set has only one in each row.")
        return "similarity" if settings.apart else "regress"
    if settings.apart:
        raise InputError(f"apart belongs to scored pairs; this set is of kind {task.kind}.")
    return _HEADS[task.kind]


class Choices(TypedDict):
    """What :meth:`core_models.model.Model.with_head` is given."""

    labels: Sequence[str]
    pooling: str
    every_step: bool


def choices(task: TaskSet, settings: Settings) -> Choices:
    """How the head for a set is made."""
    head = head_for(task, settings)
    return {
        "labels": task.labels if head in LABELLED else (),
        "pooling": "mean" if head == "similarity" else "token",
        "every_step": settings.every_step,
    }


def check_direction(config: Config, head: str) -> None:
    """InputError where a head reads the first token of a model that shows it nothing else."""
    if head in ("classify", "multilabel", "regress") and config.attention.direction == "left":
        raise InputError(
            "This model reads from left to right: its first token, which stands for a text, sees "
            "nothing of it. Choose a model that reads both sides, or a set of tags or answers."
        )


def ready(model: Model, task: TaskSet, settings: Settings) -> Model:
    """A copy of the model with a fresh head for the set; the given model is not changed."""
    with torch.random.fork_rng(devices=[]):  # modules draw values at once, which are replaced
        return _ready(model, task, settings)


def _ready(model: Model, task: TaskSet, settings: Settings) -> Model:
    head = head_for(task, settings)
    check_direction(model.config, head)
    generator = torch.Generator().manual_seed(settings.seed)
    tuned = model.with_head(head, **choices(task, settings), generator=generator)
    if settings.dropout is None and settings.pretrained:
        return tuned
    config = (
        tuned.config if settings.dropout is None else tuned.config.with_dropout(settings.dropout)
    )
    made = Model(config, tuned.tokenizer, [head])
    made.name = tuned.name
    if settings.pretrained:
        made.load_state_dict(tuned.state_dict())
    else:
        initialise(made, config.initial_std, generator)
    return made.to(tuned.encoder.embeddings.pieces.weight.device)
