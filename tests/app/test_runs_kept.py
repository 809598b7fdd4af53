"""A shared server: one answer for many pages, no process or folder that nobody knows of."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import threading
import time

import pytest

from app.runs import owner as run_owner
from app.runs import process as run_process
from app.runs import shipped, waiting
from app.runs.limits import Limits
from app.runs.reports import reports as run_reports
from app.runs.reports.reports import Reports
from core_models import InputError
from core_models.counting.counts import count
from core_models.training import durable, settings
from core_models.training.durable import Identity
from core_models.training.folder import remember_process
from core_models.training.shape import build_config
from tests.app.test_runs import CONFIG


def at_work(runs, launched=None, ago=0.0):
    """A run that says this process trains it; ``launched``: by whom a page started it."""
    run = runs.create(CONFIG)
    folder = runs.folder(run)
    folder.write_status({"state": "running", "process": remember_process(), "step": 1})
    if launched is not None:
        about = {"process": launched, "time": time.time() - ago}
        (folder.path / "launch.json").write_text(json.dumps(about))
    return run, folder


def test_a_run_that_starts_says_that_it_is_to_stop(make_runs):
    """Before its first step a text may be prepared for minutes."""
    runs = make_runs()
    run = runs.create(CONFIG)
    begun = {"process": remember_process(), "time": time.time()}
    (runs.folder(run).path / "launch.json").write_text(json.dumps(begun))
    assert runs.state(run) == "starting"
    runs.stop(run)
    assert runs.state(run) == "stopping"
    with pytest.raises(InputError, match="stopping already"):
        runs.stop(run)


def test_reports_and_their_generation_belong_together(make_runs, monkeypatch):
    """Reports that are taken back while an answer is made come with the next one, all of them."""
    runs = make_runs()
    reports = Reports(runs)
    run = runs.create(CONFIG)
    folder = runs.folder(run)
    for step in (10, 20, 30):
        folder.append_metrics({"step": step, "loss": 1.0})
    summary = Reports.summary

    def late(*args, **options):
        folder.append_metrics({"step": 20, "loss": 2.0})
        reports.records_of(run)  # another page looks
        return summary(*args, **options)

    monkeypatch.setattr(Reports, "summary", late)
    first = reports.live(run)
    monkeypatch.undo()
    assert [record["step"] for record in first["records"]] == [10, 20, 30]
    second = reports.live(run, first["offset"], first["generation"])
    assert [(r["step"], r["loss"]) for r in second["records"]] == [(10, 1.0), (20, 2.0)]


def test_a_class_that_asks_at_once_gets_one_list(make_runs, monkeypatch):
    runs = make_runs()
    run = runs.create(CONFIG)
    monkeypatch.setattr(run_reports, "_SHARED", 60.0)  # longer than any machine takes for it
    reports = Reports(runs)
    made = []
    listing = Reports._list
    monkeypatch.setattr(Reports, "_list", lambda self: made.append(1) or listing(self))
    threads = [threading.Thread(target=reports.overview) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    # What this server changes is seen at once.
    runs.delete(run)
    assert reports.overview() == []
    monkeypatch.setattr(run_reports, "_SHARED", 0.0)
    reports.overview()
    assert len(made) == 3


def test_reports_of_every_run_are_read_once_while_they_are_few(make_runs, monkeypatch):
    """More runs than pages show are no reason to read all of them again at each look."""
    runs = make_runs()
    monkeypatch.setattr(run_reports, "_SHARED", 0.0)
    reports = Reports(runs)
    for number in range(80):
        folder = runs.root / f"run-{number}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 1.0}\n' * 2)
    reports.overview()
    assert len(reports._seen) == 80
    monkeypatch.setattr(run_reports, "_KEPT", 10)
    runs.folder("run-7").append_metrics({"step": 2, "loss": 1.0})
    assert len(reports.overview()) == 80
    assert sum(len(seen.records) for seen in reports._seen.values()) <= 11


def test_a_run_that_is_deleted_while_it_is_listed_is_left_out(make_runs, monkeypatch):
    runs = make_runs()
    kept = runs.create(CONFIG)
    gone, folder = at_work(runs)
    folder.write_status({"state": "running", "process": {"pid": -1}, "step": 1})
    reason = run_reports._reason

    def late(where, status, state):
        if where.path.name == gone:
            shutil.rmtree(where.path)
        return reason(where, status, state)

    monkeypatch.setattr(run_reports, "_reason", late)
    reports = Reports(runs)
    reports.overview()
    monkeypatch.setattr(run_reports, "_SHARED", 0.0)
    assert [each["id"] for each in reports.overview()] == [kept]


def test_minutes_are_those_of_runs_that_a_page_started(make_runs):
    """A run in a shell, or one that a page had started before, trains as long as it likes."""
    runs = make_runs(limits=Limits(minutes=1))
    _, shell = at_work(runs)
    _, again = at_work(runs, {"pid": 1, "started": 1, "boot": None}, ago=3_600)
    _, fresh = at_work(runs, remember_process(), ago=30)
    _, late = at_work(runs, remember_process(), ago=90)
    runs._stop_late(60.0)
    asked = [folder.stop_requested() for folder in (shell, again, fresh, late)]
    assert asked == [False, False, False, True]


@pytest.fixture
def children(monkeypatch):
    """Processes that sleep, in place of trainings."""
    started = []

    def start(*_):
        started.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
        return started[-1]

    monkeypatch.setattr(run_process, "start", start)
    yield started
    for child in started:
        child.kill()
        child.wait()


def test_a_process_that_cannot_be_noted_does_not_stay(make_runs, monkeypatch, children):
    """On a full disk the queue tries again every second: each try would leave a process."""
    runs = make_runs()
    run = runs.create(CONFIG)
    write = durable.write_text

    def full(path, text):
        if path.name == "launch.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, text)

    monkeypatch.setattr(durable, "write_text", full)
    with pytest.raises(InputError, match="waits in the queue"):
        runs.start(run)
    assert runs.state(run) == "queued", "it is tried again when there is room"
    assert [child.poll() for child in children] == [-9]
    monkeypatch.setattr(durable, "write_text", write)
    runs._fill_slots()
    assert (runs.state(run), len(children)) == ("starting", 2)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("output.txt cannot be read."), r"^output\.txt cannot be read\.$"),
        (PermissionError(errno.EACCES, "Permission denied", "/secret/output.txt"), "n denied.$"),
    ],
)
def test_a_run_that_cannot_be_started_keeps_no_other_waiting(make_runs, monkeypatch, error, told):
    runs = make_runs()
    first, second, third = (runs.create(CONFIG) for _ in range(3))
    started = []

    def launch(path, command=None):
        if path.name == first:
            raise error
        started.append(path.name)
        return subprocess.Popen(["true"])

    monkeypatch.setattr(run_process, "launch", launch)
    with pytest.raises(InputError, match=told) as caught:
        runs.start(first)
    assert "/secret" not in str(caught.value)
    assert (runs.state(first), runs.queue()) == ("failed", [])
    assert Reports(runs).summary(first)["reason"] == str(caught.value)
    for run in (first, second):
        waiting.join(runs.root / run)
    runs._look()
    runs._look()
    assert (started, runs.queue()) == ([second], [])
    runs.start(third)
    assert started == [second, third]


def test_a_run_that_is_stopping_keeps_its_place_until_it_is_gone(make_runs, children):
    runs = make_runs()
    busy, folder = at_work(runs)
    folder.request_stop()
    assert runs.state(busy) == "stopping"
    waiting = runs.create(CONFIG)
    runs.start(waiting)
    assert (runs.state(waiting), children) == ("queued", [])
    folder.write_status({"state": "stopped"})
    runs._fill_slots()
    assert (runs.state(waiting), len(children)) == ("starting", 1)


def test_a_stop_of_yesterday_is_forgotten_by_a_start(make_runs, children):
    """Else the page would call the run stopping until its process has begun."""
    runs = make_runs()
    run = runs.create(CONFIG)
    runs.folder(run).request_stop()
    runs.start(run)
    assert len(children) == 1
    assert not runs.folder(run).stop_requested()


def test_what_cannot_be_made_leaves_no_folder(make_runs, monkeypatch):
    runs = make_runs()
    kept = [runs.create(CONFIG), runs.create(CONFIG)]
    with pytest.raises(InputError):
        runs.create(CONFIG, texts=["0" * 16])
    monkeypatch.setattr("app.runs.runs.MOST_RUNS", 2)
    with pytest.raises(InputError, match="2 runs already"):
        runs.create(CONFIG)
    folders = {path.name for path in runs.root.iterdir()} - {".lock", ".uploads"}
    assert folders == {*kept}
    runs.delete(kept[0])
    runs.create(CONFIG)


@pytest.mark.parametrize("damage", ["{}", "[]", '{"time": 1.0}'])
def test_a_damaged_note_of_the_start_ends_nothing(make_runs, damage):
    runs = make_runs(limits=Limits(minutes=1))
    _, folder = at_work(runs)
    (folder.path / "launch.json").write_text(damage)
    _, late = at_work(runs, remember_process(), ago=90)
    runs._stop_late(60.0)
    assert (folder.stop_requested(), late.stop_requested()) == (False, True)


def test_what_a_killed_server_left_of_a_run_is_removed(make_runs, monkeypatch):
    """While it deleted one, and while it made one, with all that was sent for it."""
    runs = make_runs()
    run, other = runs.create(CONFIG), runs.create(CONFIG)
    (runs.root / other).rename(runs.root / f".{other}.removed{durable.ASIDE}")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_: None)  # killed: nobody cleans up
        with pytest.raises(InputError):
            runs.create(CONFIG, texts=["0" * 16])
    assert runs.ids() == [run]
    left = [path for path in runs.root.iterdir() if path.suffix == durable.ASIDE]
    assert len(left) == 2
    young = runs.root / f".made-right-now{durable.ASIDE}"
    young.mkdir()
    for path in left:
        os.utime(path, (0, 0))
    runs.delete(run)
    young.rmdir()  # another visitor's, in the making
    assert {path.name for path in runs.root.iterdir()} <= {".lock", ".uploads"}


def test_a_process_is_known_by_more_than_its_number(monkeypatch):
    """Numbers are given again: another start, another boot or a zombie is not the process."""
    mine = Identity.current(os.getpid())
    assert mine.alive()
    if mine.started is None:
        pytest.skip("this system does not tell when a process began")
    assert not Identity(mine.pid, mine.started - 1, mine.boot).alive()
    assert not Identity(mine.pid, mine.started, "another boot").alive()
    child = subprocess.Popen(["true"])
    seen = Identity.current(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
    assert not Identity.current(child.pid).alive()
    assert not seen.alive()
    child.wait()


@pytest.mark.parametrize("token", ["", None, 3, "short", "AB" * 16, "ab" * 33])
def test_what_is_no_secret_never_owns_a_run(tmp_path, token):
    """Not even one whose note is the hash of nothing."""
    run_owner.note(tmp_path, token)
    assert not (tmp_path / "owner").exists()
    (tmp_path / "owner").write_text(hashlib.sha256(b"").hexdigest())
    assert not run_owner.owns(tmp_path, token)
    run_owner.note(tmp_path, "ab" * 16)
    assert run_owner.owns(tmp_path, "ab" * 16)
    assert not run_owner.owns(tmp_path, "cd" * 16)


def test_a_training_gets_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hidden")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("CLOZE_THREADS", "1")
    given = {}

    def start(arguments, environment, output):
        given.update(environment)
        return subprocess.Popen(["true"])

    monkeypatch.setattr(run_process, "start", start)
    (tmp_path / "config.json").write_text("{}")
    run_process.launch(tmp_path).wait()
    assert "hidden" not in given.values()
    assert given["CLOZE_THREADS"] == "1"


@pytest.mark.usefixtures("real_processes")
def test_a_training_has_a_session_of_its_own(tmp_path, monkeypatch):
    """What ends the server from its terminal does not reach it."""
    asked = {}
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: asked.update(options))
    run_process.start(["a_module"], {}, tmp_path / "output.txt")
    assert asked["start_new_session"]
    assert (asked["stdin"], asked["stderr"]) == (subprocess.DEVNULL, subprocess.STDOUT)


def test_a_model_that_is_as_large_as_allowed_may_be_trained():
    config = {**CONFIG, "tokenizer": {"vocabulary": 100}, "steps": 10}
    options = settings.parse(config)
    size = count(build_config(options, 100, 0)).trained
    Limits(parameters=size).check("pretraining", config)
    with pytest.raises(InputError, match=f"{size:,} parameters"):
        Limits(parameters=size - 1).check("pretraining", config)


def test_servers_that_start_on_one_new_folder_share_its_first_runs(tmp_path):
    """Each took the other's half copies away: one did not start, and runs had lost files."""
    for number in range(4):
        root, together, failed = tmp_path / str(number), threading.Barrier(2), []

        def start(root=root, together=together, failed=failed):
            together.wait()
            try:
                shipped.install(root)
            except Exception as error:
                failed.append(error)

        servers = [threading.Thread(target=start) for _ in range(2)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
        assert not failed
        for run in (path for path in shipped.SHIPPED.iterdir() if path.is_dir()):
            copied = root / run.name
            found = {path.relative_to(copied) for path in copied.rglob("*")}
            assert found == {path.relative_to(run) for path in run.rglob("*")}
