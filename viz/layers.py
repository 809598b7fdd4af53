"""Ranks of words in a gap, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import plotly.graph_objects as go

from viz.check import among, one_each
from viz.figure import Chart, categories, colour, finish
from viz.svg import Wording

TONES = {"own": "hidden", "best": "model", "second": "kept"}
RIVALS = ("random", "green", "ochre", "sky", "grey")
"""One after the other, each in a colour of its own."""
NAMES = {
    "own": Wording("the word of your sentence"),
    "best": Wording("best after the last layer"),
    "rival": Wording("a word of your own"),
    "second": Wording("second after the last layer"),
}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "triangle-up", "diamond")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A word on its way."""

    word: str
    kind: str
    """One of ``NAMES``."""
    ranks: Sequence[int]
    """After each layer, from 1."""
    probabilities: Sequence[float]


def ranks(
    lines: Sequence[Line],
    layers: Sequence[str],
    best: Sequence[str],
    *,
    vocabulary: int,
    title: str,
) -> go.Figure:
    """A line for each word, on a logarithmic scale with rank 1 at the top.

    Args:
        lines: Words, each with a rank for every layer.
        layers: Names of the layers.
        best: The best word after each layer, for the table.
        vocabulary: How many pieces there are.
        title: What is shown.

    Raises:
        ValueError: A line has not a rank for each layer.
    """
    one_each(len(layers), "layer", best=best)
    if vocabulary < 1:
        raise ValueError(f"vocabulary is {vocabulary}; it must be at least 1")
    names = categories(layers)
    figure = Chart()
    others = cycle(RIVALS)
    for index, line in enumerate(lines):
        among("kind", line.kind, NAMES)
        tone = next(others) if line.kind == "rival" else TONES[line.kind]
        one_each(len(layers), "layer", ranks=line.ranks, probabilities=line.probabilities)
        figure.add_scatter(
            x=names,
            y=list(line.ranks),
            mode="lines+markers",
            name=Wording("“{0}”, {1}", line.word, NAMES[line.kind]),
            line={"color": colour(tone), "dash": DASHES[index % len(DASHES)]},
            marker={"symbol": SYMBOLS[index % len(SYMBOLS)], "size": 9},
            customdata=[f"{chance:.3g}" for chance in line.probabilities],
            hovertemplate="%{fullData.name}<br>%{y:,} · p = %{customdata}<extra></extra>",
            showlegend=True,
        )
    powers = [10**n for n in range(len(str(vocabulary)))]
    figure.update_yaxes(
        type="log",
        range=[math.log10(1.3 * vocabulary), math.log10(0.8)],
        tickmode="array",
        tickvals=powers,
        ticktext=[f"{power:,}" for power in powers],
    )
    figure.update_xaxes(type="category")
    rows: list[list[str | int | float | None]] = [[line.word, *line.ranks] for line in lines]
    chances: list[list[str | int | float | None]] = [
        [Wording("p of “{0}”", line.word), *line.probabilities] for line in lines
    ]
    return finish(
        figure,
        title,
        alt=Wording(
            "Rank of each word after every layer, 1 at the top, of {0} pieces.", vocabulary
        ),
        columns=[Wording("Word"), *layers],
        rows=[*rows, *chances, [Wording("Best word there"), *best]],
        height=360,
        revision=title,
        x=Wording("Layer"),
        y=Wording("Rank"),
    )
