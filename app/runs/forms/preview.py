"""What only a try can tell before a run: its first batch, and how fast it would train here."""

import asyncio
import contextlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request

from app.runs import config as run_config
from app.runs import room
from app.runs.forms import races as run_races
from app.runs.names import BESIDE
from app.runs.runs import Runs
from core_models import InputError
from core_models.training import race_schema, settings, task_settings
from core_models.training.folder import RunFolder
from viz.svg import Wording, told

_ONE = Lock()
"""One try at a time: each learns a vocabulary or trains for some seconds."""
PATIENCE = 60.0
"""Seconds that a try waits for others."""
_RACE_SECONDS = 0.7
"""Time for the trial of each entrant of a race."""
BUSY = "Others try their settings right now. Ask again in a moment."
_KNOWN: dict[str, tuple[float, dict[str, Any]]] = {}
"""Configs that were tried while this server runs: when, and what was found."""
_MOST_KNOWN = 500
_FRESH = 30.0
"""Seconds for which what was found answers for others: a class chooses one preset at one time."""


_MOST_READ = 1 << 19
"""Characters of a visitor's texts that a first batch is made of: of 20 MB, a vocabulary alone took
minutes, in which nobody else had a turn."""
_DOCUMENTS = 16
"""Of a shortened text, at least, where it has as many: some are held out."""
_GLANCE = 0.2
"""Seconds between two looks whether a page still waits for its answer."""


class Turns:
    """Tries of all pages, one after the other."""

    def __init__(self) -> None:
        self._trying = asyncio.Lock()

    async def take(self, request: Request | None, call: Callable[..., Any], *given: Any) -> Any:
        """``call(*given)`` in a thread. Who waits holds none, and leaves when its page has gone.

        Raises:
            InputError: others took too long, or nobody waits for the answer any more.
        """
        turn = asyncio.ensure_future(self._trying.acquire())
        ends = time.monotonic() + PATIENCE
        try:
            while not turn.done():
                await asyncio.wait({turn}, timeout=_GLANCE)
                gone = request is not None and await request.is_disconnected()
                if not turn.done() and (gone or time.monotonic() > ends):
                    raise InputError(BUSY)
        except BaseException:  # who is cancelled has no turn, or gives it back
            if not turn.cancel():
                self._trying.release()
            raise
        try:
            return await asyncio.to_thread(call, *given)
        finally:
            self._trying.release()


def first_batch(
    runs: Runs, config: Any, texts: Sequence[Any], source: str | None
) -> dict[str, Any]:
    """The first batch of a form, as the model will see it; nothing is kept.

    Of long texts that were sent the beginning is read, and the answer says ``shortened``.
    """
    # Imported late, here and below: a page starts in half the time without the trainer.
    from core_models.training import preview  # noqa: PLC0415

    with _trial(runs, config, texts, source) as (values, beside):
        if run_config.is_task(values):
            rows = preview.first_batch(task_settings.parse(values), RunFolder(beside))
            return {"rows": [_labelled(row) for row in rows]}
        found = {"shortened": _shorten(beside / BESIDE)}
        if run_config.kind_of(values) == "race":
            race = race_schema.parse(values)
            # Of its first entrant: whoever asks for another one names it first.
            first = run_races.run_values(race, race.entrants[0])
            rows = preview.first_batch(settings.parse(first), RunFolder(beside))
            return found | {"rows": rows, "entrant": race.entrants[0].name}
        return found | {"rows": preview.first_batch(settings.parse(values), RunFolder(beside))}


def _shorten(folder: Path) -> bool:
    """Cut the texts in a folder to what a first batch is made of; whether there was more."""
    paths = sorted(folder.glob("*.txt"))
    found = False
    for path in paths:
        text, most = path.read_text(encoding="utf-8"), _MOST_READ // len(paths)
        if len(text) > most:
            path.write_text(_beginning(text, most), encoding="utf-8")
            found = True
    return found


