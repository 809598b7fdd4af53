"""Maps of numbers between two lists of words: as SVG, as CSV, and as values for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viz.encoding import to_base64
from viz.svg import INK, MONO, PAPER, SANS, SERIF, SOFT, Wording, document, shorten, write
from viz.table import csv_text

Values = NDArray[np.floating]

RAMP = ("#faf8f4", "#cfe3e0", "#79b4b3", "#2b7d82", "#0a3f45")
BELOW = ("#faf8f4", "#fbdcc3", "#f0a873", "#c4500a", "#6f2c03")
"""Colours of values below zero, from pale to strong."""
LARGEST_SIDE = 64
"""Rows and columns of a picture; larger maps are shrunk by blocks."""
LARGEST_FLOATS = 65_536
"""Up to this many values travel as float32, above it as 8-bit codes."""
NUMBERED = 400
"""Most cells whose numbers are printed."""
CELL, LETTER, MARGIN, GAP = 26, 7.4, 20, 34
_text = partial(write, size=12, family=MONO)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """One map."""

    title: str
    values: Values
    """[R, C]; NaN = nothing there."""
    rows: Sequence[str]
    columns: Sequence[str]
    signed: bool = False
    """Values may be below zero; colours then run both ways from it."""
    top: float | None = None
    """Value of the strongest colour; None = the largest one."""
    share: bool = False
    """Values are shares, to be read in percent."""
    corner: str = "from / to"

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"values are {self.values.shape}, labels {len(self.rows)} x {len(self.columns)}"
            )

    @property
    def highest(self) -> float:
        """Value of the strongest colour, above zero."""
        if self.top is not None:
            return self.top
        return max(float(np.nanmax(np.abs(self.values), initial=0)), 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the browser: labels, and the numbers as base64.

        ``kind`` is "float32", or "byte": codes 0 to 255 of ``top`` (signed maps are never that
        large), rounded to 1/510 of it.
        """
        values = np.asarray(self.values, dtype=np.float32)
        kind = "float32"
        if values.size > LARGEST_FLOATS and not self.signed:
            kind = "byte"
            codes = np.rint(np.clip(np.nan_to_num(values) / self.highest, 0, 1) * 255)
            data = to_base64(codes.astype(np.uint8))
        else:
            data = to_base64(values)
        return {
            "rows": list(self.rows),
            "columns": list(self.columns),
            "signed": self.signed,
            "share": self.share,
            "top": self.highest,
            "kind": kind,
            "data": data,
        }


def colour(value: float, top: float, *, signed: bool) -> str:
    """The colour of a value: square-root scale for shares, linear for signed values."""
    part = min(abs(value) / top, 1.0)
    ramp = BELOW if value < 0 else RAMP
    at = (part if signed else part**0.5) * (len(ramp) - 1)
    low = min(int(at), len(ramp) - 2)
    first, second = (_channels(ramp[n]) for n in (low, low + 1))
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(first, second, strict=True)]
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _channels(text: str) -> list[int]:
    return [int(text[n : n + 2], 16) for n in (1, 3, 5)]


def shrink(grid: Grid, side: int = LARGEST_SIDE) -> Grid:
    """A map of at most ``side`` rows and columns: of each block the value furthest from zero."""
    values, labels = grid.values, [list(grid.rows), list(grid.columns)]
    for axis in (0, 1):
        size = values.shape[axis]
        if size <= side:
            continue
        starts = np.arange(side) * size // side
        high = np.fmax.reduceat(values, starts, axis=axis)
        low = np.fmin.reduceat(values, starts, axis=axis)
        values = np.where(np.nan_to_num(high) >= -np.nan_to_num(low), high, low)
        labels[axis] = [labels[axis][start] for start in starts]
    if values is grid.values:
        return grid
    return Grid(
        title=Wording("{0} (shrunk from {1} x {2})", grid.title, *grid.values.shape),
        values=values,
        rows=labels[0],
        columns=labels[1],
        signed=grid.signed,
        top=grid.highest,
        share=grid.share,
    )


def grids_svg(grids: Sequence[Grid], *, title: str) -> str:
    """Maps one below the other as an SVG document; words are escaped, long ones cut."""
    parts: list[str] = []
    y, width = 48.0, 320.0
    for grid in map(shrink, grids):
        lines, right, y = _map(grid, y)
        parts += lines
        width = max(width, right)
        y += GAP
    width, height = round(width + MARGIN), round(y - GAP + MARGIN)
    title_line = _text(MARGIN, 26, title, size=15, family=SERIF)
    return document(width, height, title, [title_line, *parts])


def _map(grid: Grid, y: float) -> tuple[list[str], float, float]:
    """The lines of one map, its right edge and its lower edge."""
    rows, columns = [_cut(text) for text in grid.rows], [_cut(text) for text in grid.columns]
    left = MARGIN + 8 + LETTER * max(map(len, rows), default=0)
    top = y + 26 + LETTER * max(map(len, columns), default=0)
    parts = [_text(MARGIN, y + 8, grid.title, size=13, family=SANS)]
    numbered = grid.values.size <= NUMBERED
    for row, label in enumerate(rows):
        middle = top + CELL * (row + 0.5) + 4
        parts.append(_text(left - 8, middle, label, anchor="end"))
        for column in range(len(columns)):
            value = float(grid.values[row, column])
            if np.isnan(value):
                continue
            x = left + CELL * column
            fill = colour(value, grid.highest, signed=grid.signed)
            parts.append(
                f'<rect x="{x:.1f}" y="{top + CELL * row:.1f}" width="{CELL}" height="{CELL}" '
                f'fill="{fill}"/>'
            )
            if numbered:
                ink = PAPER if sum(_channels(fill)) < 380 else INK
                text = _number(value, grid)
                parts.append(_text(x + CELL / 2, middle, text, anchor="middle", size=9, fill=ink))
    for column, label in enumerate(columns):
        x = left + CELL * (column + 0.5) + 4
        parts.append(
            f'<g transform="translate({x:.1f} {top - 7:.1f}) rotate(-90)">{_text(0, 0, label)}</g>'
        )
    parts.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{CELL * len(columns)}" '
        f'height="{CELL * len(rows)}" fill="none" stroke="{SOFT}" stroke-opacity="0.4"/>'
    )
    right = max(left + CELL * len(columns), MARGIN + LETTER * len(grid.title))
    return parts, right, top + CELL * len(rows)


def _number(value: float, grid: Grid) -> str:
    if grid.share:
        return f"{100 * value:.0f}"
    return f"{value:.1f}" if grid.highest >= 10 else f"{value:.2f}".replace("0.", ".", 1)


def _cut(text: str) -> str:
    # The value of a row's own name is a number: nothing to be cut.
    return text if isinstance(text, Wording) else shorten(text, lambda each: len(each) <= 14)


def grids_csv(grids: Sequence[Grid]) -> str:
    """Maps as CSV text, each under a line with its title, an empty line between them."""
    parts = []
    for grid in grids:
        values = np.nan_to_num(np.asarray(grid.values, dtype=np.float64))
        text = csv_text(values, grid.rows, grid.columns, corner=grid.corner)
        parts.append(f'"{grid.title.replace(chr(34), chr(34) * 2)}"\r\n{text}')
    return "\r\n".join(parts)
