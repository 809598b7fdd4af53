"""Kill a training process at random moments until it has finished.

The trainings are children forked from the tests' own process, so that PyTorch is imported once.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.process import train
from core_models.training.settings import read_values
from core_models.training.task_schema import is_task
from tests.training.conftest import quiet
from tests.waiting import until


@dataclass
class Seen:
    """What was there after each kill."""

    states: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """Of the last checkpoint."""
    torn: list[bool] = field(default_factory=list)
    """Whether a checkpoint was half-written."""


def start(config: Path, first: Callable[[], None] | None = None) -> int:
    """Fork a child that trains, after it has done something else; its process number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if first is not None:
            first()
        train(config, quiet)
        status = 0
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        sys.stderr.flush()
    finally:
        os._exit(status)


def finish(config: Path) -> float:
    """Train to the end; the seconds it took."""
    began = time.monotonic()
    _, status = os.waitpid(start(config), 0)
    assert status == 0, f"training failed with wait status {status}"
    return time.monotonic() - began


def await_moment(run: RunFolder, seconds: float, most: float) -> None:
    """Wait some seconds, but no longer than until ``most`` steps are saved.

    A machine that was busy during the reference run and is free now would finish before the last
    kills.
    """
    until(lambda: any(last.step >= most for last in run.checkpoints()[-1:]), seconds)


def await_checkpoint(run: RunFolder) -> None:
    """Wait until there is a newer checkpoint than now, at most a minute."""
    before = run.checkpoints()[-1:]
    until(lambda: run.checkpoints()[-1:] != before)


def die_while_writing(before: int) -> None:
    """Be killed when so many files of checkpoints have been brought to the disk, before the next.

    A disk in memory writes so quickly that moments drawn at random all but miss it.
    """
    sync_file = durable.sync_file

    def sync(path: Path) -> None:
        nonlocal before
        if any(part.endswith(durable.ASIDE) for part in path.parts):
            if not before:
                os.kill(os.getpid(), signal.SIGKILL)
            before -= 1
        sync_file(path)

    durable.sync_file = sync


def kill_until_finished(
    reference: RunFolder, run: RunFolder, kills: int, moments: random.Random | None = None
) -> Seen:
    """Train the reference in one go, and the other run under so many SIGKILLs and to its end."""
    task = is_task(read_values(reference.config_path))
    import_module("torch._dynamo")  # once, not in every child: optimizers import it when made
    if task:
        import_module("core_models.training.task_run")
    whole = finish(reference.config_path)
    total = reference.status()["steps"]
    moments = moments or random.Random(7)
    seen = Seen()
    for number in range(kills):
        writing = number % 3 == 1
        before = moments.randrange(20) if writing else 0
        child = start(run.config_path, partial(die_while_writing, before) if writing else None)
        try:
            if writing:
                os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            elif task and number:
                # Its preparation takes longer than its training, so random moments would miss that.
                await_checkpoint(run)
                await_moment(run, moments.uniform(0.0, 0.05), total)
            else:
                # Early enough to hit the preparation, late enough to get on, all within one run.
                seconds = moments.uniform(0.02, min(0.5, 4 / kills)) * whole
                await_moment(run, seconds, total * (number + 1) / (kills + 1))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        seen.states.append(run.state())
        seen.torn.append(any((run.path / "checkpoints").glob(f".*{durable.ASIDE}")))
        last = run.checkpoints()
        seen.steps.append(last[-1].step if last else 0)
    finish(run.config_path)
    return seen
