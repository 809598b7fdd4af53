"""Folders as they were released or saved by transformers, which do not say everything."""

import json
from pathlib import Path
from typing import Any

import pytest

from core_models import InputError
from core_models.tokenizer import Tokenizer

LETTERS = [*map(chr, range(ord("a"), ord("z") + 1))]
WORDS = ["the", "cat", "sat"]


@pytest.fixture
def xlnet(tmp_path: Path) -> Path:
    """What XLNetTokenizer of transformers writes: its padding side is only in its class."""
    transformers = pytest.importorskip("transformers")
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    pieces = [(piece, 0.0) for piece in special]
    pieces += [("\u2581", -3.0), *((f"\u2581{word}", -2.0) for word in WORDS)]
    pieces += [(letter, -5.0) for letter in LETTERS]
    transformers.XLNetTokenizer(vocab=pieces).save_pretrained(tmp_path)
    assert "padding_side" not in (tmp_path / "tokenizer_config.json").read_text()
    return tmp_path


def test_a_trailing_class_piece_pads_on_the_left(xlnet: Path) -> None:
    for tokenizer in (Tokenizer.from_folder(xlnet), Tokenizer.from_file(xlnet / "tokenizer.json")):
        assert tokenizer.template.pad_left
        assert tokenizer.template.pad_segment == 3
        found = tokenizer.encode("the cat", "sat")
        assert found.pieces[-1] == "<cls>"
        assert found.segment_ids == [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_goes_where_the_class_piece_is_not(
    xlnet: Path, tokenizer: Tokenizer, tmp_path: Path, side: str
) -> None:
    tokenizer.save(tmp_path / "bert")
    for folder, left in ((xlnet, True), (tmp_path / "bert", False)):
        path = folder / "tokenizer_config.json"
        settings = json.loads(path.read_text()) | {"padding_side": side, "pad_token_type_id": 0}
        path.write_text(json.dumps(settings))
        template = Tokenizer.from_folder(folder).template
        assert (template.pad_left, template.pad_segment) == (left, 0)


@pytest.mark.parametrize("side", ["up", 1, ["left"]])
def test_an_impossible_side_is_refused(xlnet: Path, side: Any) -> None:
    path = xlnet / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"padding_side": side}))
    with pytest.raises(InputError, match=r"padding_side is .* expected left or right"):
        Tokenizer.from_folder(xlnet)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        (
            ("<pad>", "<unk>", "<s>", "</s>", "<mask>"),
            ["<s>", "cat", "</s>", "</s>", "the", "</s>"],
        ),
        (
            ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
            ["[CLS]", "cat", "[SEP]", "the", "[SEP]"],
        ),
    ],
)
def test_merges_of_roberta_and_of_deberta(
    names: tuple[str, ...], pair: list[str], tmp_path: Path
) -> None:
    """Both come as vocab.json with merges.txt; the spelling of the special pieces tells them."""
    own = Tokenizer.train([" ".join(WORDS)] * 9, vocabulary=300, kind="byte_bpe")
    own.save(tmp_path / "own")
    model = json.loads((tmp_path / "own" / "tokenizer.json").read_text())["model"]
    spelled = dict(zip(own.specials.names(), names, strict=True))
    vocabulary = {spelled.get(piece, piece): index for piece, index in model["vocab"].items()}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    found = Tokenizer.from_folder(tmp_path)
    assert found.specials.names() == names
    assert found.encode("cat", "the").pieces == pair


def test_a_prefix_space_that_is_asked_for(tmp_path: Path) -> None:
    own = Tokenizer.train([" ".join(WORDS)] * 9, vocabulary=300, kind="byte_bpe")
    own.save(tmp_path / "own")
    model = json.loads((tmp_path / "own" / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    for prefix, first in ((False, "cat"), (True, "\u0120cat")):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": prefix}))
        assert Tokenizer.from_folder(tmp_path).encode("cat").pieces[1] == first


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[BOS]"]


@pytest.mark.parametrize(
    ("settings", "text", "pieces"),
    [
        (None, "Cafe Café", ["cafe", "cafe"]),
        ({"do_lower_case": False}, "Cafe Café", ["Cafe", "Café"]),
        ({"strip_accents": False}, "Cafe Café", ["cafe", "café"]),
        ({"do_lower_case": False, "strip_accents": True}, "Café", ["Cafe"]),
        (None, "中国", ["中", "国"]),
        ({"tokenize_chinese_chars": False}, "中国", ["中", "##国"]),
    ],
)
def test_settings_beside_a_list_of_pieces(
    settings: dict[str, Any] | None, text: str, pieces: list[str], tmp_path: Path
) -> None:
    words = ["cafe", "Cafe", "café", "Café", "中", "国", "##国"]
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT, *words]), encoding="utf-8")
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = Tokenizer.from_folder(tmp_path)
    assert found.encode(text).pieces == ["[CLS]", *pieces, "[SEP]"]


def test_a_special_piece_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*BERT, "cat"]))
    assert Tokenizer.from_folder(tmp_path).cls_id == 2
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"cls_token": "[BOS]"}))
    found = Tokenizer.from_folder(tmp_path)
    assert (found.cls_id, found.specials.cls) == (5, "[BOS]")
    assert found.encode("cat").pieces == ["[BOS]", "cat", "[SEP]"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_single_file_tells_whether_letters_are_made_small(
    lowercase: bool, tmp_path: Path
) -> None:
    """transformers rebuilds BERT's tokenizer from what the settings say."""
    transformers = pytest.importorskip("transformers")
    own = Tokenizer.train(["The cat sat."] * 3, vocabulary=100, lowercase=lowercase)
    own.save(tmp_path / "own")
    again = Tokenizer.from_file(tmp_path / "own" / "tokenizer.json")
    again.save(tmp_path / "again")
    settings = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert settings["do_lower_case"] is lowercase
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert theirs("The THE cat")["input_ids"] == own.encode("The THE cat").ids
