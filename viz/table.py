"""Numbers as CSV text that a spreadsheet opens without running anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from viz.encoding import Weights

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def guard_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula.

    Source: OWASP, "CSV Injection" (a cell that begins with = + - @, tab or carriage return).
    Spaces in front do not protect: some programs trim them.
    """
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA_STARTS) else text


def csv_text(
    weights: Weights, rows: Sequence[str], columns: Sequence[str], *, corner: str = "from / to"
) -> str:
    """A matrix with its labels as CSV text (RFC 4180: commas, CRLF, quotes doubled).

    Args:
        weights: [Q, K].
        rows: Q labels, the first column.
        columns: K labels, the first line.
        corner: the text of the top left cell.

    Returns:
        The text; numbers have up to 7 significant digits and no exponent, 10 decimals at most.

    Raises:
        ValueError: when labels and weights do not fit.
    """
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(
            f"weights are {weights.shape}, labels {len(rows)} x {len(columns)}; they must be equal"
        )
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\r\n")
    writer.writerow([guard_cell(corner), *(guard_cell(label) for label in columns)])
    for label, line in zip(rows, weights.tolist(), strict=True):
        writer.writerow([guard_cell(label), *(_number(value) for value in line)])
    return target.getvalue()


def _number(value: float) -> str:
    text = f"{value:.7g}"
    if "e" in text:
        text = f"{value:.10f}".rstrip("0").rstrip(".")
    return text
