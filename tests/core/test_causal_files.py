"""Models that read from left to right: files of decoders, both directions."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from core_models.checkpoints.files import save_checkpoint
from core_models.checkpoints.formats import BY_FAMILY
from core_models.config import Masking
from core_models.errors import InputError
from core_models.families import size
from core_models.network.initialise import initialise
from tests.core import parity
from tests.core.parity import VOCABULARY, Bare

BODY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "is_decoder": True,
    "use_cache": False,
}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertLMHeadModel", BODY),
    "roberta": (
        "RobertaConfig",
        "RobertaForCausalLM",
        BODY | {"pad_token_id": 1, "type_vocab_size": 1},
    ),
    "electra": ("ElectraConfig", "ElectraForCausalLM", BODY | {"embedding_size": 12}),
}


def theirs(family: str) -> Any:
    config, kind, values = FAMILIES[family]
    return parity.randomised(getattr(tf, kind)(getattr(tf, config)(**values)))


def inputs(family: str, length: int, pad: str) -> dict[str, Any]:
    values = FAMILIES[family][2]
    segments = values.get("type_vocab_size", 2)
    return parity.inputs(length, pad, pad_id=values.get("pad_token_id", 0), segments=segments)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("traced", [False, True])
def test_logits_equal(tmp_path: Path, family: str, traced: bool) -> None:
    reference = theirs(family)
    model = parity.written(reference, tmp_path)
    assert model.config.attention.direction == "left"
    for length, pad in [(11, "none"), (12, "right"), (38, "none")]:
        values = inputs(family, length, pad)
        parity.check_outputs(model, reference, values, {"causal": "logits"}, traced=traced)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_directions_keep_every_bit(tmp_path: Path, family: str) -> None:
    third = parity.check_round_trip(theirs(family), tf.AutoModelForCausalLM, tmp_path)
    assert list(third.heads) == ["causal"]
    assert third.heads["causal"].decoder.weight is third.encoder.embeddings.pieces.weight
    values = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert values["architectures"] == [FAMILIES[family][1]]
    assert values["is_decoder"] is True
    assert not [key for key in values if key.startswith("cloze_")]
    assert third.config.objectives == ("causal",)


def test_no_token_sees_a_later_one(tmp_path: Path) -> None:
    model = parity.written(theirs("bert"), tmp_path)
    values = inputs("bert", 11, "none")
    changed = values | {"input_ids": values["input_ids"].clone()}
    changed["input_ids"][:, 6] = (changed["input_ids"][:, 6] + 1) % VOCABULARY
    with torch.no_grad():
        before = model.logits(parity.batch_of(values))["causal"]
        after = model.logits(parity.batch_of(changed))["causal"]
    torch.testing.assert_close(before[:, :6], after[:, :6], atol=1e-6, rtol=0)
    assert float((before[:, 6:] - after[:, 6:]).abs().amax(-1).min()) > 1e-3


def test_a_causal_twin_of_bert_opens_in_transformers(tmp_path: Path) -> None:
    """The same sizes and the same tensors as a masked-token model, read the other way."""
    base = size("bert-2x128").with_vocabulary(VOCABULARY)
    config = replace(
        base,
        attention=replace(base.attention, direction="left"),
        objectives=("causal",),
        masking=Masking(kind="none"),
    )
    form = BY_FAMILY["bert"]
    model = Bare(config, ("causal",), form).eval()
    initialise(model, 0.05, torch.Generator().manual_seed(2))
    save_checkpoint(model, form, config, tmp_path)
    opened, info = tf.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(opened) is tf.BertLMHeadModel
    assert not any(info.values()), info
    values = inputs("bert", 12, "right")
    parity.check_outputs(model, opened.eval(), values, {"causal": "logits"})
    again = parity.read(tmp_path)
    assert again.config == config
    masked = Bare(base, ("masked_token",), form)
    assert {n.replace("causal", "masked_token") for n in model.state_dict()} == set(
        masked.state_dict()
    )


def test_bad_decoders_are_named(tmp_path: Path) -> None:
    theirs("bert").save_pretrained(tmp_path)
    path, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    good, tensors = json.loads(path.read_text()), load_file(weights)

    def broken(change: dict[str, Any], match: str) -> None:
        path.write_text(json.dumps(good | change))
        with pytest.raises(InputError, match=match):
            parity.read(tmp_path)

    broken({"is_decoder": "yes"}, "is_decoder is 'yes'; expected true or false")
    broken({"is_decoder": 1}, "is_decoder is 1; expected true or false")
    broken({"model_type": "xlnet"}, "Files of type xlnet hold no model that reads from left")
    broken({"model_type": "albert"}, "Files of type albert hold no model that reads from left")
    path.write_text(json.dumps(good))

    def refused(tensors: dict[str, torch.Tensor], match: str) -> None:
        save_file(tensors, weights)
        with pytest.raises(InputError, match=match):
            parity.read(tmp_path)

    name = "cls.predictions.transform.dense.weight"
    refused({n: t for n, t in tensors.items() if n != name}, f"lacks 1 of .*{name}")
    refused(tensors | {name: torch.zeros(3, 3)}, rf"{name}' has shape \[3, 3\]")
    cross = "bert.encoder.layer.0.crossattention.self.query.weight"
    refused(tensors | {cross: torch.zeros(32, 32)}, f"holds the tensor '{cross}'")
    save_file(tensors, weights)
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(InputError, match="cut off"):
        parity.read(tmp_path)
    weights.unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="pickle"):
        parity.read(tmp_path)
