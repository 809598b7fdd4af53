"""Which position may see which, and how probable each piece is under several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import among, one_each, something, within
from viz.figure import Chart, colour, finish, middle, plain, series, tick
from viz.svg import INK, LINE, MONO, PAPER, SOFT, Wording, document, text_width, write

CELL = 22
MARGIN = 16
GAP = 44
HEAD = 30
SEEN = "#0f5c63"


@dataclass(frozen=True, kw_only=True)
class Mask:
    """One matrix."""

    title: str
    rows: Sequence[int]
    """Position of each row."""
    seen: Sequence[Sequence[bool]]
    """[rows, L], whether the row may see the column."""


def masks_svg(masks: Sequence[Mask], names: Sequence[str], *, title: str, note: str = "") -> str:
    """Draw matrices one under the other; every row has a ring at its own place.

    Args:
        masks: from top to bottom.
        names: piece at each position; texts may hold anything, they are escaped.
        title: the line above the picture.
        note: a line below it, such as what the signs mean.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no mask, or a row has not one cell per name.
    """
    if not masks or any(len(row) != len(names) for mask in masks for row in mask.seen):
        raise ValueError("every row needs one cell per piece, and there must be a mask")
    something("piece", names)
    for mask in masks:
        one_each(len(mask.rows), "row", seen=mask.seen)
        for row in mask.rows:
            within("row", row, 0, len(names) - 1)
    label = 40 + max(text_width(name) for name in names)
    width = round(2 * MARGIN + label + CELL * len(names))
    parts = [write(MARGIN, 26, title, size=15)]
    y = 46.0
    if note:
        parts.append(write(MARGIN, 46, note, size=12, fill=SOFT))
        width = max(width, round(2 * MARGIN + 0.8 * text_width(note)))
        y += 16
    for mask in masks:
        parts.append(write(MARGIN, y + 16, mask.title, fill=SOFT))
        y += HEAD + 14
        parts += _matrix(mask, names, MARGIN + label, y)
        y += CELL * len(mask.rows) + GAP
    height = round(y)
    return document(width, height, title, parts)


def _matrix(mask: Mask, names: Sequence[str], x: float, y: float) -> list[str]:
    parts = []
    for n in range(len(names)):
        centre = x + CELL * (n + 0.5)
        parts.append(write(centre, y - 6, str(n), anchor="middle", size=11, fill=SOFT))
    for n, (row, seen) in enumerate(zip(mask.rows, mask.seen, strict=True)):
        top = y + CELL * n
        name = f"{row} {names[row]}"
        label = write(x - 8, top + 16, name, anchor="end", family=MONO, fill=INK)
        parts.append(label)
        for column, flag in enumerate(seen):
            left = x + CELL * column
            parts.append(
                f'<rect x="{left + 1:.1f}" y="{top + 1:.1f}" width="{CELL - 2}" '
                f'height="{CELL - 2}" rx="3" fill="{SEEN if flag else PAPER}" stroke="{LINE}"/>'
            )
            if column == row:
                middle = f'cx="{left + CELL / 2:.1f}" cy="{top + CELL / 2:.1f}"'
                ring = PAPER if flag else SEEN
                parts.append(
                    f'<circle {middle} r="5" fill="none" stroke="{ring}" stroke-width="2"/>'
                )
    return parts


@dataclass(frozen=True, kw_only=True)
class Target:
    """A piece that is predicted."""

    position: int
    piece: str
    chances: Mapping[str, float]
    """Its probability by the name of the order."""


def chances(
    targets: Sequence[Target],
    *,
    own: Sequence[str],
    others: Sequence[str],
    bits: Mapping[str, Mapping[str, float | None]],
    title: str,
) -> go.Figure:
    """Probability of each target under several orders: bars for some, marks for the others.

    Args:
        targets: In the order of their prediction.
        own: Names of orders that are drawn as bars, the first one most strongly.
        others: Names of orders that are drawn as marks.
        bits: Sums for the last rows of the table, by what they are and by order.
        title: What is shown.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("target", targets)
    for target in targets:
        for name in (*own, *others):
            among("order", name, target.chances)
    places = list(range(len(targets)))
    pieces = [f"{plain(target.piece)} {target.position}" for target in targets]
    figure = Chart()
    tones = [colour("model"), colour("hidden"), colour("kept")]
    for name, tone in zip(own, tones, strict=False):
        figure.add_bar(
            x=places,
            y=[100 * target.chances[name] for target in targets],
            name=name,
            marker={"color": tone},
            hovertext=pieces,
            hovertemplate="%{hovertext}: %{y:.4g} %<extra>%{fullData.name}</extra>",
        )
    for number, name in enumerate(others):
        figure.add_scatter(
            x=places,
            y=[100 * target.chances[name] for target in targets],
            name=name,
            mode="markers",
            marker={"color": series(3 + number), "size": 9, "symbol": number},
            hovertext=pieces,
            hovertemplate="%{hovertext}: %{y:.4g} %<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(
        tickmode="array",
        tickvals=places,
        ticktext=[f"{tick(target.piece)}<br>{target.position}" for target in targets],
        range=middle(len(targets)),
        showgrid=False,
    )
    figure.update_yaxes(ticksuffix=" %", range=[0, 108], dtick=25)
    names = [*own, *others]
    rows: list[list[str | int | float | None]] = [
        [each.piece, each.position, *(each.chances[name] for name in names)] for each in targets
    ]
    rows += [[what, None, *(found.get(name) for name in names)] for what, found in bits.items()]
    return finish(
        figure,
        title,
        alt=Wording("Probability of each framed piece under {0} orders.", len(names)),
        columns=[Wording("To predict"), Wording("Position"), *names],
        rows=rows,
        height=340,
        revision=f"{len(targets)} {len(names)}",
        y=Wording("Probability of the piece"),
    )
