"""Servers that are killed while runs are at work, two over one folder, numbers of processes that
others have now, clocks that are set: runs are found again, none lost, none twice."""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

from app.runs import process as run_process
from app.runs.limits import Limits
from app.runs.reports.reports import Reports
from app.runs.runs import Runs
from core_models import InputError
from core_models.training.durable import Identity
from core_models.training.folder import RunFolder
from tests.app.test_runs import CONFIG
from tests.waiting import until

# Takes the place of a training process: only one is at work in a folder, until it is to stop, or
# its script is gone: one that was started as its test ended is not known to anybody.
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
    while not run.stop_requested() and Path(__file__).exists():
        threading.Event().wait(0.02)
    run.write_status(status | {"state": "stopped"})
"""
ACTIVE = ("starting", "running")


@pytest.fixture
def command(tmp_path, monkeypatch):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(run_process.ROOT))
    monkeypatch.setattr(run_process, "start", None)  # nothing but the command is started
    yield f"exec {sys.executable} {script} {{run}}"
    script.unlink()


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
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
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
            found = until(lambda seen=seen, w=working: all(seen.state(run) in ACTIVE for run in w))
            assert found, {run: seen.state(run) for run in ids}
            seen.close()
            for run in working if draw.random() < 0.5 else ():
                runs.stop(run)
                assert until(lambda run=run: runs.state(run) == "stopped")
        child = serve(folder, command)
        states = (*ACTIVE, "queued")
        assert until(
            lambda: all(runs.state(run) in states for run in ids) and len(runs.queue()) == 1
        )
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert {runs.state(run) for run in ids} <= {*ACTIVE, "queued"}
    finally:
        for run in ids:
            (folder / run / "queue").unlink(missing_ok=True)
            for each in at_work(folder, run):
                os.kill(each["pid"], signal.SIGKILL)
        runs.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_servers_on_one_folder(gate, tmp_path, command):
    """Both start whatever is not at work: no run begins twice, no place is given twice."""
    folder = tmp_path / "runs"
    runs = Runs(folder, seconds=60, slots=2, command=command)
    ids = [runs.create(CONFIG) for _ in range(4)]
    servers = []

    def working():
        return [run for run in ids if at_work(folder, run)]

    try:
        servers += [serve(folder, command), serve(folder, command)]
        for draw in gate.cases(2, 40):
            assert until(lambda: len(working()) == 2)
            ending = draw.choice(working())
            began = at_work(folder, ending)
            runs.stop(ending)  # its process ends a moment after it is called stopped
            assert until(lambda run=ending, old=began: at_work(folder, run) != old)
            assert all(len(at_work(folder, run)) <= 1 for run in ids)
            assert len(working()) <= 2
        killed = servers.pop()
        os.kill(killed, signal.SIGKILL)
        os.waitpid(killed, 0)
        assert until(lambda: len(working()) == 2)
        runs.stop(working()[0])
        assert until(lambda: len(working()) == 2)  # the other server gives the place away
    finally:
        for child in servers:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for run in ids:
            (folder / run / "queue").unlink(missing_ok=True)
            for each in at_work(folder, run):
                os.kill(each["pid"], signal.SIGKILL)
        runs.close()


def test_numbers_of_processes_that_others_have_now(gate, tmp_path, monkeypatch):
    """A run whose process is gone is crashed, and whoever has its number is left in peace."""
    runs = Runs(tmp_path / "runs", seconds=60)
    run = runs.create(CONFIG)
    folder = runs.folder(run)
    sent = []
    monkeypatch.setattr(os, "kill", lambda *given: sent.append(given))
    monkeypatch.setattr(os, "killpg", lambda *given: sent.append(given))
    other = subprocess.Popen(["sleep", "600"])
    now = Identity.current(other.pid).to_json()
    try:
        for draw in gate.cases(12, 200):
            past = now | draw.choice(
                (
                    {"started": now["started"] - draw.randrange(1, 10**6)},
                    {"started": now["started"] + draw.randrange(1, 10**6)},
                    {"boot": f"{draw.random()}"},
                    {"boot": None},
                    {"started": draw.choice((None, "", [], 1.5, str(now["started"])))},
                    {"pid": draw.choice((0, -1, "1", None))},
                )
            )
            for state in ("running", draw.choice(("running", "stopped"))):
                folder.write_status({"state": state, "process": past, "step": 1, "steps": 9})
            launched = {"process": past, "time": 0.0, "seen": 0.0}
            (folder.path / "launch.json").write_text(json.dumps(launched))
            assert runs.state(run) in ("crashed", "stopped"), past
            with pytest.raises(InputError, match="not at work"):
                runs.stop(run)
            runs.rest(0.0)
        runs.delete(run)
        assert sent == []
        assert other.poll() is None
    finally:
        monkeypatch.undo()
        other.kill()
        other.wait()
        runs.close()


@pytest.mark.parametrize("day", [86_400.0, -86_400.0])
def test_a_clock_that_is_set(tmp_path, command, monkeypatch, day):
    """A day forward or back: no run is stopped for its age, lost, or passed in the queue."""
    limits = Limits(minutes=60)
    runs = Runs(tmp_path / "runs", seconds=60, slots=1, command=command, limits=limits)
    ids = [runs.create(CONFIG) for _ in range(3)]
    clock = time.time
    try:
        runs.start(ids[0])
        runs.start(ids[1])
        assert until(lambda: runs.state(ids[0]) == "running")
        monkeypatch.setattr(time, "time", lambda: clock() + day)
        runs.start(ids[2])
        assert runs.queue() == ids[1:]
        runs._look()
        assert runs.state(ids[0]) == "running"
        for run in ids:
            assert Reports(runs).summary(run)["state"] == runs.state(run)
        runs.stop(ids[0])
        assert until(lambda: runs.state(ids[0]) == "stopped")
        runs._look()
        assert runs.queue() == ids[2:]
        # Its status is written by another clock than the one that is asked.
        assert until(lambda: runs.state(ids[1]) == "running")
        monkeypatch.setattr(time, "time", clock)
        assert runs.state(ids[1]) == "running"
        runs.stop(ids[1])
        assert until(lambda: runs.state(ids[1]) == "stopped")
    finally:
        for run in ids:
            (tmp_path / "runs" / run / "queue").unlink(missing_ok=True)
            for each in at_work(tmp_path / "runs", run):
                os.kill(each["pid"], signal.SIGKILL)
        runs.close()


@pytest.mark.parametrize("day", [86_400.0, -86_400.0])
def test_a_run_that_ended_by_another_clock_is_no_crash(tmp_path, day):
    """Started before the clock was set back, or ended before it was: what it wrote last counts."""
    runs = Runs(tmp_path / "runs", seconds=60)
    folder = runs.folder(runs.create(CONFIG))
    gone = {"pid": 2**22 - 1, "started": 1, "boot": None}
    for seen, state in ((0.0, "finished"), (None, "crashed")):
        folder.write_status({"state": "finished", "process": gone})
        seen = folder.status()["updated"] if seen is None else seen
        launched = {"process": gone, "time": time.time() + day, "seen": seen}
        (folder.path / "launch.json").write_text(json.dumps(launched))
        assert runs.state(folder.path.name) == state
    runs.close()


def test_a_run_that_begins_while_it_is_looked_at_holds_its_place(tmp_path, monkeypatch):
    """What it says of itself changes between any two looks."""
    runs = Runs(tmp_path / "runs", seconds=60)
    folder = runs.folder(runs.create(CONFIG))
    here = Identity.current(os.getpid()).to_json()
    before = {"state": "stopped", "updated": 5.0}
    begun = {"state": "running", "updated": 6.0, "process": here}
    launched = {"process": here, "time": time.time(), "seen": before["updated"]}
    (folder.path / "launch.json").write_text(json.dumps(launched))
    for looks in (0, 1, 2):
        said = iter([before] * looks)
        monkeypatch.setattr(RunFolder, "status", lambda _, said=said: next(said, begun))
        assert runs.state(folder.path.name) in ACTIVE
    runs.close()


LASTS = "exec sleep 600 # {run}"
"""A process that never says what it does."""


@pytest.fixture
def server(tmp_path):
    """Makes servers over one folder, which start processes that last as long as their test."""
    made = []

    def make(**options):
        made.append(Runs(tmp_path / "runs", **{"seconds": 60, "command": LASTS} | options))
        return made[-1]

    yield make
    for runs in made:
        runs.close()
        for child in runs._children:
            child.kill()
            child.wait()


def begun(runs):
    """A run at work, and what its process writes of itself."""
    run = runs.create(CONFIG)
    runs.start(run)
    process = json.loads((runs.root / run / "launch.json").read_text())["process"]
    runs.folder(run).write_status({"state": "running", "process": process, "step": 1, "steps": 9})
    assert runs.state(run) == "running"
    return run, {"process": process, "step": 1, "steps": 9}


def test_a_race_that_goes_on_holds_its_place(server):
    """Its status has another name than that of a run."""
    runs = server()
    entrants = [{"name": name, "size": "bert-mini"} for name in ("a", "b")]
    race = runs.create({"entrants": entrants, "budget": {"steps": 30}, "data": CONFIG["data"]})
    runs.folder(race).write_status({"state": "stopped"})
    runs.start(race)
    assert runs.state(race) == "starting"
    run = runs.create(CONFIG)
    runs.start(run)
    assert runs.state(run) == "queued"


def test_what_still_saves_when_the_next_server_comes_goes_on_when_it_has(server):
    """It was put into the queue while it was at work."""
    runs = server()
    run, status = begun(runs)
    runs.rest(0.0)
    later = server(slots=2)
    assert later.state(run) == "queued"
    later._look()
    assert (later.queue(), later._children) == ([run], [])
    runs._children[0].kill()
    runs._children[0].wait()
    later.folder(run).write_status(status | {"state": "stopped"})
    later._look()
    assert (later.queue(), len(later._children)) == ([], 1)
    assert later.state(run) == "starting"
    assert not later.folder(run).stop_requested()


def test_what_stops_while_it_is_looked_at_stays_in_the_queue(server, monkeypatch):
    """It ends, and forgets that it was asked to, between any two looks."""
    runs = server()
    run, status = begun(runs)
    runs.rest(0.0)
    later = server()
    look = later._doing

    def ending(folder):
        found = look(folder)
        folder.write_status(status | {"state": "stopped"})
        folder.clear_stop()
        return found

    monkeypatch.setattr(later, "_doing", ending)
    assert later.state(run) == "queued"
    runs.folder(run).request_stop()
    runs.folder(run).write_status(status | {"state": "running"})
    later._look()
    assert later.queue() == [run]


def test_a_server_killed_while_it_waits_for_what_saves_has_put_it_into_the_queue(
    server, monkeypatch
):
    def kill(seconds):
        raise KeyboardInterrupt

    runs = server()
    run, _ = begun(runs)
    monkeypatch.setattr(time, "sleep", kill)
    with pytest.raises(KeyboardInterrupt):
        runs.rest(60.0)
    assert runs.queue() == [run]


def test_a_run_that_a_killed_server_left_in_the_queue_holds_its_place(server):
    """The server had started it and was killed before it took it out."""
    runs = server()
    run, _ = begun(runs)
    (runs.root / run / "queue").write_text("1.0")
    other = runs.create(CONFIG)
    later = server()
    later.start(other)
    assert (later.state(run), later.state(other)) == ("running", "queued")
    assert (later.queue(), later._children) == ([other], [])
    (runs.root / run / "queue").write_text("1.0")
    later.stop(run)
    assert later.queue() == [other]


@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="the kernel does not group sessions"
)
def test_a_run_takes_what_the_page_leaves(tmp_path, command, real_processes):
    """Its own session would have the same share as the server's, for all its low priority."""
    runs = Runs(tmp_path / "runs", seconds=60, command=command)
    run = runs.create(CONFIG)
    try:
        runs.start(run)
        assert until(lambda: at_work(tmp_path / "runs", run))
        (process,) = at_work(tmp_path / "runs", run)
        group = Path(f"/proc/{process['pid']}/autogroup").read_text()
        assert group.split()[-2:] == ["nice", "19"]
        assert os.getpriority(os.PRIO_PROCESS, process["pid"]) == 19
        assert Path(f"/proc/{process['pid']}/oom_score_adj").read_text() == "1000\n"
        runs.stop(run)
        assert until(lambda: runs.state(run) == "stopped")
    finally:
        for each in at_work(tmp_path / "runs", run):
            os.kill(each["pid"], signal.SIGKILL)
        runs.close()
