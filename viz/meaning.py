"""One word in several sentences: its path through the layers, its likeness, its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from textwrap import wrap

import plotly.graph_objects as go

from viz.check import one_each, something, square, within
from viz.figure import Chart, colour, finish, heat, plain, series
from viz.svg import Wording, shorten
from viz.words import percent

Point = tuple[float, float]
Square = Sequence[Sequence[float]]
MOST_LETTERS = 46
"""Of a sentence beside a mark or in a bar: what a phone has room for."""


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

    before: str
    """The sentence up to the word."""
    word: str
    after: str
    cosine: float
    same: bool
    """The same word as the visitor's."""


def layer_name(number: int) -> str:
    """What vectors are called on their way: the static one, the input, and after each layer."""
    first = (Wording("Static embedding"), Wording("Input"))
    return first[number] if number < len(first) else Wording("After layer {0}", number - 1)


def paths(
    found: Sequence[Path], *, layer: int, shares: tuple[float, float], word: str = ""
) -> go.Figure:
    """Every sentence's path in the same two directions, with a numbered mark at one layer.

    Args:
        found: Paths of equal length.
        layer: Where the marks stand; the way there is drawn full, the rest dotted.
        shares: Which part of the differences the two directions hold.
        word: Whose paths they are.

    Raises:
        ValueError: There is no path, or no such layer.
    """
    something("path", found)
    if any(not 0 <= layer < len(path.points) for path in found):
        raise ValueError(f"there is no layer {layer}")
    steps = {f"path {path.number}": path.points for path in found}
    one_each(len(found[0].points), "layer", **steps)
    names = [layer_name(number) for number in range(len(found[0].points))]
    figure = Chart()
    for path in found:
        _path(figure, path, layer, names)
    # Fixed, so that nothing but the marks moves from layer to layer.
    bare = {"showticklabels": False, "automargin": False}
    figure.update_xaxes(range=_room([x for path in found for x, _ in path.points]), **bare)
    ys = _room([y for path in found for _, y in path.points])
    figure.update_yaxes(range=ys, scaleanchor="x", scaleratio=1, **bare)
    finish(
        figure,
        "",
        alt=Wording(
            "Paths of “{0}” through the layers in {1} sentences, marked: {2}",
            word,
            len(found),
            names[layer],
        ),
        columns=[Wording("Sentence"), Wording("Layer"), Wording("Across"), Wording("Up")],
        rows=[
            [path.number, name, *point]
            for path in found
            for name, point in zip(names, path.points, strict=True)
        ],
        height=390 + 22 * len(found),
        revision=f"{word} {shares} {[path.sentence for path in found]}",
        x=Wording("{0} of all differences", percent(shares[0])),
        y=Wording("{0} of all differences", percent(shares[1])),
    )
    # The sentences stand below the picture, one under the other.
    below = {"orientation": "v", "y": -0.1, "yanchor": "top", "tracegroupgap": 0}
    figure.update_layout(margin={"t": 12, "l": 34, "b": 34}, legend=below)
    return figure


def _path(figure: go.Figure, path: Path, layer: int, names: Sequence[str]) -> None:
    tone = series(path.number - 1)
    xs, ys = [x for x, _ in path.points], [y for _, y in path.points]
    common = {"legendgroup": str(path.number), "showlegend": False}
    figure.add_scatter(
        x=xs,
        y=ys,
        mode="lines+markers",
        line={"color": tone, "width": 1.5, "dash": "dot"},
        marker={"color": tone, "size": 7},
        customdata=list(names),
        hovertemplate=f"{path.number} · %{{customdata}}<br>%{{x:.2f}}, %{{y:.2f}}<extra></extra>",
        **common,
    )
    figure.add_scatter(
        x=xs[: layer + 1],
        y=ys[: layer + 1],
        mode="lines",
        line={"color": tone, "width": 3},
        hoverinfo="skip",
        **common,
    )
    figure.add_scatter(
        x=[xs[layer]],
        y=[ys[layer]],
        mode="markers+text",
        marker={"color": tone, "size": 22, "line": {"color": colour("paper"), "width": 1.5}},
        text=[f"<b>{path.number}</b>"],
        textfont={"color": colour("paper"), "size": 13},
        name=f"{path.number} · {_short(path.sentence)}",
        hoverinfo="skip",
        **{**common, "showlegend": True},
    )


