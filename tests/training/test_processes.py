"""Several processes are one run: the same losses as one process with the same global batch."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import PartialState

from core_models.errors import InputError
from core_models.training import host
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import forget_accelerator, quiet, text
from tests.training.several import launch
from tests.training.test_resume import SMALL

Toy = Callable[..., dict[str, Any]]


def work(configs: list[Path]) -> None:
    """Train several runs one after the other, as one of several processes."""
    PartialState._reset_state()
    for config in configs:
        forget_accelerator()
        try:
            train(config, quiet)
        except InputError as error:
            os.write(2, f"{error}\n".encode())


def pairs_and_memory(toy: Toy) -> list[dict[str, Any]]:
    """Settings of a BERT with pairs, by Muon, and of an XLNet with segment memory, by AdamW."""
    model = toy()["model"] | {"dropout": 0.0}
    data = toy()["data"] | {"texts": ["../text.txt"]}
    usual = toy(model=model, data=data, precision="fp32", steps=12)
    pairs = usual | {"optimizer": {"kind": "muon"}}
    memory = usual | {
        "model": {"size": "xlnet-base", "overrides": SMALL, "dropout": 0.0},
        "data": {"texts": ["../text.txt"], "held_out": 0.3, "max_length": 24},
        "batch_size": 4,
        "tokenizer": {"vocabulary": 300},
    }
    return [pairs, memory]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes_give_the_losses_of_one(
    tmp_path: Path, toy: Toy, make_task: Callable[..., RunFolder], processes: int
) -> None:
    """Started by torchrun; Accelerate's launcher starts those of test_several_processes.py.

    A fine-tuning that they are given, too, refuses them with the reason.
    """
    (tmp_path / "text.txt").write_text(text(40))
    alone, together = ([], [])
    for number, values in enumerate(pairs_and_memory(toy)):
        for name, runs in (("one", alone), ("several", together)):
            run = RunFolder(tmp_path / f"{number}-{name}")
            run.path.mkdir()
            run.config_path.write_text(json.dumps(values))
            runs.append(run)
    for run in alone:
        forget_accelerator()
        train(run.config_path, quiet)
    task = make_task("task")
    done = launch(lambda: work([run.config_path for run in (*together, task)]), processes)
    assert done.returncode == 0, done.stderr
    for mine, theirs in zip(alone, together, strict=True):
        assert_equal_losses(mine, theirs, processes)
    assert "Fine-tuning runs in one process" in done.stderr
    assert task.status()["state"] == "failed"


ONE_OF_TWO = {"ACCELERATE_MIXED_PRECISION": "no", "MASTER_PORT": "29500"}
"""What accelerate sets with ``--cpu --num_processes 2``, before it starts a single process."""


@pytest.mark.usefixtures("in_process")
def test_a_launcher_that_starts_too_few_is_refused_with_what_to_type(
    make_run: Callable[..., RunFolder],
    make_task: Callable[..., RunFolder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ONE_OF_TWO.items():
        monkeypatch.setenv(name, value)
    for run in (make_run("text", steps=2), make_task("task", epochs=1)):
        with pytest.raises(InputError, match="asked for several processes and started one"):
            train(run.config_path, quiet)
        assert run.state() == "failed"
        assert "--multi_gpu" in run.status()["reason"]


@pytest.mark.parametrize(
    ("variables", "count", "main"),
    [
        ({}, 1, True),
        ({"ACCELERATE_MIXED_PRECISION": "no"}, 1, True),
        ({"MASTER_PORT": "29500"}, 1, True),
        (ONE_OF_TWO | {"WORLD_SIZE": "2", "RANK": "1"}, 2, False),
        (ONE_OF_TWO | {"WORLD_SIZE": "1", "RANK": "0"}, 1, True),
        (ONE_OF_TWO | {"PMI_SIZE": "2", "PMI_RANK": "1"}, 2, False),
        (ONE_OF_TWO | {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}, 3, True),
    ],
)
def test_processes_are_counted_under_every_launcher(
    variables: dict[str, str], count: int, main: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {*host._WORLD, *host._RANK, *ONE_OF_TWO}:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert host.processes() == count
    assert host.is_main() is main


def assert_equal_losses(alone: RunFolder, together: RunFolder, processes: int) -> None:
    for run, count in ((alone, 1), (together, processes)):
        assert json.loads((run.path / "status.json").read_text())["processes"] == count
    assert len(alone.metrics()) == len(together.metrics())
    for mine, theirs in zip(alone.metrics(), together.metrics(), strict=True):
        assert mine["step"] == theirs["step"]
        assert mine["tokens"] == theirs["tokens"]
        for name, value in mine.items():
            if name.endswith("_loss"):
                assert theirs[name] == pytest.approx(value, abs=1e-5), name
