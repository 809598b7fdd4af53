"""Texts and tables that visitors send for a training run, kept until it starts. No Gradio in it."""

import contextlib
import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.runs import room
from app.runs.data import tables as run_tables
from app.runs.names import (
    BESIDE,
    MOST_BYTES,
    TABLES,
    check_names,
    clean_name,
    leaves,
    read_text,
    stays,
)
from app.serving.cache import Cache
from core_models import InputError
from core_models.training import durable
from core_models.training.settings import ASSETS

__all__ = [
    "BESIDE",
    "MOST_BYTES",
    "SHIPPED",
    "Inbox",
    "Text",
    "check_names",
    "clean_name",
    "leaves",
    "note_repeated",
    "own_texts",
    "read_text",
    "shipped",
]

KEPT_SECONDS = 24 * 3600
FOLDER = ".uploads"
LABELLED = (".csv", ".tsv", ".jsonl", ".parquet")
"""Endings of labelled files."""

SHIPPED: Mapping[str, str] = {
    "primer/english-*.txt": "Primer, English",
    "primer/chinese-*.txt": "Primer, Chinese",
    "atlas/english-atlas.txt": "Atlas, English",
}
"""Patterns that a page's config may name, with their titles."""

_ID = re.compile(r"([0-9a-f]{16})(?:\.(\d{1,4}))?")
"""Of a text, or of a table with the place of a column."""
_BETWEEN = re.compile(r"\n(?:[^\S\n]*\n)+")
"""Between documents: lines of nothing but blanks of any kind, as the trainer reads them."""
_PARQUET, _ENCRYPTED = b"PAR1", b"PARE"
"""First bytes of Parquet tables."""
_SAMPLE = 4
"""Documents of a text that are shown, and sentences of each."""
_SHORT = 200
_HEAD = 1 << 16
"""Characters of a text among which its first documents are."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text that a visitor sent and that waits for its run."""

    id: str
    name: str
    bytes: int
    lines: int
    """Sentences; of a table, of its column."""
    documents: int
    """Parts between blank lines, or rows."""
    repeated: int = 0  # lines that were there before
    sample: tuple[tuple[str, ...], ...] = ()
    """The first documents of a text as sentences."""
    column: int | None = None
    """Of a table: place of the column that is read, the one that is probably the text."""
    columns: tuple[str, ...] = ()
    """Of a table: all of them. Another one is read by ``<id>.<place>`` in place of the id."""
    usable: tuple[bool, ...] = ()
    """Whether each column holds texts."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Cells of rows from all parts of the table, whose ``numbers`` count from 1."""
    numbers: tuple[int, ...] = ()
    of: int = 0
    """Rows among which they were chosen: all, or where there are ``more`` the first ones."""
    more: bool = False