def _short(sentence: str) -> str:
    return shorten(sentence, lambda text: len(text) <= MOST_LETTERS)


def _room(values: Sequence[float]) -> list[float]:
    """A range with some air around."""
    air = 0.1 * (max(values) - min(values)) or 1.0
    return [min(values) - air, max(values) + air]


def alike(
    numbers: Sequence[int],
    raw: Sequence[Square],
    centred: Sequence[Square],
    *,
    layer: int,
    way: str,
) -> go.Figure:
    """How alike a word's occurrences are at a layer, each with each.

    Args:
        numbers: Of the sentences, from 1.
        raw: Cosines at every layer.
        centred: The same with the mean of many words subtracted.
        layer: Which is drawn; the table has them all.
        way: ``raw`` or ``centred``: which is drawn.
    """
    within("layer", layer, 0, len(raw) - 1)
    one_each(len(raw), "layer", centred=centred)
    for each in (*raw, *centred):
        square(len(numbers), "sentence", "a layer", each)
    drawn = (centred if way == "centred" else raw)[layer]
    labels = [str(number) for number in numbers]
    size = range(len(numbers))
    figure = Chart(
        go.Heatmap(
            z=[[None if row == column else drawn[row][column] for column in size] for row in size],
            x=labels,
            y=labels,
            zmin=0,
            zmax=1,
            colorscale=heat(),
            showscale=False,
            xgap=3,
            ygap=3,
            texttemplate="%{z:.2f}",
            textfont={"size": 14 if len(numbers) < 6 else 12},
            hovertemplate="%{y} · %{x}: %{z:.3f}<extra></extra>",
            hoverongaps=False,
        )
    )
    figure.update_xaxes(type="category", showgrid=False, side="top", constrain="domain")
    figure.update_yaxes(
        type="category", showgrid=False, autorange="reversed", scaleanchor="x", constrain="domain"
    )
    finish(
        figure,
        "",
        alt=Wording("Cosines between the sentences, {0}", layer_name(layer)),
        columns=[
            Wording("Layer"),
            Wording("Sentences"),
            Wording("Cosine as they are"),
            Wording("Cosine, mean subtracted"),
        ],
        rows=[
            [layer_name(at), f"{numbers[a]} · {numbers[b]}", raw[at][a][b], centred[at][a][b]]
            for at in sorted(range(len(raw)), key=lambda at: at != layer)
            for a, b in combinations(size, 2)
        ],
        height=390,
        revision=f"{way} {labels}",
        x=Wording("Cosine between the sentences"),
    )
    figure.update_layout(margin={"t": 12})
    return figure


