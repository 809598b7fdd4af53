"""Rows of words and numbers as CSV text that a spreadsheet opens without running anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from viz.table import guard_cell

Cell = str | int | float | None


def records_csv(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Rows under a header as CSV text (RFC 4180: commas, CRLF, quotes doubled).

    Args:
        header: names of the columns.
        rows: cells; None is empty, text that a spreadsheet would run gets an apostrophe in front.

    Raises:
        ValueError: when a row has more or fewer cells than the header.
    """
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow([guard_cell(name) for name in header])
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row has {len(row)} cells, the header {len(header)}")
        writer.writerow([guard_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return target.getvalue()
