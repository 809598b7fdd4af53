"""Paths of a word's vector through the layers, as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viz.svg import PAPER, SOFT, Wording, document, write

WIDTH, SIDE, MARGIN, TOP = 760, 520, 24, 48
LINE = 20
GRID = "#e2dcd0"
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#6a3d9a",
    "#000000",
)
"""Okabe and Ito's colours, with violet in place of yellow, which paper swallows."""


@dataclass(frozen=True, kw_only=True)
class Path:
    """One sentence."""

    label: str
    points: Sequence[tuple[float, float]]
    """One per layer, from the common start."""


def paths_svg(paths: Sequence[Path], *, layer: int, title: str, shares: tuple[float, float]) -> str:
    """Draw every path on the same axes; the part after ``layer`` is faint.

    Args:
        paths: at least one; labels may hold anything, they are escaped.
        layer: number of the point that is marked.
        title: the line above the picture.
        shares: of the variance along x and y.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no path, or one has no such layer.
    """
    if not paths:
        raise ValueError("there is nothing to draw")
    if any(not 0 <= layer < len(path.points) for path in paths):
        raise ValueError(f"there is no layer {layer}")
    place = _Scale([point for path in paths for point in path.points])
    height = TOP + SIDE + 40 + LINE * len(paths)
    note = Wording("Across: {0} of the variance; up: {1}.", f"{shares[0]:.0%}", f"{shares[1]:.0%}")
    parts = [
        write(MARGIN, 28, title, size=15),
        f'<rect x="{MARGIN}" y="{TOP}" width="{WIDTH - 2 * MARGIN}" height="{SIDE}" fill="none" '
        f'stroke="{GRID}"/>',
        write(MARGIN, TOP + SIDE + 18, note, size=12, fill=SOFT),
    ]
    for number, path in enumerate(paths):
        colour = COLOURS[number % len(COLOURS)]
        points = [place(point) for point in path.points]
        parts.append(_line(points, colour, 0.25))
        parts.append(_line(points[: layer + 1], colour, 0.9))
        x, y = points[layer]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="{colour}"/>')
        digit = path.label.split(".", 1)[0][:2]
        parts.append(write(x, y + 4, digit, size=11, fill=PAPER, anchor="middle"))
        at = TOP + SIDE + 40 + LINE * number
        parts.append(f'<circle cx="{MARGIN + 6}" cy="{at - 4}" r="5" fill="{colour}"/>')
        parts.append(write(MARGIN + 18, at, path.label, size=13))
    return document(WIDTH, height, title, parts)


class _Scale:
    """Points of data -> points of the picture, both axes with one unit."""

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        self.low = [min(point[n] for point in points) for n in (0, 1)]
        high = [max(point[n] for point in points) for n in (0, 1)]
        room = (WIDTH - 2 * MARGIN - 60, SIDE - 60)
        spans = [max(high[n] - self.low[n], 1e-9) for n in (0, 1)]
        self.unit = min(room[n] / spans[n] for n in (0, 1))
        self.rest = [(room[n] - spans[n] * self.unit) / 2 for n in (0, 1)]

    def __call__(self, point: tuple[float, float]) -> tuple[float, float]:
        x = MARGIN + 30 + self.rest[0] + (point[0] - self.low[0]) * self.unit
        y = TOP + SIDE - 30 - self.rest[1] - (point[1] - self.low[1]) * self.unit
        return x, y


def _line(points: Sequence[tuple[float, float]], colour: str, opacity: float) -> str:
    route = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return (
        f'<path d="M{route}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-opacity="{opacity:g}" stroke-linejoin="round"/>'
    )