def likeness(tables: Sequence[Square], random: Sequence[float], *, layer: int) -> go.Figure:
    """Cosines of a word's occurrences from layer to layer, and the mean of different words.

    Args:
        tables: Each with each, at every layer.
        random: Mean cosine of different words: contextual vectors crowd into a cone (Ethayarajh
            2019, arXiv 1909.00512), so only what lies above is likeness.
        layer: Marked.
    """
    something("layer", tables)
    one_each(len(tables), "layer", random=random)
    for each in tables:
        square(len(tables[0]), "sentence", "a layer", each)
    places = range(len(tables))
    names = [layer_name(at) for at in places]
    pairs = list(combinations(range(len(tables[0])), 2))
    something("pair of sentences", pairs)
    mine = [sum(tables[at][a][b] for a, b in pairs) / len(pairs) for at in places]
    figure = Chart()
    figure.add_scatter(
        x=[at for _ in pairs for at in (*places, None)],
        y=[value for a, b in pairs for value in (*(tables[at][a][b] for at in places), None)],
        mode="lines",
        name=Wording("each pair"),
        line={"color": colour("heat_2"), "width": 1},
        hoverinfo="skip",
    )
    lines = (
        (mine, Wording("your sentences"), "model", "solid"),
        (random, Wording("different words of the Primer"), "soft", "dash"),
    )
    for values, name, tone, dash in lines:
        figure.add_scatter(
            x=list(places),
            y=list(values),
            name=name,
            mode="lines+markers",
            line={"color": colour(tone), "dash": dash, "width": 2.5},
            hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        )
    figure.add_vline(layer, line={"color": colour("grey"), "width": 1})
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(tickmode="array", tickvals=list(places), ticktext=names)
    columns = [Wording("Layer"), *(name for _, name, *_ in lines)]
    return finish(
        figure,
        "",
        alt=Wording(
            "Mean cosine at the last layer: {0}, of different words {1}.",
            f"{mine[-1]:.2f}",
            f"{random[-1]:.2f}",
        ),
        columns=columns,
        rows=[[name, *each] for name, *each in zip(names, mine, random, strict=True)],
        height=300,
        revision=str(len(mine)),
        y=Wording("Cosine"),
    )


def neighbours(found: Sequence[Neighbour]) -> go.Figure:
    """The nearest words of a corpus as bars, each in its sentence; the nearest at the top.

    Raises:
        ValueError: There is none.
    """
    something("neighbour", found)
    ranks = list(range(1, len(found) + 1))
    least = min(0.0, *(each.cosine for each in found))
    figure = Chart()
    for same, name, tone in (
        (False, Wording("other words"), "heat_1"),
        (True, Wording("the same word"), "heat_2"),
    ):
        listed = [(rank, each) for rank, each in enumerate(found, 1) if each.same == same]
        if not listed:
            continue
        figure.add_bar(
            x=[each.cosine for _, each in listed],
            y=[rank for rank, _ in listed],
            orientation="h",
            width=0.85,  # Plotly measures by the nearest two bars of a trace, here ranks apart
            name=name,
            marker={"color": colour(tone)},
            customdata=["<br>".join(map(plain, wrap(_sentence(each), 60))) for _, each in listed],
            hovertemplate="%{x:.3f}<br>%{customdata}<extra></extra>",
        )
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
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(range=[least, 1])
    # A range of Plotly's own would have room for bars as wide as their ranks are apart.
    figure.update_yaxes(
        range=[len(found) + 0.5, 0.5], tickmode="array", tickvals=ranks, showgrid=False
    )
    return finish(
        figure,
        "",
        alt=Wording("The nearest word is “{0}” ({1}).", found[0].word, f"{found[0].cosine:.2f}"),
        columns=[Wording("Rank"), Wording("Word"), Wording("Cosine"), Wording("In the sentence")],
        rows=[
            [rank, each.word, each.cosine, _sentence(each)]
            for rank, each in zip(ranks, found, strict=True)
        ],
        height=120 + 28 * len(found),
        revision=str(len(found)),
        x=Wording("Cosine"),
    )


def _sentence(each: Neighbour) -> str:
    return each.before + each.word + each.after


def _in_its_sentence(each: Neighbour) -> str:
    room = max(0, MOST_LETTERS - len(each.word))
    before = each.before[-(room // 2) :] if room > 1 else ""
    if len(before) < len(each.before):
        before = before.partition(" ")[2] or before
    after = each.after[: room - len(before)]
    start = "…" if len(each.before) > len(before) else ""
    end = "…" if len(each.after) > len(after) else ""
    return f" {start}{plain(before)}<b>{plain(each.word)}</b>{plain(after)}{end}"
