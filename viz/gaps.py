"""What gaps are filled with, by several ways or models, and what each word costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import one_each, something, square
from viz.figure import Chart, categories, colour, finish, plain, safe, series, tick, whole
from viz.svg import Wording, count_words

LEAST = math.log(1e-5)
"""Below this a probability is shown as a power of ten."""
BITS = Wording("Bits: the shorter, the likelier")
ROW = 34
"""Pixels of a bar."""
PAIR = ("%{customdata[0]}", "%{customdata[1]}")
"""The words of a cell's row and column."""


def chance(log: float | None) -> str:
    """A probability as people read it, however small, from its natural logarithm."""
    if log is None or math.isnan(log):
        return "\N{EN DASH}"
    if log > LEAST:
        return f"{100 * math.exp(min(log, 0.0)):.3g}\N{NO-BREAK SPACE}%"
    if log == -math.inf:
        return "0\N{NO-BREAK SPACE}%"
    power = math.floor(log / math.log(10))
    power += log - power * math.log(10) >= math.log(9.95)  # never 10.0
    raised = str(-power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{math.exp(log - power * math.log(10)):.1f} × 10⁻{raised}"  # noqa: RUF001


def _share(log: float) -> float:
    """The probability of a natural logarithm, which rounding may have left above 0."""
    return math.exp(min(log, 0.0))


def bits(log: float) -> float:
    """What a probability costs, from its natural logarithm."""
    return -min(log, 0.0) / math.log(2)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """Several gaps, filled in one way."""

    way: str
    words: str
    apart: float
    """Log-probability with all gaps open."""
    chained: float
    """Log-probability by the chain rule, from left to right."""


def fillings(found: Sequence[Filled], *, title: str) -> go.Figure:
    """What each way of filling costs: as separate gaps, and as a whole.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("filling", found)
    figure = Chart()
    kinds = {"apart": Wording("As separate gaps"), "chained": Wording("As a whole")}
    for (kind, name), tone in zip(kinds.items(), ("kept", "model"), strict=True):
        logs = [getattr(each, kind) for each in found]
        shown = [chance(log) for log in logs]
        _bars(figure, [bits(log) for log in logs], shown, [e.words for e in found], tone, name)
    names = [Wording("{0}<br>{1}", safe(each.way), tick(each.words)) for each in found]
    _rows(figure, names)
    most = max(max(bits(each.apart), bits(each.chained)) for each in found)
    figure.update_xaxes(range=[0, 1.2 * most + 0.1])
    figure.update_layout(barmode="group")
    rows: list[list[str | int | float | None]] = [
        [each.way, each.words, *map(_share, logs), *logs]
        for each in found
        for logs in [(each.apart, each.chained)]
    ]
    logs = [Wording("log p, {0}", name) for name in kinds.values()]
    return finish(
        figure,
        title,
        alt=Wording("What {0} fillings cost in bits.", len(found)),
        columns=[Wording("Way"), Wording("Filling"), *kinds.values(), *logs],
        rows=rows,
        height=130 + 2 * ROW * len(found),
        revision=f"{len(found)}",
        x=BITS,
    )


@dataclass(frozen=True, kw_only=True)
class Spelled:
    """A word in one gap, piece by piece."""

    word: str
    pieces: Sequence[str]
    steps: Sequence[float]
    """Log-probability of each piece, those before it being known."""
    own: bool
    """It is the word of the text."""


def spelled(found: Sequence[Spelled], *, title: str) -> go.Figure:
    """What words of any number of pieces cost, each piece beside those before it.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("word", found)
    for each in found:
        one_each(len(each.pieces), "piece", **{each.word: each.steps})
    figure = Chart()
    for n in range(max(len(each.pieces) for each in found)):
        steps = [each.steps[n] if n < len(each.steps) else None for each in found]
        shown = [
            "" if step is None else f"{plain(each.pieces[n])}<br>{chance(step)}"
            for each, step in zip(found, steps, strict=True)
        ]
        costs = [None if step is None else bits(step) for step in steps]
        name = Wording("piece {0}", n + 1)
        figure.add_bar(
            x=costs,
            y=list(range(len(found))),
            name=name,
            orientation="h",
            marker={"color": series(n), "line": {"color": colour("paper"), "width": 1}},
            text=shown,
            textposition="auto",
            insidetextanchor="start",
            textangle=0,
            hovertext=[plain(each.word) for each in found],
            hovertemplate="%{hovertext}<br>%{text}<extra></extra>",
        )
    names = [f"<b>{tick(each.word)}</b>" if each.own else tick(each.word) for each in found]
    _rows(figure, names)
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    whole = [math.fsum(each.steps) for each in found]
    rows: list[list[str | int | float | None]] = [
        [each.word, piece, _share(step), step, chance(total), total]
        for each, total in zip(found, whole, strict=True)
        for piece, step in zip(each.pieces, each.steps, strict=True)
    ]
    logs = Wording("log p")
    columns = [Wording("Word"), Wording("Piece"), Wording("Probability"), logs]
    return finish(
        figure,
        title,
        alt=Wording("The cost of {0} in bits, piece by piece.", count_words(len(found))),
        columns=[*columns, Wording("Whole word"), Wording("log p, {0}", Wording("Whole word"))],
        rows=rows,
        height=130 + 46 * len(found),
        revision=f"{len(found)}",
        x=BITS,
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model puts into a gap."""

    word: str
    log: float
    own: bool = False
    """It is the word of the text."""


def answers(found: Sequence[Answer], *, title: str) -> go.Figure:
    """A model's answers for one gap, the first on top.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("answer", found)
    figure = Chart()
    tones = [colour("hidden" if each.own else "model") for each in found]
    shares = [_share(each.log) for each in found]
    words = [each.word for each in found]
    _bars(
        figure,
        [100 * share for share in shares],
        [chance(each.log) for each in found],
        words,
        tones,
        None,
    )
    _rows(figure, categories(words))
    figure.update_xaxes(range=[0, 130], dtick=50, ticksuffix=" %")
    return finish(
        figure,
        title,
        alt=Wording("{0}: its answers for the gap.", title),
        columns=[Wording("Word"), Wording("Probability"), Wording("log p")],
        rows=[[e.word, share, e.log] for e, share in zip(found, shares, strict=True)],
        height=90 + 28 * len(found),
        revision=title,
    )


def each_word(
    words: Sequence[str], models: Mapping[str, Sequence[float | None]], perplexity: Sequence[str]
) -> go.Figure:
    """How much each word of a sentence surprises several models.

    Args:
        words: Of the sentence.
        models: By name, the log-probability of each word; None where there is none.
        perplexity: Of each model, as people read it.

    Raises:
        ValueError: There is nothing to draw.
    """
    something("word", words)
    something("model", models)
    one_each(len(words), "word", **models)
    one_each(len(models), "model", perplexity=perplexity)
    figure = Chart()
    places = list(range(len(words)))
    for number, (name, logs) in enumerate(models.items()):
        figure.add_scatter(
            x=places,
            y=[None if log is None else bits(log) for log in logs],
            mode="lines+markers",
            name=name,
            line={"color": series(number)},
            marker={"size": 8, "symbol": number},
            hovertext=[plain(word) for word in words],
            customdata=[chance(log) for log in logs],
            hovertemplate="%{hovertext}: %{customdata}<extra>%{fullData.name}</extra>",
            showlegend=True,
        )
    figure.update_xaxes(
        tickmode="array",
        tickvals=places,
        ticktext=[tick(word) for word in words],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(rangemode="tozero")
    rows: list[list[str | int | float | None]] = [
        [word, *(None if log is None else _share(log) for log in logs)]
        for word, logs in zip(words, zip(*models.values(), strict=True), strict=True)
    ]
    rows.append([Wording("Pseudo-perplexity"), *perplexity])
    return finish(
        figure,
        Wording("Each word of the sentence, given the others"),
        alt=Wording("Surprise at {0}, one model beside the other.", count_words(len(words))),
        columns=[Wording("Word"), *models],
        rows=rows,
        height=320,
        revision=" ".join(words),
        y=Wording("Surprise in bits"),
    )


def sight(
    names: Sequence[str], seen: Sequence[Sequence[bool]], *, gap: int, read: int | None, said: str
) -> go.Figure:
    """Which word looks at which: the row's word at the words of the filled columns.

    Args:
        names: Words, in the order of the text.
        seen: [W][W], whether the row looks at the column.
        gap: Row of the gap.
        read: Row that the prediction is read from; None where it is read before the first word.
        said: What that row knows, in a sentence.
    """
    square(len(names), "word", "seen", seen)
    places, words = list(range(len(names))), whole(names)
    looks = {
        True: Wording("“{0}” looks at “{1}”", *PAIR),
        False: Wording("“{0}” does not look at “{1}”", *PAIR),
    }
    figure = Chart()
    for value, says in looks.items():
        figure.add_heatmap(
            x=places,
            y=places,
            z=[[1 if flag == value else None for flag in row] for row in seen],
            zmin=0,
            zmax=1,
            colorscale=[[0, colour("heat_0")], [1, colour("model" if value else "heat_0")]],
            showscale=False,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            customdata=[[[row, column] for column in words] for row in words],
            hovertemplate=Wording("{0}{1}", says, "<extra></extra>"),
        )
    if read is not None:
        box = {"x0": -0.5, "x1": len(names) - 0.5, "y0": read - 0.5, "y1": read + 0.5}
        figure.add_shape(type="rect", line={"color": colour("hidden"), "width": 2}, **box)
    shown = [f"<b>{tick(name)}</b>" if n == gap else tick(name) for n, name in enumerate(names)]
    ticks = {"tickmode": "array", "tickvals": places, "ticktext": shown, "showgrid": False}
    figure.update_xaxes(side="top", tickangle=-90, constrain="domain", **ticks)
    figure.update_yaxes(
        autorange="reversed", scaleanchor="x", constrain="domain", zeroline=False, **ticks
    )
    finish(
        figure,
        "",
        alt=said,
        columns=[Wording("from \\ to"), *names],
        rows=[
            [name, *("1" if flag else "" for flag in row)]
            for name, row in zip(names, seen, strict=True)
        ],
        height=320,
        revision=" ".join(names),
    )
    figure.update_layout(margin={"t": 12})
    return figure


def _bars(
    figure: go.Figure,
    lengths: Sequence[float],
    shown: Sequence[str],
    words: Sequence[str],
    tone: str | Sequence[str],
    name: str | None,
) -> None:
    figure.add_bar(
        x=list(lengths),
        y=list(range(len(lengths))),
        name=name,
        orientation="h",
        marker={"color": colour(tone) if isinstance(tone, str) else list(tone)},
        text=list(shown),
        textposition="outside",
        cliponaxis=False,
        hovertext=whole(words),
        hovertemplate="%{hovertext}: %{text}<extra></extra>",
    )


def _rows(figure: go.Figure, names: Sequence[str]) -> None:
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
