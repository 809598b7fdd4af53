"""A text masked epoch by epoch, as a self-contained SVG; how contexts grow in number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from viz.figure import finish, series
from viz.svg import INK, LETTER, MONO, SOFT, Wording, clean, document, text_width, write

CELL, MARGIN, LEFT = 22, 16, 44
GAP, WIDEST = 28, 1500
EMPTY = "#f0eee9"
FILLS = {"M": "#fdeadd", "R": "#f7e7f0", "K": "#e2eef7"}
INKS = {"M": "#a23f05", "R": "#8a3468", "K": "#0b5a8c"}

Panel = tuple[str, Sequence[str]]
"""A heading and the epochs below it: a letter per piece, "." for pieces that are not chosen."""


def timeline_svg(
    panels: Sequence[Panel],
    names: Sequence[str],
    *,
    title: str,
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Draw a row per epoch; M is [MASK], R a random piece, K a piece that is kept.

    Args:
        panels: stand side by side while they fit, else below each other.
        names: the pieces; texts may hold anything, they are escaped.
        title: the line above the picture.
        legend: letters and what they mean.

    Returns:
        An SVG document.

    Raises:
        ValueError: when there is no epoch, or one has not a letter per piece.
    """
    rows = [epoch for _, epochs in panels for epoch in epochs]
    bare = not panels or any(not epochs for _, epochs in panels)
    if bare or any(len(epoch) != len(names) for epoch in rows):
        raise ValueError("every epoch needs one letter per piece, and there must be an epoch")
    head = max(text_width(name) for name in names) + 12
    wide = max(LEFT + CELL * len(names), *(LETTER * len(text) for text, _ in panels))
    tall = 26 + head + CELL * max(len(epochs) for _, epochs in panels)
    beside = len(panels) * (wide + GAP) <= WIDEST
    parts = [write(MARGIN, 26, title, size=15)]
    for n, (letter, text) in enumerate(legend):
        parts += [_cell(MARGIN, 38 + 24 * n, letter), write(MARGIN + 30, 54 + 24 * n, text)]
    top = 44 + 24 * len(legend)
    for n, panel in enumerate(panels):
        x, y = (n * (wide + GAP), 0.0) if beside else (0.0, n * (tall + GAP))
        parts += _panel(panel, names, MARGIN + x, top + y, head)
    across, down = (len(panels), 1) if beside else (1, len(panels))
    width = max(460, round(2 * MARGIN + across * wide + (across - 1) * GAP))
    height = round(top + down * tall + (down - 1) * GAP + MARGIN)
    return document(width, height, title, parts)


def _panel(panel: Panel, names: Sequence[str], left: float, top: float, head: float) -> list[str]:
    text, epochs = panel
    parts = [write(left, top + 16, text, bold=True)]
    top += 26 + head
    for n, name in enumerate(names):
        x, y = left + LEFT + CELL * n + 15, top - 6
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" transform="rotate(-90 {x:.1f} {y:.1f})" '
            f'font-family="{MONO}" font-size="13" fill="{INK}">{clean(name)}</text>'
        )
    for row, epoch in enumerate(epochs):
        y = top + CELL * row
        parts.append(
            f'<text x="{left + LEFT - 8:.1f}" y="{y + 15:.1f}" text-anchor="end" '
            f'font-family="{MONO}" font-size="12" fill="{SOFT}">{row + 1}</text>'
        )
        parts += [_cell(left + LEFT + CELL * n, y, case) for n, case in enumerate(epoch)]
    return parts


def _cell(x: float, y: float, case: str) -> str:
    box = (
        f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{CELL - 2}" height="{CELL - 2}" '
        f'rx="3" fill="{FILLS.get(case, EMPTY)}"/>'
    )
    if case not in INKS:
        return box
    return (
        f'{box}<text x="{x + CELL / 2:.1f}" y="{y + 15:.1f}" text-anchor="middle" '
        f'font-family="{MONO}" font-size="12" fill="{INKS[case]}">{case}</text>'
    )


def growth(contexts: Mapping[str, Sequence[float]]) -> go.Figure:
    """Mean number of different contexts in which a piece was asked, over the epochs.

    Args:
        contexts: After each epoch, by the name of the masking.
    """
    epochs = len(next(iter(contexts.values())))
    figure = go.Figure()
    for index, (name, values) in enumerate(contexts.items()):
        figure.add_scatter(
            x=list(range(1, epochs + 1)),
            y=list(values),
            name=name,
            mode="lines+markers" if epochs == 1 else "lines",
            line={
                "color": series(index),
                "width": 2.5,
                "dash": ("dot", "dash", "solid")[index % 3],
            },
            hovertemplate="%{y:.2f}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(rangemode="tozero")
    last = ", ".join(f"{name} {values[-1]:.1f}" for name, values in contexts.items())
    return finish(
        figure,
        "",
        alt=Wording("Contexts per piece after {0} epochs: {1}", epochs, last),
        columns=[Wording("Epoch"), *contexts],
        rows=[
            [epoch, *values]
            for epoch, *values in zip(range(1, epochs + 1), *contexts.values(), strict=True)
        ],
        height=300,
        x=Wording("Epoch"),
        y=Wording("Contexts per piece, mean"),
    )
