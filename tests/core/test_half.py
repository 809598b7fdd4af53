"""Weights in files of half precision: what is kept, what loading makes of them."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
from transformers import AutoModelForPreTraining

import core_models as cm
from core_models.checkpoints.files import read_tensors
from core_models.checkpoints.half import round_to_half, write_half
from core_models.errors import InputError
from core_models.model import Model
from tests.core.tiny_models import masked_batch, new, tiny

SIZES = (
    "bert-mini",
    "roberta-base",
    "albert-base",
    "xlnet-base-cased",
    "electra-small-discriminator",
    "deberta-base",
    "deberta-v3-base",
    "spanbert-base-cased",
)


def halved(model: Model, folder: Path) -> Path:
    model.save(folder / "whole")
    write_half(folder / "whole", folder / "half")
    return folder / "half"


@pytest.mark.parametrize("size", SIZES)
def test_loading_gives_the_rounded_numbers_in_float32(size: str, tmp_path: Path) -> None:
    found = cm.load(halved(new(tiny(size)), tmp_path))
    model = cm.load(tmp_path / "whole")
    assert {p.dtype for p in found.parameters()} == {torch.float32}
    round_to_half(model)
    expected = model.state_dict()
    assert found.state_dict().keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in found.state_dict().items())
    count = sum(p.numel() for p in model.parameters())  # a tied table counts once
    assert sum(p.numel() for p in found.parameters()) == count
    batch = masked_batch()
    assert torch.equal(found.encoder(batch).hidden, model.encoder(batch).hidden)


def test_files_take_half_and_keep_the_rest(tmp_path: Path) -> None:
    whole, half = tmp_path / "whole", halved(new(tiny("bert-mini")), tmp_path)
    assert {t.dtype for t in read_tensors(half).values()} == {torch.float16}
    assert {p.name for p in half.iterdir()} == {p.name for p in whole.iterdir()}
    assert (half / "config.json").read_bytes() == (whole / "config.json").read_bytes()
    names = read_tensors(whole)
    assert all(torch.equal(t, names[n].half()) for n, t in read_tensors(half).items())
    write_half(half, tmp_path / "again")
    weights = [f / "model.safetensors" for f in (half, tmp_path / "again")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_many_files_become_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_models.checkpoints.files.SHARD_BYTES", 4000)
    model = new(tiny("bert-mini"))
    half = halved(model, tmp_path)
    found = [len(list((tmp_path / f).glob("*.safetensors"))) for f in ("whole", "half")]
    assert found[0] > found[1] > 1
    places = json.loads((half / "model.safetensors.index.json").read_text())["weight_map"]
    assert set(places.values()) == {p.name for p in half.glob("*.safetensors")}
    round_to_half(model)
    loaded = cm.load(half).state_dict()
    assert all(torch.equal(v, loaded[n]) for n, v in model.state_dict().items())


def test_a_folder_that_is_half_in_part_becomes_so_in_whole(tmp_path: Path) -> None:
    expected = read_tensors(halved(new(tiny("bert-mini")), tmp_path))
    path = tmp_path / "whole" / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["bert.pooler.dense.bias"] = tensors["bert.pooler.dense.bias"].half()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    write_half(tmp_path / "whole", tmp_path / "again")
    found = read_tensors(tmp_path / "again")
    assert {t.dtype for t in found.values()} == {torch.float16}
    assert all(torch.equal(t, expected[n]) for n, t in found.items())


def test_transformers_computes_the_same_in_float32(tmp_path: Path) -> None:
    half = halved(new(tiny("bert-mini")), tmp_path)
    theirs = AutoModelForPreTraining.from_pretrained(half).eval()
    assert theirs.dtype == torch.float32
    ours = cm.load(half)
    batch = masked_batch(padded=False)
    with torch.inference_mode():
        expected = theirs(input_ids=batch.input_ids).prediction_logits
        found = ours.heads["masked_token"](ours.encoder(batch).hidden)
    assert (found - expected).abs().max() < 1e-5


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    model = new(tiny("bert-mini"))
    model.save(tmp_path / "whole")
    path = tmp_path / "whole" / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["bert.pooler.dense.bias"][2] = 70_000.0
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"pooler\.dense\.bias.*beyond float16"):
        write_half(tmp_path / "whole", tmp_path / "half")
    shutil.rmtree(tmp_path / "whole")
    with pytest.raises(InputError):
        write_half(tmp_path / "whole", tmp_path / "none")
