"""Waits by hand: what a step costs, what was made since the last report, what begins again."""

import json
import os
import time

import pytest

from app.runs import queue as run_queue
from app.runs import silence as run_silence
from app.runs.reports.reports import Reports
from tests.app.test_run_waits import queued, reported
from tests.app.test_runs import CONFIG


def test_what_passed_since_the_last_report_is_taken_off_but_no_more_than_was_measured():
    """60 steps of 2 s are left; the last six reports were 100 s apart in all."""
    records = [{"step": step, "seconds": 2.0 * step} for step in range(10, 61, 10)]

    def left(silent):
        updated = time.time() - silent
        return run_queue.seconds_left({"step": 60, "steps": 120, "updated": updated}, records)

    assert left(0) == pytest.approx(120, abs=1)
    assert left(30) == pytest.approx(90, abs=1)
    assert left(10_000) == pytest.approx(20, abs=1)


def test_a_model_twice_as_wide_takes_four_times_as_long(make_runs):
    runs = make_runs()
    wide = {"size": "bert-mini", "overrides": {"layers": 2, "width": 64, "heads": 2}}
    narrow = wide | {"overrides": wide["overrides"] | {"width": 32}}
    busy, second, third = (
        runs.create(CONFIG | {"model": model, "steps": 100}) for model in (narrow, wide, narrow)
    )
    reported(runs, busy)
    queued(runs, second)
    queued(runs, third, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[second] == pytest.approx(120, abs=2)
    assert found[third] == pytest.approx(120 + 4 * 200, abs=4)


def test_a_comparison_from_scratch_makes_all_steps_again(make_runs):
    """Of 210 steps of 2 s, 42 are made: 336 s are left, and then 420 s for the comparison."""
    runs = make_runs()
    config = {"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}
    busy, waiting = runs.create(config | {"compare_from_scratch": True}), runs.create(config)
    reported(runs, busy, step=42, steps=210, every=21)
    queued(runs, waiting)
    (found,) = run_queue.waits(Reports(runs), [waiting]).values()
    assert found == pytest.approx(336 + 420, abs=2)


def test_a_run_that_was_continued_says_nothing_of_the_time_to_begin(make_runs):
    """Its seconds are those of all its parts, more than have passed since it was started last."""
    runs = make_runs()
    continued, busy, second, third = (runs.create(CONFIG) for _ in range(4))
    reported(runs, continued, step=100, state="finished")
    began = runs.folder(continued).status()["updated"] - 50
    (runs.root / continued / "launch.json").write_text(json.dumps({"time": began}))
    reported(runs, busy)
    queued(runs, second)
    queued(runs, third, 1)
    found = {each["id"]: each["wait_seconds"] for each in Reports(runs).overview()}
    assert found[third] == pytest.approx(120 + 200, abs=2)


def test_a_run_that_is_continued_may_prepare_as_long_as_a_new_one(make_runs):
    """Its reports are those of the part before; nothing is measured of this process yet."""
    runs = make_runs()
    run = runs.create(CONFIG)
    folder = reported(runs, run)
    status = folder.status()
    records = folder.metrics()
    silent = status | {"updated": 0.0}
    when = time.time() - 400
    for path in (folder.path, *folder.path.iterdir()):
        os.utime(path, (when, when))
    assert run_silence.seconds(folder, silent, records) == pytest.approx(400, abs=2)
    del silent["environment"]
    assert run_silence.seconds(folder, silent, records) is None
    measuring = status | {"updated": 0.0, "measuring": True}
    assert run_silence.seconds(folder, measuring, records) is None


def test_what_is_left_counts_the_comparison_and_ends_with_the_last_step():
    records = [{"step": step, "seconds": 2.0 * step} for step in range(10, 61, 10)]
    status = {"step": 60, "steps": 120, "updated": time.time()}
    assert run_queue.still(status, records, {}) == pytest.approx(120, abs=1)
    compared = {"compare_from_scratch": True}
    assert run_queue.still(status, records, compared) == pytest.approx(120 + 240, abs=2)
    assert run_queue.still(status | {"steps": 60}, records, compared) is None
