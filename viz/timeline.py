"""A text masked epoch by epoch, how its contexts grow in number, and how documents are cut."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go

from viz.check import among, one_each, something
from viz.figure import Chart, colour, finish, plain, series, whole
from viz.svg import Wording, listed, shorten

CASES = {"M": "hidden", "R": "random", "K": "kept", "S": "hidden"}
"""Colour of a piece by what the model sees in its place: [MASK], another piece, itself, or a
similar one (MacBERT, which has no [MASK])."""
SEEN_BEFORE = 0.4
"""Opacity of a mask that comes again."""
MOST_LETTERS = 11
"""Of a piece above its column."""
UPRIGHT = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
"""Characters that would stand on their side in a turned heading."""


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One epoch's mask."""

    draw: int
    """Which mask it is, from 0: the same number is the same mask."""
    marks: Sequence[str]
    """For each piece a letter of ``CASES``, or "" where it is not chosen; more may follow."""
    seen: Sequence[str]
    """For each piece what the model sees."""


def masks(
    visits: Sequence[Visit],
    pieces: Sequence[str],
    *,
    title: str,
    asked: Sequence[int],
    contexts: Sequence[int],
) -> go.Figure:
    """A row per epoch, a column per piece; a mask that comes again is pale.

    Args:
        visits: One for each epoch.
        pieces: Those that may be hidden; texts may hold anything.
        title: How the masks were drawn.
        asked: In how many epochs each piece is predicted; stands below it.
        contexts: In how many different inputs; below that.

    Raises:
        ValueError: There is no epoch, or one has not a mark per piece.
    """
    if not visits or any(len(visit.marks) != len(pieces) for visit in visits):
        raise ValueError("every epoch needs one mark per piece, and there must be an epoch")
    something("piece", pieces)
    one_each(len(pieces), "piece", asked=asked, contexts=contexts)
    for visit in visits:
        one_each(len(pieces), "piece", seen=visit.seen)
        for mark in filter(None, visit.marks):
            among("mark", mark[0], CASES)
    figure = Chart()
    first = {visit.draw: n for n, visit in reversed(list(enumerate(visits)))}
    again = [first[visit.draw] != n for n, visit in enumerate(visits)]
    for repeated in (False, True):
        _cells(
            figure,
            [None if was != repeated else v for v, was in zip(visits, again, strict=True)],
            pieces,
        )
    letters = [mark[0] for visit in visits for mark in visit.marks if mark]
    counts = {letter: letters.count(letter) for letter in CASES}
    shares = {
        letter: (n, len(letters), round(100 * n / (len(letters) or 1)))
        for letter, n in counts.items()
    }
    names = {
        "M": Wording("[MASK]: {0} of {1} ({2} %)", *shares["M"]),
        "S": Wording("a similar word: {0} of {1} ({2} %)", *shares["S"]),
        "R": Wording("another piece: {0} of {1} ({2} %)", *shares["R"]),
        "K": Wording("kept: {0} of {1} ({2} %)", *shares["K"]),
    }
    del names["M" if counts["S"] else "S"]
    for letter, name in names.items():
        marker = {"symbol": "square", "size": 12, "color": colour(CASES[letter])}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)
    # An axis of its own for what stands below the columns.
    figure.add_scatter(x=[0], y=[1], xaxis="x2", mode="none", hoverinfo="skip", showlegend=False)
    tall = 20 if len(visits) <= 20 else 13
    heads = [shorten(piece, lambda text: len(text) <= MOST_LETTERS) for piece in pieces]
    turned = [not UPRIGHT.search(name) for name in heads]
    head = 12 + max(7 * len(n) if turn else 18 for n, turn in zip(heads, turned, strict=True))
    below = [f"{a}<br>{c}" for a, c in zip(asked, contexts, strict=True)]
    finish(
        figure,
        title,
        alt=Wording(
            "{0}: epochs {1}, pieces {2}, draws {3}",
            title,
            len(visits),
            len(pieces),
            len(first),
        ),
        columns=[
            Wording("Epoch"),
            Wording("Mask"),
            Wording("Place"),
            Wording("Piece"),
            Wording("Case"),
            Wording("What the model sees"),
        ],
        rows=[
            [epoch, visit.draw + 1, place, piece, mark, seen]
            for epoch, visit in enumerate(visits, 1)
            for place, (piece, mark, seen) in enumerate(
                zip(pieces, visit.marks, visit.seen, strict=True), 1
            )
            if mark
        ],
        height=30 + head + tall * len(visits) + 120,
        revision=f"{title} {len(visits)} {list(pieces)}",
    )
    axis = {"showgrid": False, "zeroline": False, "tickmode": "array", "ticks": ""}
    places = list(range(len(pieces)))
    figure.update_layout(
        margin={"t": 30 + head, "b": 120, "l": 8, "r": 4},
        legend={"y": 0, "yref": "container"},
        annotations=[
            {
                "x": place,
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "text": plain(name),
                "textangle": -90 if turn else 0,
                "showarrow": False,
            }
            for place, (name, turn) in enumerate(zip(heads, turned, strict=True))
        ],
        xaxis={**axis, "showticklabels": False, "range": [-0.5, len(pieces) - 0.5]},
        xaxis2={
            **axis,
            "overlaying": "x",
            "matches": "x",
            "side": "bottom",
            "tickvals": places,
            "ticktext": below,
            "tickangle": 0,
            "tickfont": {"size": 10 if len(pieces) < 24 else 8},
            "title": {"text": Wording("asked, and in how many contexts")},
        },
        yaxis={
            **axis,
            "autorange": "reversed",
            "tickvals": list(range(1, len(visits) + 1)),
            "ticktext": [
                f"{n} = {first[visit.draw] + 1}" if was else str(n)
                for n, (visit, was) in enumerate(zip(visits, again, strict=True), 1)
            ],
            "tickfont": {"size": 11 if tall == 20 else 9},
        },
    )
    return figure


