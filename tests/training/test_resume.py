"""A run that was killed, stopped or damaged ends exactly where an undisturbed one ends."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_models.errors import InputError
from core_models.training import checkpoint, process, settings
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.gate import Gate
from tests.training.conftest import quiet
from tests.training.harness import kill_until_finished

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]
TIMING = {"seconds", "tokens_per_second"}
SMALL = {"layers": 2, "width": 32, "heads": 2, "inner": 64}


def assert_same(run: RunFolder, reference: RunFolder) -> None:
    """Weights, optimizer, generators and reports are equal bit for bit."""
    for name in ("model", "generator", "data/store"):
        assert tensors(run.path / name) == tensors(reference.path / name), name
    for mine, other in zip(run.checkpoints()[-1:], reference.checkpoints()[-1:], strict=True):
        assert {"optimizer.safetensors", "random.safetensors"} <= tensors(mine.path).keys()
        assert tensors(mine.path) == tensors(other.path)
    assert reports(run) == reports(reference)


def tensors(folder: Path) -> dict[str, bytes]:
    """Every file of tensors in a folder by name."""
    found = [p for p in folder.rglob("*") if p.suffix in (".safetensors", ".npy")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def reports(run: RunFolder) -> list[dict[str, Any]]:
    return [{k: v for k, v in r.items() if k not in TIMING} for r in run.metrics()]


# A checkpoint at every step: most of the time is spent in writing, so kills fall into it.
KILLED: dict[str, tuple[dict[str, Any], int]] = {
    "bert": ({"steps": 60, "checkpoints": {"every": 1, "keep": 2}}, 20),
    "generator": (
        {
            "model": {"size": "electra-small", "overrides": SMALL | {"embedding_width": 32}},
            "objectives": {"replaced_token": 1.0},
            "generator": {"width": 16, "heads": 2, "inner": 32},
            "data": {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24},
            "steps": 16,
            "checkpoints": {"every": 1, "keep": 2},
        },
        3,
    ),
    "memory": (
        {
            "model": {"size": "xlnet-base", "overrides": SMALL},
            "data": {"texts": ["text.txt"], "held_out": 0.3, "max_length": 24, "reuse": 12},
            "tokenizer": {"vocabulary": 300},
            "batch_size": 4,
            "steps": 16,
            "checkpoints": {"every": 1, "keep": 2},
        },
        3,
    ),
}
"""Settings and number of kills."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", KILLED)
def test_killed_at_random_moments_a_run_resumes_bit_identically(
    gate: Gate, make_run: MakeRun, kind: str
) -> None:
    """In a soak some 500 kills in all: 17 runs with 20 of them, twice 27 with three."""
    options, kills = KILLED[kind]
    for draw in gate.cases(1, 17 if kills >= 20 else 27):
        names = f"reference-{gate.case}", f"killed-{gate.case}"
        reference, killed = (make_run(name, **options) for name in names)
        seen = kill_until_finished(reference, killed, kills, draw)
        assert set(seen.states) <= {"new", "crashed", "finished"}, seen
        assert seen.states.count("crashed") > kills / 2, seen
        assert any(seen.torn), seen
        assert killed.state() == "finished"
        assert_same(killed, reference)


@pytest.mark.parametrize("kind", ["adamw", "muon", "lengthened", "grown"])
def test_stop_request_then_resume(
    make_run: MakeRun, toy: Callable[..., dict[str, Any]], kind: str
) -> None:
    options: dict[str, Any] = {"optimizer": {"kind": kind}, "precision": "bf16"}
    if kind == "grown":  # the same examples in larger batches from the 16th on
        options = {"data": toy()["data"] | {"first_batch": 4, "first_share": 0.5}}
    if kind == "lengthened":  # 8 stands among the shorter examples, 16 is the first longer one
        options = {"data": toy()["data"] | {"first_length": 12, "first_share": 0.5}}
    reference, stopped = make_run("reference", **options), make_run("stopped", **options)
    assert train(reference.config_path, quiet) == "finished"

    def stop_early(line: str) -> None:
        if line.startswith(("step 8/", "step 16/")):
            stopped.request_stop()

    for expected in (8, 16):
        assert train(stopped.config_path, stop_early) == "stopped"
        assert stopped.state() == "stopped"
        status = stopped.status()
        assert (status["step"], status["reason"]) == (expected, "by request")
        assert not stopped.stop_requested()
    assert train(stopped.config_path, quiet) == "finished"
    assert_same(stopped, reference)
    evaluation = json.loads((stopped.path / "evaluation.json").read_text())
    assert evaluation["steps"] == 30
    assert train(stopped.config_path, quiet) == "finished", "a finished run stays finished"


