"""Parquet files, a row at a time: a small one may unpack to more than the memory."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core_models import plain_files
from core_models.data.files import check_columns
from core_models.errors import InputError

_BATCH = 1024
"""Rows that are read together, fewer where they are long."""
_BATCH_BYTES = 8 << 20
_PER_CELL = 32
"""Bytes for which a cell is counted beside its text."""


def open_parquet(path: Path) -> Any:
    """A ParquetFile of pyarrow; InputError where it is none, or the library is missing.

    A text that many rows share is in the memory once, as it is in the file.
    """
    arrow = library("pyarrow")
    parquet = library("pyarrow.parquet")
    try:
        plain_files.check(path)
        schema = parquet.read_schema(path)
        check_columns(schema.names, path.name)
        about = parquet.read_metadata(path)
        columns = [about.schema.column(number) for number in range(about.num_columns)]
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        return parquet.ParquetFile(path, metadata=about, read_dictionary=texts)
    except (arrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise InputError(
            f"{path.name} is no parquet file, or not a whole one ({_reason(error)}); send it "
            "again, or save it anew."
        ) from error


def parquet_rows(file: Any, path: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file from :func:`open_parquet`, one at a time.

    Raises:
        InputError: it is damaged, or its rows hold more than any text of its size.
    """
    arrow = library("pyarrow")
    about = file.metadata
    unpacked = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    most = max(1, _BATCH_BYTES * max(1, about.num_rows) // max(1, unpacked))
    left = plain_files.allowed(path)
    try:
        for batch in file.iter_batches(batch_size=min(_BATCH, most), columns=list(columns)):
            cells = [batch.column(name) for name in columns]
            for number in range(batch.num_rows):
                row = {n: c[number].as_py() for n, c in zip(columns, cells, strict=True)}
                left -= sum(_weight(value) for value in row.values())
                if left < 0:
                    raise plain_files.unpacks(path.name)
                yield row
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name} is damaged: a cell is no UTF-8 text ({error}); save it anew."
        ) from error
    # The last three: dates that no calendar has, time zones that nobody knows.
    except (arrow.ArrowException, OSError, LookupError, OverflowError, ValueError) as error:
        raise InputError(
            f"{path.name} is damaged: {_reason(error)}; send it again, or save it anew."
        ) from error


def _reason(error: Exception) -> str:
    """What a library says of a file, as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def _weight(value: Any) -> int:
    """Bytes of a cell, about; an empty one weighs something, too."""
    if isinstance(value, list):
        return sum(map(_weight, value)) + _PER_CELL
    return len(value) + _PER_CELL if isinstance(value, str | bytes) else _PER_CELL


def library(name: str) -> Any:
    """A library that only some sources need, imported when one is read."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"This source needs the library {name.partition('.')[0]!r}, which is not installed: "
            "pip install datasets."
        ) from None
