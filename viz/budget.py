"""Stacked bars as a self-contained SVG: where the parameters of several models are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viz.svg import SOFT, Wording, caption, document, write

WIDTH = 760
LABEL = 210
NUMBER = 90
ROW = 34
BAR = 20
TOP = 48
FONT = "Helvetica, Arial, sans-serif"
COLOURS = (
    "#0f5c63",
    "#56a3a6",
    "#b7d6d3",
    "#e69f00",
    "#0072b2",
    "#7fb8dc",
    "#8f8a80",
    "#cc79a7",
    "#7a4f9a",
    "#c4500a",
)
"""One colour per part, in the order of the parts; the page uses the same."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One bar: a label and its parts by name."""

    label: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(self.parts.values())


def short_number(value: float) -> str:
    """A number as people say it: 109,482,240 is "109.5 M"."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f} {unit}" if unit != "G" else f"{value / size:.2f} {unit}"
    return f"{value:g}"


def bars_svg(
    bars: Sequence[Bar], names: Mapping[str, str], *, title: str, shares: bool = False
) -> str:
    """Draw stacked bars with their sums and a legend.

    Args:
        bars: from top to bottom; parts of 0 are left out.
        names: every part in the order of stacking, with its name in words.
        title: the line above the picture.
        shares: draw each bar to full length instead of to one scale.

    Returns:
        An SVG document.

    Raises:
        ValueError: when a bar has a part without a name, or there is no bar.
    """
    if not bars:
        raise ValueError("there is no bar to draw")
    for bar in bars:
        if unknown := bar.parts.keys() - names.keys():
            raise ValueError(f"{bar.label} has parts without a name: {', '.join(sorted(unknown))}")
    colours = dict(zip(names, COLOURS * (1 + len(names) // len(COLOURS)), strict=False))
    longest = max(bar.total for bar in bars) or 1
    used = [name for name in names if any(bar.parts.get(name) for bar in bars)]
    legend_rows = -(-len(used) // 4)
    height = TOP + ROW * len(bars) + 24 + 22 * legend_rows
    parts = [write(16, 26, title, size=15)]
    for row, bar in enumerate(bars):
        parts += _bar(bar, names, colours, TOP + ROW * row, bar.total if shares else longest)
    for n, name in enumerate(used):
        x, y = 16 + 184 * (n % 4), TOP + ROW * len(bars) + 22 + 22 * (n // 4)
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colours[name]}"/>')
        parts.append(write(x + 18, y, names[name], size=12))
    return document(WIDTH, height, title, parts)


def _bar(
    bar: Bar, names: Mapping[str, str], colours: Mapping[str, str], top: float, longest: int
) -> list[str]:
    room = WIDTH - LABEL - NUMBER - 16
    parts = [write(LABEL - 8, top + 15, bar.label, anchor="end")]
    x = float(LABEL)
    for name in names:
        size = bar.parts.get(name, 0)
        if not size:
            continue
        width = room * size / max(longest, 1)
        said = caption(Wording("{0}: {1}", names[name], f"{size:,}"))
        parts.append(
            f'<rect x="{x:.2f}" y="{top}" width="{width:.2f}" height="{BAR}" '
            f'fill="{colours[name]}">{said}</rect>'
        )
        x += width
    return [*parts, write(x + 8, top + 15, short_number(bar.total), fill=SOFT)]