def _cells(figure: go.Figure, visits: Sequence[Visit | None], pieces: Sequence[str]) -> None:
    """The rows of some epochs; None for the others."""
    shown = [visit for visit in visits if visit]
    if not shown:
        return
    tones = [colour("heat_0"), *map(colour, CASES.values())]
    count = len(tones)
    steps = [(step / count, tone) for n, tone in enumerate(tones) for step in (n, n + 1)]
    order = ["", *CASES]
    empty = [None] * len(pieces)
    figure.add_heatmap(
        z=[[order.index(mark[:1]) for mark in visit.marks] if visit else empty for visit in visits],
        y=list(range(1, len(visits) + 1)),
        zmin=-0.5,
        zmax=count - 0.5,
        colorscale=steps,
        showscale=False,
        xgap=2,
        ygap=2,
        text=[whole(visit.marks) if visit else [""] * len(pieces) for visit in visits],
        texttemplate="%{text}",
        textfont={} if visits[0] else {"color": colour("ink")},
        customdata=[
            [
                plain(f"{piece} → {seen}" if mark else piece)
                for piece, mark, seen in zip(pieces, visit.marks, visit.seen, strict=True)
            ]
            if visit
            else empty
            for visit in visits
        ],
        hovertemplate="%{y} · %{customdata}<extra></extra>",
        hoverongaps=False,
        opacity=1 if visits[0] else SEEN_BEFORE,
    )


def growth(contexts: Mapping[str, Sequence[float]]) -> go.Figure:
    """Mean number of different contexts in which a piece was asked, over the epochs.

    Args:
        contexts: After each epoch, by the name of the masking.
    """
    something("masking", contexts)
    epochs = len(next(iter(contexts.values())))
    something("epoch", range(epochs))
    one_each(epochs, "epoch", **contexts)
    figure = Chart()
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
    last = listed(Wording("{0} {1}", n, f"{values[-1]:.1f}") for n, values in contexts.items())
    return finish(
        figure,
        "",
        alt=Wording("Contexts per piece after epoch {0}: {1}", epochs, last),
        columns=[Wording("Epoch"), *contexts],
        rows=[
            [epoch, *values]
            for epoch, *values in zip(range(1, epochs + 1), *contexts.values(), strict=True)
        ],
        height=300,
        x=Wording("Epoch"),
        y=Wording("Contexts per piece, mean"),
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """Pieces on end of one document."""

    document: int
    """From 0."""
    pieces: int
    text: str
    second: bool = False
    """Whether it is the second text of a pair."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """One example of a format."""

    said: str
    """What stands behind its bar."""
    runs: Sequence[Run] = field(default_factory=tuple)


def cuts(inputs: Sequence[Input], *, length: int, title: str) -> go.Figure:
    """A bar for each example, a block for each run; the rest is special pieces and padding.

    Args:
        inputs: The first examples, from top to bottom.
        length: Most pieces of one, special ones included.
        title: The format.
    """
    figure = Chart()
    # Of a bar with a base %{x} would be its end.
    says = Wording("{0} · pieces: {1}", "%{fullData.name}", "%{customdata[0]}")
    placed = [
        (number, sum(run.pieces for run in each.runs[:at]), run)
        for number, each in enumerate(inputs, 1)
        for at, run in enumerate(each.runs)
    ]
    for document in sorted({run.document for _, _, run in placed}):
        mine = [(n, start, run) for n, start, run in placed if run.document == document]
        figure.add_bar(
            x=[run.pieces for _, _, run in mine],
            y=[number for number, _, _ in mine],
            base=[start for _, start, _ in mine],
            orientation="h",
            name=Wording("document {0}", document + 1),
            text=[str(document + 1)] * len(mine),
            width=0.8,
            textposition="inside",
            insidetextanchor="start",
            textangle=0,
            marker={
                "color": series(document),
                "line": {"color": colour("paper"), "width": 2},
                "pattern": {
                    "shape": ["/" if run.second else "" for _, _, run in mine],
                    "fillmode": "overlay",
                    "fgopacity": 0.35,
                },
            },
            customdata=[[run.pieces, plain(run.text)] for _, _, run in mine],
            hovertemplate=Wording("{0}<br>{1}", says, "%{customdata[1]}<extra></extra>"),
            showlegend=False,
        )
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[0, length])
    figure.update_yaxes(
        range=[len(inputs) + 0.5, 0.5],
        side="right",
        showgrid=False,
        tickmode="array",
        tickvals=list(range(1, len(inputs) + 1)),
        ticktext=whole([each.said for each in inputs]),
    )
    return finish(
        figure,
        title,
        alt=Wording("{0}: the first {1} examples", title, len(inputs)),
        columns=[
            Wording("Example"),
            Wording("Document"),
            Wording("First or second text"),
            Wording("From piece"),
            Wording("Pieces"),
            Wording("Text"),
            Wording("Beside the bar"),
        ],
        rows=[
            [
                number,
                run.document + 1,
                1 + run.second,
                start,
                run.pieces,
                run.text,
                inputs[number - 1].said,
            ]
            for number, start, run in placed
        ],
        height=90 + 26 * len(inputs),
        revision=f"{title} {length}",
        x=Wording("Pieces, without special ones"),
    )
