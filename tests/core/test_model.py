"""Model: tokenizer, encoder and heads together, by name and by folder."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from torch import nn
from transformers import AutoModelForMaskedLM, AutoModelForPreTraining, AutoTokenizer

import core_models as cm
from core_models.checkpoints.files import read_headers, read_tensors
from core_models.config import FeedForward
from core_models.hub.fetch import is_hub_id
from core_models.network.initialise import without_values
from core_models.tokenizer.files import FIRST, SECOND, Slot, Template

LINES = ["The red fox sees the small dog.", "A dog likes the old house.", "Birds sing in the tree."]


def tiny(name: str) -> cm.Config:
    config = cm.size(name)
    return replace(
        config,
        width=32,
        embeddings=replace(config.embeddings, width=32, vocabulary=200),
        attention=config.attention.with_heads(2, 16),
        feed_forward=FeedForward(
            width=48,
            activation=config.feed_forward.activation,
            inner_dropout=config.feed_forward.inner_dropout,
        ),
        schedule=(0, 1),
    )


def tokenizer(kind: str = "wordpiece") -> cm.Tokenizer:
    return cm.Tokenizer.train(LINES * 5, vocabulary=120, kind=kind)


def new(name: str = "bert-mini", kind: str = "wordpiece") -> cm.Model:
    words = tokenizer(kind)
    config = tiny(name).with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    return cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()


def test_a_saved_model_opens_here_and_in_transformers(tmp_path: Path) -> None:
    model = new()
    model.save(tmp_path / "fox")
    again = cm.load(tmp_path / "fox")
    assert again.name == "fox"
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
    texts = [LINES[0], (LINES[1], LINES[2])]
    batch = again.batch(texts)
    assert batch.attention_mask is not None
    theirs = AutoModelForPreTraining.from_pretrained(tmp_path / "fox").eval()
    words = AutoTokenizer.from_pretrained(tmp_path / "fox")
    rows = [words(t) if isinstance(t, str) else words(*t) for t in texts]
    values = words.pad(rows, return_tensors="pt")
    assert torch.equal(values["input_ids"], batch.input_ids)
    assert torch.equal(values["token_type_ids"], batch.segment_ids)
    with torch.inference_mode():
        expected = theirs(**values)
        hidden = again.encoder(batch).hidden
        real = batch.attention_mask
        torch.testing.assert_close(
            again.heads["masked_token"](hidden)[real],
            expected.prediction_logits[real],
            atol=1e-5,
            rtol=0,
        )
        torch.testing.assert_close(
            again.heads["next_sentence"](hidden),
            expected.seq_relationship_logits,
            atol=1e-5,
            rtol=0,
        )


def test_padding_goes_to_the_side_of_the_template() -> None:
    words = tokenizer("unigram")
    trailing = cm.Tokenizer.train(
        LINES * 5,
        vocabulary=120,
        kind="unigram",
        template=type(words.template).trailing(words.specials),
    )
    config = tiny("xlnet-base-cased").with_vocabulary(trailing.vocabulary, pad_id=trailing.pad_id)
    model = cm.Model.new(config, trailing, generator=torch.Generator().manual_seed(1)).eval()
    short, long = LINES[2], " ".join(LINES)
    batch = model.batch([short, long])
    assert batch.attention_mask is not None
    assert batch.input_ids is not None
    assert batch.segment_ids is not None
    assert not batch.attention_mask[0, 0]
    assert batch.segment_ids[0, 0] == 3
    assert batch.input_ids[:, -1].tolist() == [trailing.cls_id] * 2
    alone = model.encoder(model.batch([short])).hidden[0]
    padded = model.encoder(batch).hidden[0, -len(alone) :]
    torch.testing.assert_close(padded, alone, atol=1e-5, rtol=0)


def test_decoders_stay_tied_in_copies_and_files(tmp_path: Path) -> None:
    model = new()
    model.save(tmp_path)
    for other in (model, model.clone(), cm.load(tmp_path)):
        head = other.heads["masked_token"]
        assert head.get_parameter("decoder.weight") is other.encoder.embeddings.pieces.weight
    copy = model.clone()
    with torch.no_grad():
        copy.encoder.embeddings.pieces.weight.zero_()
    assert model.encoder.embeddings.pieces.weight.any()


def test_large_weights_are_split_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_models.checkpoints.files.SHARD_BYTES", 20_000)
    model = new()
    model.save(tmp_path)
    files = list(tmp_path.glob("model-*.safetensors"))
    assert len(files) > 2
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    stored = sum(tensor.numel() for tensor in read_tensors(tmp_path).values())
    assert index["metadata"]["total_size"] == 4 * stored
    again = cm.load(tmp_path)
    assert all(torch.equal(t, again.state_dict()[n]) for n, t in model.state_dict().items())
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(theirs.get_input_embeddings().weight, again.encoder.embeddings.pieces.weight)
    files[0].unlink()
    with pytest.raises(cm.InputError, match="missing"):
        cm.load(tmp_path)


def test_models_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new().save(tmp_path / "mine")
    (tmp_path / "mine" / "cloze.json").write_text('{"title": "Mine", "description": "A toy."}')
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    info = next(info for info in cm.models() if info.name == "mine")
    assert (info.title, info.description, info.family) == ("Mine", "A toy.", "bert")
    assert info.heads == ("masked_token", "next_sentence")
    assert info.parameters == sum(p.numel() for p in new().parameters())
    assert cm.load("mine").name == "mine"


def test_listing_reads_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_models.checkpoints.files.SHARD_BYTES", 20_000)
    new().save(tmp_path / "mine")
    files = sorted((tmp_path / "mine").glob("model-*.safetensors"))
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    before = next(info for info in cm.models() if info.name == "mine")
    for file in files:
        content = file.read_bytes()
        weights = 8 + int.from_bytes(content[:8], "little")
        file.write_bytes(content[:weights] + b"\xff" * (len(content) - weights))
    assert next(info for info in cm.models() if info.name == "mine") == before
    with pytest.raises(cm.InputError, match="NaN"):
        cm.load("mine")
    files[1].write_bytes(files[1].read_bytes()[:-1])
    with pytest.warns(UserWarning, match="mine .*cut off"):
        cm.models()
    files[1].unlink()
    with pytest.warns(UserWarning, match="mine .*missing"):
        cm.models()


def test_a_broken_folder_hides_no_other_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new().save(tmp_path / "whole")
    new().save(tmp_path / "broken")
    (tmp_path / "broken" / "config.json").write_text("{")
    new().save(tmp_path / "carded")
    (tmp_path / "carded" / "cloze.json").write_text("{")
    monkeypatch.setenv("CLOZE_MODELS", str(tmp_path))
    with pytest.warns(UserWarning, match="is not listed") as told:
        names = [info.name for info in cm.models()]
    assert "whole" in names
    assert not {"broken", "carded"} & set(names)
    said = sorted(str(each.message) for each in told)
    assert [
        f"{tmp_path / name} is not listed" in text
        for name, text in zip(("broken", "carded"), said, strict=True)
    ] == [True, True]
    assert told[0].filename == __file__
    with pytest.raises(cm.InputError, match="not valid JSON"):
        cm.load("broken")
    with (
        pytest.warns(UserWarning, match="is not listed"),
        pytest.raises(cm.InputError, match=r"By name: .*whole"),
    ):
        cm.load("no-such-model")


def test_a_header_has_the_shapes_of_the_weights(tmp_path: Path) -> None:
    new().save(tmp_path)
    headers, tensors = read_headers(tmp_path), read_tensors(tmp_path)
    assert {n: t.shape for n, t in headers.items()} == {n: t.shape for n, t in tensors.items()}
    assert all(t.is_meta for t in headers.values())


@pytest.mark.parametrize(
    "name", ["no-such-model", "", " ", "a/b/c", "x--y/z", "a\0b", "x" * 300, "x/" * 3_000]
)
def test_unknown_names_list_what_there_is(name: str) -> None:
    with pytest.raises(cm.InputError, match="bert-mini"):
        cm.load(name)
    with pytest.raises(cm.InputError, match="No published size"):
        cm.count(name)


@pytest.mark.parametrize("name", ["locked", "locked/model"])
def test_a_folder_that_may_not_be_looked_at_is_not_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def refuse(path: Any, **options: Any) -> os.stat_result:
        if "locked" in str(path):  # whoever runs the tests may look everywhere
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(cm.InputError, match=r"No model '.*locked"):
        cm.load(f"{tmp_path}/{name}")
    with pytest.raises(cm.InputError, match="No published size 'locked"):
        cm.count(name)


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(cm.InputError, match=r"config\.json"):
        cm.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(cm.InputError, match="gpt2"):
        cm.load(tmp_path)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(cm.InputError, match="not valid JSON"):
        cm.load(tmp_path)


def test_a_config_of_a_megabyte_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}' + " " * 10**6)
    with pytest.raises(cm.InputError, match=r"config\.json has 1,000,022 bytes; at most 1,000,000"):
        cm.load(tmp_path)


def test_a_name_of_the_hub_never_climbs() -> None:
    assert is_hub_id("google-bert/bert-base-uncased")
    for name in ("a/b..c", "a..b/c", "a/..", "a--b/c", "a/b/c", "/a", "a/", "a/b\u00e9"):
        assert not is_hub_id(name), name


@pytest.mark.parametrize("name", ["a/b", "a-b/c.d_e", "a_/b_", "a/b.", "a/b-", "a./b", "a/b.git"])
def test_a_name_of_the_hub_is_one_that_the_hub_takes(name: str) -> None:
    try:
        validate_repo_id(name)
    except HFValidationError:
        assert not is_hub_id(name)
        with pytest.raises(cm.InputError, match="No model"):
            cm.load(name)
    else:
        assert is_hub_id(name)


def test_a_tokenizer_larger_than_the_table_is_refused() -> None:
    words = tokenizer()
    with pytest.raises(cm.InputError, match="do not belong together"):
        cm.Model.new(tiny("bert-mini").with_vocabulary(words.vocabulary - 1), words)


def test_eight_threads_load_equal_models(tmp_path: Path) -> None:
    new().save(tmp_path)
    expected = cm.load(tmp_path).state_dict()
    loaded: list[cm.Model] = []
    threads = [
        threading.Thread(target=lambda: loaded.extend(cm.load(tmp_path) for _ in range(5)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 40
    for model in loaded:
        assert all(torch.equal(t, expected[n]) for n, t in model.state_dict().items())
        head = model.heads["masked_token"]
        assert head.get_parameter("decoder.weight") is model.encoder.embeddings.pieces.weight


def test_public_names_are_all_there() -> None:
    for name in cm.__all__:
        assert getattr(cm, name) is not None
    assert "bert" in cm.family_names()
    assert import_module(
        "core_models.families"
    ).FAMILIES  # a name of its own, hidden by no function
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cm.nothing  # type: ignore[attr-defined]


def test_segments_beyond_the_table_are_one_row_or_refused() -> None:
    """RoBERTa's only row serves every segment; a tokenizer with more than the rows is foreign."""
    words = tokenizer()
    config = tiny("roberta-base").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    pair = (LINES[0], LINES[1])
    assert set(words.encode(*pair).segment_ids) == {0, 1}
    batch = model.batch([pair, LINES[2]])
    assert batch.segment_ids is not None
    assert not batch.segment_ids.any()
    with torch.inference_mode():
        without = replace(batch, segment_ids=None)  # as in training
        assert torch.equal(model.encoder(batch).hidden, model.encoder(without).hidden)
    third = cm.Tokenizer.train(
        LINES * 5, vocabulary=120, template=Template.trailing(words.specials)
    )
    config = tiny("bert-mini").with_vocabulary(third.vocabulary, pad_id=third.pad_id)
    with pytest.raises(cm.InputError, match="segments up to 3 but the model's table has only 2"):
        cm.Model.new(config, third)
    config = tiny("xlnet-base").with_vocabulary(third.vocabulary, pad_id=third.pad_id)
    cm.Model.new(config, third)  # has no table: it compares segments


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_the_highest_segment_needs_a_row(rows: int) -> None:
    """Whether padding has it or only the second text of a pair."""
    words = tokenizer()
    first = (Slot(words.specials.cls, 0), Slot(FIRST, 0))
    second = (*first, Slot(SECOND, 2))
    for template, highest in (
        (Template.trailing(words.specials), 3),
        (Template(single=first, pair=second), 2),
    ):
        third = cm.Tokenizer.train(LINES * 5, vocabulary=120, template=template)
        config = tiny("bert-mini").with_vocabulary(third.vocabulary, pad_id=third.pad_id)
        config = replace(config, embeddings=replace(config.embeddings, segments=rows))
        if rows > highest:
            cm.Model(config, third, ())
            continue
        with pytest.raises(cm.InputError, match=f"segments up to {highest} .* only {rows} rows"):
            cm.Model(config, third, ())


