"""Where documents come from: files of text, tables, and datasets.

===========================  =======================================================================
.txt                         a line is a sentence, a blank line ends a document
.csv .tsv .jsonl .parquet    a cell of one column is a document, split into sentences here
`datasets`                   the same, for a Dataset, an IterableDataset, or a name on the hub
===========================  =======================================================================

Text, CSV, TSV and JSON lines may be compressed (.gz, .xz).
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_models.data import documents, tables
from core_models.data.files import lines
from core_models.errors import InputError

ENDINGS = (*documents.ENDINGS, *tables.ENDINGS)
"""Names of files that can be read end so."""
_LOOK = 200
"""Documents that `preview` judges a source by."""
_LONG_LINE = 400
"""Characters of a line that is hardly one sentence."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What to read, and how. Give either paths or a dataset."""

    paths: tuple[str | Path, ...] = ()
    """Files, and folders of files (read in order of name)."""
    dataset: Any = None
    """A Dataset, IterableDataset or DatasetDict of the `datasets` library, or a name on the hub."""
    configuration: str | None = None
    """Configuration of a dataset on the hub."""
    split: str = "train"
    """Split of a dataset."""
    column: str | None = None
    """Column or field of the text; None = "text", or the only one."""
    paragraphs: bool | None = None
    """Lines are paragraphs to be split into sentences; None = not in .txt, but everywhere else."""
    delimiter: str | None = None
    """Of CSV files; None = found by itself."""
    most_bytes: int | None = None
    """Largest file of text, unpacked, that is read; larger ones are refused."""
    most_documents: int | None = None
    """How many documents are read; the rest is left."""

    def __post_init__(self) -> None:
        """Refuse neither or both, and impossible limits."""
        if bool(self.paths) == (self.dataset is not None):
            raise InputError("A source is either files or a dataset: give one of them.")
        for name in ("most_bytes", "most_documents"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} {value} must be at least 1.")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"The delimiter {self.delimiter!r} must be one character.")

    @classmethod
    def of(cls, given: Any) -> "Source":
        """A source as it is, or made from a path, several paths, or a dataset object."""
        if isinstance(given, Source):
            return given
        if isinstance(given, (str, Path)):
            return cls(paths=(given,))
        if isinstance(given, (list, tuple)):
            return cls(paths=tuple(given))
        return cls(dataset=given)


@dataclass(frozen=True)
class Preview:
    """The beginning of a source as it will be used."""

    documents: list[list[str]]
    """The first documents as sentences."""
    columns: list[str]
    """Columns of the first table; none for text."""
    column: str | None
    """The one that is read."""
    notes: list[str]
    """What looks as if it were not meant so."""


def read_documents(source: Any) -> Iterator[list[str]]:
    """Read documents one after the other.

    Args:
        source: A `Source`, a path, several paths, or a dataset object.

    Yields:
        The non-blank sentences of one document, at least one.

    Raises:
        InputError: Something cannot be read (what, where, and what is allowed is said), or there
            is no text at all.
    """
    wanted = Source.of(source)
    found = itertools.islice(_documents(wanted), wanted.most_documents)
    first = next(found, None)
    if first is None:
        raise InputError(f"There is no text in {_name(wanted)}.")
    yield first
    yield from found


def preview(source: Any, count: int = 5) -> Preview:
    """The first documents of a source, and what is remarkable about them.

    Args:
        source: See `read_documents`.
        count: How many documents.

    Raises:
        InputError: As `read_documents`, as far as the source is read.
    """
    wanted = Source.of(source)
    seen = list(itertools.islice(read_documents(wanted), max(count, _LOOK)))
    table = _first_table(wanted)
    notes = []
    if len(seen) == 1:
        notes.append(
            "All text is one document. Blank lines part documents in .txt files; a table has one "
            "per row. Two are needed for a held-out part and for random pairs."
        )
    if all(len(document) == 1 for document in seen):
        notes.append("Every document is a single sentence, so pairs of sentences are all random.")
    sentences = [sentence for document in seen for sentence in document]
    if not _paragraphs(wanted, is_text=table is None) and any(
        len(s) > _LONG_LINE and len(documents.split_sentences(s)) > 1 for s in sentences
    ):
        notes.append("Lines look like paragraphs: let them be split into sentences.")
    return Preview(
        seen[:count],
        table.columns if table else [],
        table.column if table else None,
        notes,
    )


