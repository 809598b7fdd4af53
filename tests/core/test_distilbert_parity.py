"""DistilBERT against transformers on random tiny models, and the traps of its kind."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForMultipleChoice,
    DistilBertModel,
)

import core_models as cm
from core_models.batch import Batch
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from tests.core import parity
from tests.core.parity import VOCABULARY, inputs, read
from tests.core.tiny_models import new, tiny

SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}
ODD = {"dim": 20, "n_layers": 1, "n_heads": 5, "hidden_dim": 7, "activation": "relu"}
SHAPES = [{}, ODD]
HEADS = {"masked_token": "logits"}
NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}


def theirs(shape: dict[str, Any], kind: type = DistilBertForMaskedLM, scale: float = 1.0) -> Any:
    return parity.randomised(kind(DistilBertConfig(**SHAPE | shape)), scale=scale)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(tmp_path: Path, shape: dict[str, Any], traced: bool) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    for length, pad in parity.LENGTHS:
        values = inputs(length, pad, segments=1)
        parity.check_outputs(model, reference, values, HEADS, traced=traced)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_equal_and_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    reference = theirs(shape | NO_DROPOUT)
    again = parity.check_round_trip(reference, AutoModelForMaskedLM, tmp_path)
    assert again.config.family == "distilbert"
    parity.check_gradients(again, reference, inputs(12, "right", segments=1), HEADS)


def test_the_epsilon_that_no_field_tells(tmp_path: Path) -> None:
    reference = theirs({}, scale=3e-3)
    model = parity.written(reference, tmp_path)
    assert model.config.norm_epsilon == 1e-12
    parity.check_epsilon(model, reference, inputs(11, "none", segments=1), HEADS)


def test_embeddings_in_place_of_ids(tmp_path: Path) -> None:
    reference = theirs({})
    model = parity.written(reference, tmp_path)
    parity.check_embeddings(model, reference, inputs(12, "none", segments=1))


def test_names_of_other_classes_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    reference = theirs({"dim": 24, "n_heads": 3})  # unnamed it would have 12
    reference.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    values = json.loads(path.read_text())
    for other, own in DistilBertConfig.attribute_map.items():
        values[other] = values.pop(own)
    path.write_text(json.dumps(values))
    model = read(tmp_path)
    parity.check_outputs(model, reference, inputs(11, "none", segments=1), HEADS)
    path.write_text(json.dumps(values | {"n_heads": 4}))
    with pytest.raises(InputError, match=r"num_attention_heads is 3 and n_heads 4"):
        read(tmp_path)


def test_there_is_no_table_of_segments_and_none_is_read() -> None:
    model = new(tiny("distilbert-base"))
    assert model.encoder.embeddings.segments is None
    batch = model.batch([("red fox", "small dog")])
    assert batch.segment_ids is not None
    assert batch.segment_ids.any()  # the tokenizer numbers them all the same
    with torch.no_grad():
        alone = model.encoder(Batch(input_ids=batch.input_ids)).hidden
        assert torch.equal(model.encoder(batch).hidden, alone)


def test_a_text_is_classified_without_a_pooler() -> None:
    model = new(tiny("distilbert-base")).with_head("classify", ("a", "b"))
    task = model.config.task
    assert task is not None
    assert (task.activation, task.dropout, task.dropout_before) == ("relu", 0.2, False)
    assert cm.count("distilbert-base").base == cm.count("distilbert-base").encoder


def test_a_bare_encoder_of_an_older_file(tmp_path: Path) -> None:
    """Names without prefix, a buffer of positions, fields of 2019."""
    reference = theirs({}, DistilBertModel)
    reference.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert not any(name.startswith("distilbert.") for name in tensors)
    save_file(tensors | {"embeddings.position_ids": torch.arange(40)[None]}, path)
    config = json.loads((tmp_path / "config.json").read_text())
    older = {"tie_weights_": True, "sinusoidal_pos_embds": False, "qa_dropout": 0.1}
    (tmp_path / "config.json").write_text(json.dumps(config | older))
    model = read(tmp_path)
    assert set(model.heads) == set()
    values = inputs(12, "right", segments=1)
    real = values["attention_mask"].bool()
    with torch.no_grad():
        expected = reference(**values).last_hidden_state
        found = model.encoder(parity.batch_of(values)).hidden
    torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=0)


def test_opened_by_our_own_family_not_by_the_adapter(tmp_path: Path) -> None:
    model = new(tiny("distilbert-base"))
    model.save(tmp_path)
    opened = cm.load(tmp_path)
    assert type(opened) is cm.Model
    assert not cm.inspect(tmp_path).adapter
    assert cm.proof(opened, tmp_path, "red fox sees a [MASK] dog").hidden < 1e-5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_heads": 7}, "dim 768 is not a multiple of n_heads 7"),
        ({"tie_weights_": False}, "only True is supported"),
        ({"activation": "mish"}, "activation is 'mish'"),
        ({"n_layer": 6}, "did you mean 'n_layers'"),
    ],
)
def test_what_cannot_be_read_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS["distilbert"].read_config({"model_type": "distilbert"} | values)


def test_several_choices_are_refused(tmp_path: Path) -> None:
    theirs({}, DistilBertForMultipleChoice).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="DistilBertForMultipleChoice, whose head"):
        read(tmp_path)
