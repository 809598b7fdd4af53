"""A run that may choose its arithmetic takes the faster one, and keeps it."""

from collections.abc import Callable, Iterator

import pytest
import torch

from core_models.training import precision
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import quiet
from tests.training.test_resume import assert_same

MakeTask = Callable[..., RunFolder]
MakeRun = Callable[..., RunFolder]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes this a machine on which a precision is the faster one."""

    def become(faster: str) -> None:
        times = {name: 1.0 if name == faster else 2.0 for name in ("fp32", "bf16")}
        precision.faster.cache_clear()
        monkeypatch.setattr(precision, "_times", lambda: times)
        monkeypatch.setattr(precision, "emulated", lambda: False)

    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    yield become
    precision.faster.cache_clear()


@pytest.mark.parametrize("faster", ["fp32", "bf16"])
def test_what_is_faster_here_unless_something_is_asked_for(machine, faster: str) -> None:
    machine(faster)
    assert precision.settled("auto") == faster
    assert precision.settled("auto", before="bf16") == "bf16"
    assert precision.settled("fp32", before="bf16") == "fp32"


def test_emulated_products_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.accelerator.is_available", lambda: False)
    monkeypatch.setattr(precision, "emulated", lambda: True)
    monkeypatch.setattr(precision, "_times", lambda: pytest.fail("took seconds"))
    precision.faster.cache_clear()
    try:
        assert precision.settled("auto") == "fp32"
    finally:
        precision.faster.cache_clear()


@pytest.mark.slow
def test_both_are_timed_and_nothing_else_changes() -> None:
    random, threads = torch.get_rng_state(), torch.get_num_threads()
    precision.faster.cache_clear()
    assert precision.faster(1) in ("fp32", "bf16")
    times = precision._times()
    assert set(times) == {"fp32", "bf16"}
    assert all(seconds > 0 for seconds in times.values())
    torch.set_rng_state(random)
    precision.faster.cache_clear()
    precision.faster(1)
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("in_process")
def test_a_run_that_goes_on_elsewhere_keeps_its_arithmetic(machine, make_run: MakeRun) -> None:
    options = {"steps": 16, "checkpoints": {"every": 4, "keep": 1}}
    reference = make_run("reference", **options, precision="bf16")
    moved = make_run("moved", **options, precision="auto")
    train(reference.config_path, quiet)

    def stop_early(line: str) -> None:
        if line.startswith("step 8/"):
            moved.request_stop()

    machine("bf16")
    assert train(moved.config_path, stop_early) == "stopped"
    assert moved.status()["precision"] == "bf16"
    machine("fp32")
    assert train(moved.config_path, quiet) == "finished"
    assert moved.status()["precision"] == "bf16"
    assert_same(moved, reference)


@pytest.mark.usefixtures("in_process")
def test_a_fine_tuning_chooses_too(machine, make_task: MakeTask) -> None:
    run = make_task(precision="auto", epochs=1)
    machine("bf16")
    assert train(run.config_path, quiet) == "finished"
    assert run.status()["precision"] == "bf16"
