"""Several processes are one run: the same losses as one process with the same global batch."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import forget_accelerator, quiet, text
from tests.training.test_resume import SMALL

Toy = Callable[..., dict[str, Any]]


def launch(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a script, or a module after ``--module``, in two processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    return subprocess.run(
        [*torchrun, *command],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.slow
def test_a_fine_tuning_refuses_a_launcher_with_the_reason(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}')
    done = launch("--module", "core_models.training", str(config))
    assert done.returncode != 0
    assert "Fine-tuning runs in one process" in done.stderr
    assert RunFolder(tmp_path).status()["state"] == "failed"


def pairs_and_memory(toy: Toy) -> list[dict[str, Any]]:
    """Settings of a BERT with pairs and of an XLNet with segment memory."""
    model = toy()["model"] | {"dropout": 0.0}
    data = toy()["data"] | {"texts": ["../text.txt"]}
    pairs = toy(model=model, data=data, precision="fp32", steps=12)
    memory = pairs | {
        "model": {"size": "xlnet-base", "overrides": SMALL, "dropout": 0.0},
        "data": {"texts": ["../text.txt"], "held_out": 0.3, "max_length": 24},
        "batch_size": 4,
        "tokenizer": {"vocabulary": 300},
    }
    return [pairs, memory]


@pytest.mark.usefixtures("in_process")
def test_two_processes_give_the_losses_of_one(tmp_path: Path, toy: Toy) -> None:
    (tmp_path / "text.txt").write_text(text(40))
    alone, together = ([], [])
    for number, values in enumerate(pairs_and_memory(toy)):
        for processes, runs in ((1, alone), (2, together)):
            run = RunFolder(tmp_path / f"{number}-{processes}")
            run.path.mkdir()
            run.config_path.write_text(json.dumps(values))
            runs.append(run)
    for run in alone:
        forget_accelerator()
        train(run.config_path, quiet)
    several = str(Path(__file__).with_name("several.py"))
    done = launch(several, *(str(run.config_path) for run in together))
    assert done.returncode == 0, done.stderr
    for mine, theirs in zip(alone, together, strict=True):
        assert_equal_losses(mine, theirs)


def assert_equal_losses(alone: RunFolder, together: RunFolder) -> None:
    for run, processes in ((alone, 1), (together, 2)):
        assert json.loads((run.path / "status.json").read_text())["processes"] == processes
    assert len(alone.metrics()) == len(together.metrics())
    for mine, theirs in zip(alone.metrics(), together.metrics(), strict=True):
        assert mine["step"] == theirs["step"]
        assert mine["tokens"] == theirs["tokens"]
        for name, value in mine.items():
            if name.endswith("_loss"):
                assert theirs[name] == pytest.approx(value, abs=1e-5), name
