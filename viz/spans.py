"""What two heads give the words of a hidden span, and how long spans are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import among, one_each, something
from viz.figure import Chart, categories, colour, finish, middle, plain, series, tick
from viz.svg import Wording
from viz.words import percent


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a head gives the word that stood in a place."""

    probability: float
    rank: int
    loss: float
    """In nats."""
    masked: float | None = None
    """Its probability with [MASK] in the span, where something else stands there now."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A hidden place."""

    word: str
    seen: str
    """What the model sees there."""
    given: Sequence[Given | None]
    """By each head; None where it is not asked, or nobody knows the word."""


TONES = ("hidden", "model")
"""Of the heads."""
MOST_TOLD = 8
"""Places whose bars have room for their numbers."""


def heads(places: Sequence[Place], names: Sequence[str], *, title: str) -> go.Figure:
    """Probability of each hidden word by several heads, a bar each.

    Args:
        places: From left to right.
        names: What the heads are called, in the order of ``Place.given``.
        title: What is shown.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("place", places)
    if len(names) > len(TONES):
        raise ValueError(f"there are {len(names)} heads; give {len(TONES)} at most")
    for place in places:
        one_each(len(names), "head", **{place.word: place.given})
    changed = any(each and each.masked is not None for place in places for each in place.given)
    figure = Chart()
    for head, name in enumerate(names):
        tone = colour(TONES[head])
        if changed:
            _bars(figure, places, Wording("{0}, [MASK]", name), tone, head, "masked", 0.35)
        label = Wording("{0}, now", name) if changed else name
        _bars(figure, places, label, tone, head, "probability", 1)
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(places))),
        ticktext=[f"{n}<br>{tick(place.word)}" for n, place in enumerate(places)],
        range=middle(len(places)),
        showgrid=False,
    )
    figure.update_yaxes(ticksuffix=" %", range=[0, 108], dtick=25)
    parts = [Wording("Rank"), Wording("Loss in nats"), *([Wording("before")] if changed else [])]
    columns = [Wording("Place"), Wording("Word"), Wording("The model sees")]
    alt = Wording("Probability of {0} hidden words by each head.", len(places))
    if len(places) == 1:
        alt = Wording("Probability of one hidden word by each head.")
    return finish(
        figure,
        title,
        alt=alt,
        columns=[*columns, *(text for name in names for text in (name, *parts)), Wording("Sum")],
        rows=[_row(number, place, changed) for number, place in enumerate(places)],
        height=320,
        revision=f"{len(places)} {changed}",
        y=Wording("Probability of the word"),
    )


def _bars(
    figure: go.Figure,
    places: Sequence[Place],
    name: str,
    tone: str,
    head: int,
    value: str,
    opacity: float,
) -> None:
    chances = [getattr(place.given[head], value, None) for place in places]
    shown = ["" if c is None else plain(percent(c).replace("under ", "<")) for c in chances]
    figure.add_bar(
        x=list(range(len(places))),
        y=[None if chance is None else 100 * chance for chance in chances],
        name=name,
        marker={"color": tone, "opacity": opacity},
        text=shown if len(places) <= MOST_TOLD else None,
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        hovertext=[f"{n} {plain(place.word)}" for n, place in enumerate(places)],
        hovertemplate="%{hovertext}: %{y:.4g} %<extra>%{fullData.name}</extra>",
    )


def _row(number: int, place: Place, changed: bool) -> list[str | int | float | None]:
    row: list[str | int | float | None] = [number, place.word, place.seen]
    for each in place.given:
        if each is None:
            row += [None] * (4 if changed else 3)
            continue
        row += [each.probability, each.rank, each.loss, *([each.masked] if changed else [])]
    losses = [each.loss for each in place.given if each]
    return [*row, sum(losses) if losses else None]


def lengths(
    shares: Mapping[str, Sequence[float]],
    *,
    last: str,
    title: str = "",
    means: Mapping[str, float | None] | None = None,
    hidden: Sequence[int] = (),
) -> go.Figure:
    """Shares of spans by their length in words: a bar for each law, draw or corpus.

    Args:
        shares: For lengths 1, 2, ...; names as they are told.
        last: What the last length is called: "10+".
        title: What is shown.
        means: Mean length under each name, for the table.
        hidden: How many runs of each length a visitor has hidden: marks above the first bars.
    """
    something("law", shares)
    count = max(map(len, shares.values()))
    if hidden:
        one_each(count, "length", hidden=hidden)
        one_each(count, "length", **shares)
    for name in shares if means is not None else ():
        among("name", name, means or ())
    labels = [*map(str, range(1, count)), last]
    drawn = categories(labels)
    figure = Chart()
    for index, (name, values) in enumerate(shares.items()):
        figure.add_bar(
            x=drawn[: len(values)],
            y=[100 * value for value in values],
            name=name,
            marker={"color": series(index)},
            hovertemplate="%{x}: %{y:.3g} %<extra>%{fullData.name}</extra>",
        )
    if any(hidden):
        tallest = [max(each) for each in zip(*shares.values(), strict=True)]
        runs = [(n, times) for n, times in enumerate(hidden) if times]
        figure.add_scatter(
            x=[drawn[n] for n, _ in runs],
            y=[100 * tallest[n] for n, _ in runs],
            mode="markers+text",
            marker={"symbol": "diamond", "size": 12, "color": colour("hidden")},
            text=[str(times) if times > 1 else "" for _, times in runs],
            textposition="top center",
            name=Wording("hidden above"),
            hoverinfo="skip",
        )
    figure.update_xaxes(type="category")
    figure.update_yaxes(ticksuffix=" %")
    rows: list[list[str | int | float | None]] = [
        [
            label,
            *(values[n] if n < len(values) else None for values in shares.values()),
            *([hidden[n]] if hidden else []),
        ]
        for n, label in enumerate(labels)
    ]
    if means is not None:
        rows.append([Wording("mean"), *(means[name] for name in shares), *([None] * bool(hidden))])
    return finish(
        figure,
        title,
        alt=Wording("Shares of spans by their length in words, 1 to {0}.", last),
        columns=[Wording("Words"), *shares, *([Wording("hidden above")] if hidden else [])],
        rows=rows,
        height=300,
        x=Wording("Length in words"),
    )
