"""What a distance is worth to the terms of a score, and which row of a table it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from viz.check import among, one_each
from viz.figure import Chart, colour, finish
from viz.svg import Wording

TONES = {
    "content": "soft",
    "c2p": "model",
    "p2c": "hidden",
    "position": "model",
    "segment": "random",
}
"""One colour for each term, as in the terms' maps."""


def worth(
    means: Mapping[int, tuple[int, Sequence[float]]],
    names: Mapping[str, str],
    *,
    reach: int,
    curves: Mapping[str, Sequence[float]] | None = None,
    edges: Sequence[int] = (),
    title: str,
) -> go.Figure:
    """Means of every term by distance: dots for pairs that occur, lines for what a table gives.

    Args:
        means: By distance: how many pairs, and the mean of each term.
        names: What the terms are called, in their order.
        reach: Most distance, each way.
        curves: By term, for the distances -reach to reach: what these queries and keys would give.
        edges: First distances of shared rows.
        title: What is shown.
    """
    given = curves or {}
    for term in names:
        among("term", term, TONES)
    for term in given:
        among("term", term, names)
    one_each(2 * reach + 1, "distance", **given)
    one_each(len(names), "term", **{f"means at {at}": each for at, (_, each) in means.items()})
    figure = Chart()
    for place, (term, name) in enumerate(names.items()):
        tone = colour(TONES[term])
        if term in given:
            figure.add_scatter(
                x0=-reach,
                dx=1,
                y=list(given[term]),
                mode="lines",
                line={"color": tone, "dash": "dash" if term == "p2c" else "solid", "width": 1.5},
                legendgroup=term,
                name=name,
                showlegend=False,
                hoverinfo="skip",
            )
        figure.add_scatter(
            x=list(means),
            y=[values[place] for _, values in means.values()],
            mode="markers",
            marker={"color": tone, "size": 7, "symbol": _symbol(term)},
            legendgroup=term,
            name=name,
            customdata=[pairs for pairs, _ in means.values()],
            hovertemplate="%{y:.4g} (n = %{customdata})<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(range=[-reach - 0.5, reach + 0.5])
    if edges:
        # Short strokes on the axis.
        figure.add_scatter(
            x=[edge - 0.5 for edge in edges],
            y=[0.0] * len(edges),
            yaxis="y2",
            mode="markers",
            marker={"symbol": "line-ns-open", "size": 12, "color": colour("soft")},
            showlegend=False,
            hoverinfo="skip",
        )
        figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False})
    occur = sum(pairs for pairs, _ in means.values())
    distances = range(-reach, reach + 1) if given else sorted(means)
    nothing: tuple[int, Sequence[float | None]] = (0, [None] * len(names))
    rows: list[list[str | int | float | None]] = []
    for distance in distances:
        pairs, values = means.get(distance, nothing)
        table = [values_of[distance + reach] for values_of in given.values()]
        rows.append([distance, pairs, *values, *table])
    return finish(
        figure,
        title,
        alt=Wording("Mean of each term by distance, over {0} pairs of this sentence.", occur),
        columns=[
            Wording("Distance"),
            Wording("Number of pairs"),
            *names.values(),
            *(Wording("{0}, from the table", names[term]) for term in given),
        ],
        rows=rows,
        height=360,
        revision=f"{reach} {','.join(names)}",
        x=Wording("Distance"),
        y=Wording("Score, mean of each term"),
    )


def _symbol(term: str) -> str:
    return "square" if term in ("p2c", "segment") else "circle"


def table_rows(
    rows: Sequence[int], *, reach: int, count: int, exact: tuple[int, int], title: str
) -> go.Figure:
    """The row of a table for every distance, beside one row for each without a limit.

    Args:
        rows: For the distances -reach to reach.
        reach: Most distance, each way.
        count: Rows of the table.
        exact: First and last distance with a row of its own: shaded.
        title: Whose table it is.
    """
    one_each(2 * reach + 1, "distance", rows=rows)
    figure = Chart()
    figure.add_scatter(
        x=[-count / 2, count / 2],
        y=[0, count],
        mode="lines",
        line={"color": colour("grey"), "dash": "dot", "width": 1},
        name=Wording("one row for each distance, without a limit"),
        hoverinfo="skip",
    )
    figure.add_scatter(
        x0=-reach,
        dx=1,
        y=list(rows),
        mode="lines",
        line={"color": colour("model")},
        name=Wording("row of the table"),
        hovertemplate="%{x}: %{y}<extra></extra>",
    )
    figure.add_vrect(
        exact[0],
        exact[1],
        fillcolor=colour("heat_1"),
        opacity=0.4,
        line={"width": 0},
        layer="below",
    )
    figure.update_xaxes(range=[-reach, reach])
    figure.update_yaxes(range=[0, count])
    return finish(
        figure,
        title,
        alt=Wording("{0} rows; each distance from {1} to {2} has a row of its own.", count, *exact),
        columns=[Wording("Distance"), Wording("row of the table")],
        rows=[[distance, row] for distance, row in enumerate(rows, -reach)],
        height=340,
        revision=title,
        x=Wording("Distance"),
    )
