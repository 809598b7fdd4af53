"""What each token may see, as a grid: rows look, columns are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from viz.check import within
from viz.figure import Chart, colour, finish, safe
from viz.maps import hover, labels
from viz.svg import Wording

Seen = NDArray[np.bool_]

MOST_DRAWN = 48
"""Rows and columns; of a longer text every n-th token is drawn."""
SEES = Wording("{0} sees {1}", "“%{y}”", "“%{x}”")
BLIND = Wording("{0} does not see {1}", "“%{y}”", "“%{x}”")
HALF = Wording("{0}: the content stream sees it, the query stream does not", "“%{y}”")


def step(count: int) -> int:
    """Of so many tokens every how many-th is drawn."""
    return max(1, -(-count // MOST_DRAWN))


def seen_map(
    seen: Seen,
    tokens: Sequence[str],
    *,
    title: str,
    mark: str,
    used: bool,
    queries: Seen | None = None,
    row: int | None = None,
    keep: Sequence[int] | None = None,
) -> go.Figure:
    """What every token of a text may see in one way of reading.

    A click on a cell gives, as ``customdata``, the position of its row.

    Args:
        seen: [L, L], the row may see the column.
        tokens: L words; they may hold anything.
        title: the way of reading.
        mark: under the title, who reads so.
        used: whether the model does: its grid has a frame.
        queries: [L, L], the same for a query stream; cells that differ have another colour.
        row: position of a row with a frame of its own.
        keep: positions that are shown, ascending; None = all.

    Raises:
        ValueError: masks and tokens do not fit.
    """
    length = len(tokens)
    streams = [(Wording("Sees"), seen)]
    if queries is not None:
        streams = [(Wording("Content stream sees"), seen), (Wording("Query stream sees"), queries)]
    if any(mask.shape != (length, length) for _, mask in streams):
        raise ValueError(f"masks are {[m.shape for _, m in streams]}, tokens {length}")
    keep = list(range(length)) if keep is None else list(keep)
    for each in keep:
        within("a position of keep", each, 0, length - 1)
    places = keep[:: step(len(keep))]
    part = np.ix_(places, places)
    both = seen if queries is None else seen & queries
    figure = Chart()
    texts = labels([tokens[place] for place in places])
    for cells, tone, says in (
        (~seen, "heat_0", BLIND),
        (both, "heat_3", SEES),
        (seen & ~both, "heat_2", HALF),
    ):
        if not cells[part].any():
            continue
        figure.add_heatmap(
            z=np.where(cells[part], 1, np.nan).astype(np.float32),
            x=texts,
            y=texts,
            customdata=np.repeat(np.array(places, dtype=np.int16)[:, None], len(places), axis=1),
            zmin=0,
            zmax=1,
            colorscale=[[0, colour(tone)], [1, colour(tone)]],
            showscale=False,
            hoverongaps=False,
            xgap=1,
            ygap=1,
            hovertemplate=hover(says),
        )
    _frame(figure, len(places), colour("model") if used else colour("line"), 3 if used else 1)
    if row in places:
        at = places.index(row)
        figure.add_shape(
            type="rect",
            x0=-0.5,
            x1=len(places) - 0.5,
            y0=at - 0.5,
            y1=at + 0.5,
            line={"color": colour("hidden"), "width": 2},
        )
    figure.update_xaxes(type="category", showgrid=False, tickangle=-90, constrain="domain")
    figure.update_yaxes(
        type="category",
        showgrid=False,
        autorange="reversed",
        scaleanchor="x",
        constrain="domain",
        constraintoward="top",
    )
    finish(
        figure,
        title,
        alt=Wording(
            "{0} ({1}): the {2} tokens see {3} of {4} pairs.",
            title,
            mark,
            len(keep),
            int(seen[np.ix_(keep, keep)].sum()),
            len(keep) ** 2,
        ),
        columns=[Wording("Position"), Wording("Token"), *(name for name, _ in streams)],
        rows=[
            [
                place,
                tokens[place],
                *(ranges(n for n in keep if mask[place, n]) for _, mask in streams),
            ]
            for place in keep
        ],
        height=380,
        revision=f"{list(tokens)}",
    )
    tone = colour("model") if used else colour("soft")
    subtitle = {"text": safe(mark), "font": {"color": tone, "size": 13}}
    figure.update_layout(title={"subtitle": subtitle}, margin={"t": 66})
    return figure


def _frame(figure: go.Figure, side: int, tone: str, width: int) -> None:
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=side - 0.5,
        y0=-0.5,
        y1=side - 0.5,
        line={"color": tone, "width": width},
    )


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers, neighbours as a range: ``0-3, 7``; empty where there is none."""
    runs: list[list[int]] = []
    for place in numbers:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(
        str(first) if first == last else f"{first}\N{EN DASH}{last}" for first, last in runs
    )