def test_padding_is_the_piece_that_the_config_names() -> None:
    words = tokenizer()
    model = cm.Model(tiny("bert-mini").with_vocabulary(120, pad_id=3), words, ())
    batch = model.batch([LINES[0], "tree"])
    assert batch.input_ids is not None
    assert batch.attention_mask is not None
    assert set(batch.input_ids[~batch.attention_mask].tolist()) == {3}
    assert model.longest == 512
    endless = tiny("xlnet-base").with_vocabulary(120)  # counts no positions
    assert cm.Model(endless, words, ()).longest == 512


def test_the_first_folder_of_a_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = [tmp_path / name for name in ("shipped", "one", "two")]
    for root in roots:
        new().save(root / "fox")
        new().save(root / f"only-{root.name}")
        (root / f"only-{root.name}" / "cloze.json").write_text(f'{{"title": "{root.name}"}}')
    monkeypatch.setattr("core_models.model.SHIPPED", roots[0])
    monkeypatch.setenv("CLOZE_MODELS", os.pathsep.join(map(str, roots[1:])))
    found = {info.name: info for info in cm.models()}
    assert list(found) == ["fox", "only-shipped", "only-one", "only-two"]
    assert found["fox"].folder == roots[0] / "fox"
    assert (found["fox"].title, found["fox"].description) == ("fox", "")  # has no card
    assert found["only-two"].title == "two"
    (roots[0] / "fox" / "config.json").write_text("{}")
    with pytest.raises(cm.InputError, match="model_type"):
        cm.load("fox")


def test_names_that_are_folders_or_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new().save(tmp_path / "fox" / "cub")
    monkeypatch.setattr("core_models.model.hub.fetch", lambda name, token: tmp_path / "fox" / "cub")
    assert cm.load("owner/model").name == "owner/model"
    monkeypatch.chdir(tmp_path)
    assert cm.load("fox/cub").name == "cub"  # wins over the hub
    monkeypatch.chdir(tmp_path / "fox" / "cub")
    assert cm.load(".").config == new().config


def test_what_is_made_without_values_has_shapes_and_other_tensors_keep_theirs():
    with without_values():
        bare = nn.Linear(3, 2)
        real = nn.init.constant_(torch.empty(2, device="cpu"), 7.0)
    assert bare.weight.is_meta
    assert bare.weight.shape == (2, 3)
    assert real.tolist() == [7.0, 7.0]
    assert not nn.Linear(3, 2).weight.is_meta


def test_opening_a_model_does_not_import_the_compiler():
    """Drawing values for tensors without memory does, which takes as long as all the rest."""
    code = "import sys, core_models as cm; cm.load('bert-mini')"
    code += "; print('torch._dynamo' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
