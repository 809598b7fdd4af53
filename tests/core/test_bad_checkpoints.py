"""Folders that are not what they say, and folders that are written over: no silent mixtures."""

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor
from transformers import (
    CONFIG_MAPPING,
    AutoModelForPreTraining,
    AutoModelForTokenClassification,
)

import core_models as cm
from core_models.checkpoints.files import INDEX, WEIGHTS, read_tensors, write_shards
from core_models.checkpoints.formats import FORMATS
from core_models.errors import InputError
from core_models.model import Model
from tests.core.tiny_models import new, tiny

QUERY = "bert.encoder.layer.0.attention.self.query.weight"
NORM = "bert.embeddings.LayerNorm.weight"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "bert"
    new(tiny("bert-mini")).save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of a small BERT, to be spoiled."""
    return Path(shutil.copytree(saved, tmp_path / "bert"))


def equal(one: Model, other: Model) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(t, theirs[n]) for n, t in ours.items())


def weights(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if "safetensors" in path.name}


# --- writing over a model ---------------------------------------------------------------------


def split(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    size = 4000 if yes else 9_500_000
    monkeypatch.setattr("core_models.checkpoints.files.SHARD_BYTES", size)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_an_earlier_model_leaves_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, second: bool
) -> None:
    split(monkeypatch, first)
    new(tiny("bert-mini", layers=3), seed=1).save(tmp_path)
    assert (INDEX in weights(tmp_path)) is first
    split(monkeypatch, second)
    model = new(tiny("bert-mini"), seed=2)
    model.save(tmp_path)
    assert equal(cm.load(tmp_path), model)
    theirs = AutoModelForPreTraining.from_pretrained(tmp_path)
    table = model.encoder.embeddings.pieces.weight
    assert torch.equal(theirs.get_input_embeddings().weight, table)
    model.save(tmp_path / "fresh")
    assert weights(tmp_path) == weights(tmp_path / "fresh")


def fused(act: Callable[..., Any], left: Iterator[bool]) -> Callable[..., Any]:
    """``act``, until nothing is left."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not next(left, False):
            raise KeyboardInterrupt
        return act(*args, **kwargs)

    return call


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_an_interrupted_save_leaves_the_old_model_the_new_one_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, second: bool
) -> None:
    split(monkeypatch, first)
    # of the same shapes, so that a mixture of files would open
    old = new(tiny("bert-mini"), seed=1)
    old.save(tmp_path / "old")
    fresh = new(replace(old.config, dropout=0.5), seed=2)
    split(monkeypatch, second)
    outcomes = set()
    for calls in range(100):
        folder = Path(shutil.copytree(tmp_path / "old", tmp_path / str(calls)))
        with monkeypatch.context() as patched:
            left = iter([True] * calls)
            patched.setattr(os, "replace", fused(os.replace, left))
            patched.setattr(Path, "unlink", fused(Path.unlink, left))
            try:
                fresh.save(folder)
                done = True
            except KeyboardInterrupt:
                done = False
        if done:
            break
        try:
            found = cm.load(folder)
        except InputError:
            outcomes.add("none")
        else:
            assert equal(found, old if found.config == old.config else fresh)
            outcomes.add("old" if found.config == old.config else "new")
        fresh.save(folder)
        assert equal(cm.load(folder), fresh)
        assert not list(folder.glob(".*"))
    assert done
    assert {"old", "none"} <= outcomes


@pytest.mark.parametrize("same", [True, False])
def test_two_who_save_into_one_folder_never_mix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """The last one wins whole, and nobody's file is taken from under them."""
    split(monkeypatch, True)
    first = new(tiny("bert-mini"), seed=1)
    second = new(tiny("bert-mini") if same else tiny("bert-mini", layers=3), seed=2)
    together = threading.Barrier(2)

    def save(model: cm.Model) -> None:
        for _ in range(10):
            together.wait(60)
            model.save(tmp_path)
            together.wait(60)
            found = cm.load(tmp_path)
            assert any(equal(found, m) for m in (first, second) if m.config == found.config)

    with ThreadPoolExecutor(2) as savers:
        for each in [savers.submit(save, model) for model in (first, second)]:
            each.result()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", [".saving", ".saving-1234abcd"])
