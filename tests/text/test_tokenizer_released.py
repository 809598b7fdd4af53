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


@pytest.mark.parametrize(("side", "left"), [("left", True), ("right", False)])
def test_a_side_that_is_said_counts(xlnet: Path, side: str, left: bool) -> None:
    path = xlnet / "tokenizer_config.json"
    settings = json.loads(path.read_text()) | {"padding_side": side, "pad_token_type_id": 0}
    path.write_text(json.dumps(settings))
    template = Tokenizer.from_folder(xlnet).template
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
