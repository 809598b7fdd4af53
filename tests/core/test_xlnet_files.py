"""XLNet's config file: the released one, and those that are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import XLNetConfig

from core_models.checkpoints.files import load_checkpoint
from core_models.config import TransformerXL
from core_models.errors import InputError
from core_models.families import size
from tests.core.parity import VOCABULARY, Bare, read, written
from tests.core.test_xlnet_parity import FORM, SHAPES, theirs


def test_the_released_file_gives_the_published_size() -> None:
    values = {
        "architectures": ["XLNetLMHeadModel"],
        "attn_type": "bi",
        "bi_data": False,
        "clamp_len": -1,
        "d_head": 64,
        "d_inner": 3072,
        "d_model": 768,
        "dropout": 0.1,
        "ff_activation": "gelu",
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "mem_len": None,
        "model_type": "xlnet",
        "n_head": 12,
        "n_layer": 12,
        "pad_token_id": 5,
        "reuse_len": None,
        "same_length": False,
        "untie_r": True,
        "vocab_size": 32000,
    }
    assert FORM.read_config(values) == size("xlnet-base-cased")


@pytest.mark.parametrize("name", ["xlnet-base-cased", "xlnet-large-cased"])
def test_published_config_round_trip(name: str) -> None:
    config = size(name)
    assert FORM.read_config(FORM.write_config(config)) == config


def test_names_of_other_classes_are_read_as_transformers_reads_them() -> None:
    own = {"vocab_size": 40, "d_model": 48, "n_head": 3, "n_layer": 2, "d_inner": 8}
    others = {name: other for other, name in XLNetConfig.attribute_map.items()}
    renamed = {others.get(name, name): value for name, value in own.items()}
    assert not {"vocab_size", "d_model", "n_head", "n_layer"} & set(renamed)
    assert FORM.read_config(renamed) == FORM.read_config(own)
    with pytest.raises(InputError, match=r"num_attention_heads is 4 and n_head 3"):
        FORM.read_config(own | {"num_attention_heads": 4})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"same_length": True}, "same_length"),
        ({"untie_r": False}, "untie_r"),
        ({"d_head": 7}, "d_head is 7"),
        ({"attn_type": "both"}, "attn_type is 'both'; expected bi or uni"),
        ({"n_head": 5}, "not a multiple of n_head 5"),
        ({"ff_activation": "mish"}, "ff_activation is 'mish'"),
    ],
)
def test_unsupported_configs_are_refused(change: dict[str, Any], match: str) -> None:
    good = {"model_type": "xlnet", "vocab_size": VOCABULARY, **SHAPES[0]}
    with pytest.raises(InputError, match=match):
        FORM.read_config(good | change)


@pytest.mark.parametrize(("value", "clamp"), [(-1, None), (0, None), (1, 1)])
def test_distances_are_cut_only_from_one_on(value: int, clamp: int | None) -> None:
    """``clamp_len > 0`` in transformers."""
    terms = FORM.read_config({"clamp_len": value}).attention.terms
    assert isinstance(terms, TransformerXL)
    assert terms.clamp == clamp


def test_tensors_of_a_deeper_model_are_named(tmp_path: Path) -> None:
    model = written(theirs(), tmp_path)
    other = read(tmp_path)
    narrow = FORM.read_config({"vocab_size": VOCABULARY, **SHAPES[0], "n_layer": 2})
    with pytest.raises(InputError, match=r"layer\.2\..+' has no place"):
        load_checkpoint(Bare(narrow, ("permutation",), FORM), FORM, narrow, tmp_path)
    assert torch.equal(other.encoder.query_start, model.encoder.query_start)
