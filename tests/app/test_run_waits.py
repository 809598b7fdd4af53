"""How long runs wait, which of them are silent, and what a crash lost."""

import json
import os
import time

import pytest

from app.runs.forms.words import duration
from app.runs.limits import Limits
from app.runs.queue import waits
from app.runs.reports.reports import Reports
from core_models import InputError
from core_models.training.folder import remember_process
from tests.app.test_runs import CONFIG


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(89, "89 s"), (90, "2 min"), (5_400, "1 h 30 min"), (7_190, "2 h 0 min"), (172_790, "2 days")],
)
def test_times_are_said_in_whole_minutes(seconds, told):
    assert duration(seconds) == told


def reported(runs, run, *, step=40, steps=100, pace=2.0, every=10, **status):
    """Write reports of a run that makes a step in ``pace`` seconds; its folder."""
    folder = runs.folder(run)
    for at in range(every, step + 1, every):
        folder.append_metrics({"step": at, "seconds": at * pace, "loss": 1.0})
    about = {"step": step, "steps": steps, "process": remember_process(), "environment": {}}
    folder.write_status({"state": "running"} | about | status)
    return folder


def queued(runs, run, when=0.0):
    (runs.root / run / "queue").write_text(repr(time.time() + when))


def test_a_waiting_run_tells_how_long_it_will_wait(make_runs):
    """60 steps of 2 s are left of the first, and the second makes 100 as large ones."""
    runs = make_runs()
    first, second, third, odd, last = (runs.create(CONFIG) for _ in range(5))
    reported(runs, first)
    for n, run in enumerate((second, third, odd, last)):
        queued(runs, run, n)
    (runs.root / odd / "config.json").write_text("{}")
    found = {each["id"]: each for each in Reports(runs).overview()}
    assert found[first]["wait_seconds"] is None
    assert found[second]["wait_seconds"] == pytest.approx(120, abs=2)
    assert found[third]["wait_seconds"] == pytest.approx(120 + 200, abs=2)
    assert found[odd]["wait_seconds"] == pytest.approx(120 + 400, abs=2)
    assert found[last]["wait_seconds"] is None  # nobody knows how long the odd one takes
    assert Reports(runs).live(third)["summary"]["wait_seconds"] == pytest.approx(320, abs=2)


@pytest.mark.parametrize("state", ["finished", "running"])
@pytest.mark.parametrize(
    "content", ['{"model": "bert"}', '{"data": "x"}', '{"model": {"size": 7}}']
)
def test_a_damaged_run_does_not_stop_the_clock_of_others(make_runs, content, state):
    runs = make_runs()
    damaged, second = (runs.create(CONFIG) for _ in range(2))
    reported(runs, damaged, state=state, steps=None if state == "running" else 100)
    (runs.root / damaged / "config.json").write_text(content)
    assert waits(Reports(runs), [second]) == {second: None if state == "running" else 0.0}


def test_a_run_that_a_hand_deletes_meanwhile_leaves_the_list_whole(make_runs, monkeypatch):
    runs = make_runs()
    first, second = (runs.create(CONFIG) for _ in range(2))
    reported(runs, first)
    queued(runs, second)
    folder = runs.folder
    for left in range(12):
        looks = iter(range(left))

        def vanishing(run, looks=looks):
            if run == first and next(looks, None) is None:
                raise InputError("There is no such run.")
            return folder(run)

        monkeypatch.setattr(runs, "folder", vanishing)
        assert set(waits(Reports(runs), [second])) == {second}


