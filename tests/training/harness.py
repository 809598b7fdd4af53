"""Kill a training process at random moments until it has finished; used by test_resume.py.

``python harness.py FOLDER KILLS`` trains FOLDER/reference in one go and FOLDER/killed under
SIGKILLs, both as forked children, so that PyTorch is imported once. Prints as JSON what was seen
after each kill: the state, the last checkpoint, and whether one was half-written.
"""

import json
import math
import os
import random
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.process import train
from core_models.training.settings import read_values
from core_models.training.task_schema import is_task


def start(config: Path) -> int:
    """Fork a child that trains; its process number."""
    child = os.fork()
    if child:
        return child
    try:
        train(config, lambda line: None)
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


def finish(config: Path) -> float:
    """Train to the end; the seconds it took."""
    began = time.monotonic()
    _, status = os.waitpid(start(config), 0)
    if status:
        raise SystemExit(f"training failed with wait status {status}")
    return time.monotonic() - began


def await_moment(run: RunFolder, seconds: float, most: float) -> None:
    """Wait some seconds, but no longer than until ``most`` steps are saved.

    A machine that was busy during the reference run and is free now would finish before the last
    kills.
    """
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        last = run.checkpoints()[-1:]
        if last and last[0].step >= most:
            break
        time.sleep(0.002)


def await_checkpoint(run: RunFolder) -> None:
    """Wait until there is a newer checkpoint than now, at most a minute."""
    before = run.checkpoints()[-1:]
    limit = time.monotonic() + 60
    while run.checkpoints()[-1:] == before and time.monotonic() < limit:
        time.sleep(0.002)


def main(folder: Path, kills: int) -> None:
    """Reference run, then kills, then the rest."""
    values = read_values(folder / "reference" / "config.json")
    task = is_task(values)
    total = values.get("steps", math.inf)  # a fine-tuning counts epochs
    import_module("torch._dynamo")  # once, not in every child: optimizers import it when made
    if task:
        import_module("core_models.training.task_process")
    whole = finish(folder / "reference" / "config.json")
    run = RunFolder(folder / "killed")
    moments = random.Random(7)
    states: list[str] = []
    steps: list[int] = []
    torn: list[bool] = []
    for number in range(kills):
        child = start(run.config_path)
        if task and number:
            # Its preparation takes longer than its training, so random moments would miss that.
            await_checkpoint(run)
            time.sleep(moments.uniform(0.0, 0.05))
        else:
            # Early enough to hit the preparation, late enough to get on, all within one run.
            seconds = moments.uniform(0.02, min(0.5, 4 / kills)) * whole
            await_moment(run, seconds, total * (number + 1) / (kills + 1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        states.append(run.state())
        torn.append(any((run.path / "checkpoints").glob(f".*{durable.ASIDE}")))
        last = run.checkpoints()
        steps.append(last[-1].step if last else 0)
    finish(run.config_path)
    sys.stdout.write(json.dumps({"states": states, "steps": steps, "torn": torn}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
