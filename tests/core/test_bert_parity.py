"""BERT against transformers on random tiny models with non-trivial weights."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
)

from core_models.checkpoints.files import present_heads
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from tests.core import parity
from tests.core.parity import LENGTHS, VOCABULARY, read

FORM = FORMATS["bert"]
SHAPES = [
    {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48},
    {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7},
]
HEADS = {"masked_token": "prediction_logits", "next_sentence": "seq_relationship_logits"}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def theirs(shape: dict[str, Any], kind: type = BertForPreTraining, scale: float = 1.0) -> Any:
    config = BertConfig(vocab_size=VOCABULARY, max_position_embeddings=40, **shape)
    return parity.randomised(kind(config), scale=scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("length", "pad"), [*LENGTHS, (40, "none")])
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(
    tmp_path: Path, shape: dict[str, Any], length: int, pad: str, traced: bool
) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    parity.check_outputs(model, reference, parity.inputs(length, pad), HEADS, traced=traced)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs(SHAPES[0], scale=3e-3)
    model = parity.written(reference, tmp_path)
    parity.check_epsilon(model, reference, parity.inputs(11, "none"), HEADS)


@pytest.mark.parametrize("pad", ["right", "left"])
def test_gradients_equal_in_train_mode(tmp_path: Path, pad: str) -> None:
    reference = theirs(SHAPES[0] | NO_DROPOUT)
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, parity.inputs(12, pad), HEADS)


def test_every_name_of_an_activation(tmp_path: Path) -> None:
    for name in ("gelu_new", "gelu_fast", "gelu_pytorch_tanh"):
        reference = theirs(SHAPES[0] | {"hidden_act": name})
        model = parity.written(reference, tmp_path / name)
        parity.check_outputs(model, reference, parity.inputs(9, "none"), HEADS)


@pytest.mark.parametrize("pad", ["none", "right"])
def test_embeddings_in_place_of_ids(tmp_path: Path, pad: str) -> None:
    reference = theirs(SHAPES[0])
    model = parity.written(reference, tmp_path)
    parity.check_embeddings(model, reference, parity.inputs(12, pad))


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    parity.check_round_trip(theirs(shape), AutoModelForPreTraining, tmp_path / "both")
    masked = theirs(shape, BertForMaskedLM)
    parity.check_round_trip(masked, AutoModelForMaskedLM, tmp_path / "masked")


def test_decoder_stays_tied_after_loading(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    model = read(tmp_path)
    assert model.heads["masked_token"].decoder.weight is model.encoder.embeddings.pieces.weight


def test_heads_come_in_one_order_whatever_the_file_gives() -> None:
    names = ["cls.seq_relationship.weight", "cls.predictions.bias", "bert.pooler.dense.bias"]
    for order in (names, names[::-1]):
        assert present_heads(FORM, order) == ("masked_token", "next_sentence")
    assert present_heads(FORM, names[2:]) == ()


def test_heads_follow_the_file(tmp_path: Path) -> None:
    theirs(SHAPES[0], BertForMaskedLM).save_pretrained(tmp_path / "masked")
    assert set(read(tmp_path / "masked").heads) == {"masked_token"}
    theirs(SHAPES[0], BertModel).save_pretrained(tmp_path / "bare")
    assert set(read(tmp_path / "bare").heads) == set()


def test_old_norm_names_are_read(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        if "LayerNorm" in n
        else n: t
        for n, t in tensors.items()
    }
    before = read(tmp_path).state_dict()
    save_file(old, tmp_path / "model.safetensors")
    after = read(tmp_path).state_dict()
    assert all(torch.equal(before[n], after[n]) for n in before)


def test_bad_files_name_what_is_wrong(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)
    name = "bert.encoder.layer.1.output.dense.weight"

    def broken(tensors: dict[str, torch.Tensor], match: str) -> None:
        save_file({n: t.contiguous() for n, t in tensors.items()}, path)
        with pytest.raises(InputError, match=match):
            read(tmp_path)

    broken({n: t for n, t in good.items() if n != name}, "lacks 1 of .*layer.1.output.dense.weight")
    broken(good | {"gpt.h.0.weight": torch.zeros(2)}, "gpt.h.0.weight")
    broken(good | {name: torch.zeros(3, 3)}, r"shape \[3, 3\]")
    broken(good | {name: torch.full_like(good[name], float("nan"))}, "NaN")
    for value in (float("nan"), float("inf"), float("-inf")):
        one = good[name].clone()
        one[1, 2] = value
        broken(good | {name: one}, "NaN or infinite")
    broken(good | {name: good[name].to(torch.int32)}, "floating-point")
    broken(good | {"cls.predictions.decoder.weight": torch.zeros(VOCABULARY, 32)}, "shares it")
    save_file(good, path)
    whole = path.read_bytes()
    for cut in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"cut off|not a safetensors"):
            read(tmp_path)
    path.unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="pickle"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", 33),
        ("hidden_size", "32"),
        ("num_hidden_layers", 100_000),
        ("vocab_size", 2_000_000_000),
        ("num_attention_heads", 0),
        ("hidden_act", "mish"),
        ("layer_norm_eps", None),
        ("hidden_dropout_prob", -1),
        ("tie_word_embeddings", "no"),
        ("position_embedding_type", "relative_key"),
    ],
)
def test_hostile_config_fields(tmp_path: Path, field: str, value: object) -> None:
    good = theirs(SHAPES[0]).config.to_dict()
    with pytest.raises(InputError, match=field):
        FORM.read_config(good | {field: value})
