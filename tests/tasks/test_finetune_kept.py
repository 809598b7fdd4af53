"""A fine-tuning by hand: the rate of each block, the clipped gradient, the epoch that is kept."""

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet, from_rows
from core_models.tasks.settings import Settings
from core_models.tokenizer import Tokenizer
from core_models.training import finetune as engine
from core_models.training import optimizer
from core_models.training.finetune import FineTuning
from core_models.training.schema import OptimizerSettings
from tests.core.tiny_models import small_bert

TEXTS = ("red fox sees dog", "old house in tree", "small dog sees fox", "tree in old house")
SETTINGS = Settings(
    learning_rate=1e-2, epochs=3, batch_size=2, warmup=0.5, layer_decay=0.5, clip=0.01, dropout=0.1
)


@pytest.fixture(scope="module")
def base() -> cm.Model:
    return small_bert(Tokenizer.train([*TEXTS] * 5, vocabulary=100))


@pytest.fixture(scope="module")
def task() -> TaskSet:
    rows = [
        Row(text=text, label="animal" if "fox" in text else "thing", number=number)
        for number, text in enumerate(TEXTS, 1)
    ]
    return replace(from_rows("mine", "classify", rows, rows), name="mine")


def test_every_update_has_the_rate_of_its_depth_and_a_clipped_gradient(
    base: cm.Model, task: TaskSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two blocks, six updates: up over three, then down so that a seventh would have 0."""
    given: list[dict[str, float]] = []
    norms: list[float] = []
    make = torch.optim.AdamW.step

    def step(self: torch.optim.AdamW, *args: Any) -> Any:
        of = {id(p): group["lr"] for group in self.param_groups for p in group["params"]}
        given.append({name: of[id(p)] for name, p in tuning.names.items()})
        norms.append(float(torch.stack([p.grad.norm() for p in tuning.names.values()]).norm()))
        return make(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    tuning = FineTuning(base, task, SETTINGS)
    assert (tuning.steps, tuning.model.config.blocks) == (6, 2)
    told = []
    while not tuning.finished:
        if tuning.epoch_ended:
            tuning.end_epoch()
        else:
            told.append(tuning.step().learning_rate)
            assert tuning.model.training, "dropout is on while it learns"
    shares = [1 / 3, 2 / 3, 1.0, 1.0, 2 / 3, 1 / 3]
    assert told == pytest.approx([1e-2 * share for share in shares])
    depths = {
        "heads.": 1.0,
        "encoder.blocks.1.": 0.5,
        "encoder.blocks.0.": 0.25,
        "encoder.e": 0.125,
    }
    for share, seen in zip(shares, given, strict=True):
        for beginning, factor in depths.items():
            found = {rate for name, rate in seen.items() if name.startswith(beginning)}
            assert sorted(found) == pytest.approx([1e-2 * share * factor]), beginning
    assert norms == pytest.approx([0.01] * 6, rel=1e-3)


def test_the_first_of_the_best_epochs_is_kept_and_each_tells_its_own_loss(
    base: cm.Model, task: TaskSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.5, 0.75, 0.75])
    monkeypatch.setattr(
        engine, "report", lambda *_: SimpleNamespace(metrics={"accuracy": next(values)})
    )
    tuning = FineTuning(base, task, replace(SETTINGS, clip=1.0))
    kept = []
    for _ in range(3):
        sums = []
        while not tuning.epoch_ended:
            tuning.step()
            sums.append(tuning.sums()["classify_loss"])
            tuning.forget()
        mean = sum(total for total, _ in sums) / sum(count for _, count in sums)
        assert tuning.end_epoch().loss == pytest.approx(mean)
        kept.append({name: t.clone() for name, t in tuning.model.state_dict().items()})
    assert tuning.best_epoch == 2
    tuning.use_best()
    now = tuning.model.state_dict()
    assert all(torch.equal(now[name], tensor) for name, tensor in kept[1].items())
    assert any(not torch.equal(now[name], tensor) for name, tensor in kept[2].items())


def test_a_state_that_was_read_is_the_state_that_was_written(base: cm.Model, task: TaskSet) -> None:
    """In the middle of an epoch, with a best one behind it; and it goes on with the same bits."""
    first = FineTuning(base, task, SETTINGS)
    for _ in range(2):
        first.step()
    first.end_epoch()
    first.step()
    tensors, values = first.state_dict()
    second = FineTuning(base, task, SETTINGS)
    second.load_state_dict(tensors, values)
    again, known = second.state_dict()
    assert known == values
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert any(name.startswith("best.") for name in tensors)
    assert [second.step().loss, second.end_epoch().loss] == [
        first.step().loss,
        first.end_epoch().loss,
    ]


def test_one_frozen_block_leaves_the_next_and_vectors_are_not_decayed(base: cm.Model) -> None:
    names = optimizer.freeze(copy.deepcopy(base), 1)
    beginnings = {".".join(name.split(".")[:3]) for name in names if name.startswith("encoder.")}
    assert beginnings == {"encoder.blocks.1"}
    options = OptimizerSettings(learning_rate=1e-3, weight_decay=0.1)
    found = optimizer.adamw(names, options, optimizer.by_depth(2, 1e-3, 1.0))
    for group in found.param_groups:
        decayed = {p.ndim >= 2 for p in group["params"]}
        assert decayed == {group["weight_decay"] == 0.1}
        assert group["weight_decay"] in (0.0, 0.1)
