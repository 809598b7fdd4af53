"""What a file holds beside the model is said, and comes back when the model is saved."""

import warnings
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

import core_models as cm
from tests.core.tiny_models import new, tiny, tokenizer

CLASSES = {
    "bert": ("bert.pooler.dense", "pooler.dense"),
    "roberta": ("roberta.pooler.dense", "pooler.dense"),
    "albert": ("albert.pooler", "pooler"),
}


def bare(folder: Path, kind: str) -> tuple[cm.Model, torch.nn.Module]:
    """A plain model of transformers with a pooler, and what we make of its folder."""
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=tokenizer().vocabulary,
        hidden_size=16,
        embedding_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        pad_token_id=1 if kind == "roberta" else 0,
    )
    theirs = transformers.AutoModel.from_config(config).eval()
    theirs.save_pretrained(folder)
    tokenizer().save(folder)
    with pytest.warns(UserWarning, match=r"2 tensors that this model does not use and keeps"):
        ours = cm.load(folder)
    return ours, theirs


@pytest.mark.parametrize("kind", CLASSES)
def test_the_pooler_of_a_plain_model_comes_back(tmp_path: Path, kind: str) -> None:
    ours, theirs = bare(tmp_path / "theirs", kind)
    name, attribute = CLASSES[kind]
    assert set(ours.spare) == {f"{name}.weight", f"{name}.bias"}
    ours.clone().save(tmp_path / "ours")
    opened, info = transformers.AutoModel.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not info["missing_keys"]
    for each in ("weight", "bias"):
        wanted = theirs.get_parameter(f"{attribute}.{each}")
        assert torch.equal(opened.get_parameter(f"{attribute}.{each}"), wanted)


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_a_classifier_begins_with_it_as_in_transformers(tmp_path: Path, kind: str) -> None:
    ours, theirs = bare(tmp_path, kind)
    head = ours.with_head("classify", ["a", "b"]).heads["classify"]
    wanted = theirs.get_parameter(f"{CLASSES[kind][1]}.weight")
    assert torch.equal(head.get_parameter("dense.weight"), wanted)


def test_a_trained_pooler_is_written_and_no_spare_one(tmp_path: Path) -> None:
    model = new(tiny("bert-base"))
    name = "bert.pooler.dense.weight"
    model.spare = {name: torch.zeros(8, 8)}
    model.save(tmp_path)
    trained = model.heads["next_sentence"].get_parameter("pooler.dense.weight")
    assert torch.equal(load_file(tmp_path / "model.safetensors")[name], trained)


def test_nothing_is_said_of_models_that_are_whole(tmp_path: Path) -> None:
    new(tiny("bert-base")).save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cm.load(tmp_path).spare == {}
        assert all(cm.load(info.folder).spare == {} for info in cm.models())
