"""What only a try can tell before a run: its first batch, and how fast it would train here."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from app.runs import Runs
from core_models import InputError
from core_models.training import settings
from core_models.training.folder import RunFolder
from core_models.training.settings import Settings

_ONE = Lock()
"""One try at a time: each learns a vocabulary or trains for some seconds."""
_PATIENCE = 60.0


def first_batch(
    runs: Runs, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """The first batch of a form, as the model will see it; nothing is kept."""
    # Imported late, here and below: a page starts in half the time without the trainer.
    from core_models.training import preview  # noqa: PLC0415

    with _trial(runs, config, texts, source) as (options, beside):
        return {"rows": preview.first_batch(options, RunFolder(beside))}


def estimate(runs: Runs, config: Any, texts: Sequence[Any], source: str | None) -> dict[str, Any]:
    """How long a form would train on this machine, from a trial of two seconds."""
    from core_models.training import estimate as estimates  # noqa: PLC0415

    with _trial(runs, config, texts, source) as (options, beside):
        found = estimates.estimate(options, beside)
    speed = found.tokens_per_step / found.seconds_per_step
    return asdict(found) | {"tokens_per_second": speed}


@contextlib.contextmanager
def _trial(
    runs: Runs, config: Any, texts: Sequence[Any], source: str | None
) -> Iterator[tuple[Settings, Path]]:
    """The settings of a form and a folder for the time of a try that holds its texts."""
    if not runs.enabled:
        raise InputError("Training is switched off on this server.")
    values = runs.checked(config, texts=len(texts), source=source)
    runs.spare_a_core(values)
    if not _ONE.acquire(timeout=_PATIENCE):
        raise InputError("Others try their settings right now. Ask again in a moment.")
    try:
        with tempfile.TemporaryDirectory(prefix="cloze-try-") as name:
            beside = Path(name)
            if source is not None:
                runs.copy_texts(source, beside)
            values["data"]["texts"] += runs.inbox.copy(texts, beside)
            yield settings.parse(values), beside
    finally:
        _ONE.release()
