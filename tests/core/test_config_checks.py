"""Values of a config that would fail later, or compute nonsense, are refused when it is made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import core_models as cm
from core_models.config import Config, Embeddings
from core_models.config.check import OBJECTIVES
from core_models.errors import InputError
from core_models.heads.pretraining import HEADS

NAN = float("nan")


def changed(name: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values of a size, with those at dotted paths replaced."""
    values = cm.size(name).to_json()
    for path, value in change.items():
        *parents, last = path.split(".")
        inner = values
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
    return values


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("bert-mini", {"initial_std": NAN}, "initial_std is nan; allowed is 0 to 10"),
        ("bert-mini", {"initial_std": -1.0}, r"initial_std is -1\.0"),
        ("bert-mini", {"dropout": NAN}, "dropout is nan"),
        ("bert-mini", {"masking.rate": NAN}, "masking.rate is nan"),
        ("bert-mini", {"masking.rate": 10**400}, "masking.rate is larger than any number"),
        ("deberta-v2-xlarge", {"attention.terms.buckets": 1}, "buckets is 1; allowed is 2 to"),
        ("deberta-v2-xlarge", {"attention.terms.buckets": 0}, "buckets is 0"),
        ("deberta-base", {"attention.terms.span": 0}, "attention.terms.span is 0; allowed is 1"),
        ("deberta-base", {"attention.terms.span": -4}, "attention.terms.span is -4"),
        ("xlnet-base", {"attention.terms.clamp": -5}, "attention.terms.clamp is -5; allowed is 0"),
        ("deberta-v2-xlarge", {"convolution.kernel": 4}, "kernel is 4; allowed is an odd number"),
        ("deberta-v2-xlarge", {"convolution.kernel": -3}, "convolution.kernel is -3"),
        ("deberta-v2-xlarge", {"convolution.activation": "x"}, "convolution.activation is 'x'"),
        ("deberta-base", {"mask_decoder.steps": 0}, "mask_decoder.steps is 0; allowed is 1 to 64"),
        ("deberta-base", {"mask_decoder.positions": 0}, "mask_decoder.positions is 0"),
        ("roberta-base", {"embeddings.first_position": -2}, "first_position is -2; allowed is 0"),
        ("roberta-base", {"embeddings.first_position": 514}, "is 514; allowed is 0 to 513"),
        ("bert-mini", {"objectives": ["masked_token"] * 2}, "each may be named once"),
        ("bert-mini", {"objectives": ["x"]}, "objectives is 'x'; allowed are masked_token"),
        ("bert-mini", {"family": "nope"}, "No family 'nope'; known are bert"),
    ],
)
def test_values_that_break_later(name: str, change: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Config.from_json(changed(name, change))


@pytest.mark.parametrize("name", sorted(cm.sizes()))
def test_published_sizes_pass(name: str) -> None:
    assert Config.from_json(cm.size(name).to_json()) == cm.size(name)


def test_the_objectives_are_the_heads() -> None:
    assert tuple(HEADS) == OBJECTIVES


def test_positions_from_zero_stay_where_they_are() -> None:
    config = cm.size("bert-mini").with_vocabulary(100, pad_id=7)
    assert (config.embeddings.first_position, config.embeddings.positions) == (0, 512)


def test_a_first_position_of_ones_own_stays() -> None:
    config = cm.size("bert-mini")
    parts: Embeddings = replace(config.embeddings, first_position=3)
    moved = replace(config, embeddings=parts).with_vocabulary(100, pad_id=7).embeddings
    assert (moved.first_position, moved.positions) == (3, 512)
