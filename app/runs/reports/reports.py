"""What the page shows of a run: a line for the list, and a live report that polling renews.

No Gradio, no PyTorch. Metrics are read from where the last look ended, so a hundred viewers of one
run cost little more than one.
"""

import contextlib
import csv
import io
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from app.runs import config as run_config
from app.runs import damage, room
from app.runs import owner as run_owner
from app.runs import process as run_process
from app.runs import queue as run_queue
from app.runs import silence as run_silence
from app.runs.doctor import doctor
from app.runs.export import archive as run_export
from app.runs.reports.described import describe_model
from app.runs.runs import Runs
from app.runs.unplaced import unplaced
from core_models import InputError, plain_files
from core_models.training.folder import MOST_REPORTS, RunFolder, thinned
from core_models.training.race_folder import RaceFolder

MOST_RECORDS = 1_500
"""Reports in one answer; a page that has fewer asks again at once."""
MOST_LOG = 60
_LOG_BYTES = 16_000
_KEPT = 50_000
"""Reports of all runs that are kept in memory, about a kilobyte each; more are read again."""
_SHARED = 0.5
"""Seconds for which one list of the runs answers every page, unless this server changes a run."""
_FIGURES = ("loss", "masked_token_loss", "masked_token_accuracy", "tokens_per_second")


@dataclass
class _Seen:
    """Reports of one run that were read before."""

    offset: int = 0
    file: int | None = None
    """Number of the file that they were read from; None before it was there."""
    generation: int = 0
    """Counts the times at which reports were taken back, as after a crash."""
    records: list[dict[str, Any]] = field(default_factory=list)

    def look(self, path: Path) -> None:
        """Begin anew where another file lies there, such as a copy that was put back."""
        with contextlib.suppress(OSError):
            found = path.stat()
            if self.file not in (None, found.st_ino) or found.st_size < self.offset:
                self.generation += 1
                self.offset, self.records = 0, []
            self.file = found.st_ino

    def add(self, fresh: list[dict[str, Any]]) -> None:
        """Take the next reports; one of a step that was reported takes back what came since."""
        for record in fresh:
            if self.records and self.records[-1]["step"] >= record["step"]:
                self.generation += 1
                while self.records and self.records[-1]["step"] >= record["step"]:
                    self.records.pop()
            self.records.append(record)
        if len(self.records) > MOST_REPORTS:
            self.generation += 1
            self.records = thinned(self.records)


