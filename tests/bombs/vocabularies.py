"""Vocabularies that are bombs. Each begins as the folder of a small WordPiece vocabulary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bombs.kind import GIGABYTE, endless, pipe, sparse

KIND = "vocabulary"
FILE = "tokenizer.json"


def change(folder: Path, do: Callable[[dict[str, Any]], object]) -> None:
    """Another tokenizer.json."""
    values = json.loads((folder / FILE).read_text())
    do(values)
    (folder / FILE).write_text(json.dumps(values))


def alone(folder: Path, name: str) -> Path:
    """The place of a file of a vocabulary, now the only one."""
    for each in (FILE, "vocab.txt"):
        (folder / each).unlink(missing_ok=True)
    return folder / name


def million_merges(folder: Path) -> None:
    letters = [chr(0x4E00 + number) for number in range(1000)]
    merges = [[one, other] for one in letters for other in letters]
    vocabulary = {letter: at for at, letter in enumerate([*"<>", *letters])}
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    change(folder, lambda values: values.update(model=model))


def pattern(text: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        split = {"type": "Split", "pattern": {"Regex": text}, "behavior": "Isolated"}
        change(folder, lambda v: v.update(pre_tokenizer=split | {"invert": False}))

    return make


def repeated_repetition(folder: Path) -> None:
    pattern(r"(a+)+$")(folder)


def repeated_choice(folder: Path) -> None:
    pattern(r"(a|a|aa)*b")(folder)


def repeated_option(folder: Path) -> None:
    pattern(r"(a?){60}a{60}b")(folder)


def deeply_repeated_group(folder: Path) -> None:
    pattern(r"((a*)*)*b")(folder)


def many_stars(folder: Path) -> None:
    pattern("a*" * 40 + "b")(folder)


def counted_pattern(folder: Path) -> None:
    pattern(r"((((a{1,900}){1,900}){1,900}){1,900})b")(folder)


def looked_back(folder: Path) -> None:
    pattern(r"(.*)\1\1\1(.*)\2(.*)\3b")(folder)


def replaced_by_more(folder: Path) -> None:
    rule = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10**6}
    change(folder, lambda v: v.update(normalizer=rule))


def replacements_in_a_row(folder: Path) -> None:
    rule = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    steps = {"type": "Sequence", "normalizers": [rule] * 60}
    change(folder, lambda v: v.update(normalizer=steps))


def padded_to_a_billion(folder: Path) -> None:
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    change(folder, lambda v: v.update(padding=padding))


def padded_to_a_multiple(folder: Path) -> None:
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": 10**9}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    change(folder, lambda v: v.update(padding=padding))


def cut_with_overlaps(folder: Path) -> None:
    cut = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 1}
    change(folder, lambda v: v.update(truncation=cut))


def endless_template(folder: Path) -> None:
    def do(values: dict[str, Any]) -> None:
        processor = values["post_processor"]
        special = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
        processor["single"] = [special] * 200_000 + processor["single"]

    change(folder, do)


def added_pieces(folder: Path) -> None:
    def do(values: dict[str, Any]) -> None:
        entry = values["added_tokens"][0]
        more = [entry | {"id": 1000 + n, "content": f"[{n}]"} for n in range(50_000)]
        values["added_tokens"] += more

    change(folder, do)


def far_id(folder: Path) -> None:
    change(folder, lambda v: v["model"]["vocab"].update(zz=2**32 - 1))


def long_piece(folder: Path) -> None:
    change(folder, lambda v: v["model"]["vocab"].update({"p" * 10**6: 500}))


def long_prefix(folder: Path) -> None:
    change(folder, lambda v: v["model"].update(continuing_subword_prefix="#" * 10**6))


def deep_file(folder: Path) -> None:
    (folder / FILE).write_text('{"version":"1.0","model":' + "[" * 10**6)


def deep_normalizer(folder: Path) -> None:
    def do(values: dict[str, Any]) -> None:
        rule: dict[str, Any] = {"type": "Lowercase"}
        for _ in range(40):
            rule = {"type": "Sequence", "normalizers": [rule]}
        values["normalizer"] = rule

    change(folder, do)


def sparse_file(folder: Path) -> None:
    sparse(folder / FILE, 8 * GIGABYTE, b"{")


def endless_file(folder: Path) -> None:
    endless(folder / FILE)


def piped_settings(folder: Path) -> None:
    pipe(folder / "tokenizer_config.json")


def sparse_settings(folder: Path) -> None:
    sparse(folder / "special_tokens_map.json", 4 * GIGABYTE, b"{")


def long_role(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"mask_token": ["m" * 10**6]}))


def line_of_zeros(folder: Path) -> None:
    sparse(alone(folder, "vocab.txt"), 95_000_000)


def endless_lines(folder: Path) -> None:
    endless(alone(folder, "vocab.txt"))


def blank_lines(folder: Path) -> None:
    alone(folder, "vocab.txt").write_bytes(b"\n" * 20_000_000)


def sparse_merges(folder: Path) -> None:
    alone(folder, "vocab.json").write_text('{"<s>": 0, "</s>": 1, "<mask>": 2, "a": 3}')
    sparse(folder / "merges.txt", 4 * GIGABYTE, b"#version: 0.2\n")


def deep_vocabulary(folder: Path) -> None:
    alone(folder, "vocab.json").write_text('{"a":' * 10**6)
    (folder / "merges.txt").write_text("#version: 0.2\n")


def counted_sentence_piece(folder: Path) -> None:
    """A field that says that it is 2 GB long."""
    alone(folder, "spiece.model").write_bytes(b"\x0a\xff\xff\xff\xff\x07" + b"\x0a" * 1000)


def many_sentence_pieces(folder: Path) -> None:
    """10 million pieces without a name, two bytes each."""
    alone(folder, "spiece.model").write_bytes(b"\x0a\x00" * 10_000_000)


def table_of_sentence_piece(folder: Path) -> None:
    """A table of characters that says that it has 4 GB of entries."""
    pieces = [("<unk>", 2), ("[CLS]", 3), ("[SEP]", 3), ("[MASK]", 4), ("<pad>", 3), ("a", 1)]
    raw = b""
    for name, kind in pieces:
        inner = b"\x0a" + bytes([len(name)]) + name.encode() + b"\x18" + bytes([kind])
        raw += b"\x0a" + bytes([len(inner)]) + inner
    raw += b"\x12\x02\x18\x01"
    table = b"\xfc\xff\xff\xff" + b"\x01" * 60
    raw += b"\x1a" + bytes([len(table) + 2]) + b"\x12" + bytes([len(table)]) + table
    alone(folder, "spiece.model").write_bytes(raw)


def sparse_sentence_piece(folder: Path) -> None:
    sparse(alone(folder, "spm.model"), 16 * GIGABYTE)


MAKERS = (
    million_merges,
    repeated_repetition,
    repeated_choice,
    repeated_option,
    deeply_repeated_group,
    many_stars,
    counted_pattern,
    looked_back,
    replaced_by_more,
    replacements_in_a_row,
    padded_to_a_billion,
    padded_to_a_multiple,
    cut_with_overlaps,
    endless_template,
    added_pieces,
    far_id,
    long_piece,
    long_prefix,
    deep_file,
    deep_normalizer,
    sparse_file,
    endless_file,
    piped_settings,
    sparse_settings,
    long_role,
    line_of_zeros,
    endless_lines,
    blank_lines,
    sparse_merges,
    deep_vocabulary,
    counted_sentence_piece,
    many_sentence_pieces,
    table_of_sentence_piece,
    sparse_sentence_piece,
)
