"""The process behind a run: started here, but nobody's child. No Gradio, no PyTorch in it."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from core_models.training import durable
from core_models.training.durable import Identity
from core_models.training.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
NICE = 10
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|_KEY", re.IGNORECASE)


def launch(path: Path) -> subprocess.Popen[bytes]:
    """Start the process of a run: its own session, low priority, no pipe to this server."""
    environment = {name: value for name, value in os.environ.items() if not _SECRET.search(name)}
    child = start(list(_module(path)), environment, path / "output.txt")
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, child.pid, NICE)
    started = {"process": Identity.current(child.pid).to_json(), "time": time.time()}
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
    with output.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def silent_state(folder: RunFolder) -> str | None:
    """``starting`` or ``crashed`` while the process has not written its status; None after that."""
    started = read_json(folder.path / "launch.json")
    if not started or folder.status().get("updated", 0.0) >= started.get("time", 0.0):
        return None
    return "starting" if Identity.from_json(started.get("process")).alive() else "crashed"


def begun_here(folder: RunFolder) -> float | None:
    """When a page started the process that is at work; None where somebody did so in a shell."""
    started = read_json(folder.path / "launch.json")
    at_work = folder.status().get("process")
    return started.get("time") if not at_work or at_work == started.get("process") else None


def sweep(root: Path) -> None:
    """Remove what is left of runs that were made or deleted when the server was killed."""
    for leftover in root.glob(f".*{durable.ASIDE}"):
        shutil.rmtree(leftover, ignore_errors=True)


def command(path: Path) -> str:
    """What starts, or continues, a run by hand."""
    module, config = _module(path)
    shown = Path(config)
    shown = shown.relative_to(ROOT) if shown.is_relative_to(ROOT) else shown
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
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
