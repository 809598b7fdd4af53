"""What only a try can tell before a run: its first batch, and how fast it would train here."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from app import run_config
from app.runs import Runs
from core_models import InputError
from core_models.training import settings, task_settings
from core_models.training.folder import RunFolder

_ONE = Lock()
"""One try at a time: each learns a vocabulary or trains for some seconds."""
_PATIENCE = 60.0


def first_batch(
    runs: Runs, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """The first batch of a form, as the model will see it; nothing is kept."""
    # Imported late, here and below: a page starts in half the time without the trainer.
    from core_models.training import preview, task_look  # noqa: PLC0415

    with _trial(runs, config, texts, source) as (values, beside):
        if run_config.is_task(values):
            rows = task_look.first_batch(task_settings.parse(values), beside)
            return {"rows": [_labelled(row) for row in rows]}
        return {"rows": preview.first_batch(settings.parse(values), RunFolder(beside))}


def estimate(runs: Runs, config: Any, texts: Sequence[Any], source: str | None) -> dict[str, Any]:
    """How long a form would train on this machine, from a trial of two seconds."""
    from core_models.training import estimate as estimates  # noqa: PLC0415
    from core_models.training import task_look  # noqa: PLC0415

    with _trial(runs, config, texts, source) as (values, beside):
        if run_config.is_task(values):
            found = task_look.estimate(task_settings.parse(values), beside)
        else:
            found = estimates.estimate(settings.parse(values), beside)
    speed = found.tokens_per_step / found.seconds_per_step
    return asdict(found) | {"tokens_per_second": speed}


def _labelled(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a labelled set in the form of those of a text."""
    pieces: list[str] = row["pieces"]
    said = row.get("label", row.get("score"))
    labels = list(row.get("tags") or [None] * len(pieces))
    if "answer" in row:
        first, last = row["answer"]
        labels[first : last + 1] = ["answer"] * (last + 1 - first)
    if "second" in row:
        pieces = [*pieces, *row["second"]["pieces"]]
        labels += [None] * len(row["second"]["pieces"])
    return {
        "pieces": pieces,
        "ids": [*row["ids"], *row.get("second", {}).get("ids", [])],
        "segments": [*row["segments"], *[1] * (len(pieces) - len(row["segments"]))],
        "labels": labels,
        "case": [""] * len(pieces),
        "says": said if said is None or isinstance(said, str) else f"{said:.2f} of 1",
        "number": row["number"],
    }


@contextlib.contextmanager
def _trial(
    runs: Runs, config: Any, texts: Sequence[Any], source: str | None
) -> Iterator[tuple[dict[str, Any], Path]]:
    """The config of a form and a folder for the time of a try that holds its texts."""
    if not runs.enabled:
        raise InputError("Training is switched off on this server.")
    values = runs.checked(config, texts=len(texts), source=source)
    run_config.spare_a_core(values)
    if not _ONE.acquire(timeout=_PATIENCE):
        raise InputError("Others try their settings right now. Ask again in a moment.")
    try:
        with tempfile.TemporaryDirectory(prefix="cloze-try-") as name:
            beside = Path(name)
            if source is not None:
                runs.copy_texts(source, beside)
            yield run_config.with_texts(values, runs.inbox.copy(texts, beside)), beside
    finally:
        _ONE.release()
