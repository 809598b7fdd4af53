"""What was measured of a statement, as bars: numbers of one unit share a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figure import Chart, colour, finish, whole
from viz.svg import Wording

SMALL = 0.001
"""What rounding leaves of nothing."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One number."""

    label: str
    value: float
    unit: str = ""
    """"%", "million", "ms", "times" or nothing."""


def readable(value: float, unit: str) -> str:
    """A number as people read it: 0.2177 is "0.218", 109,482,240 stays as it is."""
    if not math.isfinite(value):
        shown = "\N{EN DASH}"
    elif value == int(value) and abs(value) < 1e15 and unit in ("", "million"):
        shown = f"{int(value):,}"
    elif value and abs(value) < SMALL:
        shown = f"< {SMALL}"
    elif abs(value) >= 100:
        shown = f"{value:,.1f}"
    elif abs(value) >= 1 or value == 0:
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
    else:
        shown = f"{value:.3g}"
    if unit == "million":
        return Wording("{0} million", shown)
    if unit == "times":
        return Wording("{0} times", shown)
    return f"{shown} {unit}".strip()


def shares(numbers: Sequence[Measured]) -> list[float]:
    """Lengths of bars, 0 to 1: percent fill one at 100; a lone or a unitless number has none."""
    units = [number.unit for number in numbers]
    found = []
    for number in numbers:
        same = [abs(n.value) for n in numbers if n.unit == number.unit and math.isfinite(n.value)]
        if not math.isfinite(number.value):
            found.append(0.0)
        elif number.unit == "%":
            found.append(abs(number.value) / max(100.0, *same))
        elif not number.unit or units.count(number.unit) < 2 or not max(same):
            found.append(0.0)
        else:
            found.append(abs(number.value) / max(same))
    return found


def measured(numbers: Sequence[Measured], *, statement: str) -> go.Figure:
    """Every number with its label above its bar, from the first at the top.

    Args:
        numbers: What was measured.
        statement: What it judges: while it stays the same, so does a visitor's zoom.
    """
    rows, lengths = list(range(len(numbers))), shares(numbers)
    texts = [readable(number.value, number.unit) for number in numbers]
    track = [
        1.0 if length or number.unit == "%" else None
        for length, number in zip(lengths, numbers, strict=True)
    ]
    figure = Chart()
    for widths, name in ((track, "line"), (lengths, "model")):
        figure.add_bar(
            x=widths,
            y=rows,
            width=0.3,
            orientation="h",
            marker={"color": colour(name)},
            hoverinfo="skip",
        )
    for x, texts_there, place, dy in (
        ([0.0] * len(rows), [number.label for number in numbers], "middle right", -0.36),
        (
            [
                0.01 + (length if mark is None else 1.0)
                for length, mark in zip(lengths, track, strict=True)
            ],
            texts,
            "middle right",
            0,
        ),
    ):
        figure.add_scatter(
            x=x,
            y=[row + dy for row in rows],
            mode="text",
            text=whole(texts_there),
            textposition=place,
            cliponaxis=False,
            hoverinfo="skip",
        )
    figure.update_layout(barmode="overlay", showlegend=False)
    figure.update_xaxes(visible=False, range=[0, 1.3], fixedrange=True)
    figure.update_yaxes(visible=False, range=[len(rows) - 0.6, -0.7], fixedrange=True)
    return finish(
        figure,
        Wording("What was measured"),
        alt=Wording("Numbers that were measured: {0}.", len(numbers)),
        columns=[Wording("What"), Wording("Value"), Wording("Unit")],
        rows=[
            [
                number.label,
                number.value,
                Wording("million")
                if number.unit == "million"
                else Wording("times")
                if number.unit == "times"
                else number.unit,
            ]
            for number in numbers
        ],
        height=76 + 46 * len(numbers),
        revision=statement,
    )
