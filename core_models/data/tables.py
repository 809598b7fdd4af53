"""Columns of text out of tables: CSV, TSV, JSON lines, parquet and the `datasets` library."""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core_models import plain_json
from core_models.data.files import COMPRESSED, LONGEST, check_columns, ending, lines
from core_models.data.parquet import library, open_parquet, parquet_rows
from core_models.errors import InputError, not_json

Cell = str | Sequence[str] | None
"""A text, a list of texts (paragraphs or sentences of one document), or nothing."""
TEXTUAL = (".csv", ".tsv", ".jsonl")
ENDINGS = (*(f"{e}{packed}" for e in TEXTUAL for packed in COMPRESSED), ".parquet")
"""Names of tables end so."""
_DELIMITERS = ",;\t|"
_SAMPLE = 20
"""Lines by which the delimiter is found."""


class Table(NamedTuple):
    """One column of a table."""

    columns: list[str]
    """Names of all columns."""
    column: str
    """Name of the one that is read."""
    cells: Iterator[Cell]


def open_table(
    path: Path,
    *,
    column: str | None = None,
    delimiter: str | None = None,
    most_bytes: int | None = None,
) -> Table:
    """Open one column of a file.

    Args:
        path: Its name ends in one of `ENDINGS`. CSV and TSV begin with a line of names.
        column: Name of the column; None = "text", or the only one.
        delimiter: Of CSV; None = the one of , ; tab | that cuts the first lines evenly.
        most_bytes: Most bytes of a file of text.

    Raises:
        InputError: The file is empty or damaged, or has no such column. What is wrong in a later
            row is said when the cells come to it.
    """
    kind = ending(path)
    if kind == ".parquet":
        return _parquet(path, column)
    source = _lines(path, most_bytes)
    if kind == ".jsonl":
        return _json_lines(source, path.name, column)
    return _separated(source, path.name, column, "\t" if kind == ".tsv" else delimiter)


