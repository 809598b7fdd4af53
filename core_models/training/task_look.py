"""Before a fine-tuning is started: how long it will take, and what its first step reads."""

import time
from pathlib import Path
from typing import Any

import torch

from core_models.checkpoints.start import task_config
from core_models.model import Model, load
from core_models.tasks.encode import IGNORED, Coder, Feature
from core_models.tasks.finetune import FineTuning
from core_models.tasks.heads import check_direction, choices, head_for
from core_models.tasks.sets import TaskSet
from core_models.tokenizer import Tokenizer
from core_models.training.estimate import Estimate, kept_for_backward
from core_models.training.host import on_accelerator
from core_models.training.settings import resolve_folder
from core_models.training.task_schema import TaskSettings
from core_models.training.task_settings import load_set, tuning


def estimate(settings: TaskSettings, beside: Path, *, seconds: float = 2.0) -> Estimate:
    """Open model and set, and time the first updates for about ``seconds``.

    Measuring on the development rows is not counted.

    Args:
        settings: of the run.
        beside: where files that it names are looked up.
        seconds: time for the calibration; the first update is not counted.

    Raises:
        InputError: the settings, the model or the set cannot be used.
    """
    threads = torch.get_num_threads()
    try:
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        made = _open(settings, beside)
        with kept_for_backward(made.model) as kept:
            made.step()
        # AdamW has two numbers for each, beside the gradient.
        memory = 4 * sum(p.nbytes for p in made.model.parameters()) + sum(kept.values())
        began = time.perf_counter()
        tokens = updates = 0
        while not updates or (
            time.perf_counter() - began < seconds and made.step_count < made.steps
        ):
            made.step()
            assert made.last is not None
            tokens += made.last.tokens
            updates += 1
        each = (time.perf_counter() - began) / updates
    finally:
        torch.set_num_threads(threads)
    return Estimate(
        parameters=sum(p.numel() for p in made.model.parameters()),
        companions={},
        tokens_per_step=round(tokens / updates),
        seconds_per_step=each,
        steps=made.steps,
        seconds=each * made.steps * (2 if settings.compare_from_scratch else 1),
        device=str(made.model.encoder.embeddings.pieces.weight.device),
        memory=memory,
    )


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
    rows = task.train
    if sample is None or len(rows) <= sample or task.kind not in SEVERAL:
        return coder.count(rows, most)
    chosen = [rows[number * len(rows) // sample] for number in range(sample)]
    return round(coder.count(chosen) * len(rows) / sample)


def check_model(settings: TaskSettings, task: TaskSet, model: Model) -> None:
    """InputError for a model that cannot learn this set, as the run itself would say."""
    check_direction(model.config, head_for(task, tuning(settings)))


def parameters(settings: TaskSettings, task: TaskSet, model: Model) -> int:
    """How many numbers are trained: the encoder's, and those of the head that the set needs."""
    wanted = tuning(settings)
    head = head_for(task, wanted)
    config = task_config(model.config, head, dropout=None, **choices(task, wanted))
    with torch.device("meta"):
        made = Model(config, model.tokenizer, [head])
    return sum(p.numel() for p in made.parameters())


def first_batch(settings: TaskSettings, beside: Path, rows: int = 8) -> list[dict[str, Any]]:
    """What the first step reads; nothing is trained or written.

    Returns:
        For each example ``pieces``, ``ids``, ``segments``, the ``number`` of its row, and what has
        to be said: ``label``, ``score`` (in 0..1 of the set's scale), ``tags`` (None where a piece
        has none) or ``answer`` (first and last place; that of [CLS] where there is none). The
        second of two texts that are encoded apart stands in ``second``.

    Raises:
        InputError: the settings, the model or the set cannot be used.
    """
    made = _open(settings, beside)
    words = made.model.tokenizer
    return [_described(feature, made.task, words) for feature in made.draw()[:rows]]


def _open(settings: TaskSettings, beside: Path) -> FineTuning:
    task = load_set(settings, beside)
    model = on_accelerator(load(resolve_folder(settings.model.checkpoint, beside)))
    return FineTuning(model, task, tuning(settings))


def _described(feature: Feature, task: TaskSet, tokenizer: Tokenizer) -> dict[str, Any]:
    found: dict[str, Any] = {
        "pieces": [tokenizer.piece(i) for i in feature.encoding.ids],
        "ids": list(feature.encoding.ids),
        "segments": list(feature.encoding.segment_ids),
        "number": task.train[feature.row].number,
    }
    if feature.second is not None:
        found["second"] = {
            "pieces": [tokenizer.piece(i) for i in feature.second.ids],
            "ids": list(feature.second.ids),
        }
    if task.kind == "regress":
        found["score"] = feature.score
    elif task.kind == "tag":
        found["tags"] = [None if tag == IGNORED else task.labels[tag] for tag in feature.tags]
    elif task.kind == "answer":
        found["answer"] = [feature.start, feature.end]
    else:
        found["label"] = task.labels[feature.label]
    return found
