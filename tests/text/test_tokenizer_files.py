import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_models.errors import InputError
from core_models.tokenizer import Slot, Specials, Template, Tokenizer
from core_models.tokenizer import files as tokenizer_files


def test_transformers_reads_the_same_ids(
    any_kind: Tokenizer, sentences: list[str], awkward: list[str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    any_kind.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in [*sentences[::40], *awkward]:
        ours = any_kind.encode(text)
        assert theirs(text)["input_ids"] == ours.ids
        ours, pair = any_kind.encode(text, "And then?"), theirs(text, "And then?")
        assert pair["input_ids"] == ours.ids
        assert pair["token_type_ids"] == ours.segment_ids
    assert theirs.mask_token_id == any_kind.mask_id
    assert theirs.pad_token_id == any_kind.pad_id


def test_transformers_reads_bert_by_model_type(
    tokenizer: Tokenizer, awkward: list[str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(awkward)["input_ids"] == [tokenizer.encode(text).ids for text in awkward]


def test_saved_folders_load_unchanged(
    any_kind: Tokenizer, awkward: list[str], tmp_path: Path
) -> None:
    any_kind.save(tmp_path / "new" / "folder")
    again = Tokenizer.from_folder(tmp_path / "new" / "folder")
    assert again.fingerprint == any_kind.fingerprint
    assert again.template == any_kind.template
    assert [again.encode(t) for t in awkward] == [any_kind.encode(t) for t in awkward]
    assert (
        Tokenizer.from_file(tmp_path / "new/folder/tokenizer.json").fingerprint == again.fingerprint
    )
    before = {p.name: p.read_bytes() for p in (tmp_path / "new/folder").iterdir()}
    again.save(tmp_path / "copy")
    assert {p.name: p.read_bytes() for p in (tmp_path / "copy").iterdir()}.keys() == before.keys()


def test_the_vocabulary_file_alone_is_enough(
    tokenizer: Tokenizer, awkward: list[str], tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "special_tokens_map.json").unlink()
    again = Tokenizer.from_folder(tmp_path)
    assert [again.encode(t).ids for t in awkward] == [tokenizer.encode(t).ids for t in awkward]
    assert len((tmp_path / "vocab.txt").read_text().splitlines()) == tokenizer.vocabulary


def test_folders_written_by_transformers_are_read(
    tokenizer: Tokenizer, awkward: list[str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path / "ours")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(
        tmp_path / "theirs"
    )
    again = Tokenizer.from_folder(tmp_path / "theirs")
    assert [again.encode(t) for t in awkward] == [tokenizer.encode(t) for t in awkward]


def test_damaged_or_missing_files_are_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        Tokenizer.from_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="No tokenizer in"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(InputError, match="not a readable tokenizer"):
        Tokenizer.from_folder(tmp_path)
    with pytest.raises(InputError, match="not a file"):
        Tokenizer.from_file(tmp_path / "other.json")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\nword\n")
    with pytest.raises(InputError, match="no cls piece"):
        Tokenizer.from_folder(tmp_path)


def spoil(tokenizer: Tokenizer, folder: Path, name: str, change: Callable[[Any], None]) -> None:
    tokenizer.save(folder)
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize("index", [2 * 10**9, 2_000_000])
def test_an_id_beyond_any_table_is_refused_before_it_takes_memory(
    tokenizer: Tokenizer, tmp_path: Path, index: int
) -> None:
    def change(content: Any) -> None:
        content["model"]["vocab"]["far"] = index

    spoil(tokenizer, tmp_path, "tokenizer.json", change)
    with pytest.raises(InputError, match=f"'far' has the id {index}; allowed is 0 to 1999999"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"word_tokenizer_type": "mecab", "subword_tokenizer_type": "wordpiece"},
        {"tokenizer_class": "BertJapaneseTokenizer"},
        {"auto_map": {"AutoTokenizer": ["tokenization_x.XTokenizer", None]}},
    ],
)
def test_a_tokenizer_that_is_a_program_is_refused(tmp_path: Path, settings: Any) -> None:
    """Its vocab.txt looks like BERT's, and every character would be read alone."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u6771\u4eac", "\u4f4f"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="by a program in Python, which is not run here"):
        Tokenizer.from_folder(tmp_path)


def test_a_vocabulary_without_pieces_is_refused(tokenizer: Tokenizer, tmp_path: Path) -> None:
    spoil(tokenizer, tmp_path, "tokenizer.json", lambda c: c["model"].update(vocab={}))
    with pytest.raises(InputError, match=r"model\.vocab is empty"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("pad_token_type_id", value) for value in ("x", None, -1, True, 64, 1.0, [])),
        *(("mask_token", value) for value in ([], {"content": []}, {"content": {}}, 7)),
        ("pad_token", True),
    ],
)
def test_settings_that_are_none_are_named(
    tokenizer: Tokenizer, tmp_path: Path, key: str, value: Any
) -> None:
    spoil(tokenizer, tmp_path, "tokenizer_config.json", lambda c: c.update({key: value}))
    with pytest.raises(InputError, match=rf"tokenizer_config\.json: {key} is .*; expected"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("value", [None, {"content": "[MASK]"}, "[MASK]"])
def test_spellings_of_a_special_piece(tokenizer: Tokenizer, tmp_path: Path, value: Any) -> None:
    change = {"mask_token": value, "pad_token_type_id": 0}
    spoil(tokenizer, tmp_path, "tokenizer_config.json", lambda c: c.update(change))
    assert Tokenizer.from_folder(tmp_path).mask_id == tokenizer.mask_id


def test_a_template_names_pieces_of_the_vocabulary(tokenizer: Tokenizer, tmp_path: Path) -> None:
    processor = {"type": "BertProcessing", "cls": ["[BOS]", 2], "sep": ["[SEP]", 3]}
    spoil(tokenizer, tmp_path, "tokenizer.json", lambda c: c.update(post_processor=processor))
    with pytest.raises(InputError, match=r"adds the piece '\[BOS\]', which is not in the vocab"):
        Tokenizer.from_folder(tmp_path)


def test_a_vocabulary_that_fails_at_a_text_says_so(sentences: list[str], tmp_path: Path) -> None:
    Tokenizer.train(sentences[:300], vocabulary=300, kind="unigram").save(tmp_path)
    values = json.loads((tmp_path / "tokenizer.json").read_text())
    values["model"]["unk_id"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    opened = Tokenizer.from_folder(tmp_path)
    with pytest.raises(InputError, match="fails at this text"):
        opened.encode("\u6211")
    with pytest.raises(InputError, match="fails at this text"):
        opened.encode_plain(["\u6211"])


@pytest.mark.parametrize(
    ("files", "match"),
    [
        ({"vocab.txt": b"[PAD]\n\xff\n"}, r"vocab\.txt is not readable as UTF-8"),
        ({"vocab.json": b"[]", "merges.txt": b""}, r"vocab\.json with merges\.txt is not"),
        (
            {
                "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
                "tokenizer_config.json": b'{"strip_accents": "x"}',
            },
            "strip_accents is 'x'; expected true, false or null",
        ),
        (
            {
                "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
                "tokenizer_config.json": b'{"do_lower_case": "false"}',
            },
            "do_lower_case is 'false'; expected true, false or null",
        ),
    ],
)
def test_older_files_that_are_damaged(tmp_path: Path, files: dict[str, bytes], match: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=match):
        Tokenizer.from_folder(tmp_path)


# --- templates --------------------------------------------------------------------------------


def test_trailing_class_piece_and_left_padding_are_values(
    sentences: list[str], tmp_path: Path
) -> None:
    specials = Specials(pad="<pad>", unknown="<unk>")
    template = Template.trailing(specials)
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram", template=template)
    found = tok.encode("we go", "they stay")
    assert (found.pieces[-2:], found.segment_ids[-1]) == (["[SEP]", "[CLS]"], 2)
    assert set(found.segment_ids[:-1]) == {0, 1}
    assert found.special.count(True) == 3
    tok.save(tmp_path)
    again = Tokenizer.from_folder(tmp_path)
    assert again.template == template
    assert again.template.pad_left
    assert again.template.pad_segment == 3


def test_roberta_template_doubles_the_separator() -> None:
    template = Template.doubled(Specials(cls="<s>", sep="</s>"))
    assert [slot.content for slot in template.pair] == ["<s>", "$A", "</s>", "</s>", "$B", "</s>"]
    assert template.extra(pair=True) == 4
    processor = {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}
    read = tokenizer_files.template_from(processor, Specials(), pad_segment=0)
    assert read == template
    assert all(slot == Slot(slot.content, 0) for slot in read.pair)


def test_older_processors_and_sequences_of_steps_are_read() -> None:
    named = {"cls": ["<s>", 0], "sep": ["</s>", 2]}
    specials = Specials(cls="<s>", sep="</s>")
    step = {"type": "BertProcessing", **named}
    for processor in (step, {"type": "Sequence", "processors": [{"type": "ByteLevel"}, step]}):
        read = tokenizer_files.template_from(processor, Specials(), pad_segment=None)
        assert read == Template.enclosing(specials)


def test_one_piece_at_both_ends_is_a_class_piece_that_comes_first() -> None:
    """A decoder's vocabulary may have nothing else."""
    specials = Specials(cls="</s>", sep="</s>")
    processor = {"type": "BertProcessing", "cls": ["</s>", 2], "sep": ["</s>", 2]}
    for given in (processor, None):
        read = tokenizer_files.template_from(given, specials, pad_segment=None)
        assert read == Template.enclosing(specials)
        assert (read.pad_left, read.pad_segment) == (False, 0)


def test_truncation_and_padding_kept_in_a_file_are_ignored(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    content["truncation"] = {
        "direction": "Right",
        "max_length": 8,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    content["padding"] = {
        "strategy": {"Fixed": 40},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    path.write_text(json.dumps(content))
    text = "One two three four five six seven eight nine ten."
    assert Tokenizer.from_folder(tmp_path).encode(text) == tokenizer.encode(text)


def test_half_a_character_in_the_settings_is_kept(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A training must not end at the last file of its model."""
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8")) | {"name_or_path": "a\ud83d\u00e9"}
    path.write_text(json.dumps(settings))
    Tokenizer.from_folder(tmp_path).save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / path.name).read_text("utf-8")) == settings


def test_two_who_save_one_tokenizer_at_once_both_have_it(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads of one process, as those of a page are."""
    replace = Path.replace

    def late(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        tokenizer.save(tmp_path)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", late)
    tokenizer.save(tmp_path)
    assert Tokenizer.from_folder(tmp_path).fingerprint == tokenizer.fingerprint
    assert not list(tmp_path.glob(".*"))


def test_what_cannot_be_saved_leaves_nothing_half_written(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        tokenizer.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