class Inbox:
    """Texts on disk, by the hash of their content, until a run takes them.

    A text is ``<id>.txt``, a table ``<id>.csv`` and so on, with its columns as plain text in
    ``<id>.<place>.txt`` as soon as they are wanted. ``<id>.json`` tells their names.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FOLDER
        self.opened = Cache(2 * MOST_BYTES)
        """Labelled tables and the sets they make, by id: each change of a form looks at them."""

    @room.told()
    def save(self, name: Any, content: bytes, column: str | None = None) -> Text:
        """Check and keep a text or a table; InputError when it is empty, too long or neither.

        Args:
            name: what the visitor calls it; its ending says what it is, see `TABLES`.
            content: its bytes.
            column: of a table, the column with the text; None = guessed.
        """
        clean = clean_name(name)
        if content.startswith(_PARQUET):
            clean = f"{Path(clean).stem}.parquet"
        if Path(clean).suffix in TABLES:
            return self._save_table(clean, content, column)
        text = read_text(content)
        key = _key("text", clean, text.encode())
        parts = [part.strip() for part in _BETWEEN.split(text) if part.strip()]
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise InputError(
                "There is only one line of text. Put one sentence on each line and a blank line "
                "between documents; a few hundred lines are the least that teaches anything."
            )
        facts = {"lines": len(lines), "documents": len(parts), "bytes": len(content)}
        self._keep(key, clean, text.encode(), facts)
        return Text(
            id=key,
            name=clean,
            repeated=len(lines) - len(set(lines)),
            sample=_sample([part.split("\n") for part in parts[:_SAMPLE]]),
            **facts,
        )

    @room.told()
    def save_documents(self, name: str, documents: Iterable[Sequence[str]]) -> Text:
        """Keep documents that were read on this machine as one text."""
        first: list[Sequence[str]] = []

        def noted() -> Iterable[Sequence[str]]:
            for document in documents:
                if len(first) < _SAMPLE:
                    first.append(document)
                yield document

        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / f"{secrets.token_hex(8)}.txt"
        clean = clean_name(name)
        with room.whole(target):
            facts = run_tables.write_documents(noted(), target)
            durable.write_text(target.with_suffix(".json"), json.dumps({"name": clean} | facts))
        return Text(id=target.stem, name=clean, sample=_sample(first), **facts)

    def _save_table(self, name: str, content: bytes, column: str | None) -> Text:
        if Path(name).suffix != ".parquet":
            content = read_text(content).encode()
        else:
            _check_parquet(name, content)
        key = _key("table", name, content)
        path, beside = self._places(key, name)
        with room.whole(path, beside), _named(path, name):
            self._sweep()
            durable.write_bytes(path, content)
            seen = run_tables.look(path)
            if column is not None and column not in seen["columns"]:
                listed = ", ".join(seen["columns"])
                raise InputError(f"{name} has no column {column!r}; it has {listed}.")
            place = seen["column"] if column is None else seen["columns"].index(column)
            about = {"name": name, "columns": seen["columns"], "column": place}
            durable.write_text(beside, json.dumps(about))
            facts = self.facts(f"{key}.{place}")
        counted = {name: facts[name] for name in ("bytes", "lines", "documents")}
        return _seen(seen, place, id=key, name=name, **counted)

    def view(self, value: Any) -> Text:
        """A text that was sent, as it was read: its first documents, or rows of a table.

        Raises:
            InputError: it is gone.
        """
        path = self.find(value)
        about = self._about(path)
        common = {"id": path.stem, "name": str(about["name"]), "bytes": path.stat().st_size}
        if path.suffix in TABLES and "columns" in about:
            with _named(path, common["name"]):
                seen = run_tables.look(path)
            return _seen(seen, about["column"], lines=0, documents=seen["of"], **common)
        with path.open(encoding="utf-8") as file:
            head = file.read(_HEAD)
        documents = [part.split("\n") for part in _BETWEEN.split(head.strip())]
        counted = {"lines": about["lines"], "documents": about["documents"]}
        return Text(sample=_sample(documents[:_SAMPLE]), **counted, **common)

    @room.told()
    def save_labelled(self, name: Any, content: bytes) -> dict[str, Any]:
        """Keep a labelled file, whose columns are chosen later; its id, name and bytes.

        Without an ending that says so, its first line tells JSON Lines, TSV and CSV apart. A
        Parquet table is kept as JSON Lines.
        """
        clean = clean_name(name)
        size = len(content)
        if content.startswith(_PARQUET) or Path(clean).suffix == ".parquet":
            _check_parquet(clean, content)
            kept, content = f"{Path(clean).stem}.jsonl", self._unpacked(clean, content)
        else:
            text = read_text(content)
            if Path(clean).suffix not in LABELLED:
                first = text.strip().partition("\n")[0]
                rows = ".tsv" if "\t" in first else ".csv"
                ending = ".jsonl" if first.startswith(("{", "[")) else rows
                clean = Path(clean).stem + ending
            kept, content = clean, text.encode()
        key = _key("labelled", clean, content)
        self._keep(key, kept, content, {"name": clean, "kept": kept})
        return {"id": key, "name": clean, "bytes": size}

    def _unpacked(self, name: str, content: bytes) -> bytes:
        # Imported late: a server that only looks at runs need not wait for it.
        from core_models.tasks.tables import json_lines  # noqa: PLC0415

        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{secrets.token_hex(8)}.parquet"
        try:
            path.write_bytes(content)
            with _named(path, name):
                run_tables.check_unpacked(path)
                return json_lines(path)
        finally:
            path.unlink(missing_ok=True)

    def name_of(self, value: Any) -> str:
        """What the visitor calls a text."""
        return str(self._about(self.find(value))["name"])

    def _about(self, path: Path) -> dict[str, Any]:
        about: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return about

    @room.told()
    def facts(self, value: Any) -> dict[str, Any]:
        """``name``, ``lines``, ``documents`` and ``bytes`` of a text as a run would read it.

        Raises:
            InputError: it is gone, or the chosen column of a table cannot be read.
        """
        return self._about(self._plain(value))

    def _plain(self, value: Any) -> Path:
        """The file that a run reads: of a table, one column as plain text."""
        path = self.find(value)
        about = self._about(path)
        if path.suffix not in TABLES or "columns" not in about:
            return path
        given = _ID.fullmatch(value)
        place = int(given[2]) if given and given[2] else about["column"]
        if place >= len(about["columns"]):
            raise InputError(f"{about['name']} has no column {place}.")
        target = path.with_name(f"{path.stem}.{place}.txt")
        beside = path.with_name(f"{path.stem}.{place}.json")
        if not target.exists() or not beside.exists():
            column = about["columns"][place]
            stem = f"{Path(about['name']).stem}-{column}"
            with room.whole(target, beside), _named(path, about["name"]):
                facts = run_tables.write_text(path, column, target)
                durable.write_text(beside, json.dumps({"name": clean_name(f"{stem}.txt")} | facts))
        return target

    def _keep(
        self, key: str, name: str, content: bytes, about: Mapping[str, Any] | None = None
    ) -> None:
        self._sweep()
        path, beside = self._places(key, name)
        with room.whole(path, beside):
            durable.write_bytes(path, content)
            durable.write_text(beside, json.dumps({"name": name} | dict(about or {})))

    def _places(self, key: str, name: str) -> tuple[Path, Path]:
        """Where a text is kept, and what is known of it."""
        return self.folder / f"{key}{Path(name).suffix}", self.folder / f"{key}.json"

    def copy(self, ids: Iterable[Any], folder: Path) -> list[str]:
        """Copy texts into ``folder/texts`` and give their names relative to ``folder``.

        What lies there already, copied from another run, is never written over.
        """
        names: list[str] = []
        for value in ids:
            source = self._plain(value)
            about = self._about(source)
            name = Path(str(about.get("kept") or about["name"]))
            target = folder / BESIDE / name
            number = 2
            while target.exists():
                target = folder / BESIDE / f"{name.stem}-{number}{name.suffix}"
                number += 1
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            names.append(f"{BESIDE}/{target.name}")
        return names

    def find(self, value: Any) -> Path:
        """The file of a text by its id; InputError when there is none."""
        given = _ID.fullmatch(value) if isinstance(value, str) else None
        if given:
            for suffix in (".txt", *TABLES):
                path = self.folder / f"{given[1]}{suffix}"
                if path.exists() and path.with_suffix(".json").exists():
                    return path
        raise InputError("A text that was sent is gone; it is kept for a day. Send it again.")

    def _sweep(self) -> None:
        """The folder, without what has lain there for too long."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another request was quicker
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink(missing_ok=True)


