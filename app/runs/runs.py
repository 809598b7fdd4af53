"""The runs folder: makes, starts, stops and watches training runs. No Gradio, no PyTorch in it.

Each run is a folder that a process of its own writes (docs/training.md). Everything this service
knows stands in that folder, so a restarted server, or a second one, goes on where this one was:

    queue        waits for a place; holds the time at which it was asked for
    launch.json  the process started last, from before it writes its own status
    output.txt   what that process printed
    texts/       what the visitor sent
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from app.runs import bases as run_bases
from app.runs import config as run_config
from app.runs import damage, room, waiting
from app.runs import models as run_models
from app.runs import owner as run_owner
from app.runs import process as run_process
from app.runs.data.texts import SHIPPED, Inbox, leaves, note_repeated
from app.runs.limits import NO_LIMITS, Limits
from app.runs.names import BESIDE, TABLES, beside, is_free, new_id, stays
from app.runs.watch import keep_looking
from app.serving.names import FOLDER_PREFIX, HUB_PREFIX, RUN_PREFIX
from app.serving.opened.library import Opened
from core_models import InputError
from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder

OFF = (
    "Training is switched off on this server. Run Cloze on a machine of your own to train models: "
    "`make app`."
)
NOT_YOURS = (
    "This run was not started from this browser, so it can only be looked at here. A server "
    "started with CLOZE_TRAIN=shared lets every page change every run."
)
MOST_RUNS = 200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_AT_WORK = frozenset({"starting", "running", "stopping"})
_ACTIVE = _AT_WORK | {"queued"}
_CONFIGS = ("config.json", "experiment.json")
"""Of a run and of a race."""
_PATIENCE = 5.0


class Runs:
    """The runs of one folder.

    Args:
        root: the folder; made when the first run is.
        slots: how many may train at once; further ones wait.
        enabled: False = nothing is made, started or deleted here, only shown.
        shared: True = every page may change every run, not only the one that made it.
        limits: of runs from the page.
        others: models that visitors opened, ``hub/...`` or ``folder/...``.
        command: what starts a run in place of this machine's Python (`run_process.launch`).
        seconds: between two looks at the queue.
    """

    def __init__(
        self,
        root: Path,
        *,
        slots: int = 1,
        enabled: bool = True,
        shared: bool = False,
        limits: Limits = NO_LIMITS,
        others: Opened | None = None,
        command: str | None = None,
        seconds: float = 1.0,
    ) -> None:
        self.root = root.resolve()
        self.slots = slots
        self.enabled = enabled
        self.shared = shared
        self.limits = limits
        self.others = others
        self.command = command
        self.inbox = Inbox(self.root)
        self.changes = 0  # made by this server: with each, what was read before may be old
        self._children: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        watch = (self._look, self._closed, seconds)
        self._thread = threading.Thread(
            target=keep_looking, args=watch, name="cloze-runs", daemon=True
        )
        if enabled:
            self._thread.start()

    def close(self) -> None:
        """Stop looking at the queue. Runs go on: they belong to nobody's server."""
        self._closed.set()

    # --- looking ----------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Every run, the newest first."""
        found = [
            path.parent
            for name in _CONFIGS
            for path in self.root.glob(f"*/{name}")
            if _ID.fullmatch(path.parent.name)
        ]
        return [path.name for path in sorted(found, key=_made, reverse=True)]

    def folder(self, run: Any) -> RunFolder:
        """The folder of a run; InputError for anything that is no run of this folder."""
        if isinstance(run, str) and _ID.fullmatch(run):
            path = self.root / run
            for kind in (RunFolder, RaceFolder):
                folder = kind(path)
                if folder.config_path.is_file() and _lies_in(folder.config_path, self.root):
                    return folder
        raise InputError(f"There is no run “{str(run)[:60]}”. It may have been deleted.")

    def config(self, run: str) -> dict[str, Any]:
        """What a run was asked to do, as plain values; {} when it cannot be read."""
        return run_process.read_json(self.folder(run).config_path)

    @damage.guarded
    def state(self, run: str) -> str:
        """new, queued, starting, running, stopping, stopped, finished, failed or crashed."""
        folder = self.folder(run)
        waits, asked = waiting.waits(folder.path), folder.stop_requested()
        state = self._doing(folder)
        # A server that was killed as it started a run has left it in the queue.
        begun = state in ("starting", "running") and not asked
        return "queued" if waits and not begun else state

    def _doing(self, folder: RunFolder) -> str:
        """What the process of a run does, whether or not it waits for a place."""
        # Read once: between two looks a run may begin, and be taken for one that had stopped.
        status = folder.status()
        state: str = folder.state(status)
        if state != "running":
            state = run_process.silent_state(folder, status) or state
        asked = state in ("starting", "running") and folder.stop_requested()
        return "stopping" if asked else state

    def at_work(self) -> list[str]:
        """Runs with a process, the newest first."""
        return [folder.path.name for folder, _ in self._at_work()]

    def queue(self) -> list[str]:
        """Runs that wait, the next one first."""
        return waiting.ids(self.root)

    # --- making -----------------------------------------------------------------------------

    @room.told()
    def create(
        self,
        config: Any,
        *,
        texts: Sequence[Any] = (),
        source: str | None = None,
        owner: str | None = None,
    ) -> str:
        """Make a run and give its id; it does not start yet.

        Args:
            config: plain values for ``config.json``, or those of a race. Names of models of this
                folder are written ``run/<id>`` or ``run/<id>/step-<n>``.
            texts: ids of texts in the inbox; they are added to ``data.texts``. For a fine-tuning
                the labelled file, and one to measure on.
            source: run whose own texts are copied, and whose names are allowed once more.
            owner: secret of the browser that makes it.
        """
        self._check_enabled()
        values = self.checked(config, texts=len(texts), source=source)
        run_config.spare_a_core(values)
        kind = RaceFolder if run_config.kind_of(values) == "race" else RunFolder
        self.root.mkdir(parents=True, exist_ok=True)
        aside = self.root / f".{secrets.token_hex(8)}{durable.ASIDE}"
        aside.mkdir()
        try:
            # Reading rows takes seconds, in which others start and stop runs.
            values = self._fill(aside, values, texts, source, owner)
            with self._exclusive():
                if len(self.ids()) >= MOST_RUNS:
                    raise InputError(f"There are {MOST_RUNS} runs already. Delete some first.")
                run_bases.hold(values, self.root)
                run = new_id(self.root, values.get("name", ""))
                kind.create(aside, values)
                aside.replace(self.root / run)
        except BaseException:
            shutil.rmtree(aside)
            raise
        return run

    def _fill(
        self,
        folder: Path,
        values: dict[str, Any],
        texts: Sequence[Any],
        source: str | None,
        owner: str | None,
    ) -> dict[str, Any]:
        """Put what belongs to a run into its folder; its config with the names of its texts."""
        kept = (values.get("data") or {}).get("paragraphs") is False
        if kept and any(self.inbox.find(each).suffix in TABLES for each in texts):
            raise InputError(
                "data.paragraphs is false, but the cells of a table that is sent here are cut into "
                "sentences. Leave it out, or send the text as a file of lines."
            )
        if source is not None:
            self.copy_texts(source, values, folder)
        values = run_config.with_texts(values, self.inbox.copy(texts, folder))
        run_config.parse(values)
        note_repeated(folder)
        if run_config.is_task(values):
            try:
                run_process.note(folder, steps=self.limits.check_rows(values, folder))
            except InputError:
                run_bases.check_there(values, self.root)  # else that is why
                raise
        run_owner.note(folder, owner)
        return values

    @room.told()
    def discard(self, run: str) -> None:
        """Remove a run that was just made and could not start, as if it had never been."""
        with self._exclusive():
            waiting.leave(self.root / run)
            if self.state(run) not in _ACTIVE:
                durable.remove_folder(self.root / run)

    def checked(self, config: Any, *, texts: int = 0, source: str | None = None) -> dict[str, Any]:
        """A config from the page with its model names resolved; InputError when it is not good.

        Args:
            config: plain values.
            texts: how many texts come from the inbox.
            source: see :meth:`create`.
        """
        allowed = set(SHIPPED)
        if source is not None:
            named = leaves(self.config(source))
            allowed |= {value for path, value in named if not is_free(path)}
        values = run_config.checked(
            config, sent=texts, allowed=allowed, resolve=lambda name: self._resolve(name, allowed)
        )
        sent = run_config.with_texts(values, ["sent.csv"] * texts)
        self.limits.check(run_config.kind_of(values), sent)
        return values

    def as_form(self, run: str) -> dict[str, Any]:
        """The config of a run as the page may send it again: models by name, not by path."""
        values = self.config(run)
        run_config.replace_strings(values, self.named)
        return values

    def named(self, text: str) -> str:
        """What a model whose path this is has for a name in the picker; other paths shortened."""
        opened = self.others.name_of(text) if self.others else None
        return opened or run_models.name_of(text, self.root)

    def place(self, name: str) -> str:
        """The folder of a model of the hub that a visitor opened; any other name as it stands."""
        with contextlib.suppress(InputError):  # not open any more
            return self._resolve(name, set()) if name.startswith(HUB_PREFIX) else name
        return name

    def _resolve(self, name: str, allowed: set[str]) -> str:
        """A model by its name in the picker as a folder, which is then allowed; others as is."""
        if name.startswith(RUN_PREFIX):
            path = str(self.model_path(name))
        elif self.others is not None and name.startswith((HUB_PREFIX, FOLDER_PREFIX)):
            path = str(self.others.model_path(name))
        else:
            return name
        allowed.add(path)
        return path

    def copy_texts(self, source: str, values: Any, target: Path) -> None:
        """Copy what a config still names of the texts that were sent for one run."""
        own = self.folder(source).path / BESIDE
        there = (own / name for name in beside(values) if (own / name).is_file())
        for file in (each for each in there if stays(each, own.parent)):
            (target / BESIDE).mkdir(exist_ok=True)
            shutil.copy2(file, target / BESIDE)

    # --- models -----------------------------------------------------------------------------

    def model_path(self, name: str) -> Path:
        """The model folder of ``run/<id>``, ``run/<id>/step-<n>`` or ``run/<race>/<entrant>``."""
        run, _, part = name.partition("/")[2].partition("/")
        return run_models.model_path(self.folder(run), part)

    def models(self) -> list[tuple[str, str]]:
        """Models of runs for the model picker: name and title, newest run first."""
        folders = []
        for run in self.ids():
            with contextlib.suppress(InputError):  # deleted since it was listed
                folders.append(self.folder(run))
        return run_models.models(folders)

    # --- starting and stopping --------------------------------------------------------------

    @room.told()
    def start(self, run: str) -> None:
        """Start a run, continue it, or put it into the queue when all places are taken.

        A race that has finished goes on with its models that failed.

        Raises:
            InputError: it is at work or has finished; it cannot be started; or the disk is full:
                then it waits, or is as it was.
        """
        self._check_enabled()
        with self._exclusive():
            state = self.state(run)
            if state in _ACTIVE:
                raise InputError(f"This run is {state} already.")
            folder = self.folder(run)
            if state == "finished" and not (isinstance(folder, RaceFolder) and folder.reopen()):
                raise InputError(
                    "This run has finished. Make a new run from it to train it further."
                )
            folder.clear_stop()
            run_process.note(folder.path, late=0)
            waiting.join(folder.path)
            with room.told(room.WAITS):
                refused = self._fill_slots()
            if run in refused:
                raise InputError(refused[run])

    @room.told()
    def stop(self, run: str) -> None:
        """Ask a run to save and stop after its current step, or take it out of the queue."""
        self._check_enabled()
        with self._exclusive():
            state = self.state(run)
            folder = self.folder(run)
            if state == "queued":
                waiting.leave(folder.path)
            elif state in ("starting", "running"):
                waiting.leave(folder.path)
                folder.request_stop()
            elif state == "stopping":
                raise InputError("This run is stopping already: it saves first.")
            else:
                raise InputError(f"This run is not at work: it is {state}.")

    def rest(self, seconds: float) -> None:
        """Save what trains and put it back into the queue: the next server goes on with it.

        Runs that somebody started in a shell go on.

        Args:
            seconds: most time for that; what is not saved by then goes on from its last checkpoint.
        """
        self.close()
        with self._exclusive():
            ours = [each for each, _ in self._at_work() if run_process.age_here(each) is not None]
            for folder in ours:
                # Before it waits: this server may be killed meanwhile. A disk may be full.
                with contextlib.suppress(OSError):
                    waiting.join(folder.path)
                folder.request_stop()
            until = time.monotonic() + seconds
            while time.monotonic() < until and any(self._doing(each) in _AT_WORK for each in ours):
                time.sleep(0.05)
            for folder in ours:
                if self._doing(folder) == "finished":
                    waiting.leave(folder.path)
                elif not waiting.waits(folder.path):
                    waiting.join(folder.path)

    @room.told()
    def delete(self, run: str) -> None:
        """Remove a run with everything it learned."""
        self._check_enabled()
        with self._exclusive():
            state = self.state(run)
            if state in _ACTIVE:
                raise InputError(f"This run is {state}. Stop it first.")
            active = []
            for each in self.ids():
                with contextlib.suppress(InputError):  # deleted by hand, or damaged
                    active += [self.folder(each)] if self.state(each) in _ACTIVE else []
            run_bases.check_unused(self.folder(run).path, active)
            with self.folder(run).lock():
                durable.remove_folder(self.root / run)
            run_process.sweep(self.root)

    def may_change(self, run: str, token: Any) -> bool:
        """Whether a browser with this secret may start, stop and delete a run."""
        return self.shared or run_owner.owns(self.folder(run).path, token)

    def check_owner(self, run: str, token: Any) -> None:
        """InputError for a browser that may not change a run."""
        self._check_enabled()
        if not self.may_change(run, token):
            raise InputError(NOT_YOURS)

    def _check_enabled(self) -> None:
        if not self.enabled:
            raise InputError(OFF)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Only one change at a time, in this server and in any other over the same folder."""
        self.root.mkdir(parents=True, exist_ok=True)
        with self._lock:
            deadline = time.monotonic() + _PATIENCE
            while True:
                with durable.exclusive(self.root / ".lock") as held:
                    if held:
                        try:
                            yield
                        finally:
                            self.changes += 1
                        return
                if time.monotonic() > deadline:
                    raise InputError("Another server changes the runs right now. Try again.")
                time.sleep(0.02)

    # --- processes --------------------------------------------------------------------------

    def _look(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]
        if self.limits.minutes is not None:
            self._stop_late(60.0 * self.limits.minutes)
        if self.queue():
            with self._exclusive():
                if not self._closed.is_set():
                    self._fill_slots()

    def _stop_late(self, seconds: float) -> None:
        """Stop what has trained for longer than is allowed."""
        for run in self.ids():
            with contextlib.suppress(InputError, OSError):
                folder = self.folder(run)
                age = run_process.age_here(folder)
                if age is not None and age > seconds and self.state(run) == "running":
                    folder.log("stopped: this server allows no longer")
                    run_process.note(folder.path, late=round(seconds / 60))
                    folder.request_stop()

    def _at_work(self) -> list[tuple[RunFolder, bool]]:
        """Runs with a process, also those that wait as well, and whether each is asked to stop."""
        found = []
        for run in self.ids():
            # Deleted by hand since it was listed, or not to be read: it holds up no other.
            with contextlib.suppress(InputError, OSError):
                folder = self.folder(run)
                # Before its state: a process writes that it has stopped, and then forgets why.
                asked = folder.stop_requested()
                if self._doing(folder) in _AT_WORK:
                    found.append((folder, asked))
        return found

    def _fill_slots(self) -> dict[str, str]:
        """Start what waits, and say why some of it cannot be started: that waits no more."""
        refused: dict[str, str] = {}
        busy = {folder.path.name: asked for folder, asked in self._at_work()}
        next_ones = [run for run in self.queue() if run not in busy]
        for run, asked in busy.items():
            if not asked:  # else it goes on when it has stopped
                waiting.leave(self.root / run)
        for run in next_ones[: max(0, self.slots - len(busy))]:
            if room.free(self.root) < room.LEAST:  # each try would start a process in vain
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            folder = self.folder(run)
            folder.clear_stop()
            try:
                child = run_process.launch(folder.path, self.command)
            except (InputError, PermissionError) as error:
                refused[run] = waiting.refuse(folder, error)
                continue
            self._children.append(child)
            waiting.leave(folder.path)
        return refused


def _lies_in(config: Path, root: Path) -> bool:
    """Whether the file of a run's config and its folder lie where they seem to."""
    return config.resolve().parent.parent == root


def _made(path: Path) -> float:
    for name in _CONFIGS:
        with contextlib.suppress(OSError):
            return (path / name).stat().st_mtime
    return 0.0
