"""Every value of a config that transformers computes with: the same figures here, or a refusal.

Random tiny models of transformers over the fields by which released DeBERTa and ALBERT files may
differ. A refusal must name the field.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AlbertForSequenceClassification,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    DebertaConfig,
    DebertaForMaskedLM,
    DebertaForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    DebertaV2ForSequenceClassification,
)

from core_models.checkpoints.formats import FORMATS
from core_models.counting.counts import count
from core_models.errors import InputError
from tests.core import parity
from tests.core.parity import VOCABULARY

SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
RELATIVE = {
    "relative_attention": True,
    "position_biased_input": False,
    "pos_att_type": "c2p|p2c",
    "max_position_embeddings": 64,
    "legacy": False,
}
VERSIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "v1": (DebertaConfig, DebertaForMaskedLM, {}),
    "v2": (DebertaV2Config, DebertaV2ForMaskedLM, {"norm_rel_ebd": "layer_norm"}),
}
SAME: dict[str, dict[str, Any]] = {
    "content to position alone": {"pos_att_type": "c2p"},
    "position to content alone": {"pos_att_type": ["p2c"]},
    "terms in another order": {"pos_att_type": ["p2c", "c2p"]},
    "capitals": {"pos_att_type": " C2P | P2C "},
    "positions in the input": {"position_biased_input": True},
    "positions in the input, one term": {"position_biased_input": True, "pos_att_type": "p2c"},
    "no relative attention": {
        "relative_attention": False,
        "pos_att_type": None,
        "position_biased_input": True,
        "norm_rel_ebd": "none",
    },
    "what transformers takes by default": {
        "relative_attention": False,
        "pos_att_type": None,
        "position_biased_input": True,
        "norm_rel_ebd": "none",
        "legacy": True,
    },
    "no positions at all": {
        "relative_attention": False,
        "pos_att_type": None,
        "norm_rel_ebd": "none",
    },
    "narrow table": {"embedding_size": 12, "legacy": True},
    "wide table": {"embedding_size": 40, "legacy": True, "position_biased_input": True},
    "narrow table, untied": {"embedding_size": 12, "legacy": True, "tie_word_embeddings": False},
    "segments": {"type_vocab_size": 3},
    "short span": {"max_relative_positions": 5},
    "other activation": {"hidden_act": "silu"},
    "large epsilon": {"layer_norm_eps": 1e-3},
    "the newer head, which shares the table in any case": {"tie_word_embeddings": False},
}
SAME_2: dict[str, dict[str, Any]] = {
    "buckets": {"position_buckets": 8},
    "buckets, one term": {"position_buckets": 8, "pos_att_type": "c2p"},
    "buckets, other term, shared": {
        "position_buckets": 8,
        "pos_att_type": "p2c",
        "share_att_key": True,
    },
    "shared": {"share_att_key": True},
    "shared, one term": {"share_att_key": True, "pos_att_type": "c2p"},
    "no norm of the table": {"norm_rel_ebd": "none"},
    "kernel 1": {"conv_kernel_size": 1},
    "kernel 7, gelu": {"conv_kernel_size": 7, "conv_act": "gelu"},
    "kernel 3, plain attention": {
        "conv_kernel_size": 3,
        "relative_attention": False,
        "pos_att_type": None,
        "norm_rel_ebd": "none",
    },
    "kernel 0": {"conv_kernel_size": 0},
}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a third term": ("pos_att_type", {"pos_att_type": "c2p|p2c|p2p"}),
    "a term twice": ("pos_att_type", {"pos_att_type": ["c2p", "p2c", "c2p"]}),
    "capitals in a list, which transformers takes for no term": (
        "pos_att_type",
        {"pos_att_type": ["C2P", "p2c"]},
    ),
    "terms without relative attention": ("relative_attention", {"relative_attention": False}),
    "relative attention without terms": ("pos_att_type", {"pos_att_type": None}),
    "heads that talk": ("talking_head", {"talking_head": True}),
    "heads of another width": ("attention_head_size", {"attention_head_size": 4}),
    "an activation": ("hidden_act", {"hidden_act": "mish"}),
}
REFUSED_2: dict[str, tuple[str, dict[str, Any]]] = {
    "groups in the convolution": ("conv_groups", {"conv_kernel_size": 3, "conv_groups": 2}),
    "even kernel": ("conv_kernel_size", {"conv_kernel_size": 4}),
    "kernel below 0": ("conv_kernel_size", {"conv_kernel_size": -1}),
    "activation of the convolution": ("conv_act", {"conv_kernel_size": 3, "conv_act": "sigmoid"}),
    "a norm of no table": (
        "norm_rel_ebd",
        {"relative_attention": False, "pos_att_type": None},
    ),
}
CASES = [(v, name) for v in VERSIONS for name in SAME] + [("v2", name) for name in SAME_2]


def deberta(version: str, values: dict[str, Any]) -> Any:
    config, cls, own = VERSIONS[version]
    return parity.randomised(cls(config(**{**SHAPE, **RELATIVE, **own, **values})))


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_deberta_of_transformers_gives_its_figures(
    tmp_path: Path, version: str, name: str
) -> None:
    reference = deberta(version, {**SAME, **SAME_2}[name])
    model = parity.written(reference, tmp_path)
    segments = reference.config.type_vocab_size or 1
    heads = {"masked_token": "logits"}
    for (length, pad), traced in product([(11, "none"), (13, "left"), (38, "right")], (0, 1)):
        values = parity.inputs(length, pad, segments=segments)
        parity.check_outputs(model, reference, values, heads, traced=bool(traced))


@pytest.mark.parametrize(("version", "name"), CASES)
def test_it_comes_back_from_a_file_of_ours(tmp_path: Path, version: str, name: str) -> None:
    values = {**SAME, **SAME_2}[name]
    if name == "what transformers takes by default":
        values = values | {"legacy": False}  # an equal head under other names is written
    if name.startswith("the newer head"):
        values = {}
    reference = deberta(version, values)
    parity.check_round_trip(reference, AutoModelForMaskedLM, tmp_path)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        *product(VERSIONS, ["content to position alone", "position to content alone"]),
        *product(VERSIONS, ["positions in the input", "wide table", "narrow table, untied"]),
        ("v2", "buckets, other term, shared"),
    ],
)
def test_its_gradients_are_those_of_transformers(tmp_path: Path, version: str, name: str) -> None:
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    reference = deberta(version, {**SAME, **SAME_2}[name] | still)
    model = parity.written(reference, tmp_path)
    values = parity.inputs(21, "right", segments=1)
    parity.check_gradients(model, reference, values, {"masked_token": "logits"})


@pytest.mark.parametrize(
    ("version", "name"),
    [(v, name) for v in VERSIONS for name in REFUSED] + [("v2", name) for name in REFUSED_2],
)
def test_what_is_not_computed_is_refused_by_its_name(version: str, name: str) -> None:
    field, values = {**REFUSED, **REFUSED_2}[name]
    config = VERSIONS[version][0]
    model_type = config.model_type
    written = {**SHAPE, **RELATIVE, **VERSIONS[version][2], **values, "model_type": model_type}
    with pytest.raises(InputError, match=f"config.json: .*{field}"):
        FORMATS[model_type].read_config(written)


def test_one_table_of_positions_is_not_two() -> None:
    written = {**SHAPE, **RELATIVE, "position_biased_input": True, "cloze_mask_decoder_steps": 2}
    with pytest.raises(InputError, match="position_biased_input"):
        FORMATS["deberta-v2"].read_config(written)


@pytest.mark.parametrize(
    "name", ["content to position alone", "wide table", "narrow table, untied"]
)
def test_counts_and_operations_are_those_of_the_parts(name: str) -> None:
    reference = deberta("v2", SAME[name])
    config = FORMATS["deberta-v2"].read_config(reference.config.to_diff_dict())
    found = count(config)
    own = sum(p.numel() for p in reference.parameters())
    twin = VOCABULARY if config.masked_token_style == "untied" else 0  # a second bias, never read
    assert found.masked == own - twin
    both = count(FORMATS["deberta-v2"].read_config({**SHAPE, **RELATIVE}))
    terms = len(config.attention.terms.kinds)  # type: ignore[union-attr]
    assert 2 * found.flops(11).relative == terms * both.flops(11).relative


@pytest.mark.parametrize(
    "cls", [DebertaForSequenceClassification, DebertaV2ForSequenceClassification]
)
@pytest.mark.parametrize(("field", "value"), [("pooler_hidden_size", 16), ("pooler_dropout", 0.2)])
def test_another_pooler_is_refused_by_its_name(cls: Any, field: str, value: float) -> None:
    written = {**SHAPE, **RELATIVE, "architectures": [cls.__name__], field: value}
    with pytest.raises(InputError, match=field):
        FORMATS[cls.config_class.model_type].read_config(written)


ALBERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "embedding_size": 12,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "max_position_embeddings": 40,
}
ALBERTS: dict[str, dict[str, Any]] = {
    "as wide a table": {"embedding_size": 32},
    "as wide a table, untied": {"embedding_size": 32, "tie_word_embeddings": False},
    "wide table": {"embedding_size": 40},
    "four groups": {"num_hidden_groups": 4},
    "three groups of two, which are no equal shares": {
        "num_hidden_groups": 3,
        "inner_group_num": 2,
    },
    "one group of three": {"inner_group_num": 3},
    "relu, one segment": {"hidden_act": "relu", "type_vocab_size": 1},
    "large epsilon": {"layer_norm_eps": 1e-3},
}
ALBERT_HEADS = {"masked_token": "prediction_logits", "sentence_order": "sop_logits"}


@pytest.mark.parametrize("name", ALBERTS)
def test_an_albert_of_transformers_gives_its_figures(tmp_path: Path, name: str) -> None:
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = AlbertConfig(**{**ALBERT, **ALBERTS[name], **still, "classifier_dropout_prob": 0.0})
    reference = parity.randomised(AlbertForPreTraining(config))
    model = parity.check_round_trip(reference, AutoModelForPreTraining, tmp_path)
    rows = config.type_vocab_size
    for (length, pad), traced in product([(11, "none"), (13, "left"), (38, "right")], (0, 1)):
        values = parity.inputs(length, pad, segments=rows)
        parity.check_outputs(model, reference, values, ALBERT_HEADS, traced=bool(traced))
    parity.check_gradients(
        model, reference, parity.inputs(21, "right", segments=rows), ALBERT_HEADS
    )
    twin = VOCABULARY if config.tie_word_embeddings is False else 0
    assert count(model.config).pretraining == sum(p.numel() for p in reference.parameters()) - twin


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_groups", 5),
        ("inner_group_num", 0),
        ("is_decoder", True),
        ("position_embedding_type", "relative_key"),
        ("hidden_act", "mish"),
    ],
)
def test_another_albert_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"config.json: .*{field}"):
        FORMATS["albert"].read_config({**ALBERT, field: value})


@pytest.mark.parametrize("rate", [0.0, 0.3, 1])
def test_the_dropout_of_an_albert_classifier_is_kept(tmp_path: Path, rate: float) -> None:
    config = AlbertConfig(**ALBERT, classifier_dropout_prob=rate, num_labels=3)
    reference = parity.randomised(AlbertForSequenceClassification(config))
    model = parity.written(reference, tmp_path)
    assert model.config.task is not None
    assert model.config.task.dropout == rate
    values = parity.inputs(13, "right")
    parity.check_outputs(model, reference, values, {"classify": "logits"})
