"""Charts of what attention consists of: ways to combine it, heads switched off, one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from viz.check import one_each, something
from viz.figure import Chart, apart, beside, colour, diverging, finish, plain, safe
from viz.maps import Values, hover, label
from viz.svg import Wording
from viz.words import percent, quote

FLOW_ROOM = 0.15
"""Part of the flow's own range that is left free at its ends."""


# --- what a token is made of ----------------------------------------------------------------------


def ways(
    names: Sequence[str], shares: Values, labels: Sequence[str], *, title: str, flow: bool
) -> go.Figure:
    """Several answers to what a token is made of, one above the other.

    Args:
        names: Of the ways, N.
        shares: [N, L], each in [0, 1].
        labels: L tokens.
        title: What is asked.
        flow: Whether the last way is the flow. Each of its numbers is a problem of its own, and
            all are large: it has an axis that begins at the smallest, and marks instead of bars,
            whose lengths would have to begin at zero.

    Raises:
        ValueError: There is no way or no token, or there are not so many shares.
    """
    something("way", names)
    something("token", labels)
    if shares.shape != (len(names), len(labels)):
        raise ValueError(
            f"shares are {shares.shape}, of {len(names)} ways and {len(labels)} tokens"
        )
    count = len(names)
    figure = make_subplots(rows=count, shared_xaxes=True, vertical_spacing=0.09, figure=Chart())
    places = list(range(len(labels)))
    for number, (name, row) in enumerate(zip(names, 100 * shares, strict=True), 1):
        common: dict[str, Any] = {
            "x": places,
            "y": row.astype(np.float32),
            "customdata": [plain(text) for text in labels],
            "hovertemplate": hover(
                Wording(
                    "{0}: {1} of it comes from {2}",
                    safe(name),
                    "%{y:.3~g}\N{NO-BREAK SPACE}%",
                    "“%{customdata}”",
                )
            ),
            "showlegend": False,
        }
        if flow and number == count:
            low, high = float(row.min()), float(row.max())
            room = FLOW_ROOM * max(high - low, 1)
            figure.add_scatter(
                **common,
                mode="markers",
                marker={"color": colour("hidden"), "size": 11},
                row=number,
                col=1,
            )
            figure.update_yaxes(range=[low - room, high + room], row=number, col=1)
        else:
            figure.add_bar(**common, marker={"color": colour("model")}, row=number, col=1)
            figure.update_yaxes(rangemode="tozero", row=number, col=1)
        figure.update_yaxes(
            title={"text": safe(name)},
            ticksuffix="\N{NO-BREAK SPACE}%",
            nticks=4,
            row=number,
            col=1,
        )
    figure.update_xaxes(showgrid=False, range=[-0.6, len(labels) - 0.4])
    figure.update_xaxes(
        tickmode="array",
        tickvals=places if len(places) <= 48 else places[:: len(places) // 24],
        ticktext=[
            label(text) for text in (labels if len(places) <= 48 else labels[:: len(places) // 24])
        ],
        row=count,
        col=1,
    )
    finish(
        figure,
        "",
        alt=title,
        columns=[Wording("Token"), *names],
        rows=[
            [text, *(float(f"{each:.6g}") for each in column)]
            for text, column in zip(labels, shares.T.tolist(), strict=True)
        ],
        height=150 * count + 40,
        revision=f"{title} {list(labels)}",
    )
    figure.update_layout(margin={"t": 12})
    return figure


# --- heads switched off ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Chance:
    """What a model puts into a gap."""

    word: str
    before: float
    """With all heads."""
    after: float
    """Without some."""
    own: bool
    """Whether it is the word that is watched."""


def chances(found: Sequence[Chance], *, some_off: bool) -> go.Figure:
    """Words of a gap with all heads and, where some are off, without them.

    Raises:
        ValueError: There is no word.
    """
    something("word", found)
    words = apart([label(each.word) for each in found])
    shown = [
        f"<b>{word}</b>" if each.own else word for word, each in zip(words, found, strict=True)
    ]
    sides = [(Wording("all heads"), [each.before for each in found], "model")]
    if some_off:
        sides.append((Wording("some off"), [each.after for each in found], "hidden"))
    figure = Chart()
    for name, shares, tone in sides:
        figure.add_bar(
            x=[100 * share for share in shares],
            y=shown,
            orientation="h",
            name=name,
            marker={"color": colour(tone)},
            text=[percent(share) for share in shares],
            textposition=beside(shares),
            insidetextanchor="end",
            textangle=0,
            cliponaxis=False,
            hovertext=[plain(each.word) for each in found],
            hovertemplate="%{hovertext}: %{x:.4~g}\N{NO-BREAK SPACE}%"
            "<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(rangemode="tozero", ticksuffix="\N{NO-BREAK SPACE}%")
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    target = next((each for each in found if each.own), found[0])
    return finish(
        figure,
        "",
        alt=Wording("{0}: {1}", quote(target.word), percent(target.before)),
        columns=[Wording("word"), *(name for name, _, _ in sides)],
        rows=[
            [each.word, *([each.before, each.after] if some_off else [each.before])]
            for each in found
        ],
        height=100 + (44 if some_off else 30) * len(found),
        revision=str([each.word for each in found]),
        x=Wording("Probability"),
    )


# --- one query and its keys -----------------------------------------------------------------------


def products(
    values: Values, shares: Sequence[float], keys: Sequence[str], *, title: str
) -> go.Figure:
    """One query times every key, dimension by dimension, and the share that each key gets.

    Args:
        values: [K, d], products of the query with each key.
        shares: K, what softmax makes of their sums.
        keys: K tokens.
        title: Which query it is.

    Raises:
        ValueError: Values, shares and keys do not fit.
    """
    one_each(len(keys), "key", shares=shares)
    if values.ndim != 2 or len(values) != len(keys):
        raise ValueError(f"values are {values.shape}; give a row for each of {len(keys)} keys")
    figure = make_subplots(
        cols=2,
        shared_yaxes=True,
        column_widths=[0.7, 0.3],
        horizontal_spacing=0.03,
        figure=Chart(),
    )
    names = apart([label(text) for text in keys])
    top = max(float(np.abs(values).max(initial=0)), 1e-9)
    figure.add_heatmap(
        z=values.astype(np.float32),
        x=list(range(1, values.shape[1] + 1)),
        y=names,
        zmin=-top,
        zmax=top,
        colorscale=diverging(),
        showscale=False,
        ygap=3,
        hovertemplate=hover(Wording("{0}, dimension {1}: {2}", "%{y}", "%{x}", "%{z:.3f}")),
        row=1,
        col=1,
    )
    figure.add_bar(
        x=[100 * share for share in shares],
        y=names,
        orientation="h",
        marker={"color": colour("model")},
        text=[percent(share) for share in shares],
        textposition=beside(shares),
        insidetextanchor="end",
        textangle=0,
        cliponaxis=False,
        hovertext=[plain(key) for key in keys],
        hovertemplate="%{hovertext}: %{x:.3~g}\N{NO-BREAK SPACE}%<extra></extra>",
        showlegend=False,
        row=1,
        col=2,
    )
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, row=1, col=1)
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False, row=1, col=2)
    figure.update_xaxes(
        showgrid=False,
        title={"text": Wording("q \N{MULTIPLICATION SIGN} k in each dimension")},
        row=1,
        col=1,
    )
    room = 100 * max(shares, default=1.0)
    figure.update_xaxes(
        range=[0, 1.35 * room],
        showticklabels=False,
        showgrid=False,
        title={"text": Wording("softmax")},
        row=1,
        col=2,
    )
    finish(
        figure,
        "",
        alt=title,
        columns=[Wording("key"), Wording("softmax"), *(str(n + 1) for n in range(values.shape[1]))],
        rows=[
            [key, *(float(f"{each:.6g}") for each in (share, *line))]
            for key, share, line in zip(keys, shares, values.tolist(), strict=True)
        ],
        height=90 + 30 * len(keys),
        revision=f"{title} {list(keys)}",
    )
    figure.update_layout(margin={"t": 12})
    return figure