def test_what_a_dead_writer_left_goes_with_the_next_save(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    (folder / name / "model.safetensors").write_bytes(bytes(10))
    cm.load(folder).save(folder)
    assert not list(folder.glob(".*"))


def test_a_failed_write_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = cm.load(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        new(tiny("bert-mini", layers=3)).save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert equal(cm.load(folder), old)


def test_two_sets_of_weights_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = read_tensors(folder)
    split(monkeypatch, True)
    write_shards(tensors, folder)
    cm.load(folder)
    safetensors.torch.save_file(tensors, folder / WEIGHTS)
    with pytest.raises(InputError, match=r"holds both .* remove the one that is out of date"):
        cm.load(folder)


def test_a_fine_tuned_model_takes_the_place_of_its_base(tmp_path: Path) -> None:
    model = new(tiny("bert-mini"))
    model.save(tmp_path)
    tagger = model.with_head("tag", ("O", "B"))
    tagger.save(tmp_path)
    assert equal(cm.load(tmp_path), tagger)
    theirs = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert torch.equal(
        theirs.classifier.weight, tagger.heads["tag"].get_parameter("classifier.weight")
    )


# --- tensors that contradict each other -------------------------------------------------------


def write_index(folder: Path, shards: dict[str, dict[str, Tensor]], places: dict[str, str]) -> None:
    (folder / WEIGHTS).unlink()
    for file, tensors in shards.items():
        safetensors.torch.save_file(tensors, folder / file)
    (folder / INDEX).write_text(json.dumps({"weight_map": places}))


def test_one_tensor_in_two_files(folder: Path) -> None:
    tensors = read_tensors(folder)
    places = dict.fromkeys(tensors, "a.safetensors") | {QUERY: "b.safetensors"}
    write_index(
        folder, {"a.safetensors": tensors, "b.safetensors": {QUERY: tensors[QUERY]}}, places
    )
    cm.load(folder)  # equal ones may stay
    safetensors.torch.save_file({QUERY: tensors[QUERY] + 1}, folder / "b.safetensors")
    with pytest.raises(InputError, match=rf"'{QUERY}' in a.safetensors and in b.safetensors"):
        cm.load(folder)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({QUERY: "b.safetensors"}, rf"b.safetensors holds the tensor '{QUERY}', which is not"),
        ({"x": "a.safetensors"}, "a.safetensors holds the tensor 'x', which is not there"),
        ({QUERY: None}, rf"a.safetensors holds the tensor '{QUERY}', which .* does not list"),
    ],
)
def test_an_index_that_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str | None], match: str
) -> None:
    tensors = read_tensors(folder)
    second = {NORM: tensors.pop(NORM)}
    all_places = dict.fromkeys(tensors, "a.safetensors") | {NORM: "b.safetensors"} | change
    places = {name: file for name, file in all_places.items() if file is not None}
    write_index(folder, {"a.safetensors": tensors, "b.safetensors": second}, places)
    with pytest.raises(InputError, match=match):
        cm.load(folder)
    monkeypatch.setenv("CLOZE_MODELS", str(folder.parent))
    with pytest.warns(UserWarning, match=f"bert is not listed: .*{match}"):
        assert folder not in [info.folder for info in cm.models()]


@pytest.mark.parametrize("old", ["gamma", "beta"])
def test_a_norm_under_two_names(folder: Path, old: str) -> None:
    tensors = read_tensors(folder)
    name = f"bert.embeddings.LayerNorm.{'weight' if old == 'gamma' else 'bias'}"
    older = f"bert.embeddings.LayerNorm.{old}"
    safetensors.torch.save_file(tensors | {older: tensors[name].clone()}, folder / WEIGHTS)
    cm.load(folder)
    safetensors.torch.save_file(tensors | {older: tensors[name] + 1}, folder / WEIGHTS)
    with pytest.raises(InputError, match=rf"{older}.*{name}|{name}.*{older}"):
        cm.load(folder)


def test_a_classifier_under_two_names(tmp_path: Path) -> None:
    new(tiny("deberta-v3-base")).save(tmp_path)
    tensors = read_tensors(tmp_path)
    name, slip = (f"mask_predictions.{part}.weight" for part in ("classifier", "classifer"))
    safetensors.torch.save_file(tensors | {slip: tensors[name] + 1}, tmp_path / WEIGHTS)
    with pytest.raises(InputError, match="the same one under two names"):
        cm.load(tmp_path)


