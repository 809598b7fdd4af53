"""ModernBERT's files: of both versions of transformers, of any depth, and what cannot be read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import ModernBertForMaskedLM

import core_models as cm
from core_models.checkpoints.formats import FORMATS
from core_models.config import Rotary
from core_models.errors import InputError
from tests.core.modernbert import theirs, tiny, words
from tests.core.parity import read

OLD = {
    "model_type": "modernbert",
    "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 160000.0,
    "local_attention": 128,
    "num_hidden_layers": 7,
    "layer_norm_eps": 1e-5,
    "position_embedding_type": "sans_pos",
    "reference_compile": None,
    "repad_logits_with_grad": False,
    "tokenizer_class": "PreTrainedTokenizerFast",
    "classifier_pooling": "mean",
}
"""Fields as released files of 2024 and 2025 have them."""


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5, 22])
def test_any_depth_comes_back_as_it_was(tmp_path: Path, layers: int) -> None:
    """Below three layers the released pattern is not to be seen in a file."""
    config = replace(tiny(), schedule=tuple(range(layers)))
    cm.Model.new(config, words()).save(tmp_path)
    again = cm.load(tmp_path).config
    assert again == config
    assert again.kinds == cm.size("modernbert-base").kinds[:layers]
    assert (again.attention.window is None) == (layers == 1)


def test_files_of_transformers_4_are_read() -> None:
    config = FORMATS["modernbert"].read_config(OLD)
    assert config.layer_kinds == ("global", "local", "local")
    assert config.kinds == ("global", "local", "local", "global", "local", "local", "global")
    assert config.attention.rotary == Rotary(theta=160000.0, local_theta=160000.0, positions=8192)
    assert config.attention.window == 64
    for unscaled in ({"rope_type": "default"}, {"type": "default"}):
        assert FORMATS["modernbert"].read_config(OLD | {"rope_scaling": unscaled}) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layer_types": ["full_attention"]}, "must be a list of 7 names"),
        ({"layer_types": ["chunked_attention"] * 7}, "layer_types has 'chunked_attention'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling is {'rope_type': 'yarn'}"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 1.0}}},
            "only an object of rope_type default",
        ),
        ({"rope_parameters": {"rope_theta": 1.0}}, "must be an object with full_attention"),
        ({"mlp_dropout": 0.1}, "only equal ones are supported"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings is None"),
        ({"num_attention_heads": 5}, "not a multiple"),
        ({"local_atention": 128}, "did you mean 'local_attention'"),
    ],
)
def test_what_cannot_be_read_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        FORMATS["modernbert"].read_config(OLD | values)


def test_a_packed_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    theirs({}).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.1.attn.Wqkv.weight"
    for rows, message in ((95, "multiple of 3"), (93, "'model.layers.1.attn.Wqkv.weight' has")):
        save_file(tensors | {name: tensors[name][:rows].contiguous()}, path)
        with pytest.raises(InputError, match=message):
            read(tmp_path)


def test_a_value_that_the_files_cannot_hold_is_refused(tmp_path: Path) -> None:
    config = replace(tiny(), norm_place="after")
    model = cm.Model.new(config, words())
    with pytest.raises(InputError, match="norm_place is 'after', which files of type modernbert"):
        model.save(tmp_path)


def test_saved_and_opened_by_transformers(tmp_path: Path) -> None:
    """With the tokenizer: one text through ``Model`` and through theirs."""
    model = cm.Model.new(tiny(), words(), generator=torch.Generator().manual_seed(3)).eval()
    model.save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [
        "ModernBertForMaskedLM"
    ]
    again = cm.load(tmp_path)
    assert type(again) is cm.Model
    reference = ModernBertForMaskedLM.from_pretrained(tmp_path).eval()
    batch = again.batch(["red fox sees the small dog", "birds sing"])
    assert batch.input_ids is not None
    assert batch.attention_mask is not None
    with torch.no_grad():
        expected = reference(batch.input_ids, attention_mask=batch.attention_mask.long()).logits
        ours = again(batch).logits["masked_token"]
    real = batch.attention_mask
    torch.testing.assert_close(ours[real], expected[real], atol=1e-5, rtol=0)