def test_a_waiting_run_waits_for_the_start_of_those_before_it_too(make_runs):
    """A finished run of this machine took 30 s beside its 200 s of steps: to begin and to save."""
    runs = make_runs()
    done, busy, second, third = (runs.create(CONFIG) for _ in range(4))
    reported(runs, done, step=100, state="finished")
    began = runs.folder(done).status()["updated"] - 230
    (runs.root / done / "launch.json").write_text(json.dumps({"time": began}))
    reported(runs, busy, step=40)
    queued(runs, second)
    queued(runs, third, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[second] == pytest.approx(120, abs=2)
    assert found[third] == pytest.approx(120 + 30 + 200, abs=2)


def launched(runs, run, ago):
    """As if the page had started what is at work so many seconds ago."""
    values = {"process": remember_process(), "time": time.time() - ago}
    (runs.root / run / "launch.json").write_text(json.dumps(values))


def test_until_a_run_has_finished_the_one_at_work_says_what_a_start_takes(make_runs):
    """It was started 110 s ago and has made 80 s of steps: the next one will need 30 s, too."""
    runs = make_runs()
    busy, second, third = (runs.create(CONFIG) for _ in range(3))
    reported(runs, busy, step=40)
    launched(runs, busy, 110)
    queued(runs, second)
    queued(runs, third, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[second] == pytest.approx(120, abs=2)
    assert found[third] == pytest.approx(120 + 30 + 200, abs=2)


@pytest.mark.parametrize(("ago", "rest"), [(90, 20), (200, 0)])
def test_what_a_run_still_needs_beside_its_steps_is_waited_for_too(make_runs, ago, rest):
    """Those before needed 30 s to begin, measure and save; this one has had 10 s, or all of it."""
    runs = make_runs()
    done, busy, second = (runs.create(CONFIG) for _ in range(3))
    reported(runs, done, step=100, state="finished")
    launched(runs, done, 230)
    reported(runs, busy, step=40)
    launched(runs, busy, ago)
    queued(runs, second)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[second] == pytest.approx(120 + rest, abs=2)


def test_two_places_are_waited_for_side_by_side(make_runs):
    runs = make_runs(slots=2)
    one, two, third, fourth = (runs.create(CONFIG) for _ in range(4))
    reported(runs, one)  # 120 s left
    reported(runs, two, step=90)  # 20 s left
    queued(runs, third)
    queued(runs, fourth, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[third] == pytest.approx(20, abs=2)
    assert found[fourth] == pytest.approx(120, abs=2)


def test_minutes_that_a_run_may_take_shorten_the_wait(make_runs):
    runs = make_runs(limits=Limits(minutes=1))
    first, second, third = (runs.create(CONFIG) for _ in range(3))
    reported(runs, first)
    (runs.root / first / "launch.json").write_text(
        json.dumps({"process": remember_process(), "time": time.time() - 20})
    )
    queued(runs, second)
    queued(runs, third, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[second] == pytest.approx(40, abs=2)
    assert found[third] == pytest.approx(100, abs=2)


def test_without_any_measured_run_nobody_knows(make_runs):
    runs = make_runs()
    first, second = runs.create(CONFIG), runs.create(CONFIG)
    reported(runs, first, step=0)
    queued(runs, second)
    assert Reports(runs).summary(second)["wait_seconds"] is None


def test_a_waiting_fine_tuning_says_how_many_steps_it_will_make(make_runs):
    """680 rows are 42 whole batches of 16, five times."""
    runs = make_runs()
    config = {"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}
    first, second = runs.create(config | {"compare_from_scratch": True}), runs.create(config)
    assert Reports(runs).summary(first)["steps"] == 210
    measured = runs.create(config | {"name": "measured"})
    reported(runs, measured, step=210, steps=210, every=42, state="finished")
    busy = runs.create(config | {"name": "busy"})
    reported(runs, busy, step=0, steps=0)
    queued(runs, first)
    queued(runs, second, 1)
    found = {each["id"]: each for each in Reports(runs).overview()}
    assert (found[first]["step"], found[first]["steps"]) == (0, 210)
    assert found[first]["wait_seconds"] == pytest.approx(420, abs=2)
    assert found[second]["wait_seconds"] == pytest.approx(420 * 3, abs=2)


def test_a_race_that_waits_knows_its_steps(make_runs):
    runs = make_runs()
    entrants = [{"name": name, "size": "bert-mini"} for name in ("a", "b")]
    race = runs.create({"entrants": entrants, "budget": {"steps": 30}, "data": CONFIG["data"]})
    assert Reports(runs).summary(race)["steps"] == 60


def old(folder, seconds):
    """As if nothing had been written for so long."""
    when = time.time() - seconds
    status = json.loads((folder.path / "status.json").read_text())
    (folder.path / "status.json").write_text(json.dumps(status | {"updated": when}))
    for path in (folder.path, *folder.path.iterdir()):
        os.utime(path, (when, when))


def test_a_process_that_is_alive_and_silent_is_noticed(make_runs):
    """A report every 20 seconds: of 200 seconds of silence something is said."""
    runs = make_runs()
    folder = reported(runs, run := runs.create(CONFIG))
    reports = Reports(runs)
    for seconds, expected in ((5, None), (150, None), (260, 260)):
        old(folder, seconds)
        found = reports.summary(run)["silent_seconds"]
        assert found == (expected if expected is None else pytest.approx(expected, abs=3))
    assert reports.live(run)["summary"]["silent_seconds"] > 200
    folder.log("validating")  # a sign of life
    assert reports.summary(run)["silent_seconds"] is None
    old(folder, 260)
    folder.request_stop()
    old(folder, 260)
    assert reports.summary(run)["state"] == "stopping"
    assert reports.summary(run)["silent_seconds"] > 200


@pytest.mark.parametrize(
    ("change", "seconds", "said"),
    [
        ({"pace": 0.01}, 50, False),  # at least a minute
        ({"pace": 0.01}, 70, True),
        ({"step": 0}, 500, False),  # it prepares
        ({"step": 0}, 700, True),
        ({"step": 100, "pace": 20.0}, 3_000, False),  # it is measured, or compared from scratch
        ({"step": 100, "pace": 20.0}, 5_000, True),
        ({"state": "finished"}, 9_000, False),
    ],
)
def test_how_long_a_run_may_be_silent_follows_its_phase(make_runs, change, seconds, said):
    runs = make_runs()
    folder = reported(runs, run := runs.create(CONFIG), **change)
    old(folder, seconds)
    assert (Reports(runs).summary(run)["silent_seconds"] is not None) is said


def test_a_race_is_not_silent_while_its_entrant_reports(make_runs):
    runs = make_runs()
    entrants = [{"name": name, "size": "bert-mini"} for name in ("a", "b")]
    race = runs.create({"entrants": entrants, "budget": {"steps": 30}, "data": CONFIG["data"]})
    folder = runs.folder(race)
    table = [{"name": "a", "state": "running", "step": 1, "steps": 30}]
    folder.write_status({"state": "running", "process": remember_process(), "table": table})
    values = json.loads((folder.path / "race.json").read_text())
    (folder.path / "race.json").write_text(json.dumps(values | {"updated": time.time() - 900}))
    os.utime(folder.path, (1, 1))
    assert Reports(runs).summary(race)["silent_seconds"] > 800
    (folder.path / "a").mkdir()
    os.utime(folder.path, (1, 1))
    assert Reports(runs).summary(race)["silent_seconds"] is None


def test_a_crash_says_whether_anything_was_saved(make_runs):
    runs = make_runs()
    folder = reported(runs, run := runs.create(CONFIG), process={"pid": 2**22 + 1})
    reports = Reports(runs)
    assert reports.summary(run)["state"] == "crashed"
    reason = reports.summary(run)["reason"]
    assert "not saved a checkpoint yet" in reason
    assert "begins again at the first step" in reason
    folder.save(20, lambda path: (path / "model").mkdir())
    assert "Nothing up to the last checkpoint is lost" in reports.summary(run)["reason"]
