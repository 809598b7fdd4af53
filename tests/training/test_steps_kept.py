"""What every update of a run is made with: rate, clipped gradient, memory; and what is reported."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.training import learning, optimizer, pretraining, settings
from core_models.training.folder import RunFolder
from core_models.training.process import train
from tests.training.conftest import quiet

pytestmark = pytest.mark.usefixtures("in_process")
MakeRun = Callable[..., RunFolder]
CLIP = 0.05


def watch_updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Rate and norm of the gradient of each update, as AdamW gets them."""
    seen: list[tuple[float, float]] = []
    make = torch.optim.AdamW.step

    def step(self: torch.optim.AdamW, *args: Any) -> Any:
        (rate,) = {group["lr"] for group in self.param_groups}
        parts = [p.grad.norm() for group in self.param_groups for p in group["params"]]
        seen.append((float(rate), float(torch.stack(parts).norm())))
        return make(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    return seen


def test_every_update_has_its_rate_and_a_clipped_gradient(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten updates by hand: up over three, then down, so that an eleventh would have 0."""
    seen = watch_updates(monkeypatch)
    run = make_run(
        optimizer={"learning_rate": 0.003, "clip": CLIP},
        schedule={"warmup": 3},
        steps=10,
        report_every=4,
        validate_every=6,
    )
    train(run.config_path, quiet)
    shares = [1 / 3, 2 / 3, 1.0, 7 / 7, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]
    assert [rate for rate, _ in seen] == pytest.approx([0.003 * share for share in shares])
    assert [norm for _, norm in seen] == pytest.approx([CLIP] * 10, rel=1e-3)
    reports = run.metrics()
    # Reports at every 4th, validation at every 6th, both at the last whatever its number.
    assert [report["step"] for report in reports] == [4, 6, 8, 10]
    validated = [report["step"] for report in reports if "validation_loss" in report]
    assert validated == [6, 10]
    for report in reports:
        assert report["learning_rate"] == pytest.approx(seen[report["step"] - 1][0])
        assert report["gradient_norm"] > 2 * CLIP, "what is told is the norm before clipping"


def test_the_last_update_is_reported_where_nothing_is_held_out(make_run: MakeRun) -> None:
    run = make_run(
        documents=12,
        data={"texts": ["text.txt"], "held_out": 0.0, "max_length": 24},
        batch_size=4,
        schedule={"warmup": 1},
        steps=5,
        report_every=4,
    )
    train(run.config_path, quiet)
    assert [report["step"] for report in run.metrics()] == [4, 5]


def test_a_memory_ends_with_its_text(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered at the first step of an epoch, and something at every other."""
    known: list[bool] = []
    fresh: list[bool] = []
    forward, draw = learning.EncoderWithLoss.forward, pretraining.Feed.__next__

    def watched(self: learning.EncoderWithLoss, batch: cm.Batch) -> Any:
        if self.training:
            known.append(bool(batch.memory))
        return forward(self, batch)

    def drawn(self: pretraining.Feed) -> Any:
        found = draw(self)
        fresh.append(found.fresh)
        return found

    monkeypatch.setattr(learning.EncoderWithLoss, "forward", watched)
    monkeypatch.setattr(pretraining.Feed, "__next__", drawn)
    overrides = {"layers": 1, "width": 16, "heads": 2, "inner": 16}
    run = make_run(
        documents=12,
        model={"size": "xlnet-base", "overrides": overrides},
        data={"texts": ["text.txt"], "held_out": 0.3, "max_length": 24, "reuse": 12},
        batch_size=4,
        steps=12,
    )
    train(run.config_path, quiet)
    assert fresh.count(True) >= 2, "the text is read more than once"
    assert known == [not first for first in fresh]


def options(**changes: Any) -> settings.Settings:
    values = {"model": {"size": "bert-mini"}, "data": {"texts": ["a.txt"]}, "steps": 10}
    return settings.parse(values | changes)


def test_the_optimizers_get_what_is_asked_for() -> None:
    asked = {
        "kind": "muon",
        "learning_rate": 1e-3,
        "matrix_learning_rate": 2e-3,
        "betas": [0.8, 0.85],
        "epsilon": 1e-5,
        "momentum": 0.7,
        "weight_decay": 0.03,
    }
    module = cm.Encoder(cm.size("bert-mini").with_vocabulary(50))
    names = optimizer.parameters(module)
    adamw, muon = optimizer.build(module, names, options(optimizer=asked).optimizer)
    for group in adamw.param_groups:
        assert (group["betas"], group["eps"], group["peak"]) == ((0.8, 0.85), 1e-5, 1e-3)
    (group,) = muon.param_groups
    assert (group["momentum"], group["peak"], group["weight_decay"]) == (0.7, 2e-3, 0.03)
