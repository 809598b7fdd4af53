"""Labelled files as plain records: JSON Lines, CSV and TSV, packed with xz or not, and Parquet."""

import csv
import io
import json
import lzma
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_models import plain_files, plain_json
from core_models.errors import InputError

LARGEST = 64 * 2**20
"""Most bytes of a labelled file, unpacked."""
MOST_ROWS = 200_000
MOST_COLUMNS = 1_000
MOST_LINES = 1_000_000
"""A row may go over several lines."""
FORMATS = (".jsonl", ".csv", ".tsv")
PARQUET = ".parquet"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ZERO = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""As JSON spells it: no backslash before it that spells a backslash."""
_TOLD = re.compile(r"sep=([,;\t])(?=\r?\n)")
"""The first line of what a spreadsheet writes for one of another country."""
_LONGEST_CELL = 2**17
"""Characters; more is a quote gone wrong, or a book."""


@dataclass(frozen=True)
class Table:
    """Records of a file, in its order."""

    name: str
    """For messages."""
    columns: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    """Column to value: strings from CSV and TSV, JSON values from JSON Lines."""
    numbers: tuple[int, ...]
    """Number of each record as people count it: the line of JSON Lines, else the row below the
    header, both from 1."""

    def preview(self, rows: int = 5) -> list[dict[str, Any]]:
        """The first records."""
        return [dict(record) for record in self.records[:rows]]


def is_file_name(name: str) -> bool:
    """Whether a name can only mean a file: it has a path or an ending that :func:`read` knows."""
    path = Path(name)
    ending = path.stem if path.suffix == ".xz" else name
    known = Path(ending).suffix.lower() in (*FORMATS, PARQUET)
    return known or path.name != name


def read(path: str | Path) -> Table:
    """Read a file by its ending; a last ``.xz`` is unpacked first.

    Raises:
        InputError: no such file, an unknown ending, too large, not UTF-8, or a line that is
            damaged.
    """
    path = Path(path)
    packed = path.suffix == ".xz"
    ending = Path(path.stem).suffix if packed else path.suffix
    if ending.lower() not in (*FORMATS, *([] if packed else [PARQUET])):
        allowed = ", ".join(FORMATS)
        raise InputError(
            f"{path.name} ends in {ending!r}; allowed are {allowed}, also with .xz, and {PARQUET}."
        )
    try:
        plain_files.check(path)
        if ending.lower() == PARQUET:
            return parse(json_lines(path), ".jsonl", path.name)
        most = min(LARGEST, plain_files.allowed(path)) if packed else LARGEST
        with lzma.open(path) if packed else path.open("rb") as file:
            data = file.read(most + 1)
        if most < len(data) <= LARGEST:
            raise plain_files.unpacks(path.name)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (lzma.LZMAError, EOFError):
        raise InputError(f"{path.name} is no complete xz file; pack it again.") from None
    return parse(data, ending.lower(), path.name)


def parse(data: bytes, ending: str, name: str) -> Table:
    """Records of a file's content; errors as in :func:`read`."""
    if len(data) > LARGEST:
        raise InputError(f"{name} is larger than {LARGEST // 2**20} MB; give fewer rows.")
    if b"\0" in data:
        raise InputError(f"{name} is a binary file or UTF-16; save it as text in UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: not UTF-8; save the file as UTF-8.") from None
    if (count := text.count("\n")) > MOST_LINES:
        raise InputError(f"{name} has {count:,} lines; at most {MOST_LINES:,} are allowed.")
    found = _json_lines(text, name) if ending == ".jsonl" else _separated(text, ending, name)
    if not found:
        raise InputError(f"{name} holds no rows.")
    if len(found) > MOST_ROWS:
        raise InputError(f"{name} has {len(found):,} rows; at most {MOST_ROWS:,} are allowed.")
    columns = dict.fromkeys(column for _, record in found for column in record)
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(columns):,} columns; at most {MOST_COLUMNS:,} are allowed."
        )
    numbers, records = zip(*found, strict=True)
    return Table(name, tuple(columns), records, numbers)


