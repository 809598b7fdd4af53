"""Every write, fsync and rename fails once: what was saved stays, and the run goes on from it."""

import contextlib
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from core_models.training import durable
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.gate import Gate
from tests.training.conftest import forget_accelerator, quiet
from tests.training.failing import ERRORS, SHORT, failing
from tests.training.harness import start
from tests.training.test_folder import fill
from tests.training.test_resume import assert_same

MakeRun = Callable[..., RunFolder]
SMALL = {
    "model": {
        "size": "bert-mini",
        "overrides": {"layers": 1, "width": 16, "heads": 2, "inner": 16, "positions": 32},
    },
    "documents": 12,
    "steps": 6,
    "report_every": 1,
    "validate_every": 3,
    "checkpoints": {"every": 2, "keep": 1},
}


def work(run: RunFolder) -> None:
    """What a training does to its folder at a checkpoint."""
    run.write_status({"state": "running", "step": 2})
    run.append_metrics({"step": 2, "loss": 2.0})
    run.log("a line")
    run.save(2, fill(b"two"))
    run.prune(1)
    run.save_model(fill(b"model"))
    run.write_evaluation({"steps": 2})


@pytest.mark.parametrize("error", [*ERRORS, SHORT])
def test_a_save_in_which_any_operation_fails(tmp_path: Path, error: int) -> None:
    """Each at every moment: nothing that was whole is lost, and the next try is as the first."""
    failures: set[str] = set()
    for moment in range(1, 300):
        run = RunFolder.create(tmp_path / str(moment), {})
        run.write_status({"state": "running", "step": 1})
        run.append_metrics({"step": 1, "loss": 1.0})
        run.save(1, fill(b"one"))
        with failing(moment, error) as disk, contextlib.suppress(OSError):
            work(run)
        if disk.failed is None:
            break
        failures.add(disk.failed)
        assert run.status()["step"] in (1, 2)
        assert [record["step"] for record in run.metrics()] in ([1], [1, 2])
        last = run.last_checkpoint()
        assert last is not None
        assert (last.path / "state").read_bytes() == {1: b"eno", 2: b"owt"}[last.step]
        assert not run.model_path.exists() or durable.verify(run.model_path) is None
        run.sweep()
        work(run)
        assert [found.step for found in run.checkpoints()] == [2]
        assert [record["step"] for record in run.metrics()] == [1, 2]
        assert not list(run.path.rglob(f".*{durable.ASIDE}"))
    assert disk.failed is None, "not all moments were reached"
    assert {"write"} <= failures if error == SHORT else {"fsync", "replace", "write"} <= failures


@pytest.fixture
def reference(make_run: MakeRun) -> RunFolder:
    run = make_run("reference", **SMALL)
    assert train(run.config_path, quiet) == "finished"
    return run


@pytest.mark.usefixtures("in_process")
def test_a_training_in_which_any_operation_fails(
    gate: Gate, make_run: MakeRun, reference: RunFolder
) -> None:
    """It says so and ends, or goes on; started again it ends with the bits of the reference."""
    with failing(10**9, ERRORS[0]) as whole:
        forget_accelerator()
        train(make_run("counted", **SMALL).config_path, quiet)
    for number, draw in enumerate(gate.cases(5, 400)):
        run = make_run(f"run-{number}", **SMALL)
        error = draw.choice((*ERRORS, SHORT))
        forget_accelerator()
        with failing(draw.randrange(1, whole.calls), error), contextlib.suppress(OSError):
            train(run.config_path, quiet)
        forget_accelerator()
        assert train(run.config_path, quiet) == "finished"
        assert_same(run, reference)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("in_process")
def test_a_training_whose_files_may_not_grow(
    gate: Gate, make_run: MakeRun, reference: RunFolder
) -> None:
    """Also the writes of libraries are cut short: the system allows a file so many bytes."""
    largest = max(path.stat().st_size for path in reference.path.rglob("*") if path.is_file())
    for number, draw in enumerate(gate.cases(3, 100)):
        run = make_run(f"run-{number}", **SMALL)
        room = draw.randrange(20_000, largest)

        def limit(room: int = room) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        os.waitpid(start(run.config_path, limit), 0)
        assert run.state() != "finished"
        forget_accelerator()
        assert train(run.config_path, quiet) == "finished"
        assert_same(run, reference)
