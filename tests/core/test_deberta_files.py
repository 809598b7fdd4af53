"""Files of DeBERTa as they were released, and configs that are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModel, AutoModelForMaskedLM, DebertaV2Model

from core_models.checkpoints.deberta import DECODER
from core_models.checkpoints.files import (
    load_checkpoint,
    present_heads,
    read_format,
    read_json,
    read_tensors,
    save_checkpoint,
    their_names,
)
from core_models.checkpoints.formats import BY_FAMILY, FORMATS
from core_models.config import Convolution, Disentangled, MaskDecoder
from core_models.errors import InputError
from core_models.families import size
from tests.core.parity import VOCABULARY, Bare, batch_of, inputs, randomised
from tests.core.test_deberta_parity import CASES, CONV, RELATIVE, SHAPES, theirs


def whole(folder: Path) -> Bare:
    """As Model.from_folder: with what only the tensors tell about the config."""
    values = read_json(folder / "config.json")
    form = read_format(values)
    tensors = their_names(form, read_tensors(folder))
    config = form.settle(form.read_config(values), tensors)
    with torch.device("meta"):
        model = Bare(config, present_heads(form, tensors), form.at(config))
    load_checkpoint(model, form, config, folder)
    return model.eval()


def add(folder: Path, tensors: dict[str, Tensor]) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path) | tensors, path, metadata={"format": "pt"})


@pytest.mark.parametrize("case", ["v1, span 6", "v2, shared"])
def test_a_released_file_has_a_mask_decoder(tmp_path: Path, case: str) -> None:
    theirs(case).save_pretrained(tmp_path)
    table = torch.randn(40, 32, generator=torch.Generator().manual_seed(1))
    add(tmp_path, {DECODER: table})
    model = whole(tmp_path)
    assert model.config.mask_decoder == MaskDecoder(steps=2, positions=40)
    assert torch.equal(model.encoder.mask_decoder.weight, table)
    save_checkpoint(model, model.form, model.config, tmp_path / "again")
    again = whole(tmp_path / "again")
    assert again.config == model.config
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    opened, info = AutoModelForMaskedLM.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not info["missing_keys"]
    values = inputs(12, "none", segments=1)
    with torch.no_grad():  # transformers has no mask decoder
        ours = model.logits(batch_of(values))["masked_token"]
        torch.testing.assert_close(ours, opened(**values).logits, atol=1e-5, rtol=0)


def test_a_saved_mask_decoder_must_be_there(tmp_path: Path) -> None:
    theirs("v1, span 6").save_pretrained(tmp_path)
    add(tmp_path, {DECODER: torch.zeros(40, 32)})
    model = whole(tmp_path)
    save_checkpoint(model, model.form, model.config, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors[DECODER]
    save_file(tensors, path)
    with pytest.raises(InputError, match=r"lacks 1 of .*position_embeddings"):
        whole(tmp_path)


@pytest.mark.parametrize("case", ["v1, span 6", "v2, shared"])
def test_the_head_that_transformers_trains_by_default_is_read(tmp_path: Path, case: str) -> None:
    config = theirs(case).config
    config.legacy = True
    trained = randomised(CASES[case][1](config)).eval()
    trained.save_pretrained(tmp_path)
    assert any(name.startswith("cls.predictions") for name in read_tensors(tmp_path))
    model = whole(tmp_path)
    values = inputs(12, "right", segments=1)
    with torch.no_grad():
        expected = trained(**values).logits
        ours = model.logits(batch_of(values))["masked_token"]
        real = values["attention_mask"].bool()
        torch.testing.assert_close(ours[real], expected[real], atol=1e-5, rtol=0)
        save_checkpoint(model, model.form, model.config, tmp_path / "again")
        opened = AutoModelForMaskedLM.from_pretrained(tmp_path / "again").eval()
        again = opened(**values).logits
    torch.testing.assert_close(again[real], expected[real], atol=1e-5, rtol=0)


def test_the_head_that_transformers_adds_to_another_model_is_kept_aside(tmp_path: Path) -> None:
    config = theirs("v1, span 6").config
    config.legacy = True
    randomised(CASES["v1, span 6"][1](config)).save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"architectures": ["DebertaModel"]}))
    with pytest.warns(UserWarning, match=r"tensors .* \(5\) .* cls\.predictions\.bias"):
        assert list(whole(tmp_path).heads) == []


def test_version_3_is_known_by_its_head(tmp_path: Path) -> None:
    theirs("v3, published buckets").save_pretrained(tmp_path)
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    head = {
        "mask_predictions.LayerNorm.weight": random(32),
        "mask_predictions.LayerNorm.bias": random(32),
        "mask_predictions.dense.weight": random(32, 32),
        "mask_predictions.dense.bias": random(32),
        "mask_predictions.classifier.weight": random(1, 32),
        "mask_predictions.classifier.bias": random(1),
    }
    extra = {
        "deberta.embeddings.word_embeddings._weight": random(VOCABULARY, 32),
        "deberta.embeddings.position_embeddings._weight": random(40, 32),
    }
    add(tmp_path, head | extra)
    model = whole(tmp_path)
    assert model.config.family == "deberta_v3"
    # The masked-token head that released files still hold was left behind.
    assert list(model.heads) == ["replaced_token"]
    values = inputs(11, "none", segments=1)
    with torch.no_grad():
        hidden = model.encoder(batch_of(values)).hidden
        ours = model.heads["replaced_token"](hidden)
    for row in range(3):
        for token in range(11):
            x = hidden[row, 0] + hidden[row, token]
            x = (x - x.mean()) / (x.var(unbiased=False) + 1e-7).sqrt()
            x = x * head["mask_predictions.LayerNorm.weight"]
            x = x + head["mask_predictions.LayerNorm.bias"]
            x = head["mask_predictions.dense.weight"] @ x + head["mask_predictions.dense.bias"]
            x = torch.nn.functional.gelu(x)
            score = head["mask_predictions.classifier.weight"] @ x
            score = score + head["mask_predictions.classifier.bias"]
            torch.testing.assert_close(ours[row, token], score[0], atol=1e-5, rtol=1e-5)
    form = BY_FAMILY["deberta_v3"]
    save_checkpoint(model, form, model.config, tmp_path / "again")
    again = whole(tmp_path / "again")
    assert again.config == model.config
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert type(AutoModel.from_pretrained(tmp_path / "again")) is DebertaV2Model


RELEASED = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "layer_norm_eps": 1e-7,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 0,
    "padding_idx": 0,
}
"""Fields as the released files spell them."""
BUCKETED = {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True}


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [
        ("deberta-base", "deberta", {"vocab_size": 50265}),
        (
            "deberta-v2-xlarge",
            "deberta-v2",
            {
                "vocab_size": 128100,
                "hidden_size": 1536,
                "intermediate_size": 6144,
                "num_attention_heads": 24,
                "num_hidden_layers": 24,
                "attention_head_size": 64,
                **BUCKETED,
                **CONV,
            },
        ),
        ("deberta-v3-base", "deberta-v2", {"vocab_size": 128100, **BUCKETED}),
    ],
)
def test_released_files_give_the_published_sizes(
    name: str, kind: str, values: dict[str, Any]
) -> None:
    form, config = FORMATS[kind], size(name)
    found = form.read_config(RELEASED | values)
    tensors = {"mask_predictions.LayerNorm.weight": torch.empty(0)}
    if config.mask_decoder:
        tensors = {DECODER: torch.empty(512, 0)}
    assert form.settle(found, tensors) == config


NEEDED = ("relative_attention", "position_biased_input", "pos_att_type")
"""Fields whose default in transformers is not what any released DeBERTa has."""


@pytest.mark.parametrize(
    ("name", "kind", "values"),
    [("deberta-base", "deberta", {}), ("deberta-v3-base", "deberta-v2", BUCKETED)],
)
def test_absent_fields_take_the_values_of_the_released_base(
    name: str, kind: str, values: dict[str, Any]
) -> None:
    form, config = FORMATS[kind], size(name)
    found = form.read_config({field: RELEASED[field] for field in NEEDED} | values)
    tensors = {"mask_predictions.LayerNorm.weight": torch.empty(0)}
    if config.mask_decoder:
        tensors = {DECODER: torch.empty(512, 0)}
    assert form.settle(found, tensors) == config


def test_numbers_that_stand_for_none_are_read_as_by_transformers() -> None:
    values = {"max_relative_positions": 0, "max_position_embeddings": 40, "position_buckets": 0}
    config = FORMATS["deberta-v2"].read_config(RELEASED | values)
    terms = config.attention.terms
    assert isinstance(terms, Disentangled)
    assert (terms.span, terms.buckets, terms.normed) == (40, None, False)
    assert config.convolution is None
    config = FORMATS["deberta-v2"].read_config(RELEASED | {"conv_kernel_size": 3})
    assert config.convolution == Convolution(kernel=3, activation="tanh")


@pytest.mark.parametrize(
    "name",
    [
        "deberta-base",
        "deberta-xlarge",
        "deberta-v2-xlarge",
        "deberta-v2-xxlarge",
        "deberta-v3-xsmall",
        "deberta-v3-large",
        "mdeberta-v3-base",
        "deberta-v3-base-generator",
    ],
)
def test_published_config_round_trip(name: str) -> None:
    config = size(name)
    form = BY_FAMILY[config.family]
    values = form.write_config(config)
    if "generator" in name:
        values["architectures"] = ["DebertaV2ForMaskedLM"]
    assert form.read_config(values) == config


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"relative_attention": False}, "relative_attention is False"),
        ({"pos_att_type": None}, "pos_att_type None"),
        ({"attention_head_size": 5}, "attention_head_size is 5"),
        ({"talking_head": True}, "talking_head"),
        ({"num_attention_heads": 5}, "not a multiple of num_attention_heads 5"),
        ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
    ],
)
@pytest.mark.parametrize("kind", ["deberta", "deberta-v2"])
def test_unsupported_configs_are_refused(change: dict[str, Any], match: str, kind: str) -> None:
    good = {"vocab_size": VOCABULARY, **RELATIVE, **SHAPES[0]}
    FORMATS[kind].read_config(good)
    with pytest.raises(InputError, match=match):
        FORMATS[kind].read_config(good | change)


def test_a_convolution_in_groups_is_refused() -> None:
    with pytest.raises(InputError, match="conv_groups is 2; only 1 is supported"):
        FORMATS["deberta-v2"].read_config(RELEASED | CONV | {"conv_groups": 2})


def test_a_packed_tensor_of_another_shape_is_named(tmp_path: Path) -> None:
    theirs("v1, span 6").save_pretrained(tmp_path)
    name = "deberta.encoder.layer.0.attention.self.in_proj.weight"
    add(tmp_path, {name: torch.zeros(95, 32)})
    with pytest.raises(InputError, match=r"in_proj\.weight has shape \[95, 32\].*\[96, 32\]"):
        whole(tmp_path)
