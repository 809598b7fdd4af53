"""Opening files of text: plain, gzip or xz; UTF-8 only, and said where it is not."""

import gzip
import itertools
import lzma
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from core_models import plain_files
from core_models.errors import InputError

COMPRESSED = ("", ".gz", ".xz")
"""Endings that may follow that of a format."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
LONGEST = 1 << 24
"""Bytes of a line: a book, not a file that unpacks to one line larger than the memory."""
MOST_COLUMNS = 4096
_PER_LINE = 8
"""Bytes for which a line is counted beside its own: an empty one takes time, too."""


def ending(path: Path) -> str:
    """The ending without that of a compression, in small letters: ".csv" of "a.CSV.gz"."""
    plain = path.with_suffix("") if path.suffix.lower() in COMPRESSED[1:] else path
    return plain.suffix.lower()


def lines(path: Path, *, most_bytes: int | None = None) -> Iterator[str]:
    r"""The lines of a text file with their ends, which are ``\n`` or ``\r\n``.

    Args:
        path: A file ending in .gz or .xz is unpacked.
        most_bytes: Most bytes, unpacked; None = any number.

    Raises:
        InputError: The file is no UTF-8 text (with the place of the first wrong byte), binary,
            damaged, or too large.
    """
    try:
        plain_files.check(path)
        packed = path.suffix.lower() in COMPRESSED[1:]
        fitting = plain_files.allowed(path) if packed else None
        with _open(path) as file:
            yield from _decoded(file, path.name, most_bytes, fitting)
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(
            f"{path.name} is damaged or not compressed as its ending says: {error}"
        ) from error
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def _decoded(
    file: IO[bytes], name: str, most_bytes: int | None, fitting: int | None
) -> Iterator[str]:
    offset = 0
    for number in itertools.count(1):
        left = LONGEST if most_bytes is None else min(LONGEST, most_bytes - offset)
        raw = file.readline(left + 1)
        if not raw:
            return
        _check_marks(raw, name, offset)
        if len(raw) > LONGEST:
            raise InputError(
                f"{name}, line {number:,} has more than the {LONGEST >> 20} MB of a line that are "
                "allowed; put one sentence on each line."
            )
        if fitting is not None and offset + _PER_LINE * number > fitting:
            raise plain_files.unpacks(name)
        if number == 1 and raw.startswith(_BOM):
            offset, raw = len(_BOM), raw[len(_BOM) :]
        if most_bytes is not None and offset + len(raw) > most_bytes:
            raise InputError(
                f"{name} holds more than the {most_bytes:,} bytes allowed; use a part of it."
            )
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name} is not readable as UTF-8 text: byte {offset + error.start} "
                f"(0x{raw[error.start]:02x}, in line {number}) is wrong; save it as UTF-8."
            ) from error
        offset += len(raw)


def check_columns(columns: Sequence[str], name: str) -> None:
    """InputError for a table that is wider than any with texts, or has a name twice."""
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"{name} has {len(columns):,} columns; allowed are {MOST_COLUMNS:,}. Keep those of "
            "texts."
        )
    if len(set(columns)) < len(columns):
        doubled = next(column for column in columns if columns.count(column) > 1)
        raise InputError(
            f"{name}: two columns have the same name: {doubled!r}; give each a name of its own."
        )


def _check_marks(raw: bytes, name: str, offset: int) -> None:
    """Refuse what the bytes of a line, from ``offset`` on, show to be no UTF-8 text."""
    if not offset and raw.startswith(_UTF16):
        raise InputError(
            f"{name} is not readable as UTF-8 text: it looks like UTF-16; save it again."
        )
    if b"\0" in raw:
        raise InputError(
            f"{name} is a binary file (byte {offset + raw.index(0)} is zero); give text in UTF-8."
        )


def _open(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    if suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")
