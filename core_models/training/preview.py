"""The first batch of a run exactly as the model sees it, as plain values for people to look at."""

import contextlib
from typing import Any

import torch

from core_models.batch import Batch
from core_models.masking.tokens import IGNORED
from core_models.tasks.encode import Feature
from core_models.tasks.sets import TaskSet
from core_models.tokenizer import Tokenizer
from core_models.training import models
from core_models.training.folder import RunFolder
from core_models.training.settings import Settings
from core_models.training.streams import open_data, open_stream
from core_models.training.task_schema import TaskSettings

NEIGHBOURS = ("in order", "not in order")
"""Meaning of the pair labels 0 and 1: does the second text follow the first one?"""


def first_batch(
    settings: Settings | TaskSettings, run: RunFolder, rows: int = 8
) -> list[dict[str, Any]]:
    """What the first step of a run reads; nothing is trained.

    The ``data`` folder of a pretraining is made if it is not there yet, and used again when the run
    starts. A run on a GPU may draw its masks there, and then other ones.

    Args:
        settings: What is asked for.
        run: Where it is asked for; need not hold more than the files that the settings name.
        rows: How many examples of the batch are given.

    Returns:
        For each example what :func:`describe` gives. Of a fine-tuning ``pieces``, ``ids``,
        ``segments``, the ``number`` of its row, and what has to be said: ``label``, ``labels``,
        ``score`` (in 0..1 of the set's scale), ``tags`` (None where a piece has none) or ``answer``
        (first and last place; that of [CLS] where there is none). The second of two texts that are
        encoded apart stands in ``second``.

    Raises:
        InputError: Settings or data cannot be used, or the run is just being started.
    """
    if isinstance(settings, TaskSettings):
        # Imported late: measuring tasks brings libraries that pretraining need not wait for.
        from core_models.training.task_run import opened  # noqa: PLC0415

        made = opened(settings, run.path)
        return [_labelled(each, made.task, made.model.tokenizer) for each in made.inputs()[:rows]]
    base = models.base_of(settings, run.path)
    with contextlib.nullcontext() if run.data_path.exists() else run.lock():
        data, masker, _ = open_data(run, settings, base)
    words = data.tokenizer
    batch = open_stream(data, masker, settings, torch.device("cpu")).draw().batch
    replaced = "similar" if masker.plan.masking.kind == "similar_word" else "random"
    return [describe(batch, row, words, replaced) for row in range(min(rows, batch.shape[0]))]


def describe(batch: Batch, row: int, tokenizer: Tokenizer, replaced: str) -> dict[str, Any]:
    """One example of a batch, without its padding.

    Args:
        batch: A batch [B, L].
        row: Number of the example.
        tokenizer: Spells the pieces.
        replaced: What a piece that was put in another's place is called.

    Returns:
        ``pieces``, ``ids``, ``segments``, and for each piece its ``case`` ("" untouched, "mask",
        ``replaced``, "kept"), ``labels`` (the piece to guess, or None) and ``weights``; ``pair``;
        ``reversed``; ``boundaries`` with the places around each hidden piece; ``targets`` of an
        order of prediction, each with the places it ``sees``; ``visibility``, what every piece
        sees, as a string of 0 and 1 for each. Places count from 0 among the pieces given.
    """
    assert batch.input_ids is not None
    real = slice(0, batch.shape[1])
    if batch.attention_mask is not None:
        where = batch.attention_mask[row].nonzero().squeeze(1)
        real = slice(int(where[0]), int(where[-1]) + 1)
    ids: list[int] = batch.input_ids[row, real].tolist()
    segments = (
        [0] * len(ids) if batch.segment_ids is None else batch.segment_ids[row, real].tolist()
    )
    labels = [IGNORED] * len(ids) if batch.labels is None else batch.labels[row, real].tolist()
    return {
        "pieces": [tokenizer.piece(i) for i in ids],
        "ids": ids,
        "segments": segments,
        "case": [
            _case(i, label, tokenizer, replaced) for i, label in zip(ids, labels, strict=True)
        ],
        "labels": [None if label == IGNORED else tokenizer.piece(label) for label in labels],
        "weights": None if batch.label_weights is None else batch.label_weights[row, real].tolist(),
        "pair": _pair(batch, row),
        "reversed": batch.reversed is not None and bool(batch.reversed[row]),
        "boundaries": _boundaries(batch, row, real.start, tokenizer),
        "targets": _targets(batch, row, real, tokenizer),
        "visibility": _visibility(batch, row, real),
    }


def _case(index: int, label: int, tokenizer: Tokenizer, replaced: str) -> str:
    if label == IGNORED:
        return ""
    if index == tokenizer.mask_id:
        return "mask"
    return "kept" if index == label else replaced


def _pair(batch: Batch, row: int) -> str | None:
    if batch.pair_labels is None or int(batch.pair_labels[row]) == IGNORED:
        return None
    return NEIGHBOURS[int(batch.pair_labels[row])]


def _boundaries(
    batch: Batch, row: int, start: int, tokenizer: Tokenizer
) -> list[dict[str, Any]] | None:
    if batch.boundaries is None or batch.boundary_labels is None:
        return None
    return [
        {
            "before": before - start,
            "after": after - start,
            "place": place,
            "piece": tokenizer.piece(label),
        }
        for (before, after, place), label in zip(
            batch.boundaries[row].tolist(), batch.boundary_labels[row].tolist(), strict=True
        )
        if label != IGNORED
    ]


def _targets(
    batch: Batch, row: int, real: slice, tokenizer: Tokenizer
) -> list[dict[str, Any]] | None:
    if batch.targets is None or batch.target_labels is None or batch.target_visibility is None:
        return None
    return [
        {
            "place": place - real.start,
            "piece": tokenizer.piece(label),
            "sees": seen[real].nonzero().squeeze(1).tolist(),
        }
        for place, label, seen in zip(
            batch.targets[row].tolist(),
            batch.target_labels[row].tolist(),
            batch.target_visibility[row],
            strict=True,
        )
        if label != IGNORED
    ]


def _visibility(batch: Batch, row: int, real: slice) -> list[str] | None:
    if batch.visibility is None:
        return None
    seen = batch.visibility[row, real, real].int().tolist()
    return ["".join(map(str, line)) for line in seen]


def _labelled(feature: Feature, task: TaskSet, tokenizer: Tokenizer) -> dict[str, Any]:
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
    elif task.kind == "multilabel":
        found["labels"] = [task.labels[number] for number in feature.labels]
    else:
        found["label"] = task.labels[feature.label]
    return found