@pytest.mark.parametrize("start", ["position_waves", "encoder_from"])
def test_what_a_fresh_model_begins_with_does_not_come_back(
    make_run: MakeRun, toy: Callable[..., dict[str, Any]], start: str
) -> None:
    known = make_run("known", steps=6)
    assert train(known.config_path, quiet) == "finished"
    model = toy()["model"] | {start: 0.04 if start == "position_waves" else str(known.model_path)}
    options = {"model": model, "steps": 16, "seed": 5}
    reference, stopped = make_run("reference", **options), make_run("stopped", **options)
    assert train(reference.config_path, quiet) == "finished"

    def stop_early(line: str) -> None:
        if line.startswith("step 8/"):
            stopped.request_stop()

    assert train(stopped.config_path, stop_early) == "stopped"
    assert train(stopped.config_path, quiet) == "finished"
    assert_same(stopped, reference)


def test_a_stop_request_older_than_the_process_is_forgotten(make_run: MakeRun) -> None:
    run = make_run(steps=6)
    run.request_stop()
    os.utime(run.path / "stop", (1, 1))
    assert train(run.config_path, quiet) == "finished"


def test_a_stop_request_made_while_a_command_waits_for_a_machine_is_obeyed(
    make_run: MakeRun,
) -> None:
    """A page wrote launch.json long before this process was started, and the request after it."""
    run = make_run(steps=6)
    for asked, ended in ((101, "stopped"), (99, "finished")):
        launch = {"seen": run.status().get("updated", 0.0)}
        (run.path / "launch.json").write_text(json.dumps(launch))
        os.utime(run.path / "launch.json", (100, 100))
        run.request_stop()
        os.utime(run.path / "stop", (asked, asked))
        assert train(run.config_path, quiet) == ended


def test_sigterm_saves_and_stops(make_run: MakeRun) -> None:
    run = make_run()

    def terminate(line: str) -> None:
        if line.startswith("step 4/"):
            signal.raise_signal(signal.SIGTERM)

    assert train(run.config_path, terminate) == "stopped"
    assert run.status()["reason"] == "by signal SIGTERM"
    last = run.last_checkpoint()
    assert last is not None
    assert last.step == 4


def test_a_damaged_checkpoint_falls_back_to_the_one_before(make_run: MakeRun) -> None:
    reference, run = make_run("reference"), make_run("damaged")
    train(reference.config_path, quiet)

    def stop_late(line: str) -> None:
        if line.startswith("step 20/"):
            run.request_stop()

    assert train(run.config_path, stop_late) == "stopped"
    optimizer = run.checkpoints()[-1].path / "optimizer.safetensors"
    optimizer.write_bytes(optimizer.read_bytes()[:-1])
    assert train(run.config_path, quiet) == "finished"
    assert "started at step 14" in (run.path / "log.txt").read_text()
    assert_same(run, reference)


def test_a_damaged_checkpoint_does_not_take_the_place_of_a_new_one(make_run: MakeRun) -> None:
    """The new one is of an earlier step: the run went on from before the damage."""
    run = make_run(checkpoints={"every": 4, "keep": 1})
    for step in (8, 4):

        def stop(line: str, step: int = step) -> None:
            if line.startswith(f"step {step}/"):
                run.request_stop()

        assert train(run.config_path, stop) == "stopped"
        if step == 8:
            weights = run.checkpoints()[-1].path / "optimizer.safetensors"
            weights.write_bytes(weights.read_bytes()[:-1])
    last = run.last_checkpoint()
    assert last is not None
    assert last.step == 4


def test_a_changed_config_is_refused_until_it_is_put_back(make_run: MakeRun) -> None:
    run = make_run()

    def stop(line: str) -> None:
        if line.startswith("step 8/"):
            run.request_stop()

    train(run.config_path, stop)
    values = json.loads(run.config_path.read_text())
    run.config_path.write_text(json.dumps(values | {"batch_size": 4}))
    with pytest.raises(InputError, match=r"changed since step 8: batch_size"):
        train(run.config_path, quiet)
    assert run.state() == "failed"
    run.config_path.write_text(json.dumps(values | {"report_every": 5}))
    assert train(run.config_path, quiet) == "finished"