def head(path: Path, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """All columns of a file and its first rows, as they stand: nothing is chosen or refused.

    Args:
        path: As for `open_table`.
        count: How many rows, at most.

    Raises:
        InputError: The file is empty or damaged, as far as it is read.
    """
    kind = ending(path)
    if kind == ".parquet":
        return _parquet_head(path, count)
    source = _lines(path)
    if kind == ".jsonl":
        found = [row for _, row in itertools.islice(_objects(source, path.name), max(1, count))]
        if not found:
            raise InputError(f"{path.name} is empty.")
        return list(found[0]), found
    rows = _rows(source, path.name, "\t" if kind == ".tsv" else None)
    columns = _header(rows, path.name)
    cells = _checked(rows, columns, path.name)
    return columns, [dict(zip(columns, row, strict=True)) for row in itertools.islice(cells, count)]


def open_dataset(dataset: Any, name: str, column: str | None) -> Table:
    """One column of a `datasets` Dataset or IterableDataset.

    Raises:
        InputError: It is empty or has no such column.
    """
    rows = iter(dataset)
    columns = dataset.column_names
    if columns is None:  # a stream knows them only from its first row
        first = next(rows, None)
        if first is None:
            raise InputError(f"{name} is empty.")
        columns = list(first)
        rows = itertools.chain([first], rows)
    chosen = _choose(columns, column, name)
    cells = (_text(row[chosen], name, f"row {n}", chosen) for n, row in enumerate(rows, 1))
    return Table(list(columns), chosen, cells)


def load(
    name: str,
    configuration: str | None,
    split: str,
    *,
    login: bool = True,
    inside: bool = False,
) -> Any:
    """A dataset of the hub (or a folder) by its name, as a stream.

    Args:
        name: Of the dataset.
        configuration: Of it; None = the only one.
        split: Of it.
        login: Whether the token of this machine's user is sent, where there is one.
        inside: Whether it may name files of its own repository alone. Its card decides which files
            it has, and ``datasets`` follows it to paths of this machine and to other hosts.

    Raises:
        InputError: The library is missing, there is no such dataset, configuration or split, or
            it names files elsewhere.
    """
    datasets = library("datasets")
    try:
        token = None if login else False
        builder = datasets.load_dataset_builder(name, configuration, token=token)
        rows = builder.as_streaming_dataset(split=split)  # reads nothing yet
    except (ValueError, OSError, RuntimeError) as error:
        raise InputError(f"The dataset {name!r} cannot be opened: {error}") from error
    files = [str(file) for part in (builder.config.data_files or {}).values() for file in part]
    if inside and not all(file.startswith("hf://") for file in files):
        raise InputError(f"The dataset {name!r} names files outside its repository.")
    return rows


def pick_split(dataset: Any, split: str) -> Any:
    """One split of a DatasetDict; anything else is returned as it is.

    Raises:
        InputError: There is no such split.
    """
    if not isinstance(dataset, dict):
        return dataset
    if split not in dataset:
        raise InputError(f"The dataset has no split {split!r}; it has {', '.join(dataset)}.")
    return dataset[split]


def _lines(path: Path, most_bytes: int | None = None) -> Iterator[str]:
    r"""The lines of a file, which may also end in ``\r`` alone, as old programs wrote them."""
    for line in lines(path, most_bytes=most_bytes):
        if "\r" in line:
            yield from io.StringIO(line, newline="")
        else:
            yield line


def _choose(columns: Sequence[str], wanted: str | None, name: str) -> str:
    listed = ", ".join(columns)
    if wanted is not None:
        if wanted not in columns:
            raise InputError(f"{name} has no column {wanted!r}; it has {listed}.")
        return wanted
    if "text" in columns:
        return "text"
    if len(columns) == 1:
        return columns[0]
    raise InputError(f"{name} has no column 'text'; choose one of its columns: {listed}.")


def _text(value: Any, name: str, where: str, column: str) -> Cell:
    if value is None:
        return value
    if isinstance(value, str):
        return _whole(value, name, where, column)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [_whole(item, name, where, column) for item in value]
    raise InputError(
        f"{name}, {where}: {column!r} is {type(value).__name__}, not a text or a list of texts."
    )


def _whole(text: str, name: str, where: str, column: str) -> str:
    """A text without what JSON can spell and no file of text holds."""
    if "\0" in text:
        raise InputError(
            f"{name}, {where}: {column!r} holds a zero character (after {text.index(chr(0))} "
            "others); leave it out."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise InputError(
            f"{name}, {where}: {column!r} holds half a character (\\u{code:04x}, after "
            f"{error.start} others); write it whole or leave it out."
        ) from error
    return text


def _separated(
    source: Iterator[str], name: str, column: str | None, delimiter: str | None
) -> Table:
    rows = _rows(source, name, delimiter)
    columns = _header(rows, name)
    chosen = _choose(columns, column, name)
    at = columns.index(chosen)
    return Table(columns, chosen, (row[at] for row in _checked(rows, columns, name)))


def _rows(source: Iterator[str], name: str, delimiter: str | None) -> Any:
    """A reader of rows; None = the delimiter is found."""
    sample = list(itertools.islice(source, _SAMPLE))
    if not any(line.strip() for line in sample):
        raise InputError(f"{name} is empty.")
    first = next(line for line in sample if line.strip())
    plain_json.refuse_objects(first, name)
    if delimiter == "\t" and "\t" not in first and _delimiter(sample) in first:
        raise InputError(
            f"{name} has no tab in its first line, but {_delimiter(sample)!r}; call it .csv, or "
            "put tabs between its cells."
        )
    # One limit for all of Python, 128 KiB at first: a cell may hold a whole book.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    found = _delimiter(sample) if delimiter is None else delimiter
    return csv.reader(itertools.chain(sample, source), delimiter=found, strict=True)


def _header(rows: Iterator[list[str]], name: str) -> list[str]:
    try:
        columns = next(row for row in rows if row)
    except csv.Error as error:
        raise InputError(f"{name}: the line of column names is wrong: {error}.") from error
    check_columns(columns, name)
    return columns


def _checked(rows: Any, columns: list[str], name: str) -> Iterator[list[str]]:
    """The rows that are not empty, each with as many cells as there are columns."""
    try:
        for row in rows:
            if row and len(row) != len(columns):
                raise InputError(
                    f"{name}, line {rows.line_num}: cells {len(row)}, columns {len(columns)} "
                    f"({', '.join(columns)}); put texts with delimiters in double quotes."
                )
            if row:
                yield row
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: {error}.") from error


def _delimiter(sample: list[str]) -> str:
    """The delimiter that gives all lines equally many cells, and most of them; "," if none does."""
    best, most = ",", 1
    for delimiter in _DELIMITERS:
        try:
            rows = [row for row in csv.reader(sample, delimiter=delimiter) if row]
        except csv.Error:  # said by the reader itself, with the place
            continue
        # The sample may end inside a quoted cell.
        widths = {len(row) for row in (rows[:-1] if len(sample) == _SAMPLE else rows)}
        if len(widths) == 1 and max(widths) > most:
            best, most = delimiter, max(widths)
    return best


def _json_lines(source: Iterator[str], name: str, column: str | None) -> Table:
    rows = _objects(source, name)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{name} is empty.")
    columns = list(first[1])
    chosen = _choose(columns, column, name)
    return Table(columns, chosen, _fields(itertools.chain([first], rows), chosen, name))


def _objects(source: Iterator[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        try:
            value = plain_json.read_line(line, f"{name}, line {number}")
        except InputError:
            raise
        except (ValueError, RecursionError) as error:  # ValueError: also numbers beyond reason
            raise InputError(f"{name}, line {number} is not JSON: {not_json(error)}.") from error
        if not isinstance(value, dict):
            raise InputError(
                f"{name}, line {number}: {type(value).__name__}, not an object like "
                '{"text": "..."}.'
            )
        yield number, value


def _fields(rows: Iterable[tuple[int, dict[str, Any]]], chosen: str, name: str) -> Iterator[Cell]:
    for number, row in rows:
        if chosen not in row:
            raise InputError(
                f"{name}, line {number} has no field {chosen!r}; it has {', '.join(row)}."
            )
        yield _text(row[chosen], name, f"line {number}", chosen)


def _parquet_head(path: Path, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    file = open_parquet(path)
    columns = list(file.schema_arrow.names)
    return columns, list(itertools.islice(parquet_rows(file, path, columns), max(1, count)))


def _parquet(path: Path, column: str | None) -> Table:
    file = open_parquet(path)
    columns = list(file.schema_arrow.names)
    chosen = _choose(columns, column, path.name)
    rows = enumerate(parquet_rows(file, path, [chosen]), 1)
    cells = (_text(row[chosen], path.name, f"row {number}", chosen) for number, row in rows)
    return Table(columns, chosen, cells)
