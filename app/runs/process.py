"""The process behind a run: started here, but nobody's child. No Gradio, no PyTorch in it."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core_models import plain_files
from core_models.training import durable
from core_models.training.durable import Identity
from core_models.training.folder import RunFolder
from core_models.training.race_folder import RaceFolder

ROOT = Path(__file__).resolve().parents[2]
NICE = 19
"""A run takes what the page leaves: beside an answer a seventieth of a core."""
FIRST_TO_GO = 1000
"""Of Linux, for the process that is ended first where memory ends."""
PLACE = "{run}"
"""In a command: what follows ``python -m``."""
_UNDER_WAY = 3600
"""Seconds for which a run may be in the making; what is older was left by a server that died."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)


def launch(path: Path, command: str | None = None) -> subprocess.Popen[bytes]:
    """Start the process of a run: its own session, low priority, no pipe to this server.

    Args:
        path: the run's folder.
        command: of a shell, in which ``{run}`` stands for what follows ``python -m``. It lasts as
            long as the run, and whatever it starts writes into the same folder. None = here.
    """
    kind = RaceFolder if (path / "experiment.json").is_file() else RunFolder
    seen = kind(path).status().get("updated", 0.0)
    environment = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    if command is None:
        child = start(list(_module(path)), environment, path / "output.txt")
    else:
        filled = command.replace(PLACE, shlex.join(_module(path)))
        child = _spawn(["/bin/sh", "-c", filled], environment, path / "output.txt")
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, child.pid, NICE)
    # Linux may give each session the same share, whatever is in it. Where memory ends, it ends the
    # run and not the page, which is often the smaller one.
    for name, value in (("autogroup", NICE), ("oom_score_adj", FIRST_TO_GO)):
        with contextlib.suppress(OSError):
            Path(f"/proc/{child.pid}/{name}").write_text(str(value))
    process = Identity.current(child.pid).to_json()
    clocks = {"time": time.time(), "uptime": durable.uptime()}
    started = {"process": process, **clocks, "seen": seen}
    try:
        durable.write_text(path / "launch.json", json.dumps(started))
    except BaseException:
        child.kill()  # nobody would know of it, and the next try would start another one
        child.wait()
        raise
    return child


def start(
    arguments: list[str], environment: dict[str, str], output: Path
) -> subprocess.Popen[bytes]:
    """``python -m ARGUMENTS``, in a session of its own; what it says is added to a file."""
    return _spawn([sys.executable, "-m", *arguments], environment, output)


def _spawn(
    arguments: list[str], environment: dict[str, str], output: Path
) -> subprocess.Popen[bytes]:
    if output.exists():
        plain_files.check(output)  # who opens a pipe would wait
    with output.open("ab") as file:
        return subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def silent_state(folder: RunFolder, status: Mapping[str, Any]) -> str | None:
    """What is known of a run from the process that a page started, beside its status.

    ``starting`` or ``crashed`` while the run has not written its status; ``running`` where a
    command lasts whose process is on another machine; else None.

    Args:
        folder: of the run.
        status: the one that says so little.
    """
    started = read_json(folder.path / "launch.json")
    if not started:
        return None
    lasts = _launched(started).alive()
    # No comparison of times where it can be helped: the clock may have been set meanwhile.
    updated, seen = status.get("updated", 0.0), started.get("seen")
    if updated == seen if seen is not None else updated < started.get("time", 0.0):
        return "starting" if lasts else "crashed"
    return "running" if lasts and folder.state(status) == "crashed" else None


def age_here(folder: RunFolder) -> float | None:
    """Seconds since a page started what is at work; None where somebody did so in a shell."""
    started = read_json(folder.path / "launch.json")
    at_work = folder.status().get("process")
    ours = not at_work or at_work == started.get("process") or _launched(started).alive()
    now = {"time": time.time(), "uptime": durable.uptime()}  # the clock may have been set meanwhile
    kind = "uptime" if "uptime" in started else "time"
    ours = ours and isinstance(started.get(kind), int | float)
    return max(0.0, now[kind] - started[kind]) if ours else None


def _launched(started: dict[str, Any]) -> Identity:
    return Identity.from_json(started.get("process"))


def sweep(root: Path) -> None:
    """Remove what is left of runs that were made or deleted when the server was killed."""
    for leftover in root.glob(f".*{durable.ASIDE}"):
        with contextlib.suppress(FileNotFoundError):  # it has got its name meanwhile
            if time.time() - leftover.stat().st_mtime > _UNDER_WAY:
                shutil.rmtree(leftover, ignore_errors=True)


def command(path: Path, *, whole: bool = True) -> str:
    """What starts, or continues, a run by hand.

    Args:
        path: the run's folder.
        whole: whether it works as it is; else a folder elsewhere than here is left out.
    """
    module, config = _module(path)
    shown = Path(config)
    if shown.is_relative_to(ROOT):
        shown = shown.relative_to(ROOT)
    elif not whole:
        shown = shown.relative_to(path.parent)
    return f"python -m {module} {shown}"


def _module(path: Path) -> tuple[str, str]:
    """The module that works on a folder, and the file it is given."""
    race = path / "experiment.json"
    if race.is_file():
        return "core_models.training.race", str(race)
    return "core_models.training", str(path / "config.json")


def note(path: Path, **values: Any) -> None:
    """Keep what the page has found out about a run: ``page.json``."""
    known = read_json(path / "page.json")
    durable.write_text(path / "page.json", json.dumps(known | values))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or {} for a file that is not there or not one."""
    try:
        values = json.loads(plain_files.read(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
