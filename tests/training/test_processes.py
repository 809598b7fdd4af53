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
from tests.training.conftest import quiet, text
from tests.training.test_resume import SMALL

Toy = Callable[..., dict[str, Any]]


def launch(config: Path) -> subprocess.CompletedProcess[str]:
    """Train in two processes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--module"]
    return subprocess.run(
        [*torchrun, "core_models.training", str(config)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.slow
def test_a_fine_tuning_refuses_a_launcher_with_the_reason(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}}')
    done = launch(config)
    assert done.returncode != 0
    assert "Fine-tuning runs in one process" in done.stderr
    assert RunFolder(tmp_path).status()["state"] == "failed"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("kind", ["pairs", "memory"])
def test_two_processes_give_the_losses_of_one(tmp_path: Path, toy: Toy, kind: str) -> None:
    (tmp_path / "text.txt").write_text(text(40))
    model = toy()["model"] | {"dropout": 0.0}
    data = toy()["data"] | {"texts": ["../text.txt"]}
    values = toy(model=model, data=data, precision="fp32", steps=12)
    if kind == "memory":
        values["model"] = {"size": "xlnet-base", "overrides": SMALL, "dropout": 0.0}
        values["data"] = {"texts": ["../text.txt"], "held_out": 0.3, "max_length": 24}
        values |= {"batch_size": 4, "tokenizer": {"vocabulary": 300}}
    runs = []
    for processes in (1, 2):
        run = RunFolder(tmp_path / f"processes-{processes}")
        run.path.mkdir()
        run.config_path.write_text(json.dumps(values))
        if processes == 1:
            train(run.config_path, quiet)
        else:
            done = launch(run.config_path)
            assert done.returncode == 0, done.stderr
        assert json.loads((run.path / "status.json").read_text())["processes"] == processes
        runs.append(run.metrics())
    assert len(runs[0]) == len(runs[1])
    for alone, together in zip(*runs, strict=True):
        assert alone["step"] == together["step"]
        assert alone["tokens"] == together["tokens"]
        for name, value in alone.items():
            if name.endswith("_loss"):
                assert together[name] == pytest.approx(value, abs=1e-5), name
