"""ELECTRA against transformers on random tiny models with non-trivial weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ElectraModel,
)

from core_models.errors import InputError
from tests.core import parity
from tests.core.parity import LENGTHS, VOCABULARY, read

WIDE = {
    "hidden_size": 32,
    "embedding_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
SHAPES = {"same width": WIDE, "narrow": WIDE | {"embedding_size": 12, "num_hidden_layers": 3}}
SHAPES["wide tables"] = WIDE | {"hidden_size": 16, "embedding_size": 24}
CLASSES: dict[str, tuple[type, Any]] = {
    "replaced_token": (ElectraForPreTraining, AutoModelForPreTraining),
    "masked_token": (ElectraForMaskedLM, AutoModelForMaskedLM),
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def theirs(shape: dict[str, Any], kind: type, scale: float = 1.0) -> Any:
    config = ElectraConfig(vocab_size=VOCABULARY, max_position_embeddings=40, **shape)
    return parity.randomised(kind(config), scale=scale)


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("length", "pad"), LENGTHS)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(
    tmp_path: Path, head: str, shape: str, length: int, pad: str, traced: bool
) -> None:
    reference = theirs(SHAPES[shape], CLASSES[head][0])
    model = parity.written(reference, tmp_path)
    values = parity.inputs(length, pad)
    parity.check_outputs(model, reference, values, {head: "logits"}, traced=traced)


@pytest.mark.parametrize("head", CLASSES)
def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path, head: str) -> None:
    reference = theirs(WIDE, CLASSES[head][0], scale=3e-3)
    model = parity.written(reference, tmp_path)
    parity.check_epsilon(model, reference, parity.inputs(11, "none"), {head: "logits"})


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("pad", ["right", "left"])
def test_gradients_equal_in_train_mode(tmp_path: Path, head: str, pad: str) -> None:
    reference = theirs(SHAPES["narrow"] | NO_DROPOUT, CLASSES[head][0])
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, parity.inputs(12, pad), {head: "logits"})


@pytest.mark.parametrize("pad", ["none", "right"])
def test_embeddings_in_place_of_ids(tmp_path: Path, pad: str) -> None:
    reference = theirs(SHAPES["narrow"], ElectraForPreTraining)
    model = parity.written(reference, tmp_path)
    parity.check_embeddings(model, reference, parity.inputs(12, pad))


@pytest.mark.parametrize("head", CLASSES)
@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_is_bit_equal(tmp_path: Path, head: str, shape: str) -> None:
    kind, auto = CLASSES[head]
    model = parity.check_round_trip(theirs(SHAPES[shape], kind), auto, tmp_path)
    assert model.config.family == "electra"
    assert model.config.objectives == (head,)


def test_projection_exists_exactly_where_widths_differ(tmp_path: Path) -> None:
    for shape, values in SHAPES.items():
        reference = theirs(values, ElectraForPreTraining)
        model = parity.written(reference, tmp_path / shape)
        projected = hasattr(reference.electra, "embeddings_project")
        assert isinstance(model.encoder.embeddings.projection, torch.nn.Linear) == projected
        assert model.encoder.embeddings.norm.weight.shape == (values["embedding_size"],)


@pytest.mark.parametrize("head", CLASSES)
def test_the_generator_head_keeps_gelu_under_another_activation(tmp_path: Path, head: str) -> None:
    reference = theirs(WIDE | {"hidden_act": "relu"}, CLASSES[head][0])
    model = parity.written(reference, tmp_path)
    parity.check_outputs(model, reference, parity.inputs(11, "none"), {head: "logits"})
    parity.check_round_trip(reference, CLASSES[head][1], tmp_path / "again")


def test_heads_follow_the_file_and_duplicates_are_known(tmp_path: Path) -> None:
    theirs(WIDE, ElectraModel).save_pretrained(tmp_path / "bare")
    assert set(read(tmp_path / "bare").heads) == set()
    theirs(WIDE, ElectraForMaskedLM).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)
    table = good["electra.embeddings.word_embeddings.weight"].clone()
    save_file(good | {"generator_lm_head.weight": table}, path)
    assert set(read(tmp_path).heads) == {"masked_token"}
    save_file(good | {"generator_lm_head.weight": table + 1}, path)
    with pytest.raises(InputError, match=r"generator_lm_head.weight.*shares it"):
        read(tmp_path)
