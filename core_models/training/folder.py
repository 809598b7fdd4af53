"""The run folder: what a training process writes and everybody else reads.

    config.json      what was asked for; never changed by the process
    status.json      state, identity of the process, last step; written aside and renamed
    metrics.jsonl    one line for each report, only ever appended
    log.txt          what happened, in words
    stop             created by whoever wants the run to stop after the current step
    data/            tokenizer and packed examples, made once
    checkpoints/     step-N folders with a manifest, written aside and renamed
    held             steps of checkpoints that stay, because another run begins with their model
    snapshots/       step-N model folders without optimizer state
    model/           the trained model, once the run has finished
    generator/       the model that filled masks for it, where there was one
    evaluation.json  its figures on the held-out documents
    validation.json  the held-out examples that the last validation found hardest and easiest

Neither PyTorch nor Gradio is imported here, so a supervisor can watch many runs cheaply.
"""

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from core_models import plain_files
from core_models.errors import InputError
from core_models.training import durable
from core_models.training.durable import Identity

State = Literal["new", "running", "stopped", "finished", "failed", "crashed"]
_STATES = ("running", "stopped", "finished", "failed")
_STEP = re.compile(r"step-(\d+)")
_HELD = "held"
MOST_REPORTS = 40_000
"""Of one run that are kept in memory; more than a chart can show."""
_READ = 1 << 20
"""Bytes of reports that are read at once."""
_UNDER_WAY = 60
"""Seconds within which a file is written; it is a leftover then."""


@dataclass(frozen=True)
class Checkpoint:
    """A complete folder under ``checkpoints`` or ``snapshots``."""

    step: int
    path: Path


