"""Trainings of the page's tests, forked from one process that has imported PyTorch.

A dozen tests start real trainings; each would spend four seconds in imports. Run as a program, this
is that process: it reads a line of JSON for each training and answers with the number of a child.
"""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from core_models.training.durable import Identity

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "torch._dynamo",  # imported when an optimizer is made
    "core_models.training.process",
    "core_models.training.task_run",
    "core_models.training.race_run",
)


class Child:
    """What the page needs of a ``Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._identity = Identity.current(pid)

    def poll(self) -> int | None:
        """None while it runs; its exit status is not known."""
        return None if self._identity.alive() else 0

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Nobody is told how it ended (:func:`main`)."""


class Forks:
    """The process, in place of ``run_process.start``."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(self, arguments: list[str], environment: dict[str, str], output: Path) -> Child:
        """Fork a child that does what ``python -m ARGUMENTS`` does."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.app.forks"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": arguments, "environment": environment, "output": str(output)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Child(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process; its children go on."""
        if self._process is not None:
            self._process.communicate()


def main() -> None:
    """Fork a child for each line until the input ends."""
    for name in NEEDED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a child ended
    for line in sys.stdin:
        begun, begins = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(begins)
            _become(json.loads(line))
        os.close(begins)
        # Before it has a session of its own, who gives it a low priority gives that to all tests.
        os.read(begun, 1)
        os.close(begun)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def _become(order: dict[str, Any]) -> None:
    """Be the process that was ordered, to its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["environment"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(order["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (for good)
    module, *sys.argv[1:] = order["arguments"]
    status = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
