"""What speaks for an answer and what against it: every token by every method, in grouped bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import something
from viz.figure import Chart, categories, colour, finish, plain, series
from viz.svg import Wording


@dataclass(frozen=True, kw_only=True)
class Attributed:
    """One token."""

    text: str
    """As it stands in the text."""
    read: str
    """What the model reads there."""
    second: bool = False
    """It belongs to the second text."""
    asked: bool = False
    """The question is about this place."""


def attributions(
    tokens: Sequence[Attributed], methods: Mapping[str, Sequence[float]], *, title: str
) -> go.Figure:
    """A group of bars for each token: upwards it speaks for the answer, downwards against it.

    Methods measure in different units, so each one's bars are shares of its longest; the numbers
    themselves stand in the hover text and in the table.

    Args:
        tokens: In the order of the text; texts may hold anything.
        methods: A number for each token, by the name of the method.
        title: What is explained.

    Raises:
        ValueError: There is no token, a number is missing or not finite.
    """
    something("token", tokens)
    something("method", methods)
    for name, values in methods.items():
        if len(values) != len(tokens) or not all(map(math.isfinite, values)):
            raise ValueError(f"{name} needs a finite number for each of {len(tokens)} tokens")
    labels = categories([token.read for token in tokens])
    read = [plain(token.read) for token in tokens]
    figure = Chart()
    for index, (name, values) in enumerate(methods.items()):
        most = max(map(abs, values)) or 1.0
        figure.add_bar(
            x=labels,
            y=[100 * value / most for value in values],
            name=name,
            marker={"color": series(index)},
            hovertext=read,
            customdata=[f"{value:+.4g}" for value in values],
            hovertemplate="%{hovertext}: %{customdata}<br>%{fullData.name}<extra></extra>",
        )
    figure.update_layout(barmode="group", bargap=0.2)
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(range=[-105, 105], ticksuffix=" %", zerolinecolor=colour("grey"))
    for place, token in enumerate(tokens):
        if token.asked:
            figure.add_vrect(
                place - 0.5,
                place + 0.5,
                line={"color": colour("hidden"), "dash": "dot", "width": 1.5},
                fillcolor="rgba(0,0,0,0)",
            )
    if second := next((place for place, token in enumerate(tokens) if token.second), 0):
        figure.add_vline(second - 0.5, line={"color": colour("grey"), "width": 1})
    return finish(
        figure,
        title,
        alt=_told(tokens, methods),
        columns=[Wording("Token"), Wording("The model reads"), *methods],
        rows=[
            [token.text, token.read, *(values[place] for values in methods.values())]
            for place, token in enumerate(tokens)
        ],
        height=380,
        revision=" ".join(token.text for token in tokens)[:200],
        y=Wording("Share of the strongest"),
    )


def _told(tokens: Sequence[Attributed], methods: Mapping[str, Sequence[float]]) -> str:
    name, values = next(iter(methods.items()))
    best = max(range(len(tokens)), key=lambda place: values[place])
    if values[best] <= 0:
        return Wording("{0}: nothing speaks for it.", name)
    return Wording("{0}: most for it speaks “{1}”.", name, tokens[best].text)