class RunFolder:
    """One run on disk. Any number of readers; one writer, which holds :meth:`lock`."""

    def __init__(self, path: Path | str) -> None:
        """Look at ``path``; nothing is created or read yet."""
        self.path = Path(path)

    @classmethod
    def create(cls, path: Path | str, config: Mapping[str, Any]) -> "RunFolder":
        """Make a new run folder that holds ``config.json``.

        Raises:
            InputError: there already is a run.
        """
        run = cls(path)
        if run.config_path.exists():
            raise InputError(
                f"{run.path} already holds a run. Go on with it: python -m core_models.training "
                f"{run.config_path}; for a new one choose another folder."
            )
        fresh = not run.path.exists()
        run.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        try:
            durable.write_text(run.config_path, text)
        except BaseException:
            if fresh:  # on a full disk a folder has room where its files have none
                with contextlib.suppress(OSError):
                    run.path.rmdir()
            raise
        return run

    @property
    def config_path(self) -> Path:
        """``config.json``."""
        return self.path / "config.json"

    @property
    def data_path(self) -> Path:
        """``data``."""
        return self.path / "data"

    @property
    def model_path(self) -> Path:
        """``model``: exists once the run has finished."""
        return self.path / "model"

    # -- who is at work ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer. The system frees the lock when the process dies, however it dies.

        Raises:
            InputError: another process trains in this folder.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with durable.exclusive(self.path / "lock") as held:
            if not held:
                raise InputError(f"A process is already training in {self.path}.")
            yield

    def state(self, status: Mapping[str, Any] | None = None) -> State:
        """What the run is doing now, as far as files and the process table can tell.

        ``crashed``: the status says running, but its process is gone (killed, out of memory,
        machine restarted). Such a run resumes from its last checkpoint.

        Args:
            status: one that was read already. None = read it.
        """
        status = self.status() if status is None else status
        if not status:
            return "new"
        state = status.get("state")
        if state not in _STATES:
            return "crashed"
        if state == "running" and not Identity.from_json(status.get("process")).alive():
            return "crashed"
        return state  # type: ignore[no-any-return]

    # -- status -----------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The last complete ``status.json``; empty when there is none."""
        return read_json(self.path / "status.json")

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Replace ``status.json`` in one step; a reader sees the old or the new one, whole."""
        values = dict(status) | {"updated": time.time()}
        durable.write_text(self.path / "status.json", json.dumps(values, indent=2) + "\n")

    # -- stopping ---------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Ask the process to save and stop after its current step."""
        (self.path / "stop").touch()

    def stop_requested(self) -> bool:
        """Whether somebody asked."""
        return (self.path / "stop").exists()

    def clear_stop(self, before: float | None = None) -> None:
        """Forget the request, or only one made before a time (seconds since 1970)."""
        path = self.path / "stop"
        with contextlib.suppress(FileNotFoundError):
            if before is None or path.stat().st_mtime < before:
                path.unlink()

    def wanted_since(self) -> float:
        """Since when a request to stop is meant for this process, in seconds since 1970.

        A page's command may wait for a machine for hours before it starts the process; the page
        writes ``launch.json`` with the status that it saw. To be asked before the first status.
        """
        began, launch = durable.process_start(), self.path / "launch.json"
        with contextlib.suppress(OSError):
            if read_json(launch).get("seen") == self.status().get("updated", 0.0):
                began = min(began, launch.stat().st_mtime)
        return began

    # -- log and metrics --------------------------------------------------------------------------

    def log(self, message: str) -> None:
        """Append a line with the time (UTC) to ``log.txt``."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        durable.append_line(self.path / "log.txt", f"{stamp}  {message}")

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Append one report. A tail that a crash tore off is closed first, and stays unread."""
        durable.append_line(self.path / "metrics.jsonl", json.dumps(record, allow_nan=True))

    def read_metrics(self, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Some complete reports from byte ``offset`` on, and the offset to go on from.

        Whoever wants all asks until the offset stays. A line without its line end is left for a
        later call; an unreadable line is skipped, and nothing is read behind one that is longer
        than all that one call reads.
        """
        try:
            with plain_files.opened(self.path / "metrics.jsonl") as file:
                file.seek(offset)
                content = file.read(_READ)
        except (FileNotFoundError, InputError):
            return [], offset
        complete = content[: content.rfind(b"\n") + 1]
        return list(_records(complete)), offset + len(complete)

    def metrics(self) -> list[dict[str, Any]]:
        """The reports with rising steps; of very many, each second one (:func:`thinned`).

        After a resume the steps since the checkpoint are reported again; the later report counts.
        """
        kept: list[dict[str, Any]] = []
        for record in self._all_metrics():
            while kept and kept[-1]["step"] >= record["step"]:
                kept.pop()
            kept.append(record)
            if len(kept) > MOST_REPORTS:
                kept = thinned(kept)
        return kept

    def _all_metrics(self) -> Iterator[dict[str, Any]]:
        offset, before = 0, -1
        while offset != before:
            before = offset
            records, offset = self.read_metrics(offset)
            yield from records

    # -- data -------------------------------------------------------------------------------------

    def prepare(
        self, facts: str, wanted: Mapping[str, Any], build: Callable[[Path], None]
    ) -> dict[str, Any]:
        """Fill ``data`` through ``build(folder)``, unless it is there, whole, and of the same kind.

        Args:
            facts: Name of the file in it that holds plain values.
            wanted: Whatever the data depends on; ``ingredients`` among those values.
            build: Fills an empty folder.

        Returns:
            The other values.
        """
        path = self.data_path / facts
        if self.data_path.exists():
            usable = durable.verify(self.data_path) is None
            if not usable or read_json(path).get("ingredients") != wanted:
                self.log("the data folder does not belong to this config.json and is built again")
                durable.remove_folder(self.data_path)
        durable.write_folder(self.data_path, build)
        values = read_json(path)
        return {name: value for name, value in values.items() if name != "ingredients"}

    # -- checkpoints ------------------------------------------------------------------------------

    def checkpoints(self, kind: str = "checkpoints") -> list[Checkpoint]:
        """Complete checkpoints by rising step. Half-written ones have other names."""
        try:
            entries = list((self.path / kind).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for entry in entries:
            match = _STEP.fullmatch(entry.name)
            if match and (entry / durable.MANIFEST).is_file():
                found.append(Checkpoint(int(match[1]), entry))
        return sorted(found, key=lambda checkpoint: checkpoint.step)

    def save(
        self, step: int, write: Callable[[Path], None], kind: str = "checkpoints"
    ) -> Checkpoint:
        """Write a checkpoint aside through ``write(folder)``, then rename it into place.

        All files are on the disk, and the manifest with their SHA-256 is written, before the
        rename: a folder with the final name is complete, whenever the process dies.
        """
        path = self.path / kind / f"step-{step}"
        durable.write_folder(path, write)
        return Checkpoint(step, path)

    def save_model(self, write: Callable[[Path], None], name: str = "model") -> None:
        """Write ``model``, or one beside it, through ``write(folder)``, complete or not at all."""
        durable.write_folder(self.path / name, write)

    def write_evaluation(self, values: Mapping[str, Any]) -> None:
        """Write ``evaluation.json``."""
        durable.write_text(self.path / "evaluation.json", json.dumps(values, indent=2) + "\n")

    def write_validation(self, values: Mapping[str, Any]) -> None:
        """Replace ``validation.json`` in one step."""
        text = json.dumps(values, ensure_ascii=False, allow_nan=False)
        durable.write_text(self.path / "validation.json", text + "\n")

    def last_checkpoint(self) -> Checkpoint | None:
        """The newest checkpoint whose files match their manifest; damaged ones are logged."""
        for checkpoint in reversed(self.checkpoints()):
            problem = durable.verify(checkpoint.path)
            if problem is None:
                return checkpoint
            self.log(f"checkpoint of step {checkpoint.step} is damaged and not used: {problem}")
        return None

    def hold(self, step: int) -> None:
        """Keep a checkpoint whatever is saved after it: another run begins with its model."""
        durable.append_line(self.path / _HELD, str(step))

    def prune(self, keep: int, step: int | None = None) -> None:
        """Remove all but the ``keep`` newest checkpoints, and those that are held.

        Args:
            keep: how many stay.
            step: of the run now. Later ones were damaged when it went on: they stay, and count for
                none. None = all count.
        """
        older = [each for each in self.checkpoints() if step is None or each.step <= step][:-keep]

        def held(step: int) -> bool:
            return str(step) in _lines(self.path / _HELD)

        for checkpoint in older:
            if not held(checkpoint.step):
                # Who holds it between these looks finds it gone, or it comes back.
                durable.remove_folder(checkpoint.path, partial(held, checkpoint.step))

    def sweep(self) -> None:
        """Remove what a killed process left half-written. Only for the holder of the lock.

        Folders are written by that holder alone; files by the page's server, too, which writes
        ``launch.json`` while the process that it has started sweeps. So new ones stay.
        """
        for parent in (self.path, self.path / "checkpoints", self.path / "snapshots"):
            for leftover in parent.glob(f".*{durable.ASIDE}"):
                if leftover.is_dir():
                    shutil.rmtree(leftover)
                    continue
                with contextlib.suppress(FileNotFoundError):  # it has got its name meanwhile
                    if time.time() - leftover.stat().st_mtime > _UNDER_WAY:
                        leftover.unlink()


def runs(root: Path | str) -> list[RunFolder]:
    """Every run folder directly under ``root``, by name."""
    return [RunFolder(path.parent) for path in sorted(Path(root).glob("*/config.json"))]


def read_json(path: Path) -> dict[str, Any]:
    """An object as it stands in a file; empty when there is none."""
    try:
        values = json.loads(plain_files.read(path))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _lines(path: Path) -> list[str]:
    try:
        return plain_files.read(path).decode("utf-8", "replace").split()
    except (FileNotFoundError, InputError):
        return []


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    for record in _values(content.splitlines()):
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            yield record


def _values(lines: list[bytes]) -> Iterator[Any]:
    """What stands on lines of JSON; those that hold none are left out."""
    with contextlib.suppress(ValueError, RecursionError):
        # Together they are read in a third of the time, where none is damaged.
        found = json.loads(b"[" + b",".join(lines) + b"]")
        if len(found) == len(lines):
            yield from found
            return
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(line)


def thinned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each second report, and all with held-out figures where these are few."""
    # All names of a report at once: there may be a million reports.
    held_out = ["validation_" in " ".join(record) for record in records]
    rare = sum(held_out) < len(records) // 4
    return [
        record
        for number, record in enumerate(records)
        if number % 2 or number == len(records) - 1 or (rare and held_out[number])
    ]


def remember_process() -> dict[str, Any]:
    """Identity of this process for ``status.json``."""
    return Identity.current(os.getpid()).to_json()
