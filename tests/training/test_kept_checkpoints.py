"""Checkpoints of before one loop trained everything: read whole, written alike, and gone on with.

``kept`` holds what the two trainers of then left at step 4: a discriminator with its generator and
a table of differences, a model with a memory, and a fine-tuning in its second epoch.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from core_models.training import checkpoint, pretraining_run, task_run
from core_models.training.folder import RunFolder
from core_models.training.process import train
from core_models.training.task_schema import TaskSettings
from core_models.training.task_settings import read_any
from tests.training.conftest import forget_accelerator, quiet

pytestmark = pytest.mark.usefixtures("in_process")
KEPT = Path(__file__).parent / "kept"
KINDS = ["generator", "memory", "labels"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path / "runs"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_and_written_again_is_the_same(runs: Path, tmp_path: Path, kind: str) -> None:
    run = RunFolder(runs / kind)
    last = run.last_checkpoint()
    assert last is not None
    saved = checkpoint.read(last.path)
    settings = read_any(run.config_path)
    if isinstance(settings, TaskSettings):
        learning = task_run.begin(run, settings, saved).learning
    else:
        learning = pretraining_run.begin(run, settings, saved).learning
    learning.restore(saved)
    again = tmp_path / "again"
    again.mkdir()
    checkpoint.write(again, learning.state(), learning.progress, saved.settings)
    learning.close()

    names = [path.relative_to(last.path) for path in last.path.rglob("*.safetensors")]
    assert len(names) >= 2
    for name in names:
        old, new = load_file(last.path / name), load_file(again / name)
        assert old.keys() <= new.keys(), name  # on a GPU its generator is kept, too
        assert all(torch.equal(tensor, new[key]) for key, tensor in old.items()), name
    assert values(again) == values(last.path)


def values(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "progress.json").read_text())
    del found["environment"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_where_a_run_without_a_stop_ends(runs: Path, kind: str) -> None:
    """Up to last bits, as another machine may have made what is kept."""
    run, whole = RunFolder(runs / kind), RunFolder(runs / f"{kind}-whole")
    shutil.copytree(run.path, whole.path, ignore=shutil.ignore_patterns("checkpoints"))
    for each in (run, whole):
        assert train(each.config_path, quiet) == "finished"
        forget_accelerator()
        if each is run:  # with the vocabulary of the checkpoint: one learnt now is another
            shutil.copytree(run.data_path, whole.data_path)
    assert "started at step 4" in (run.path / "log.txt").read_text()
    first, second = (load_file(each.model_path / "model.safetensors") for each in (run, whole))
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        torch.testing.assert_close(tensor, second[name], atol=1e-4, rtol=1e-3)