class Reports:
    """Reads run folders for the page."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._seen: OrderedDict[tuple[str, str | None], _Seen] = OrderedDict()
        self._lock = Lock()
        self._listed: tuple[int, float, list[dict[str, Any]]] | None = None
        self._listing = Lock()

    def overview(self) -> list[dict[str, Any]]:
        """Every run in short, the newest first; a class that asks at once gets one list."""
        with self._listing:
            changes, known = self.runs.changes, self._listed
            if known and known[0] == changes and time.monotonic() - known[1] < _SHARED:
                return list(known[2])
            found = self._list()
            self._listed = changes, time.monotonic(), found
            return list(found)

    def _list(self) -> list[dict[str, Any]]:
        waiting = self.runs.queue()
        waits = run_queue.waits(self, waiting)
        found = []
        for run in self.runs.ids():
            try:
                found.append(self.summary(run, waiting, waits))
            except damage.DamagedError as error:
                found.append(damage.in_short(run, str(error)))
            except (InputError, FileNotFoundError):
                continue  # deleted since it was listed
        return found

    @damage.guarded
    def summary(
        self,
        run: str,
        waiting: list[str] | None = None,
        waits: dict[str, float | None] | None = None,
        records: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """One run in short: id, name, state, place in the queue, progress, last figures.

        Args:
            run: its id.
            waiting: the queue, where it is known already.
            waits: seconds until each of it starts, where they are known already.
            records: its reports, where they are known already.
        """
        config = self.runs.config(run)
        folder = self.runs.folder(run)
        status = folder.status()
        queue = self.runs.queue() if waiting is None else waiting
        if waits is None:
            waits = run_queue.waits(self, queue) if run in queue else {}
        state = self.runs.state(run)
        records = self._records(run).records if records is None else records
        held_out = [r for r in records if "validation_masked_token_loss" in r]
        last = records[-1] if records else {}
        kind = run_config.kind_of(config)
        if kind == "race":
            status = status | _sums(status.get("table") or [])
        return {
            "id": run,
            "kind": kind,
            "name": str(config.get("name") or run),
            "state": state,
            "place": queue.index(run) + 1 if run in queue else None,
            "wait_seconds": waits.get(run),
            "reason": unplaced(_reason(folder, status, state) or "", self.runs.root) or None,
            "model": describe_model(config, self.runs.named)
            | {"race": len(config.get("entrants") or [])},
            "parameters": status.get("parameters"),
            "step": status.get("step", 0),
            "steps": status.get("steps") or run_queue.steps_of(config, folder.path) or 0,
            "last": {name: last[name] for name in _FIGURES if name in last},
            "main": _main(folder, status, records),
            "validation": held_out[-1]["validation_masked_token_loss"] if held_out else None,
            "seconds_left": run_queue.still(status, records, config)
            if state == "running"
            else None,
            "updated": status.get("updated"),
            "silent_seconds": run_silence.seconds(folder, status, records)
            if state in ("running", "stopping")
            else None,
        }

    @damage.guarded
    def live(
        self, run: str, offset: int = 0, generation: int = 0, *, owner: str | None = None
    ) -> dict[str, Any]:
        """Everything about a run that changes, with the reports from number ``offset`` on.

        A page that asks with an old ``generation`` gets all reports again: some were taken back.
        The command names the folder of the run only to its ``owner``.
        """
        seen = self._records(run)
        if generation != seen.generation:
            offset = 0
        folder = self.runs.folder(run)
        status, config = folder.status(), self.runs.config(run)
        some = seen.records[offset : offset + MOST_RECORDS]
        case = doctor.Case(
            records=seen.records,
            status=status,
            config=config,
            repeated=float(_page(folder).get("repeated") or 0.0),
        )
        return {
            "summary": self.summary(run, records=seen.records),
            "records": some,
            "offset": offset + len(some),
            "generation": seen.generation,
            "more": offset + len(some) < len(seen.records),
            "baselines": status.get("baselines") or {},
            "data": status.get("data") or {},
            "environment": status.get("environment") or {},
            "log": [unplaced(text, self.runs.root) for text in _tail(folder.path / "log.txt")],
            "findings": [finding.to_json() for finding in doctor.examine(case)],
            # A fine-tuned model has no head that fills gaps.
            "snapshots": []
            if run_config.is_task(config)
            else [kept.step for kept in folder.checkpoints("snapshots")],
            "detects": "replaced_token" in (status.get("losses") or {}),
            "validated": _changed(folder.path / "validation.json"),
            "task": status.get("task"),
            "evaluated": run_config.is_task(config) and (folder.path / "evaluation.json").exists(),
            "model": f"run/{run}" if folder.model_path.is_dir() or folder.checkpoints() else None,
            "export": run_export.available(folder),
            "command": run_process.command(folder.path, whole=run_owner.owns(folder.path, owner)),
        }

    def examples(self, run: str, entrant: str | None = None) -> dict[str, Any]:
        """The held-out examples that the newest validation found hardest and easiest.

        Args:
            run: the run, or a race.
            entrant: whose examples, in a race.

        Raises:
            InputError: no such run or entrant, or no validation yet.
        """
        folder = self.runs.folder(run)
        if entrant is not None:
            rows = folder.table() if isinstance(folder, RaceFolder) else []
            if entrant not in [row["name"] for row in rows]:
                raise InputError(f"“{run}” has no model “{entrant}”.")
            folder = folder.run(entrant)
        found = run_process.read_json(folder.path / "validation.json")
        if not found:
            raise InputError("This run has not been validated yet.")
        return found

    @damage.guarded
    def as_csv(self, run: str) -> str:
        """All reports of a run, one a line, under the names of their figures.

        Of a run with more than 40,000, those that are kept in memory: ``metrics.jsonl`` has all.
        """
        records = self._records(run).records
        columns = list(dict.fromkeys(name for record in records for name in record))
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows([record.get(name, "") for name in columns] for record in records)
        return text.getvalue()

    @damage.guarded
    def settings(self, run: str) -> dict[str, Any]:
        """Every setting of a run, those it left out with their defaults: to compare runs by."""
        values = run_config.with_defaults(self.runs.config(run))
        run_config.replace_strings(values, self.runs.named)
        return values

    def generation(self, run: str) -> int:
        """How often reports of a run were taken back."""
        return self._records(run).generation

    def records_of(self, run: str, entrant: str | None = None) -> list[dict[str, Any]]:
        """The reports of a run, or of a race's entrant, with rising steps."""
        return self._records(run, entrant).records

    def _records(self, run: str, entrant: str | None = None) -> _Seen:
        """The reports of a run with rising steps, read on from the last look.

        What is given does not change under the caller: reports and generation belong together.
        """
        folder = self.runs.folder(run)
        if entrant is not None:
            assert isinstance(folder, RaceFolder)
            folder = folder.run(entrant)
        with self._lock:
            seen = self._seen.setdefault((run, entrant), _Seen())
            self._seen.move_to_end((run, entrant))
            seen.look(folder.path / "metrics.jsonl")
            before = None
            while before != seen.offset:
                before = seen.offset
                fresh, seen.offset = folder.read_metrics(before)
                seen.add(fresh)
            self._drop()
            return replace(seen, records=list(seen.records))

    def _drop(self) -> None:
        """Forget the reports of runs that nobody asked for lately, where there are too many."""
        kept = sum(len(seen.records) for seen in self._seen.values())
        while kept > _KEPT and len(self._seen) > 1:
            kept -= len(self._seen.popitem(last=False)[1].records)

    def forget(self, run: str) -> None:
        """A deleted run."""
        with self._lock:
            for key in [key for key in self._seen if key[0] == run]:
                del self._seen[key]


