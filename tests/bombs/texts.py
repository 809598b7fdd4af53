"""Texts and tables that are bombs. Each folder begins with a good table; all its files are read."""

import gzip
import io
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bombs.kind import GIGABYTE, endless, pipe, sparse

KIND = "text"
MEGABYTE = 2**20


def packed(path: Path, head: bytes, filling: bytes, times: int, end: bytes = b"") -> None:
    """A file of ``head``, ``filling`` again and again, and ``end``, packed as its name says."""
    module: Any = lzma if path.suffix == ".xz" else gzip
    options = {"preset": 0} if path.suffix == ".xz" else {"compresslevel": 1}
    with module.open(path, "wb", **options) as file:
        file.write(head)
        for _ in range(times):
            file.write(filling)
        file.write(end)


def line_of_zeros(folder: Path) -> None:
    sparse(folder / "a.txt", 200_000_000)


def text_then_zeros(folder: Path) -> None:
    sparse(folder / "a.txt", GIGABYTE, b"A cat.\n\nA dog.\n" + b"x" * 20_000)


def packed_line(folder: Path) -> None:
    packed(folder / "a.txt.xz", b"A cat.\n", b"a" * MEGABYTE, 400)


def packed_zeros(folder: Path) -> None:
    packed(folder / "a.txt.gz", b"A cat.\n", b"\0" * MEGABYTE, 400)


def packed_blank_lines(folder: Path) -> None:
    packed(folder / "a.txt.gz", b"A cat.\n", b"\n" * MEGABYTE, 60, b"A dog.\n")


def packed_cell(folder: Path) -> None:
    packed(folder / "a.csv.gz", b'text,label\n"', b"a" * MEGABYTE, 400, b'",x\n')


def packed_columns(folder: Path) -> None:
    packed(folder / "a.csv.xz", b"text", b",x" * (MEGABYTE // 2), 40, b"\n")


def packed_rows(folder: Path) -> None:
    packed(folder / "a.jsonl.xz", b"", b'{"text":1,"a":[[[[[]]]]]}\n' * 40_000, 100)


def packed_row(folder: Path) -> None:
    packed(folder / "a.jsonl.gz", b'{"text":"', b"a" * MEGABYTE, 400, b'"}\n')


def lines_of_a_letter(folder: Path) -> None:
    (folder / "a.txt").write_text("a\n" * 3_000_000)


def blank_lines(folder: Path) -> None:
    (folder / "a.txt").write_text("a\n\n" * 1_500_000)


def one_long_line(folder: Path) -> None:
    (folder / "a.txt").write_text("a" * 10_000_000 + "\nb\n")


def columns(folder: Path) -> None:
    (folder / "a.csv").write_text(",".join(f"c{n}" for n in range(200_000)) + "\n")


def empty_columns(folder: Path) -> None:
    (folder / "a.tsv").write_text("text" + "\t" * 3_000_000 + "\n")


def open_quote(folder: Path) -> None:
    (folder / "a.csv").write_text('text,label\n"' + "a\n" * 1_500_000)


def deep_row(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"text":' + "[" * 10**6 + "]" * 10**6 + "}\n")


def long_number(folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"text":' + "9" * 10**6 + "}\n")


def long_column(folder: Path) -> None:
    (folder / "a.jsonl").write_text(json.dumps({"k" * 10**5: 1}) + "\n")


def many_columns(folder: Path) -> None:
    rows = [json.dumps({f"k{row}.{n}": "a" for n in range(500)}) for row in range(200)]
    (folder / "a.jsonl").write_text("\n".join(rows))


def _parquet(path: Path, batches: Iterator[Any], **options: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    first = next(batches)
    with parquet.ParquetWriter(path, first.schema, **options) as writer:
        writer.write_table(first)
        for batch in batches:
            writer.write_table(batch)
    del pyarrow


def same_long_cell(folder: Path) -> None:
    """20,000 rows that all point to one text of a megabyte: 20 GB in 2 MB."""
    import pyarrow

    cells = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 20_000, pyarrow.int32()), pyarrow.array(["a" * MEGABYTE])
    )
    table = pyarrow.table({"text": cells})
    _parquet(folder / "a.parquet", iter([table]), compression="zstd")


def packed_parquet(folder: Path) -> None:
    import pyarrow

    def batches() -> Iterator[Any]:
        for _ in range(6):
            yield pyarrow.table({"text": ["a" * MEGABYTE] * 50})

    _parquet(folder / "a.parquet", batches(), compression="zstd", use_dictionary=False)


def billion_rows(folder: Path) -> None:
    """Rows without a value, which take no room."""
    import pyarrow

    def batches() -> Iterator[Any]:
        for _ in range(20):
            yield pyarrow.table({"text": pyarrow.nulls(5_000_000, pyarrow.string())})

    _parquet(folder / "a.parquet", batches(), compression="zstd")


def head_of_parquet(folder: Path) -> None:
    """A foot that says that it is 2 GB long."""
    (folder / "a.parquet").write_bytes(b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1")


def parquet_columns(folder: Path) -> None:
    import pyarrow

    table = pyarrow.table({f"c{n}": ["a"] for n in range(10_000)})
    target = io.BytesIO()
    from pyarrow import parquet

    parquet.write_table(table, target, compression="none", write_statistics=False)
    (folder / "a.parquet").write_bytes(target.getvalue())


def endless_text(folder: Path) -> None:
    endless(folder / "a.txt")


def piped_text(folder: Path) -> None:
    pipe(folder / "a.txt")


def piped_table(folder: Path) -> None:
    pipe(folder / "a.csv")


MAKERS = (
    line_of_zeros,
    text_then_zeros,
    packed_line,
    packed_zeros,
    packed_blank_lines,
    packed_cell,
    packed_columns,
    packed_rows,
    packed_row,
    lines_of_a_letter,
    blank_lines,
    one_long_line,
    columns,
    empty_columns,
    open_quote,
    deep_row,
    long_number,
    long_column,
    many_columns,
    same_long_cell,
    packed_parquet,
    billion_rows,
    head_of_parquet,
    parquet_columns,
    endless_text,
    piped_text,
    piped_table,
)
