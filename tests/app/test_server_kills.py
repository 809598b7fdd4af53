"""Servers that are killed while runs are at work: found again, none lost, none twice."""

import json
import os
import signal
import sys

import pytest

from app.runs import process as run_process
from app.runs.runs import Runs
from core_models import InputError
from core_models.training.durable import Identity
from tests.app.test_runs import CONFIG
from tests.waiting import until

# Takes the place of a training process: only one is at work in a folder, until it is to stop.
STAND_IN = """
import json, sys, threading
from pathlib import Path
from core_models.training.folder import RunFolder, remember_process
run = RunFolder(Path(sys.argv[-1]).parent)
with run.lock():
    run.clear_stop()
    status = {"process": remember_process(), "step": 1, "steps": 100}
    with (run.path / "begun.jsonl").open("a") as begun:
        begun.write(json.dumps(status["process"]) + chr(10))
    run.write_status(status | {"state": "running"})
    while not run.stop_requested():
        threading.Event().wait(0.02)
    run.write_status(status | {"state": "stopped"})
"""
ACTIVE = ("starting", "running")
FOUND_SECONDS = 5.0


@pytest.fixture
def command(tmp_path, monkeypatch):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(run_process.ROOT))
    monkeypatch.setattr(run_process, "start", None)  # nothing but the command is started
    return f"exec {sys.executable} {script} {{run}}"


def serve(folder, command):
    """A server in a process of its own that starts whatever is not at work; its number."""
    child = os.fork()
    if child:
        return child
    try:
        runs = Runs(folder, seconds=0.02, slots=2, command=command)
        while True:
            for run in runs.ids():
                try:
                    if runs.state(run) not in (*ACTIVE, "queued", "stopping"):
                        runs.start(run)
                except InputError:
                    pass  # it began a moment ago
            until(lambda: False, 0.01)
    finally:
        os._exit(1)


def at_work(folder, run):
    """Processes that have begun this run and still live."""
    path = folder / run / "begun.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [each for each in map(json.loads, lines) if Identity.from_json(each).alive()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_servers_killed_with_live_runs(gate, tmp_path, command):
    folder = tmp_path / "runs"
    runs = Runs(folder, seconds=60, slots=2, command=command)
    ids = [runs.create(CONFIG) for _ in range(3)]
    try:
        for draw in gate.cases(3, 40):
            child = serve(folder, command)
            # At any moment: while processes are started, and when all places are taken.
            until(lambda: False, draw.uniform(0.0, 0.8))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            states = {run: runs.state(run) for run in ids}
            working = [run for run in ids if at_work(folder, run)]
            assert len(working) <= 2, states
            assert all(len(at_work(folder, run)) <= 1 for run in ids)
            seen = Runs(folder, seconds=60, slots=2, command=command)
            found = until(
                lambda seen=seen, w=working: all(seen.state(r) in ACTIVE for r in w), FOUND_SECONDS
            )
            assert found, {run: seen.state(run) for run in ids}
            seen.close()
            for run in working if draw.random() < 0.5 else ():
                runs.stop(run)
                assert until(lambda run=run: runs.state(run) == "stopped")
        child = serve(folder, command)
        assert until(lambda: sum(runs.state(run) in ACTIVE for run in ids) == 2)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert {runs.state(run) for run in ids} <= {*ACTIVE, "queued"}
    finally:
        for run in ids:
            (folder / run / "queue").unlink(missing_ok=True)
            for each in at_work(folder, run):
                os.kill(each["pid"], signal.SIGKILL)
        runs.close()
