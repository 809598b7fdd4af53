"""Two texts: what each head says, topic against order, how alike; scores over many pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

import plotly.graph_objects as go

from viz.check import one_each, something
from viz.figure import Chart, beside, categories, colour, finish, heat, plain, safe, series
from viz.svg import Wording, listed
from viz.words import percent


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a head says about two texts."""

    head: str
    model: str
    labels: tuple[str, str]
    """What it may say: yes and no."""
    chance: float
    """Probability of yes."""


def verdicts(said: Sequence[Verdict], *, texts: tuple[str, str]) -> go.Figure:
    """A bar for each head, cut where its yes ends and its no begins.

    Args:
        said: From top to bottom.
        texts: What was judged.

    Raises:
        ValueError: There is no head, or a chance is not within 0 to 1.
    """
    if not said or any(not 0 <= each.chance <= 1 for each in said):
        raise ValueError("there must be a head, and its chance lies within 0 to 1")
    figure = Chart()
    places = list(range(len(said)))
    for index, tone in ((0, "model"), (1, "hidden")):
        chances = [each.chance if index == 0 else 1 - each.chance for each in said]
        figure.add_bar(
            x=[100 * chance for chance in chances],
            y=places,
            orientation="h",
            marker={"color": colour(tone)},
            text=[
                safe(Wording("{0} {1}", each.labels[index], percent(chance)))
                if chance >= 0.15
                else ""
                for each, chance in zip(said, chances, strict=True)
            ],
            textposition="inside",
            insidetextanchor="start" if index == 0 else "end",  # clear of the line at half
            insidetextfont={"size": 16, "color": colour("paper")},
            customdata=[
                safe(Wording("{0} {1}", each.labels[index], f"{100 * chance:.4g} %"))
                for each, chance in zip(said, chances, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
            showlegend=False,
        )
    figure.add_vline(50, line={"color": colour("paper"), "dash": "dot", "width": 2})
    figure.update_layout(
        barmode="stack",
        bargap=0.45,
        annotations=[
            {
                "x": 0,
                "y": place,
                "xanchor": "left",
                "yshift": 38,
                "text": safe(Wording("{0} ({1})", each.head, each.model)),
                "font": {"size": 14},
                "showarrow": False,
            }
            for place, each in enumerate(said)
        ],
    )
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", showgrid=False)
    figure.update_yaxes(autorange="reversed", showticklabels=False, showgrid=False, zeroline=False)
    first = said[0]
    finish(
        figure,
        "",
        alt=Wording("{0}: “{1}” {2}", first.head, first.labels[0], percent(first.chance)),
        columns=[
            Wording("Judge"),
            Wording("Model"),
            Wording("Answer"),
            Wording("Probability"),
            Wording("First text"),
            Wording("Second text"),
        ],
        rows=[
            [each.head, each.model, label, chance, *texts]
            for each in said
            for label, chance in zip(each.labels, (each.chance, 1 - each.chance), strict=True)
        ],
        height=60 + 84 * len(said),
        revision=str([each.model for each in said]),
    )
    figure.update_layout(margin={"t": 24, "l": 8, "r": 24})
    return figure


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A probability of "yes", and of which two texts."""

    chance: float
    texts: tuple[str, str]
    taught: bool
    """Whether such pairs stand in the head's training."""


def square(cells: Sequence[Cell], *, title: str) -> go.Figure:
    """A 2 x 2 of topic (same, other) and order (first to second, and back).

    Args:
        cells: Row by row.
        title: Whose probability of what.

    Raises:
        ValueError: There are not four, or a chance is not within 0 to 1.
    """
    if len(cells) != 4 or any(not 0 <= cell.chance <= 1 for cell in cells):
        raise ValueError("a square needs four chances within 0 to 1")
    topics = (Wording("Same topic"), Wording("Other topic"))
    orders = (Wording("first → second"), Wording("second → first"))
    learnt = {True: Wording("in its training"), False: Wording("never in its training")}
    pairs = [cells[:2], cells[2:]]
    figure = Chart(
        go.Heatmap(
            z=[[cell.chance for cell in row] for row in pairs],
            zmin=0,
            zmax=1,
            colorscale=heat(),
            showscale=False,
            xgap=3,
            ygap=3,
            text=[
                [Wording("{0}<br>{1}", percent(c.chance), learnt[c.taught]) for c in row]
                for row in pairs
            ],
            texttemplate="%{text}",
            textfont={"size": 14},
            customdata=[
                ["<br>".join(map(plain, wrap(" → ".join(c.texts), 60))) for c in row]
                for row in pairs
            ],
            hovertemplate="%{z:.4f}<br>%{customdata}<extra></extra>",
        )
    )
    common = {"tickmode": "array", "tickvals": [0, 1], "showgrid": False, "zeroline": False}
    figure.update_xaxes(ticktext=orders, side="top", **common)
    figure.update_yaxes(ticktext=topics, autorange="reversed", **common)
    return finish(
        figure,
        title,
        alt=title,
        columns=[
            Wording("Topic"),
            Wording("Order"),
            Wording("Probability"),
            Wording("In words"),
            Wording("First text"),
            Wording("Second text"),
        ],
        rows=[
            [topics[n // 2], orders[n % 2], cell.chance, learnt[cell.taught], *cell.texts]
            for n, cell in enumerate(cells)
        ],
        height=250,
        revision=str(title),
    )


def alike(cosines: Mapping[str, tuple[float, float]], *, this: str, other: str) -> go.Figure:
    """Cosines of two texts beside those with a text on another topic.

    Args:
        cosines: Of the two texts, and with the other; by what was compared.
        this: What the pair is called.
        other: What the other is called.
    """
    something("way to compare", cosines)
    figure = Chart()
    for index, name in enumerate((this, other)):
        figure.add_bar(
            x=[pair[index] for pair in cosines.values()],
            y=categories(list(cosines)),
            orientation="h",
            name=name,
            marker={"color": series(index)},
            text=[f"{pair[index]:.3f}" for pair in cosines.values()],
            textposition=beside([pair[index] for pair in cosines.values()]),
            hovertemplate="%{x:.4f}<extra>%{fullData.name}</extra>",
        )
    least = min(0.0, *(value for pair in cosines.values() for value in pair))
    figure.update_layout(barmode="group")
    figure.update_xaxes(range=[least, 1])
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    alt = Wording("Cosines of {0} ways to compare two texts", len(cosines))
    if len(cosines) == 1:
        alt = Wording("Cosines of one way to compare two texts")
    return finish(
        figure,
        "",
        alt=alt,
        columns=[Wording("Vectors"), this, other],
        rows=[[name, *pair] for name, pair in cosines.items()],
        height=140 + 56 * len(cosines),
        revision=str(list(cosines)),
        x=Wording("Cosine"),
    )


@dataclass(frozen=True, kw_only=True)
class Count:
    """How often something was so, of all examples."""

    of_all: float
    """Ties count half."""
    said: str
    """The number as people read it."""
    right: str = ""
    """What would be right; "" where that is in the picture."""


def scores(
    judges: Mapping[str, Sequence[Count]], cases: Sequence[str], *, examples: int, title: str
) -> go.Figure:
    """A group of bars for each case: how often each judge says so.

    Args:
        judges: A count for each case, by who judges.
        cases: What is judged.
        examples: How many of each case.
        title: What is counted.

    Raises:
        ValueError: A judge has not a count for each case.
    """
    one_each(len(cases), "case", **judges)
    figure = Chart()
    rights = any(count.right for counts in judges.values() for count in counts)
    for index, (name, counts) in enumerate(judges.items()):
        figure.add_bar(
            x=categories(cases),
            y=[count.of_all for count in counts],
            name=name,
            marker={"color": series(index)},
            customdata=[[safe(count.said), safe(count.right)] for count in counts],
            hovertemplate="%{fullData.name}<br>%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            showlegend=True,
        )
    figure.add_hline(examples / 2, line={"color": colour("grey"), "dash": "dot", "width": 1})
    figure.update_layout(barmode="group")
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[0, examples])
    rows: list[list[str | int | float | None]] = [
        [name, case, count.of_all, count.said, *([count.right] if rights else [])]
        for name, counts in judges.items()
        for case, count in zip(cases, counts, strict=True)
    ]
    return finish(
        figure,
        title,
        alt=Wording("{0} examples, each judged by {1}.", examples, listed(judges)),
        columns=[
            Wording("Judge"),
            Wording("Pair"),
            Wording("Times"),
            Wording("In words"),
            *([Wording("What would be right")] if rights else []),
        ],
        rows=rows,
        height=340,
        revision=str(title),
        y=Wording("Times of {0}", examples),
    )
