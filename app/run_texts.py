"""Texts and names that visitors send for a training run, checked. No Gradio in it.

A run's config names files: whatever comes from a browser may only name the shipped texts, texts
that it sent itself, shipped models and models of the runs folder, never a path of this machine.
"""

import hashlib
import json
import re
import time
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_models import InputError
from core_models.training import durable
from core_models.training.settings import ASSETS

MOST_BYTES = 20 << 20
KEPT_SECONDS = 24 * 3600
FOLDER = ".uploads"
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
"""Endings of tables; everything else is read as text."""
LABELLED = (".csv", ".tsv", ".jsonl")
"""Endings of labelled files."""
BESIDE = "texts"
"""Folder in a run folder that holds what the visitor sent."""

SHIPPED: Mapping[str, str] = {
    "primer/english-*.txt": "Primer, English",
    "primer/chinese-*.txt": "Primer, Chinese",
    "atlas/english-atlas.txt": "Atlas, English",
}
"""Patterns that a page's config may name, with their titles."""

_ID = re.compile(r"[0-9a-f]{16}")
_MARKS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"PK\x03\x04": "a packed file (zip, docx, xlsx)",
    b"%PDF": "a PDF",
    b"\x1f\x8b": "a gzip file",
    b"\x89PNG": "a picture",
    b"PAR1": "a Parquet table",
}


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text that a visitor sent and that waits for its run."""

    id: str
    name: str
    bytes: int
    lines: int
    documents: int
    """Parts between blank lines."""
    repeated: int
    """Lines that were there before."""
    column: str | None = None
    """Column of a table that is read."""
    sample: tuple[str, ...] = ()
    """The first documents of a table as they are read."""


class Inbox:
    """Texts on disk, by the hash of their content, until a run takes them."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER

    def save(self, name: Any, content: bytes, column: str | None = None) -> Text:
        """Check and keep a text or a table; InputError when it is empty, too long or neither.

        Args:
            name: what the visitor calls it; its ending says what it is, see `TABLES`.
            content: its bytes.
            column: of a table, the column with the text; None = "text", or the only one.
        """
        clean = clean_name(name)
        if Path(clean).suffix in TABLES:
            return self._save_table(clean, content, column)
        text = read_text(content)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise InputError(
                "There is only one line of text. Put one sentence on each line and a blank line "
                "between documents; a few hundred lines are the least that teaches anything."
            )
        found = Text(
            id=hashlib.sha256(clean.encode() + b"\0" + text.encode()).hexdigest()[:16],
            name=clean,
            bytes=len(content),
            lines=len(lines),
            documents=len(re.findall(r"[^\n](?:\n[ \t]*){2,}(?=\S)", text)) + 1,
            repeated=len(lines) - len(set(lines)),
        )
        self._keep(found.id, clean, text.encode())
        return found

    def _save_table(self, name: str, content: bytes, column: str | None) -> Text:
        # Imported late: the readers of tables are not needed to watch runs.
        from core_models.data import sources  # noqa: PLC0415

        if Path(name).suffix != ".parquet":
            content = read_text(content).encode()
        elif len(content) > MOST_BYTES or not content.startswith(b"PAR1"):
            raise InputError(f"This is no Parquet table of at most {MOST_BYTES >> 20} MB.")
        key = hashlib.sha256(f"{name}\0{column}\0".encode() + content).hexdigest()[:16]
        path = self._keep(key, name, content)
        try:
            seen = sources.preview(sources.Source(paths=(path,), column=column or None), count=3)
        except InputError as error:
            path.unlink()
            message = str(error).replace(str(path), name).replace(path.name, name)
            raise InputError(message) from None
        return Text(
            id=key,
            name=name,
            bytes=len(content),
            lines=content.count(b"\n"),
            documents=len(seen.documents),
            repeated=0,
            column=seen.column,
            sample=tuple(" ".join(document)[:200] for document in seen.documents),
        )

    def save_labelled(self, name: Any, content: bytes) -> dict[str, str]:
        """Keep a labelled file, whose columns are chosen later; its id and name.

        Without an ending that says so, its first line tells JSON Lines, TSV and CSV apart.
        """
        clean = clean_name(name)
        text = read_text(content)
        if Path(clean).suffix not in LABELLED:
            first = text.strip().partition("\n")[0]
            ending = ".jsonl" if first.startswith("{") else ".tsv" if "\t" in first else ".csv"
            clean = Path(clean).stem + ending
        key = hashlib.sha256(f"{clean}\0".encode() + text.encode()).hexdigest()[:16]
        self._keep(key, clean, text.encode())
        return {"id": key, "name": clean}

    def name_of(self, value: Any) -> str:
        """What the visitor calls a text."""
        about = self.find(value).with_suffix(".json")
        return str(json.loads(about.read_text(encoding="utf-8"))["name"])

    def _keep(self, key: str, name: str, content: bytes) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._forget_old()
        path = self.folder / f"{key}{Path(name).suffix}"
        path.write_bytes(content)
        durable.write_text(self.folder / f"{key}.json", json.dumps({"name": name}))
        return path

    def copy(self, ids: Iterable[Any], folder: Path) -> list[str]:
        """Copy texts into ``folder/texts`` and give their names relative to ``folder``."""
        names: list[str] = []
        for value in ids:
            source = self.find(value)
            name = self.name_of(value)
            target = folder / BESIDE / name
            if f"{BESIDE}/{name}" in names:
                target = folder / BESIDE / f"{value[:4]}-{name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            names.append(f"{BESIDE}/{target.name}")
        return names

    def find(self, value: Any) -> Path:
        """The file of a text by its id; InputError when there is none."""
        if isinstance(value, str) and _ID.fullmatch(value):
            for suffix in (".txt", *TABLES):
                if (path := self.folder / f"{value}{suffix}").exists():
                    return path
        raise InputError("A text that was sent is gone; it is kept for a day. Send it again.")

    def _forget_old(self) -> None:
        for path in self.folder.iterdir():
            if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                path.unlink(missing_ok=True)


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
    if any(unicodedata.category(letter) == "Cc" and letter not in "\n\r\t\f" for letter in text):
        raise InputError("This file holds control characters, so it is not a plain text.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def note_repeated(path: Path) -> None:
    """Keep the share of repeated lines among the texts in a run folder, for the doctor."""
    texts = (file.read_text(encoding="utf-8") for file in (path / BESIDE).glob("*.txt"))
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    if lines:
        share = 1 - len(set(lines)) / len(lines)
        durable.write_text(path / "page.json", json.dumps({"repeated": share}))


def clean_name(value: Any) -> str:
    """A file name from a visitor as a harmless one that ends in .txt or as a table."""
    name = value if isinstance(value, str) else ""
    name = name.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    suffix = next((end for end in TABLES if name.lower().endswith(end)), ".txt")
    stem = name[: -len(suffix)] if name.lower().endswith(suffix) else name
    stem = re.sub(r"[^\w-]+", "-", stem).strip("-_")[:40]
    return f"{stem or 'text'}{suffix}"


def shipped() -> list[dict[str, Any]]:
    """The texts that come with Cloze: pattern, title and characters."""
    found = []
    for pattern, title in SHIPPED.items():
        files = sorted(ASSETS.glob(pattern))
        if files:
            size = sum(path.stat().st_size for path in files)
            found.append({"pattern": pattern, "title": title, "bytes": size})
    return found


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


def check_names(config: Any, allowed: Iterable[str]) -> None:
    """Refuse every name in a config that could be a path, but those in ``allowed``.

    Args:
        config: what ``config.json`` will hold, or any part of it.
        allowed: names that were made here, such as folders of the runs folder.
    """
    known = set(allowed)
    for path, value in leaves(config):
        if path in _FREE or path.startswith(_COLUMNS) or value in known:
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
