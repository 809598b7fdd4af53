"""What stands beside a vocabulary counts: added pieces, how text is cleaned, what surrounds it."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors

from core_models import InputError
from core_models.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "cat", "café", "Café", "cafe", "Cafe", "e", "##1", "new", "##word", "[", "]"]
FIRST = len(SPECIAL) + len(WORDS)
TEXT = "The [E1] cat [/E1] Newword NewWord [MASK] Café [e1]"


def bert(folder: Path, **settings: Any) -> Path:
    """A folder with vocab.txt, of the class BertTokenizer."""
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]), encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def rules(content: str, **more: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word", "special"), False)
    return {"content": content, **flags, **more}


DESCRIBED = {
    "4": rules("[MASK]", special=True),
    str(FIRST): rules("[E1]", special=True),
    str(FIRST + 1): rules("[/E1]", special=True, rstrip=True),
    str(FIRST + 2): rules("NewWord", normalized=True),
}


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("lowercase", [True, False])
def test_added_pieces_are_those_of_transformers(
    described: bool, lowercase: bool, tmp_path: Path
) -> None:
    if described:
        bert(tmp_path, do_lower_case=lowercase, added_tokens_decoder=DESCRIBED)
    else:
        named = {"extra_special_tokens": ["[E1]", "[/E1]"]}
        bert(tmp_path, do_lower_case=lowercase, **named)
        listed = {"NewWord": FIRST + 2, "[E1]": FIRST, "[/E1]": FIRST + 1}
        (tmp_path / "added_tokens.json").write_text(json.dumps(listed))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    own = Tokenizer.from_folder(tmp_path)
    ids = own.encode(TEXT).ids
    assert ids == theirs(TEXT)["input_ids"]
    assert {FIRST, FIRST + 1, FIRST + 2} <= {*ids}
    assert own.vocabulary == FIRST + 3
    own.save(tmp_path / "saved")
    assert Tokenizer.from_folder(tmp_path / "saved").encode(TEXT).ids == ids


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "named",
    [
        {"additional_special_tokens": ["new", "[E1]"]},
        {"extra_special_tokens": {"entity_token": "new"}},
        {"eos_token": "new"},
    ],
)
def test_pieces_of_the_vocabulary_are_special_where_settings_name_them(
    whole: bool, named: dict[str, Any], tmp_path: Path
) -> None:
    """What it lacks ("[E1]") is text to us: no model has a row for it."""
    bert(tmp_path)
    if whole:
        Tokenizer.from_folder(tmp_path).save(tmp_path)
    plain = Tokenizer.from_folder(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | named))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    own = Tokenizer.from_folder(tmp_path)
    text = "the newcafe cat"
    assert own.encode(text).ids == theirs(text)["input_ids"] != plain.encode(text).ids
    assert own.vocabulary == plain.vocabulary
    assert own.encode("[E1]").ids == plain.encode("[E1]").ids


def test_added_pieces_of_merges(tmp_path: Path) -> None:
    own = Tokenizer.train(["the cat sat"] * 9, vocabulary=300, kind="byte_bpe")
    own.save(tmp_path / "own")
    model = json.loads((tmp_path / "own" / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    merges = [" ".join(m) if isinstance(m, list) else m for m in model["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<e1>": own.vocabulary}))
    found = Tokenizer.from_folder(tmp_path)
    assert found.encode("the<e1> cat").ids.count(own.vocabulary) == 1
    assert found.encode("the cat").ids == own.encode("the cat").ids


@pytest.mark.parametrize(
    ("listed", "settings", "message"),
    [
        ({"[E1]": FIRST + 1}, {}, rf"'\[E1\]' the id {FIRST + 1}; .* it has {FIRST}\."),
        ({"cat": 2}, {}, "'cat' the id 2; .* it has 6"),
        ({"[E1]": "17"}, {}, "added_tokens.json: .* has the id '17'"),
        ({"": FIRST}, {}, "an added piece is ''"),
        ({}, {"added_tokens_decoder": [1]}, "added_tokens_decoder is a list"),
        ({}, {"added_tokens_decoder": {"17": "x"}}, r"\['17'\] is a str"),
        ({}, {"added_tokens_decoder": {"x": rules("[E1]")}}, r"expected an id"),
        ({}, {"added_tokens_decoder": {"17": rules("x", special="no")}}, "true or false"),  # type: ignore[arg-type]
        ({}, {"added_tokens_decoder": {"17": rules(7)}}, "an added piece is 7"),  # type: ignore[arg-type]
    ],
)
def test_impossible_pieces_are_refused(
    listed: dict[str, Any], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    bert(tmp_path, **settings)
    (tmp_path / "added_tokens.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match=message):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"do_lower_case": False}, "Café"),
        ({"do_lower_case": False, "strip_accents": True}, "Cafe"),
        ({"strip_accents": False, "do_lower_case": True}, "café"),
        ({"do_lower_case": True, "strip_accents": None}, "cafe"),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False}, "cafe"),
    ],
)
def test_text_is_cleaned_as_the_settings_say(
    settings: dict[str, Any], first: str, tmp_path: Path
) -> None:
    """tokenizer.json makes letters small; transformers asks the settings first."""
    bert(tmp_path, do_lower_case=True)
    Tokenizer.from_folder(tmp_path).save(tmp_path / "both")
    path = tmp_path / "both" / "tokenizer_config.json"
    written = json.loads(path.read_text())
    kept = {k: v for k, v in written.items() if k not in ("do_lower_case", "strip_accents")}
    path.write_text(json.dumps(kept | settings))
    found = Tokenizer.from_folder(tmp_path / "both").encode("Café")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "both")
    assert found.pieces[1] == first
    assert found.ids == theirs("Café")["input_ids"]


def test_pieces_of_a_template_are_no_text(tmp_path: Path) -> None:
    """Its first piece is neither the class piece nor the separator."""
    pieces = {piece: index for index, piece in enumerate([*SPECIAL, "[LANG]", "cat", "sat"])}
    backend = tokenizers.Tokenizer(models.WordLevel(pieces, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="[LANG] [CLS] $A [SEP]",
        pair="[LANG] [CLS] $A [SEP] $B [SEP]",
        special_tokens=[(name, pieces[name]) for name in ("[LANG]", "[CLS]", "[SEP]")],
    )
    found = Tokenizer(backend).encode("cat [MASK]", "sat")
    assert found.pieces == ["[LANG]", "[CLS]", "cat", "[MASK]", "[SEP]", "sat", "[SEP]"]
    assert found.special == [True, True, False, False, True, False, True]
    assert found.words == [None, None, 0, 1, None, 2, None]


@pytest.mark.parametrize("fallback", [True, False])
def test_a_line_break_is_a_piece_where_bytes_are(fallback: bool) -> None:
    pieces = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁the", "▁cat"]
    backend = tokenizers.Tokenizer(
        models.Unigram([(piece, -1.0) for piece in pieces], unk_id=1, byte_fallback=fallback)
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    found = Tokenizer(backend).encode("the\ncat").pieces
    assert ("<0x0A>" in found) is fallback
    assert (found == ["[CLS]", "▁the", "▁cat", "[SEP]"]) is not fallback