def _beginning(text: str, most: int) -> str:
    """The first documents of a text, each cut so that several fit."""
    each, kept = most // _DOCUMENTS, list[str]()
    for document in re.split(r"\n(?:[ \t]*\n)+", text.strip()):
        if most <= 0:
            break
        lines = document[:each]
        if len(document) > each and "\n" in lines:  # no line ends in its middle
            lines = lines.rpartition("\n")[0]
        kept.append(lines)
        most -= len(lines)
    return "\n\n".join(kept)


def estimate(runs: Runs, config: Any, texts: Sequence[Any], source: str | None) -> dict[str, Any]:
    """How long a form would train on this machine, from a trial of two seconds.

    A form without texts of its own that was tried in the last half minute is not tried again.
    """
    from core_models.training import estimate as estimates  # noqa: PLC0415

    key = None if texts or source is not None else _key(config)
    with _trial(runs, config, texts, source) as (values, beside):
        if run_config.kind_of(values) == "race":
            return _race(race_schema.parse(values), beside)
        if (found := _fresh(key)) is None:
            tried = estimates.estimate(task_settings.parse_any(values), beside)
            speed = tried.tokens_per_step / tried.seconds_per_step
            found = asdict(tried) | {"tokens_per_second": speed}
            _note(key, found)
    return found


def _fresh(key: str | None) -> dict[str, Any] | None:
    if key is None or key not in _KNOWN:
        return None
    when, found = _KNOWN[key]
    return found if time.monotonic() - when < _FRESH else None


def _note(key: str | None, found: dict[str, Any]) -> None:
    if key is not None:
        _KNOWN.pop(key, None)
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[key] = (time.monotonic(), found)


def _race(race: race_schema.Race, beside: Path) -> dict[str, Any]:
    """The same for a race: each entrant is tried for a moment."""
    from core_models.training import estimate as estimates  # noqa: PLC0415

    rows = []
    for entrant in race.entrants:
        options = settings.parse(run_races.run_values(race, entrant))
        found = estimates.estimate(options, beside, seconds=_RACE_SECONDS)
        rows.append({"name": entrant.name, "steps": found.steps, "seconds": found.seconds})
    return {"seconds": sum(row["seconds"] for row in rows), "entrants": rows}


def known_seconds(config: Any) -> float | None:
    """How long a form would train here, if it was asked since this server began."""
    known = _KNOWN.get(_key(config))
    return None if known is None else known[1]["seconds"]


def _key(config: Any) -> str:
    """What the time of a form depends on, texts and names left out."""
    kept = {k: v for k, v in config.items() if k not in ("name", "description", "seed")}
    return json.dumps(_whole(kept), sort_keys=True)


def _whole(value: Any) -> Any:
    """Whole numbers as such: settings that were on a page know no 1.0."""
    if isinstance(value, dict):
        return {name: _whole(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_whole(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _labelled(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a labelled set in the form of those of a text."""
    pieces: list[str] = row["pieces"]
    said = row.get("label", row.get("score"))
    if "labels" in row:
        said = ", ".join(row["labels"]) or "\N{EN DASH}"
    labels = list(row.get("tags") or [None] * len(pieces))
    if "answer" in row:
        first, last = row["answer"]
        if first >= 0:  # else the answer lies in no window, and nothing is learnt from this one
            labels[first : last + 1] = [told(Wording("answer"))] * (last + 1 - first)
    if "second" in row:
        pieces = [*pieces, *row["second"]["pieces"]]
        labels += [None] * len(row["second"]["pieces"])
    return {
        "pieces": pieces,
        "ids": [*row["ids"], *row.get("second", {}).get("ids", [])],
        "segments": [*row["segments"], *[1] * (len(pieces) - len(row["segments"]))],
        "labels": labels,
        "case": [""] * len(pieces),
        "says": said
        if said is None or isinstance(said, str)
        else told(Wording("{0} of 1", f"{said:.2f}")),
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
    if not _ONE.acquire(timeout=PATIENCE):
        raise InputError(BUSY)
    try:
        with room.told(), tempfile.TemporaryDirectory(prefix="cloze-try-") as name:
            beside = Path(name)
            if source is not None:
                runs.copy_texts(source, values, beside)
            yield run_config.with_texts(values, runs.inbox.copy(texts, beside)), beside
    finally:
        _ONE.release()
