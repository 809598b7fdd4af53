"""RoBERTa against transformers on random tiny models with non-trivial weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    CamembertConfig,
    CamembertForMaskedLM,
    CamembertForTokenClassification,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForTokenClassification,
)

from core_models.batch import Batch
from core_models.checkpoints.files import save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY, FORMATS
from core_models.errors import InputError
from core_models.families import size
from core_models.model import load
from core_models.network.trace import Trace
from tests.core import parity
from tests.core.parity import LENGTHS, VOCABULARY, read
from tests.core.tiny_models import new, tiny

SHAPES = [
    {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48},
    {"hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 9},
]
HEADS = {"masked_token": "logits"}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
RELEASED = {"type_vocab_size": 1, "layer_norm_eps": 1e-5}


def theirs(shape: dict[str, Any], kind: type = RobertaForMaskedLM, scale: float = 1.0) -> Any:
    values = {"vocab_size": VOCABULARY, "max_position_embeddings": 40, **RELEASED, **shape}
    return parity.randomised(kind(RobertaConfig(**values)), scale=scale)


def inputs(length: int, pad: str) -> dict[str, torch.Tensor]:
    return parity.inputs(length, pad, pad_id=1, segments=1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("length", "pad"), LENGTHS)
@pytest.mark.parametrize("traced", [False, True])
def test_outputs_equal(
    tmp_path: Path, shape: dict[str, Any], length: int, pad: str, traced: bool
) -> None:
    reference = theirs(shape)
    model = parity.written(reference, tmp_path)
    parity.check_outputs(model, reference, inputs(length, pad), HEADS, traced=traced)


def test_small_weights_show_the_epsilon_of_norms(tmp_path: Path) -> None:
    reference = theirs(SHAPES[0], scale=3e-3)
    model = parity.written(reference, tmp_path)
    assert model.config.norm_epsilon == 1e-5
    parity.check_epsilon(model, reference, inputs(11, "none"), HEADS)


@pytest.mark.parametrize("pad", ["right", "left"])
def test_gradients_equal_in_train_mode(tmp_path: Path, pad: str) -> None:
    reference = theirs(SHAPES[0] | NO_DROPOUT)
    model = parity.written(reference, tmp_path)
    parity.check_gradients(model, reference, inputs(12, pad), HEADS)


@pytest.mark.parametrize("pad", ["none", "left"])
def test_embeddings_in_place_of_ids(tmp_path: Path, pad: str) -> None:
    reference = theirs(SHAPES[0])
    model = parity.written(reference, tmp_path)
    parity.check_embeddings(model, reference, inputs(12, pad))


@pytest.mark.parametrize("shape", [*SHAPES, {"type_vocab_size": 2, "pad_token_id": 0}])
def test_round_trip_is_bit_equal(tmp_path: Path, shape: dict[str, Any]) -> None:
    model = parity.check_round_trip(theirs(SHAPES[0] | shape), AutoModelForMaskedLM, tmp_path)
    assert model.config.family == "roberta"
    assert model.config.embeddings.first_position == model.config.embeddings.pad_id + 1


def test_positions_count_real_tokens_from_two_and_padding_takes_row_one(tmp_path: Path) -> None:
    model = parity.written(theirs(SHAPES[0]), tmp_path)
    right = torch.tensor([[0, 7, 8, 2, 1, 1]])
    left = torch.tensor([[1, 1, 0, 7, 8, 2]])
    table = model.encoder.embeddings.positions
    assert table is not None
    hidden = []
    for ids, rows in ((right, [2, 3, 4, 5, 1, 1]), (left, [1, 1, 2, 3, 4, 5])):
        trace = Trace(["embedding:positions"])
        out = model.encoder(Batch(input_ids=ids, attention_mask=ids != 1), trace=trace)
        assert torch.equal(trace["embedding:positions", None][0], table.weight[rows])
        hidden.append(out.hidden[ids != 1])
    torch.testing.assert_close(hidden[0], hidden[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("pad_id", [0, 1, 5])
def test_the_first_position_follows_the_pad_id(tmp_path: Path, pad_id: int) -> None:
    words = new(tiny("bert-mini")).tokenizer
    config = tiny("roberta-base").with_vocabulary(words.vocabulary, pad_id=pad_id)
    assert config.embeddings.first_position == pad_id + 1
    model = new(config).eval()
    assert model.longest == 19
    published = size("roberta-base").with_vocabulary(200, pad_id=pad_id)
    assert published.embeddings.positions == 512 + pad_id + 1
    batch = model.batch(["red fox sees small dog", "the tree"])
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.config == config
    with torch.no_grad():
        assert torch.equal(again.encoder(batch).hidden, model.encoder(batch).hidden)
        theirs = RobertaModel.from_pretrained(tmp_path, add_pooling_layer=False).eval()
        assert batch.input_ids is not None
        assert batch.attention_mask is not None
        ids = batch.input_ids.masked_fill(~batch.attention_mask, pad_id)
        hidden = theirs(ids, attention_mask=batch.attention_mask.long()).last_hidden_state
        real = batch.attention_mask
        ours = model.encoder(replace(batch, input_ids=ids, segment_ids=None)).hidden
        torch.testing.assert_close(ours[real], hidden[real], atol=1e-5, rtol=0)


def test_two_rows_fewer_than_the_table_are_usable(tmp_path: Path) -> None:
    model = parity.written(theirs(SHAPES[0]), tmp_path)
    with pytest.raises(InputError, match="39 tokens; this model takes at most 38"):
        model.encoder(Batch(input_ids=torch.full((1, 39), 5)))


def test_a_table_with_no_row_for_a_token_is_refused() -> None:
    """Rows 0 and 1 stand for nothing and for padding."""
    with pytest.raises(InputError, match=r"max_position_embeddings is 2; .* from 3 to"):
        FORMATS["roberta"].read_config({"max_position_embeddings": 2})
    config = FORMATS["roberta"].read_config({"max_position_embeddings": 3})
    assert (config.embeddings.positions, config.embeddings.first_position) == (3, 2)


def test_the_single_segment_row_is_added(tmp_path: Path) -> None:
    reference = theirs(SHAPES[0])
    with torch.no_grad():
        reference.roberta.embeddings.token_type_embeddings.weight.mul_(30)
    model = parity.written(reference, tmp_path)
    assert model.config.embeddings.segments == 1
    parity.check_outputs(model, reference, inputs(11, "none"), HEADS)


def test_duplicates_and_the_untrained_pooler_of_old_files_are_known(tmp_path: Path) -> None:
    theirs(SHAPES[0]).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    good = load_file(path)
    table = good["roberta.embeddings.word_embeddings.weight"]
    old = good | {
        "lm_head.decoder.weight": table.clone(),
        "lm_head.decoder.bias": good["lm_head.bias"].clone(),
        "roberta.embeddings.position_ids": torch.arange(40)[None],
        "roberta.pooler.dense.weight": torch.zeros(32, 32),
        "roberta.pooler.dense.bias": torch.zeros(32),
    }
    save_file(old, path)
    assert set(read(tmp_path).heads) == {"masked_token"}
    save_file(old | {"lm_head.decoder.bias": torch.ones(VOCABULARY)}, path)
    with pytest.raises(InputError, match=r"lm_head.decoder.bias.*shares it"):
        read(tmp_path)


def test_bare_encoder_has_no_head(tmp_path: Path) -> None:
    model = parity.written(theirs(SHAPES[0], RobertaModel), tmp_path)
    assert set(model.heads) == set()


def test_the_head_keeps_gelu_under_another_activation(tmp_path: Path) -> None:
    reference = theirs(SHAPES[0] | {"hidden_act": "relu"})
    model = parity.written(reference, tmp_path)
    parity.check_outputs(model, reference, inputs(11, "none"), HEADS)
    parity.check_round_trip(reference, AutoModelForMaskedLM, tmp_path / "again")


RENAMED = {
    "xlm-roberta": (XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaForTokenClassification),
    "camembert": (CamembertConfig, CamembertForMaskedLM, CamembertForTokenClassification),
}


@pytest.mark.parametrize("kind", RENAMED)
def test_roberta_under_another_name(tmp_path: Path, kind: str) -> None:
    settings, masked, tags = RENAMED[kind]
    values = {"vocab_size": VOCABULARY, "max_position_embeddings": 40, **RELEASED, **SHAPES[0]}
    config = settings(**values | {"hidden_act": "silu", "pad_token_id": 1})
    reference = parity.randomised(masked(config)).eval()
    model = parity.written(reference, tmp_path / "theirs")
    for length, pad in ((11, "none"), (12, "left"), (12, "right")):
        parity.check_outputs(model, reference, inputs(length, pad), HEADS)
    save_checkpoint(model, BY_FAMILY["roberta"], model.config, tmp_path / "ours")
    opened = AutoModelForMaskedLM.from_pretrained(tmp_path / "ours")
    assert type(opened) is RobertaForMaskedLM
    expected = reference.state_dict()
    for name, tensor in opened.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    parity.randomised(tags(config)).save_pretrained(tmp_path / "tags")
    assert list(read(tmp_path / "tags").heads) == ["tag"]
