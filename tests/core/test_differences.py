"""Which values differ from BERT, frozen per family: the "how it differs" table must not drift."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core_models.catalogue import diff, family_names
from core_models.checkpoints.files import read_format
from core_models.checkpoints.formats import BY_FAMILY
from core_models.families import FAMILIES, size

VOCABULARY = "embeddings.vocabulary"
FIRST = {
    "bert": "bert-base",
    "roberta": "roberta-base",
    "albert": "albert-base",
    "spanbert": "spanbert-base",
    "electra": "electra-base",
    "macbert": "macbert-base",
    "modernbert": "modernbert-base",
    "distilbert": "distilbert-base-uncased",
    "eurobert": "eurobert-210m",
    "neobert": "neobert",
}
"""The size whose objectives and masking stand for the family."""

DIFFERENCES: dict[str, dict[str, Any]] = {
    "roberta-base": {
        VOCABULARY: 50265,
        "embeddings.positions": 514,
        "embeddings.first_position": 2,
        "embeddings.segments": 1,
        "embeddings.pad_id": 1,
        "norm_epsilon": 1e-5,
        "objectives": ["masked_token"],
        "masking.dynamic": True,
    },
    "distilroberta-base": {
        VOCABULARY: 50265,
        "embeddings.positions": 514,
        "embeddings.first_position": 2,
        "embeddings.segments": 1,
        "embeddings.pad_id": 1,
        "schedule": [*range(6)],
        "norm_epsilon": 1e-5,
        "objectives": ["masked_token"],
        "masking.dynamic": True,
    },
    "distilbert-base-uncased": {
        "embeddings.segments": 0,
        "schedule": [*range(6)],
        "objectives": ["masked_token"],
        "masking.dynamic": True,
    },
    "albert-base": {
        VOCABULARY: 30000,
        "embeddings.width": 128,
        "embeddings.square_projection": True,
        "attention.dropout": 0.0,
        "feed_forward.activation": "gelu_tanh",
        "schedule": [0] * 12,
        "dropout": 0.0,
        "objectives": ["masked_token", "sentence_order"],
        "masking.kind": "ngram",
        "masking.longest": 3,
    },
    "albert-base-v1": {
        VOCABULARY: 30000,
        "embeddings.width": 128,
        "embeddings.square_projection": True,
        "feed_forward.activation": "gelu_tanh",
        "schedule": [0] * 12,
        "objectives": ["masked_token", "sentence_order"],
        "masking.kind": "ngram",
        "masking.longest": 3,
    },
    "spanbert-base-cased": {
        VOCABULARY: 28996,
        "objectives": ["masked_token", "span_boundary"],
        "masking.kind": "span",
        "masking.longest": 10,
        "masking.dynamic": True,
    },
    "electra-base-discriminator": {
        "objectives": ["replaced_token"],
        "masking.kind": "with_replacement",
        "masking.split": [0.85, 0.0, 0.15],
        "masking.dynamic": True,
    },
    "electra-base-generator": {
        "width": 256,
        "attention.heads": 4,
        "feed_forward.width": 1024,
        "objectives": ["masked_token"],
        "masking.kind": "with_replacement",
        "masking.split": [0.85, 0.0, 0.15],
        "masking.dynamic": True,
    },
    "electra-small-discriminator": {
        "embeddings.width": 128,
        "width": 256,
        "attention.heads": 4,
        "feed_forward.width": 1024,
        "objectives": ["replaced_token"],
        "masking.kind": "with_replacement",
        "masking.split": [0.85, 0.0, 0.15],
        "masking.dynamic": True,
    },
    "chinese-bert-wwm": {VOCABULARY: 21128, "masking.kind": "whole_word"},
    "chinese-roberta-wwm-ext": {
        VOCABULARY: 21128,
        "objectives": ["masked_token"],
        "masking.kind": "whole_word",
    },
    "modernbert-base": {
        VOCABULARY: 50368,
        "embeddings.positions": None,
        "embeddings.segments": 0,
        "embeddings.pad_id": 50283,
        "attention.query_bias": False,
        "attention.key_bias": False,
        "attention.value_bias": False,
        "attention.output_bias": False,
        "attention.dropout": 0.0,
        "attention.rotary.theta": 160_000.0,
        "attention.rotary.local_theta": 10_000.0,
        "attention.rotary.positions": 8192,
        "attention.window": 64,
        "feed_forward.width": 1152,
        "feed_forward.gated": True,
        "feed_forward.bias": False,
        "schedule": [*range(22)],
        "layer_kinds": ["global", "local", "local"],
        "norm_place": "before",
        "norm_bias": False,
        "norm_epsilon": 1e-5,
        "dropout": 0.0,
        "initial_by_depth": True,
        "objectives": ["masked_token"],
        "masking.rate": 0.3,
        "masking.dynamic": True,
        "head_bias": False,
    },
    "eurobert-210m": {
        VOCABULARY: 128256,
        "embeddings.positions": None,
        "embeddings.segments": 0,
        "embeddings.pad_id": 128001,
        "embeddings.normed": False,
        "attention.query_bias": False,
        "attention.key_bias": False,
        "attention.value_bias": False,
        "attention.output_bias": False,
        "attention.dropout": 0.0,
        "attention.rotary.theta": 250_000.0,
        "attention.rotary.local_theta": 250_000.0,
        "attention.rotary.positions": 8192,
        "feed_forward.activation": "silu",
        "feed_forward.gated": True,
        "feed_forward.bias": False,
        "norm_place": "before",
        "norm_kind": "rms",
        "norm_bias": False,
        "norm_epsilon": 1e-5,
        "dropout": 0.0,
        "objectives": ["masked_token"],
        "masking.rate": 0.5,
        "masking.dynamic": True,
        "masked_token_style": "linear",
        "score_bias": False,
    },
    "chinese-macbert-base": {
        VOCABULARY: 21128,
        "objectives": ["masked_token", "sentence_order"],
        "masking.kind": "similar",
        "masking.longest": 4,
    },
}


FROM_EUROBERT = {
    VOCABULARY: 30522,
    "embeddings.pad_id": 0,
    "attention.rotary.theta": 10_000.0,
    "attention.rotary.local_theta": 10_000.0,
    "attention.rotary.positions": 4096,
    "feed_forward.width": 2048,
    "schedule": [*range(28)],
    "masking.rate": 0.2,
    "masking.split": [1.0, 0.0, 0.0],
    "score_bias": True,
}


def test_what_differs_in_neobert_from_a_block_that_it_shares() -> None:
    assert {d.path: d.right for d in diff("eurobert-210m", "neobert")} == FROM_EUROBERT


@pytest.mark.parametrize("name", DIFFERENCES)
def test_what_differs_from_bert_base(name: str) -> None:
    found = {d.path: d.right for d in diff("bert-base", name)}
    assert found == DIFFERENCES[name]


def test_large_sizes_differ_from_large_bert_in_the_same_values() -> None:
    for name, large in (
        ("roberta-base", "roberta-large"),
        ("spanbert-base-cased", "spanbert-large-cased"),
        ("chinese-roberta-wwm-ext", "chinese-roberta-wwm-ext-large"),
        ("chinese-macbert-base", "chinese-macbert-large"),
    ):
        found = {d.path: d.right for d in diff("bert-large", large)}
        assert found == DIFFERENCES[name]
    found = {d.path: d.right for d in diff("bert-large", "electra-large-discriminator")}
    assert found == DIFFERENCES["electra-base-discriminator"] | {"masking.rate": 0.25}


def test_the_large_albert_sizes() -> None:
    shapes = {
        name: (c.steps, c.blocks, c.width, c.attention.heads, c.feed_forward.width, c.dropout)
        for name in ("large", "xlarge", "xxlarge", "large-v1", "xlarge-v1", "xxlarge-v1")
        for c in (size(f"albert-{name}"),)
    }
    assert shapes == {
        "large": (24, 1, 1024, 16, 4096, 0.0),
        "xlarge": (24, 1, 2048, 16, 8192, 0.0),
        "xxlarge": (12, 1, 4096, 64, 16384, 0.0),
        "large-v1": (24, 1, 1024, 16, 4096, 0.1),
        "xlarge-v1": (24, 1, 2048, 16, 8192, 0.1),
        "xxlarge-v1": (12, 1, 4096, 64, 16384, 0.0),
    }


@pytest.mark.parametrize("family", FIRST)
def test_every_size_survives_its_config_file(family: str) -> None:
    form = BY_FAMILY[family]
    for name, config in FAMILIES[family].sizes.items():
        classes = [form.architectures.get((head,), "") for head in config.objectives]
        values = {"model_type": form.model_type, "architectures": classes}
        values = json.loads(json.dumps(values | form.write_config(config)))
        assert read_format(values) is form
        # config.json holds neither the objectives nor the masking of a single size
        expected = replace(config, masking=size(FIRST[family]).masking)
        if family == "bert":
            expected = replace(expected, objectives=size(FIRST[family]).objectives)
        assert form.read_config(values) == expected, name


def test_names_and_aliases() -> None:
    assert set(family_names()) >= set(FIRST)
    for family in FAMILIES.values():
        assert {config.family for config in family.sizes.values()} == {family.name}
        for alias, name in family.aliases.items():
            assert alias not in family.sizes
            assert size(alias) == family.sizes[name]
    assert size("albert-base-v2") == size("albert-base")
    assert size("electra-small").objectives == ("replaced_token",)