def test_errors_spell_tensors_as_the_file_does(folder: Path) -> None:
    spoil_config(folder, model_type="roberta", pad_token_id=1)
    with pytest.raises(InputError, match=r"holds the tensor '(bert|cls)\.[^']*', which a roberta"):
        cm.load(folder)
    spoil_config(folder, model_type="bert")
    tensors = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma"): t
        for n, t in read_tensors(folder).items()
        if n.startswith("bert.")
    }
    bare = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
    spoilt = bare | {"embeddings.LayerNorm.gamma": torch.zeros(3)}
    safetensors.torch.save_file(spoilt, folder / WEIGHTS)
    with pytest.raises(InputError, match=r"The tensor 'embeddings\.LayerNorm\.gamma' has shape"):
        cm.load(folder)


# --- malformed files --------------------------------------------------------------------------


def spoil_config(folder: Path, **change: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


@pytest.mark.parametrize("name", ["config.json", WEIGHTS])
def test_a_folder_in_place_of_a_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(InputError, match=rf"{name} cannot be read: it is a folder"):
        cm.load(folder)


@pytest.mark.parametrize("name", ["config.json", INDEX, "tokenizer_config.json"])
def test_a_number_beyond_reason(folder: Path, name: str) -> None:
    (folder / name).write_text('{"model_type": "bert", "hidden_size": ' + "9" * 5000 + "}")
    with pytest.raises(InputError, match=rf"{name} is not .*JSON"):
        cm.load(folder)


@pytest.mark.parametrize("file", ["", ".", "..", "../x", "/etc/passwd"])
def test_an_index_never_leaves_its_folder(folder: Path, file: str) -> None:
    write_index(folder, {}, {QUERY: file})
    with pytest.raises(InputError, match="names a file outside its folder"):
        cm.load(folder)


@pytest.mark.parametrize("file", ["a" * 300, "a\0b", "\ud800", "b.safetensors"])
def test_an_index_may_name_what_cannot_be(folder: Path, file: str) -> None:
    write_index(folder, {}, {QUERY: file})
    with pytest.raises(InputError, match=r"is listed in .* but missing"):
        cm.load(folder)


@pytest.mark.parametrize("value", [[], {}, None, 3, "left"])
def test_a_direction_of_xlnet_that_is_none(value: Any) -> None:
    with pytest.raises(InputError, match=r"attn_type is .*; expected bi or uni"):
        FORMATS["xlnet"].read_config({"attn_type": value})


# --- fields that are not known ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("num_hidden_layer", "num_hidden_layers"),
        ("hidden_droput_prob", "hidden_dropout_prob"),
        ("Vocab_Size", "vocab_size"),
        ("layer_norm_epsilon", "layer_norm_eps"),
        ("pad_tokenid", "pad_token_id"),
        ("is_decodr", "is_decoder"),
    ],
)
def test_a_misspelt_field_is_named(folder: Path, slip: str, meant: str) -> None:
    spoil_config(folder, **{slip: 3})
    with pytest.raises(InputError, match=f"'{slip}', which is not known; did you mean '{meant}'"):
        cm.load(folder)


def test_fields_that_released_files_carry_may_stay(folder: Path) -> None:
    extras: dict[str, Any] = {
        "_name_or_path": "x",
        "directionality": "bidi",
        "dtype": "float32",
        "finetuning_task": None,
        "gradient_checkpointing": False,
        "output_past": True,
        "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform",
        "task_specific_params": None,
        "torch_dtype": "float32",
        "transformers_version": "4.9",
        "xla_device": None,
        "use_cache": True,
        "a_note_of_mine": "kept",
    }
    spoil_config(folder, **extras)
    assert cm.load(folder).config == tiny("bert-mini")


@pytest.mark.parametrize("kind", sorted(set(FORMATS) & set(CONFIG_MAPPING)))
def test_every_field_of_transformers_is_known(kind: str, tmp_path: Path) -> None:
    from transformers import AutoConfig, XLNetConfig

    from core_models.checkpoints import fields

    theirs = AutoConfig.for_model(kind).to_dict()
    known = fields._READ | fields._HARMLESS | FORMATS[kind].fields
    assert set(theirs) <= known
    assert set(XLNetConfig.attribute_map) <= FORMATS["xlnet"].fields
