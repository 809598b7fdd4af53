"""ALBERT against transformers on random tiny models with non-trivial weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
)

from core_models.checkpoints.albert import layers_of, schedule_of
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from core_models.families import size
from core_models.network.attention import Shared
from core_models.network.layer import FUNCTIONS
from core_models.network.trace import Trace
from tests.core import parity
from tests.core.parity import LENGTHS, VOCABULARY, read
from tests.core.tiny_models import new, tiny

PLAIN = {
    "hidden_size": 32,
    "embedding_size": 12,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
}
SHAPES = {
    "one group": PLAIN,
    "two groups of two": PLAIN
    | {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "uneven groups": PLAIN | {"num_hidden_layers": 5, "num_hidden_groups": 2, "hidden_act": "gelu"},
    "inner three": PLAIN | {"num_hidden_layers": 2, "inner_group_num": 3, "embedding_size": 40},
}
HEADS = {"masked_token": "prediction_logits", "sentence_order": "sop_logits"}
NO_DROPOUT = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "classifier_dropout_prob": 0.0,
}


def theirs(shape: dict[str, Any], kind: type = AlbertForPreTraining, scale: float = 1.0) -> Any:
    config = AlbertConfig(vocab_size=VOCABULARY, max_position_embeddings=40, **shape)
    return parity.randomised(kind(config), scale=scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("length", "pad"), LENGTHS)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(tmp_path: Path, shape: str, length: int, pad: str, traced: bool) -> None:
    reference = theirs(SHAPES[shape])
    model = parity.written(reference, tmp_path)
    parity.check_outputs(model, reference, parity.inputs(length, pad), HEADS, traced=traced)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs(PLAIN, scale=3e-3)
    model = parity.written(reference, tmp_path)
    parity.check_epsilon(model, reference, parity.inputs(11, "none"), HEADS)


@pytest.mark.parametrize("shape", ["one group", "two groups of two"])
@pytest.mark.parametrize("pad", ["right", "left"])
def test_gradients_equal_in_train_mode(tmp_path: Path, shape: str, pad: str) -> None:
    reference = theirs(SHAPES[shape] | NO_DROPOUT)
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, parity.inputs(12, pad), HEADS)


@pytest.mark.parametrize("pad", ["none", "right"])
def test_embeddings_in_place_of_ids(tmp_path: Path, pad: str) -> None:
    reference = theirs(PLAIN)
    model = parity.written(reference, tmp_path)
    parity.check_embeddings(model, reference, parity.inputs(12, pad))


@pytest.mark.parametrize("shape", SHAPES)
def test_round_trip_is_bit_equal(tmp_path: Path, shape: str) -> None:
    model = parity.check_round_trip(
        theirs(SHAPES[shape]), AutoModelForPreTraining, tmp_path / "both"
    )
    assert model.config.family == "albert"
    masked = theirs(SHAPES[shape], AlbertForMaskedLM)
    parity.check_round_trip(masked, AutoModelForMaskedLM, tmp_path / "masked")


def test_a_fresh_model_with_tables_as_wide_as_its_layers(tmp_path: Path) -> None:
    config = tiny("albert-base")
    config = replace(config, embeddings=replace(config.embeddings, width=config.width))
    new(config).save(tmp_path)
    model = read(tmp_path)
    assert model.config == config
    assert model.encoder.embeddings.projection.weight.shape == (8, 8)
    reference, info = AlbertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    values = parity.inputs(11, "right")
    values["input_ids"] %= config.embeddings.vocabulary
    parity.check_outputs(model, reference.eval(), values, HEADS)


def test_every_step_is_a_record_of_its_own(tmp_path: Path) -> None:
    reference = theirs(SHAPES["two groups of two"])
    model = parity.written(reference, tmp_path)
    assert model.config.schedule == (0, 1, 0, 1, 2, 3, 2, 3)
    assert len(model.encoder.blocks) == 4
    values = parity.inputs(11, "none")
    trace = Trace(["residual"])
    model.encoder(parity.batch_of(values), trace=trace)
    expected = reference.albert(**values, output_hidden_states=True).hidden_states
    assert len(expected) == model.config.steps + 1
    for step, hidden in enumerate(expected[1:]):
        torch.testing.assert_close(trace["residual", step], hidden, atol=1e-5, rtol=0)


def test_gradient_of_a_shared_block_is_the_sum_over_its_uses(tmp_path: Path) -> None:
    model = parity.written(theirs(PLAIN), tmp_path)
    batch = parity.batch_of(parity.inputs(11, "none"))
    block = model.encoder.blocks[0]
    kept = {n: p.detach().clone() for n, p in block.named_parameters()}
    total = {n: torch.zeros_like(p) for n, p in kept.items()}
    model.encoder(batch).hidden.square().mean().backward()
    for used in range(model.config.steps):
        copies = [
            {n: p.clone().requires_grad_(n_used == used) for n, p in kept.items()}
            for n_used in range(model.config.steps)
        ]
        hidden = model.encoder.embeddings(batch).detach()
        for weights in copies:
            shared = Shared(visible=batch.attention_mask[:, None, None, :])
            hidden = torch.func.functional_call(block, weights, (hidden, shared))
        hidden.square().mean().backward()
        for name in total:
            total[name] += copies[used][name].grad
    for name, p in block.named_parameters():
        torch.testing.assert_close(p.grad, total[name], atol=1e-6, rtol=1e-4)


def test_the_norm_stands_before_the_projection_and_both_at_their_widths(tmp_path: Path) -> None:
    model = parity.written(theirs(PLAIN), tmp_path)
    parts = model.encoder.embeddings
    assert parts.norm.weight.shape == (12,)
    assert parts.projection.weight.shape == (32, 12)
    assert model.heads["masked_token"].norm.weight.shape == (12,)


def test_the_two_forms_of_gelu() -> None:
    one = torch.ones(())
    assert float(FUNCTIONS["gelu"](one)) == pytest.approx(0.841345, abs=1e-6)
    assert float(FUNCTIONS["gelu_tanh"](one)) == pytest.approx(0.841192, abs=1e-6)
    assert size("albert-base").feed_forward.activation == "gelu_tanh"
    assert size("bert-base").feed_forward.activation == "gelu"


@pytest.mark.parametrize(
    ("layers", "groups", "inner"), [(12, 1, 1), (12, 12, 1), (7, 3, 1), (6, 2, 4), (1, 1, 1)]
)
def test_schedules_are_read_back(layers: int, groups: int, inner: int) -> None:
    values = {
        "num_hidden_layers": layers,
        "num_hidden_groups": groups,
        "inner_group_num": inner,
        "hidden_size": 64,
    }
    config = FORMATS["albert"].read_config(values)
    assert config.schedule == schedule_of(layers, groups, inner)
    assert layers_of(config) == (layers, groups, inner)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"num_hidden_groups": 13}, "num_hidden_groups is 13; expected a whole number from 1 to"),
        ({"num_hidden_groups": 12, "inner_group_num": 2}, "inner_group_num is 2"),
        ({"num_hidden_layers": 512, "inner_group_num": 512}, "schedule is 262144"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
    ],
)
def test_configs_that_cannot_be_read(values: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        FORMATS["albert"].read_config(values)


def test_a_schedule_without_groups_cannot_be_written() -> None:
    with pytest.raises(InputError, match="not made of groups"):
        FORMATS["albert"].write_config(replace(size("albert-base"), schedule=(0, 1, 0)))


def test_heads_follow_the_file_and_duplicates_are_known(tmp_path: Path) -> None:
    theirs(PLAIN, AlbertModel).save_pretrained(tmp_path / "bare")
    assert set(read(tmp_path / "bare").heads) == set()
    theirs(PLAIN).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)
    old = good | {
        "predictions.decoder.weight": good["albert.embeddings.word_embeddings.weight"].clone(),
        "predictions.decoder.bias": good["predictions.bias"].clone(),
        "albert.embeddings.position_ids": torch.arange(40)[None],
    }
    save_file(old, path)
    assert set(read(tmp_path).heads) == {"masked_token", "sentence_order"}
    name = "albert.encoder.albert_layer_groups.0.albert_layers.1.ffn.bias"
    save_file(good | {name: torch.zeros(48)}, path)
    with pytest.raises(InputError, match=r"albert_layers.1.ffn.bias"):
        read(tmp_path)
