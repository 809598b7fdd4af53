"""One word in several sentences: its path through the layers, its likeness, its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.figure import colour, finish, plain, series
from viz.svg import Wording

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Path:
    """The word in one sentence."""

    number: int
    """Of the sentence, from 1."""
    sentence: str
    points: Sequence[Point]
    """Where it is at each layer."""


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A word of a corpus beside the visitor's."""

    word: str
    before: str
    """The sentence up to the word."""
    after: str
    cosine: float
    same: bool
    """The same word as the visitor's."""


def layer_names(count: int) -> list[str]:
    """What vectors are called on their way: the static one, the input, and after each layer."""
    first: list[str] = [Wording("Static embedding"), Wording("Input")]
    return [*first, *(Wording("After layer {0}", n) for n in range(1, count - 1))][:count]


def paths(
    found: Sequence[Path], *, layer: int, title: str, shares: tuple[float, float]
) -> go.Figure:
    """Every sentence's path in the same two directions, with a numbered mark at one layer.

    The trace of a mark holds its places at all layers in ``meta``, so that a page can move it.

    Args:
        found: Paths of equal length.
        layer: Where the marks stand.
        title: What is shown.
        shares: Which part of the variance the two directions hold.

    Raises:
        ValueError: There is no path, or no such layer.
    """
    if not found:
        raise ValueError("there is nothing to draw")
    if not 0 <= layer < len(found[0].points):
        raise ValueError(f"there is no layer {layer}")
    names = layer_names(len(found[0].points))
    figure = go.Figure()
    for path in found:
        tone = series(path.number - 1)
        figure.add_scatter(
            x=[x for x, _ in path.points],
            y=[y for _, y in path.points],
            mode="lines+markers",
            line={"color": tone, "width": 2, "dash": "dot"},
            marker={"color": tone, "size": 7},
            name=f"{path.number}. {plain(path.sentence)}",
            customdata=list(range(len(path.points))),
            hovertemplate=f"{path.number} · %{{customdata}}<br>%{{x:.2f}}, %{{y:.2f}}"
            "<extra></extra>",
        )
    for path in found:
        figure.add_scatter(
            x=[path.points[layer][0]],
            y=[path.points[layer][1]],
            mode="markers+text",
            marker={"color": series(path.number - 1), "size": 22},
            text=str(path.number),
            textfont={"color": colour("paper"), "size": 13},
            hoverinfo="skip",
            showlegend=False,
            meta={"points": [list(point) for point in path.points]},
        )
    # Fixed, so that nothing moves with the marks.
    figure.update_xaxes(range=_room([x for path in found for x, _ in path.points]))
    ys = _room([y for path in found for _, y in path.points])
    figure.update_yaxes(range=ys, scaleanchor="x", scaleratio=1)
    # Long sentences: one under the other, below the picture.
    figure.update_layout(legend={"orientation": "v", "y": -0.16, "yanchor": "top"})
    finish(
        figure,
        title,
        alt=Wording("Paths of the word through the layers: {0} sentences.", len(found)),
        columns=[Wording("Sentence"), Wording("Layer"), "x", "y"],
        rows=[
            [path.number, name, *point]
            for path in found
            for name, point in zip(names, path.points, strict=True)
        ],
        height=420 + 20 * len(found),
        revision=f"{title} {shares}",
        x=Wording("{0} % of the variance", f"{100 * shares[0]:.0f}"),
        y=Wording("{0} %", f"{100 * shares[1]:.0f}"),
    )
    figure.update_layout(margin={"t": 48})
    return figure


def _room(values: Sequence[float]) -> list[float]:
    """A range with some air around."""
    air = 0.1 * (max(values) - min(values)) or 1.0
    return [min(values) - air, max(values) + air]


def likeness(mine: Sequence[float], random: Sequence[float], *, layer: int) -> go.Figure:
    """Mean cosine of the word's occurrences at every layer, and that of words at random.

    Args:
        mine: Of the visitor's occurrences with each other.
        random: Of different words: contextual vectors crowd into a cone (Ethayarajh 2019, arXiv
            1909.00512), so only what lies above is likeness.
        layer: Marked.
    """
    names = layer_names(len(mine))
    figure = go.Figure()
    for values, name, tone, dash in (
        (mine, Wording("your sentences"), "model", "solid"),
        (random, Wording("different words of the Primer"), "soft", "dash"),
    ):
        figure.add_scatter(
            x=list(range(len(values))),
            y=list(values),
            name=name,
            mode="lines+markers",
            line={"color": colour(tone), "dash": dash},
            hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        )
    figure.add_vline(layer, line={"color": colour("grey"), "width": 1})
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(tickmode="array", tickvals=list(range(len(mine))), ticktext=names)
    return finish(
        figure,
        "",
        alt=Wording(
            "Mean cosine at the last layer: {0}, of different words {1}.",
            f"{mine[-1]:.2f}",
            f"{random[-1]:.2f}",
        ),
        columns=[
            Wording("Layer"),
            Wording("your sentences"),
            Wording("different words of the Primer"),
        ],
        rows=[[name, *each] for name, *each in zip(names, mine, random, strict=True)],
        height=300,
        revision=str(len(mine)),
        y=Wording("Mean cosine"),
    )


def neighbours(found: Sequence[Neighbour], *, title: str) -> go.Figure:
    """The nearest words of a corpus as bars, each in its sentence; the nearest at the top.

    Raises:
        ValueError: There is none.
    """
    if not found:
        raise ValueError("there is nothing to draw")
    ranks = list(range(1, len(found) + 1))
    figure = go.Figure()
    figure.add_bar(
        x=[each.cosine for each in found],
        y=ranks,
        orientation="h",
        marker={"color": [colour("heat_2" if each.same else "heat_1") for each in found]},
        showlegend=False,
        hovertemplate="%{x:.3f}<extra></extra>",
    )
    least = min(0.0, *(each.cosine for each in found))
    figure.add_scatter(
        x=[least] * len(found),
        y=ranks,
        mode="text",
        text=[_in_its_sentence(each) for each in found],
        textposition="middle right",
        textfont={"color": colour("ink")},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.update_xaxes(range=[least, 1])
    figure.update_yaxes(autorange="reversed", tickmode="array", tickvals=ranks, showgrid=False)
    return finish(
        figure,
        title,
        alt=Wording("The nearest word is “{0}” ({1}).", found[0].word, f"{found[0].cosine:.2f}"),
        columns=[
            Wording("Rank"),
            Wording("Word"),
            Wording("Cosine"),
            Wording("In the sentence"),
        ],
        rows=[
            [rank, each.word, each.cosine, each.before + each.word + each.after]
            for rank, each in zip(ranks, found, strict=True)
        ],
        height=110 + 30 * len(found),
        revision=title,
        x=Wording("Cosine"),
    )


def _in_its_sentence(each: Neighbour) -> str:
    before, after = each.before[-28:], each.after[:40]
    start = "…" if len(each.before) > len(before) else ""
    end = "…" if len(each.after) > len(after) else ""
    return f" {start}{plain(before)}<b>{plain(each.word)}</b>{plain(after)}{end}"
