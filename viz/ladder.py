"""What each rung of a ladder reached: one figure over all rungs, the chosen one marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figure import Chart, categories, colour, finish, safe, whole
from viz.svg import Wording, listed

_APART = "\N{NO-BREAK SPACE}" * 4
"""Between a marker and its number."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """One rung."""

    title: str
    value: float | None
    """In the unit of the chart; None = not measured."""
    shown: str = ""
    """The value as people read it."""
    again: float | None = None
    """The same with another seed."""


def climb(rows: Sequence[Reached], *, chosen: int, figure: str) -> go.Figure:
    """A line from rung to rung, from the first at the top.

    Args:
        rows: Rungs in their order.
        chosen: Number of the one that is marked.
        figure: What is shown, with its unit.

    Raises:
        ValueError: There is no rung.
    """
    if not rows:
        raise ValueError("there is no rung")
    places = list(range(len(rows)))
    drawn = Chart()
    drawn.add_scatter(
        x=[row.value for row in rows],
        y=places,
        text=whole([row.shown for row in rows]),
        mode="lines+markers",
        line={"color": colour("grey"), "width": 1.5},
        marker={
            "size": [15 if n == chosen else 10 for n in places],
            "color": [colour("hidden" if n == chosen else "model") for n in places],
        },
        name=Wording("Seed of all rungs"),
        hovertemplate="%{y}: %{text}<extra></extra>",
        showlegend=any(row.again is not None for row in rows),
    )
    twice = [(n, row) for n, row in enumerate(rows) if row.again is not None]
    if twice:
        drawn.add_scatter(
            x=[row.again for _, row in twice],
            y=[n for n, _ in twice],
            mode="markers",
            marker={"size": 11, "symbol": "circle-open", "color": colour("model")},
            name=Wording("Another seed"),
            hovertemplate="%{y}: %{x:.4g}<extra>%{fullData.name}</extra>",
        )
    values = [v for row in rows for v in (row.value, row.again) if v is not None] or [0.0, 1.0]
    low, high = min(values), max(values)
    room = (high - low) or abs(high) or 1.0
    # What is written left of the lowest values would stand on the names of the rungs otherwise.
    left = [row.value for row in rows if row.value is not None and _rises(row)]
    inside = min(left, default=high) < low + 0.25 * room
    drawn.update_xaxes(range=[low - (0.45 if inside else 0.2) * room, high + 0.4 * room])
    drawn.update_yaxes(
        tickmode="array",
        tickvals=places,
        ticktext=categories([row.title for row in rows]),
        range=[len(rows) - 0.4, -0.6],
        zeroline=False,
    )
    missing = Wording("not measured")
    drawn.add_scatter(  # on the side where the other seed is not
        x=[low if row.value is None else row.value for row in rows],
        y=places,
        mode="text",
        text=[missing if row.value is None else _APART + safe(row.shown) + _APART for row in rows],
        textposition=[f"middle {'left' if _rises(row) else 'right'}" for row in rows],
        textfont={"color": [colour("soft" if row.value is None else "ink") for row in rows]},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    return finish(
        drawn,
        "",
        alt=Wording(
            "{0} over the rungs: {1}",
            figure,
            listed(Wording("{0} {1}", row.title, row.shown or missing) for row in rows),
        ),
        columns=[Wording("Rung"), figure, Wording("Another seed")],
        rows=[[row.title, missing if row.value is None else row.value, row.again] for row in rows],
        height=120 + 36 * len(rows),
        revision=figure,
        x=figure,
    )


def _rises(row: Reached) -> bool:
    """Whether the other seed lies to the right."""
    return row.value is not None and row.again is not None and row.again >= row.value