def _sums(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Steps of all runs of a race."""
    return {name: sum(row.get(name, 0) for row in rows) for name in ("step", "steps")}


def _main(
    folder: RunFolder, status: dict[str, Any], records: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Of a fine-tuning the figure that counts, with the last value on the development rows.

    Once it has finished, that of its best epoch, whose weights the model has.
    """
    name = status.get("main")
    if not isinstance(name, str):
        return None
    found = [value for r in records if (value := r.get(f"validation_{name}")) is not None]
    if status.get("state") == "finished":
        reached = run_process.read_json(folder.path / "evaluation.json").get("metrics") or {}
        found += [reached[name]] if name in reached else []
    return {"name": name, "value": found[-1] if found else None}


def _reason(folder: RunFolder, status: dict[str, Any], state: str) -> str | None:
    """Why a run ended, for people."""
    if state == "failed":
        return str(status.get("reason") or "It failed; the log says why.")
    if state == "stopped" and (minutes := _page(folder).get("late")):
        return (
            f"This server stops runs that train for longer than {minutes} min. It is saved; "
            "continue it to go on."
        )
    if state != "crashed":
        return None
    if room.free(folder.path) < room.LEAST:
        return "The disk is full. Make room and start the run again; it goes on where it was saved."
    printed = _tail(folder.path / "output.txt", most=1)
    if not status and printed:
        return f"The process ended before it began to train: {printed[-1][:300]}"
    if folder.checkpoints() or isinstance(folder, RaceFolder):
        return (
            "The process is gone without a word: killed, out of memory, or the machine was "
            "restarted. Nothing up to the last checkpoint is lost; continue the run."
        )
    return (
        "The process is gone without a word: killed, out of memory, or the machine was restarted. "
        "It had not saved a checkpoint yet, so what it had learned is lost: when you continue the "
        "run, it begins again at the first step."
    )


def _changed(path: Path) -> int | None:
    """When a file was written, in milliseconds; None where there is none."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _page(folder: RunFolder) -> dict[str, Any]:
    """What the page has noted of a run."""
    return run_process.read_json(folder.path / "page.json")


def _tail(path: Path, most: int = MOST_LOG) -> list[str]:
    """The last lines of a text file; none of one that lies elsewhere."""
    try:
        if path.is_symlink():
            return []
        with plain_files.opened(path) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except (OSError, InputError):
        return []
    return [line for line in lines if line.strip()][-most:]


def plain(value: Any) -> Any:
    """Values with NaN and infinities as None and small objects as dictionaries."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [plain(child) for child in value]
    return plain(vars(value)) if hasattr(value, "__dataclass_fields__") else value