def test_a_stable_run_is_cooled_down_from_any_point(make_run: MakeRun) -> None:
    """A run with another end goes on from a copy as if it had had that end from the beginning."""
    stable = {"decay": "stable", "cooldown": 0.5, "warmup": 2}
    reference = make_run("reference", steps=16, schedule=stable)
    train(reference.config_path, quiet)
    run = make_run("branched", steps=400, schedule=stable | {"cooldown": 0.1})

    def stop(line: str) -> None:
        if line.startswith("step 8/"):
            run.request_stop()

    assert train(run.config_path, stop) == "stopped"
    values = json.loads(run.config_path.read_text())
    late = values | {"steps": 12, "schedule": stable}
    run.config_path.write_text(json.dumps(late))
    with pytest.raises(InputError, match=r"changed since step 8: schedule.cooldown, steps"):
        train(run.config_path, quiet)
    run.config_path.write_text(json.dumps(values | {"steps": 16, "schedule": stable}))
    assert train(run.config_path, quiet) == "finished"
    assert tensors(run.model_path) == tensors(reference.model_path)


def test_another_end_of_a_finished_run_is_refused(make_run: MakeRun) -> None:
    constant = {"decay": "none"}
    run = make_run(steps=4, schedule=constant)
    assert train(run.config_path, quiet) == "finished"
    values = json.loads(run.config_path.read_text())
    run.config_path.write_text(json.dumps(values | {"steps": 8}))
    with pytest.raises(InputError, match="is finished after 4 steps"):
        train(run.config_path, quiet)
    assert run.state() == "finished"
    run.config_path.write_text(json.dumps(values | {"name": "another"}))
    assert train(run.config_path, quiet) == "finished"


def test_a_checkpoint_from_before_a_setting_existed_goes_on(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(steps=12)

    def stop(line: str) -> None:
        if line.startswith("step 8/"):
            run.request_stop()

    train(run.config_path, stop)
    read = checkpoint.read

    def read_old(folder: Path) -> checkpoint.Saved:
        saved = read(folder)
        del saved.settings["schedule"]["cooldown"], saved.settings["masking"]["last_rate"]
        return saved

    monkeypatch.setattr(checkpoint, "read", read_old)
    assert train(run.config_path, quiet) == "finished"
    assert "started at step 8" in (run.path / "log.txt").read_text()


def test_another_machine_is_told(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(steps=12)

    def stop(line: str) -> None:
        if line.startswith("step 8/"):
            run.request_stop()

    train(run.config_path, stop)
    assert run.status()["exact_resume"] is True
    here = checkpoint.environment()
    monkeypatch.setattr(checkpoint, "environment", lambda: here | {"cpu": "other"})
    train(run.config_path, quiet)
    assert run.status()["exact_resume"] is False
    assert f"cpu {here['cpu']} -> other" in (run.path / "log.txt").read_text()


def test_a_resume_in_several_processes_is_not_called_exact(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(steps=4, schedule={}, checkpoints={"every": 2})
    train(run.config_path, quiet)
    options, saved = settings.read(run.config_path), checkpoint.read(run.checkpoints()[0].path)
    assert process.resumes_exactly(run, options, saved)
    monkeypatch.setattr(process, "processes", lambda: 2)
    assert not process.resumes_exactly(run, options, saved)
    monkeypatch.undo()
    monkeypatch.setattr(checkpoint, "asked_for", lambda: 2)
    assert not process.resumes_exactly(run, options, saved)
    assert "processes 1 -> 2" in (run.path / "log.txt").read_text()


def test_the_number_of_threads_is_kept_where_none_is_asked_for(make_run: MakeRun) -> None:
    run = make_run(steps=12)

    def stop(line: str) -> None:
        if line.startswith("step 8/"):
            run.request_stop()

    train(run.config_path, stop)
    values = json.loads(run.config_path.read_text())
    run.config_path.write_text(json.dumps(values | {"threads": None}))
    train(run.config_path, quiet)
    assert run.status()["threads"] == 1
    assert run.status()["exact_resume"] is True