def _check_parquet(name: str, content: bytes) -> None:
    """InputError for what begins as no Parquet table, or is too large."""
    if not content:
        raise InputError(f"{name} is empty.")
    if len(content) > MOST_BYTES:
        raise InputError(
            f"{name} has {len(content) / 2**20:.1f} MB and the page takes up to "
            f"{MOST_BYTES >> 20} MB. Longer ones go through the command line: see docs/training.md."
        )
    if content.startswith(_ENCRYPTED):
        raise InputError(f"{name} is encrypted. Save it without a password.")
    if not content.startswith(_PARQUET):
        raise InputError(
            f"{name} is no Parquet table: such a file begins with PAR1. Send a table of text as "
            ".csv, .tsv or .jsonl."
        )


def _seen(seen: Mapping[str, Any], column: int, **counted: Any) -> Text:
    """A table of which a column is read."""
    return Text(
        column=column,
        columns=tuple(seen["columns"]),
        usable=tuple(seen["usable"]),
        rows=tuple(map(tuple, seen["rows"])),
        **{name: seen[name] for name in ("numbers", "of", "more")},
        **counted,
    )


def _key(kind: str, name: str, content: bytes) -> str:
    return hashlib.sha256(f"{kind}\0{name}\0".encode() + content).hexdigest()[:16]


def _sample(documents: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(line.strip()[:_SHORT] for line in document[:_SAMPLE] if line.strip())
        for document in documents
    )


@contextlib.contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Messages that name a file of the inbox name what the visitor calls it."""
    try:
        yield
    except InputError as error:
        told = str(error).replace(str(path), name).replace(path.name, name)
        raise InputError(told) from None


def own_texts(folder: Path, names: Iterable[Any]) -> list[dict[str, Any]]:
    """Size of the texts that a visitor sent for a run, of which another one is made.

    Args:
        folder: of the run.
        names: of ``data.texts``; others than those beside the run are left out.
    """
    found = []
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        if not name.startswith(f"{BESIDE}/"):
            continue
        path = folder / BESIDE / Path(name).name
        if path.is_file() and stays(path, folder):
            text = path.read_bytes()
            lines = sum(bool(line.strip()) for line in text.decode().split("\n"))
            found.append({"name": name, "bytes": len(text), "lines": lines})
    return found


def note_repeated(path: Path) -> None:
    """Keep the share of repeated lines among the texts in a run folder, for the doctor."""
    texts = (file.read_text(encoding="utf-8") for file in (path / BESIDE).glob("*.txt"))
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    if lines:
        share = 1 - len(set(lines)) / len(lines)
        durable.write_text(path / "page.json", json.dumps({"repeated": share}))


def shipped() -> list[dict[str, Any]]:
    """The texts that come with Cloze: pattern, title and characters."""
    found = []
    for pattern, title in SHIPPED.items():
        files = sorted(ASSETS.glob(pattern))
        if files:
            size = sum(path.stat().st_size for path in files)
            found.append({"pattern": pattern, "title": title, "bytes": size})
    return found
