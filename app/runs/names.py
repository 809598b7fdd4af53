"""What visitors send, and names in what they send, checked. No Gradio in it.

A run's config names files: whatever comes from a browser may only name the shipped texts, texts
that it sent itself, shipped models and models of the runs folder, never a path of this machine.
"""

import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core_models import InputError

MOST_BYTES = 20 << 20
MOST_LINES = 2_000_000
TEACHER = "teacher"
"""Field of a config that names the model that is asked as long as a run goes on."""
BESIDE = "texts"
"""Folder in a run folder that holds what the visitor sent."""
ELSEWHERE = "\N{HORIZONTAL ELLIPSIS}/"
"""Before the last part of a path of which the page tells no more."""
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
"""Endings of tables; everything else is read as text."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_MARKS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK\x03\x04": "a packed file (zip, docx, xlsx)",
    b"%PDF": "a PDF",
    b"\x1f\x8b": "a gzip file",
    b"\xfd7zXZ": "an xz file",
    b"\x89PNG": "a picture",
}


def read_text(content: bytes) -> str:
    """The text of a file; InputError says what is wrong with it and what to do."""
    if not content.strip():
        raise InputError("The text is empty.")
    if len(content) > MOST_BYTES:
        raise InputError(
            f"The text has {len(content) / 2**20:.1f} MB and the page takes up to "
            f"{MOST_BYTES >> 20} MB. Longer ones go through the command line: see docs/training.md."
        )
    for mark, kind in _MARKS.items():
        if content.startswith(mark):
            raise InputError(f"This is {kind}, not a plain text. Save it as text in UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"This file is not UTF-8 text (byte {error.start:,}). Save it as UTF-8, or send a text "
            "file and not another kind of document."
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(
            f"This file holds control characters (U+{ord(found[0]):04X} in line {line:,}), so it "
            "is not a plain text. Remove them, or save it as plain text."
        )
    if (lines := text.count("\n")) > MOST_LINES:
        raise InputError(f"The text has {lines:,} lines; the page takes up to {MOST_LINES:,}.")
    return text


def clean_name(value: Any) -> str:
    """A file name from a visitor as a harmless one that ends in .txt or as a table.

    What is called .json is read a line at a time, as JSON Lines.
    """
    name = value if isinstance(value, str) else ""
    name = name.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    name = f"{name}l" if name.lower().endswith(".json") else name
    suffix = next((end for end in TABLES if name.lower().endswith(end)), ".txt")
    stem = name[: -len(suffix)] if name.lower().endswith(suffix) else name
    stem = re.sub(r"[^\w-]+", "-", stem).strip("-_")[:40]
    return f"{stem or 'text'}{suffix}"


def new_id(root: Path, name: Any) -> str:
    """An id for a run called ``name`` that no folder in ``root`` has."""
    stem = re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-")[:40]
    while True:
        run = f"{stem or 'run'}-{secrets.token_hex(2)}"
        if not (root / run).exists():
            return run


_FREE = ("name", "description")
_COLUMNS = ("task.columns", "data.column")
_SOURCES = (
    "task.set",
    "task.dev",
    "data.texts",
    "data.training_only",
    "data.held_out_texts",
    "data.dataset",
)


def is_free(path: str) -> bool:
    """Whether a setting may hold any text: it names no file, so what it holds allows none."""
    return path in _FREE or path.startswith(_COLUMNS)


def check_names(config: Any, allowed: Iterable[str]) -> None:
    """Refuse every name in a config that could be a path, but those in ``allowed``.

    Args:
        config: what ``config.json`` will hold, or any part of it.
        allowed: names that were made here, such as folders of the runs folder.
    """
    known = set(allowed)
    for path, value in leaves(config):
        if is_free(path) or value in known:
            continue
        if ("/" in value or "\\" in value or value.startswith((".", "~"))) or (
            path.startswith(_SOURCES)
        ):
            raise InputError(
                f"{path} names {value[:80]!r}; the page takes the texts and models that it lists. "
                "Other files go through the command line: see docs/training.md."
            )


def leaves(value: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Every string in plain values, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for child in value:
            yield from leaves(child, path)


def stays(path: Path, folder: Path) -> bool:
    """Whether a path leads to something in a folder.

    A run folder that somebody else made may hold links to files of this machine, which no page is
    to show.
    """
    return path.resolve().is_relative_to(folder.resolve())


def beside(values: Any) -> set[str]:
    """Names of the files in ``texts/`` of a run folder that plain values ask for."""
    start = f"{BESIDE}/"
    return {Path(name).name for _, name in leaves(values) if name.startswith(start)}