def fingerprint(source: Any) -> str:
    """Short hash of all that decides which documents are read.

    Of files it is the content, of a dataset object its own fingerprint (or all of its text), of a
    name on the hub the name alone.
    """
    wanted = Source.of(source)
    values = (
        wanted.configuration,
        wanted.split,
        wanted.column,
        wanted.paragraphs,
        wanted.delimiter,
        wanted.most_documents,
    )
    digest = hashlib.sha256(repr(values).encode())
    if wanted.paths:
        for file in files(wanted.paths):
            digest.update(file.name.encode() + documents.hash_of(file))
    elif isinstance(wanted.dataset, str):
        digest.update(wanted.dataset.encode())
    elif own := getattr(tables.pick_split(wanted.dataset, wanted.split), "_fingerprint", None):
        digest.update(str(own).encode())
    else:
        for document in read_documents(wanted):
            digest.update("\n".join([*document, ""]).encode())
    return digest.hexdigest()[:16]


def files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that paths and folders stand for.

    Raises:
        InputError: A path is missing, has another ending, or is a folder without such files.
    """
    found: list[Path] = []
    known = " ".join(sorted({e for e in ENDINGS if e.count(".") == 1}))
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and _readable(p))
            if not inside:
                raise InputError(f"{path} holds no file that can be read: {known}.")
            found += inside
        elif not path.is_file():
            raise InputError(f"{path} does not exist; give a file ({known}) or a folder.")
        elif not _readable(path):
            raise InputError(
                f"{path.name} has an ending that is not known; allowed: {known}, also with .gz or "
                ".xz."
            )
        else:
            found.append(path)
    return found


def _documents(source: Source) -> Iterator[list[str]]:
    if source.dataset is not None:
        yield from _from_cells(_dataset(source).cells, source)
        return
    for file in files(source.paths):
        if _is_text(file):
            yield from documents.parted(
                lines(file, most_bytes=source.most_bytes),
                paragraphs=_paragraphs(source, is_text=True),
            )
        else:
            yield from _from_cells(_open(file, source).cells, source)


def _from_cells(cells: Iterable[tables.Cell], source: Source) -> Iterator[list[str]]:
    split = _paragraphs(source, is_text=False)
    for cell in cells:
        parts: Sequence[str] = [cell] if isinstance(cell, str) else cell or []
        texts = [line.strip() for part in parts for line in part.splitlines()]
        sentences = [s for text in texts for s in documents.split_sentences(text)]
        document = sentences if split else [text for text in texts if text]
        if document:
            yield document


def _first_table(source: Source) -> tables.Table | None:
    if source.dataset is not None:
        return _dataset(source)
    first = files(source.paths)[0]
    return None if _is_text(first) else _open(first, source)


def _open(file: Path, source: Source) -> tables.Table:
    return tables.open_table(
        file,
        column=source.column,
        delimiter=source.delimiter,
        most_bytes=source.most_bytes,
    )


def _dataset(source: Source) -> tables.Table:
    dataset = source.dataset
    if isinstance(dataset, str):
        dataset = tables.load(dataset, source.configuration, source.split)
    dataset = tables.pick_split(dataset, source.split)
    if not hasattr(dataset, "column_names"):
        raise InputError(
            f"{type(dataset).__name__} is no source; give paths, a Source, or a Dataset."
        )
    return tables.open_dataset(dataset, _name(source), source.column)


def _paragraphs(source: Source, *, is_text: bool) -> bool:
    return not is_text if source.paragraphs is None else source.paragraphs


def _name(source: Source) -> str:
    if isinstance(source.dataset, str):
        return f"the dataset {source.dataset!r}"
    if source.dataset is not None:
        return "the dataset"
    return ", ".join(Path(path).name for path in source.paths)


def _readable(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)


def _is_text(path: Path) -> bool:
    return path.name.lower().endswith(documents.ENDINGS)
