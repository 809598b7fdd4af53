"""The ladder from BERT to ModernBERT: each rung one change, the last one a ModernBERT."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

import core_models as cm
from core_models.config import Config
from core_models.ladder import WINDOW, ground, rungs
from core_models.objectives import Weighted, build
from tests.core.tiny_models import masked_batch, new, tiny

RUNGS = rungs()
CHANGED = {
    "no-pairs": {"objectives", "embeddings.segments"},
    "hidden-30": {"masking.rate", "masking.dynamic"},
    "no-biases": {
        *(f"attention.{part}_bias" for part in ("query", "key", "value", "output")),
        "feed_forward.bias",
        "norm_bias",
        "head_bias",
    },
    "norms-before": {"norm_place", "norm_epsilon", "initial_by_depth"},
    "geglu": {"feed_forward.width", "feed_forward.gated"},
    "rotary": {
        "embeddings.positions",
        *(f"attention.rotary.{part}" for part in ("theta", "local_theta", "positions")),
    },
    "local": {"attention.rotary.theta", "attention.window", "layer_kinds"},
    "schedule": set(),
}


def modernbert(base: Config) -> Config:
    """A ModernBERT of the same shape as the top of a ladder."""
    published = cm.size("modernbert-base").with_vocabulary(
        base.embeddings.vocabulary, pad_id=base.embeddings.pad_id
    )
    parts = published.attention
    return replace(
        published,
        width=base.width,
        embeddings=replace(published.embeddings, width=base.width),
        attention=replace(
            parts, heads=base.attention.heads, head_width=base.attention.head_width, window=WINDOW
        ),
        feed_forward=replace(published.feed_forward, width=base.feed_forward.width),
        schedule=base.schedule,
    )


def test_each_rung_changes_what_it_says_and_nothing_else():
    assert [rung.name for rung in RUNGS] == ["bert", *CHANGED]
    for before, rung in pairwise(RUNGS):
        found = {change.path for change in cm.diff(before.config, rung.config)}
        assert found == CHANGED[rung.name], rung.name
    assert [rung.decay for rung in RUNGS] == ["linear"] * 8 + ["stable"]


def test_the_ground_is_bert_and_the_top_is_modernbert():
    without = {"dropout", "attention.dropout", "embeddings.vocabulary", "embeddings.positions"}
    assert {change.path for change in cm.diff(cm.size("bert-mini"), ground())} == without
    assert cm.diff(RUNGS[-1].config, modernbert(RUNGS[-1].config)) == []


def test_parameters_stay_within_two_percent():
    counts = [cm.count(rung.config).pretraining for rung in RUNGS]
    assert max(counts) / min(counts) < 1.02


@pytest.mark.parametrize("number", range(len(RUNGS)), ids=[rung.name for rung in RUNGS])
def test_each_rung_learns(number):
    base = tiny("bert-base-uncased", layers=4, width=16)
    base = replace(base, feed_forward=replace(base.feed_forward, width=48))
    config = rungs(base)[number].config
    model = new(config)
    objective = Weighted([(1.0, build(name, model)) for name in config.objectives])
    batch = masked_batch()
    losses = objective(model.encoder, batch)
    losses.total_over(objective.counts(batch)).backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None]
    assert idle == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