def _json_lines(text: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = plain_json.read_line(line, f"{name}, line {number}")
        except InputError:
            raise
        except (ValueError, RecursionError):  # a number of 5,000 digits is a plain ValueError
            raise InputError(
                f"{name}, line {number}: not JSON: {_short(line)}; write an object on each line, "
                "or call a table of cells .csv or .tsv."
            ) from None
        if not isinstance(value, dict):
            raise InputError(
                f"{name}, line {number}: not an object in braces: {_short(line)}; write one for "
                "each row on a line of its own."
            )
        if "\\u" in line:
            _check_spelled(value, name, number)
        found.append((number, value))
    return found


def _check_spelled(record: dict[str, Any], name: str, number: int) -> None:
    """Refuse what JSON can spell and no file of text holds."""
    line = json.dumps(record, ensure_ascii=False)
    if _ZERO.search(line):
        raise InputError(f"{name}, line {number}: it holds a zero character (\\u0000); remove it.")
    if _SURROGATE.search(line):
        raise InputError(
            f"{name}, line {number}: it holds half a character (a lone surrogate); remove it."
        )


def _separated(text: str, ending: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    told = _TOLD.match(text)
    text = text[told.end() :] if told else text
    plain_json.refuse_objects(text.strip().partition("\n")[0], name)
    delimiter = "\t" if ending == ".tsv" else told[1] if told else _delimiter(text)
    lines = io.StringIO(text, newline="").readlines()
    rows = _unquoted(lines) if delimiter == "\t" else None
    rows = _quoted(lines, delimiter, name) if rows is None else rows
    while rows and not _filled(rows[0]):
        del rows[0]
    if not rows:
        return []
    header = [cell.strip() for cell in rows[0]]
    # Spreadsheets write columns that once held something: without a name, and without a cell.
    named = max((n for n, cell in enumerate(header, start=1) if cell), default=0)
    used = len(header) if any(_filled(row[named:]) for row in rows) else named
    _check_header(header[:used], name)
    found = []
    for number, row in enumerate(rows[1:], start=1):
        if not _filled(row):
            continue
        if len(row) != len(header):
            raise InputError(
                f"{name}, row {number}: columns here {len(row)}, in the header {len(header)}; "
                + (
                    "put texts with commas into double quotes."
                    if delimiter == ","
                    else "put texts that hold the separator into double quotes."
                )
            )
        found.append((number, dict(zip(header[:used], row[:used], strict=True))))
    return found


def _quoted(lines: Sequence[str], delimiter: str, name: str) -> list[list[str]]:
    """Rows as spreadsheets write them, where double quotes keep a text together.

    A quote that nobody closed would swallow the rows after it without a word: what spans several
    lines must be well formed. Within one line a stray quote stays a character.
    """
    # The module's own limit is one for all of Python, which others raise: cells are measured here.
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST))
    source = csv.reader(lines, delimiter=delimiter)
    rows = []
    before = 0
    try:
        for row in source:
            if source.line_num > before + 1:
                list(csv.reader(lines[before : source.line_num], delimiter=delimiter, strict=True))
            if max(map(len, row), default=0) > _LONGEST_CELL:
                raise InputError(
                    f"{name}, line {before + 1}: a cell has more than {_LONGEST_CELL:,} "
                    "characters; give shorter texts."
                )
            rows.append(row)
            before = source.line_num
    except csv.Error:
        raise InputError(
            f"{name}, line {before + 1}: a double quote is opened here and not closed in order; "
            "inside a quoted text write each quote twice."
        ) from None
    return rows


def _unquoted(lines: Sequence[str]) -> list[list[str]] | None:
    """Rows of tabs in which quotes mean nothing (the files of GLUE); None where they seem to.

    They mean nothing where every line by itself has as many columns as the first, and some cell
    opens a quote that it does not close.
    """
    rows = [line.rstrip("\r\n").split("\t") for line in lines]
    filled = [row for row in rows if _filled(row)]
    if any(len(row) != len(filled[0]) for row in filled):
        return None
    loose = any(cell.startswith('"') and cell.count('"') % 2 for row in filled for cell in row)
    return rows if loose else None


def _filled(row: Sequence[str]) -> bool:
    return any(cell.strip() for cell in row)


def _delimiter(text: str) -> str:
    """Comma, semicolon (spreadsheets of some countries) or tab: which the header has most of."""
    header = re.match(r"[\r\n]*([^\r\n]*)", text)
    assert header is not None  # it matches nothing, too
    return max(",;\t", key=header[1].count)


def _check_header(header: Sequence[str], name: str) -> None:
    counted = Counter(header)
    doubled = next((column for column in header if counted[column] > 1), None)
    if doubled is not None:
        raise InputError(
            f"{name}: the first row must name the columns, each once; {doubled!r} is there twice."
        )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "\u2026")


def json_lines(path: Path) -> bytes:
    """A Parquet table as JSON Lines, a record on each line.

    Raises:
        InputError: it is damaged, has too many rows, or a cell is no text, number or list of them.
    """
    # Imported late: whoever looks at a run need not wait for PyTorch.
    from core_models.data.parquet import open_parquet, parquet_rows  # noqa: PLC0415

    file = open_parquet(path)
    if file.metadata.num_rows > MOST_ROWS:
        raise InputError(
            f"{path.name} has {file.metadata.num_rows:,} rows; at most {MOST_ROWS:,} are allowed."
        )
    found = bytearray()
    try:
        for row in parquet_rows(file, path, file.schema_arrow.names):
            line = {key: _plain(value, path.name, key) for key, value in row.items()}
            found += json.dumps(line, ensure_ascii=False).encode() + b"\n"
            if len(found) > LARGEST:
                raise InputError(f"{path.name} is larger than {LARGEST >> 20} MB; give fewer rows.")
    except InputError:
        raise
    except Exception as error:  # pyarrow has many kinds, and says what is wrong in words
        raise InputError(
            f"{path.name} is damaged: {error}; send it again, or save it anew."
        ) from None
    return bytes(found)


def _plain(value: Any, name: str, column: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, list):
        return [_plain(item, name, column) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, name, column) for key, item in value.items()}
    if isinstance(value, bytes):
        raise InputError(
            f"{name}: column {column!r} holds bytes, not texts or numbers; leave it out, or save "
            "it as text."
        )
    return str(value)
