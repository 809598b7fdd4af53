"""What a fine-tuned model reached: beside baselines, its confusions, where an answer may stand."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.check import one_each, something, square
from viz.figure import Chart, beside, categories, colour, finish, heat, whole
from viz.svg import Wording


def reached(rows: Sequence[tuple[str, float]], *, name: str, share: bool) -> go.Figure:
    """Bars of one figure: the model, then what can be had without one.

    Args:
        rows: Who, and the figure; the model first.
        name: What the figure is called.
        share: Whether it is a share, shown in percent.
    """
    something("method", rows)
    factor = 100 if share else 1
    shown = [f"{100 * value:.1f} %" if share else f"{value:.3f}" for _, value in rows]
    figure = Chart()
    figure.add_bar(
        x=[factor * value for _, value in rows],
        y=categories([who for who, _ in rows]),
        orientation="h",
        text=shown,
        textposition=beside([value for _, value in rows]),
        marker={"color": [colour("model"), *([colour("grey")] * (len(rows) - 1))]},
        hovertext=whole([who for who, _ in rows]),
        hovertemplate="%{hovertext}: %{text}<extra></extra>",
    )
    figure.update_xaxes(
        range=[min(0, *(factor * value for _, value in rows)), factor],
        ticksuffix=" %" if share else "",
    )
    figure.update_yaxes(autorange="reversed")
    return finish(
        figure,
        "",
        alt=Wording("{0}: {1} for the model, beside what can be had without it.", name, shown[0]),
        columns=[Wording("Method"), name],
        rows=[[who, value] for who, value in rows],
        height=100 + 34 * len(rows),
        revision="reached",
        x=name,
    )


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> go.Figure:
    """Which label a model says where another one is right.

    Args:
        labels: In the order of rows and columns.
        counts: For each right label, how often the model said which.
    """
    square(len(labels), "label", "counts", counts)
    names, entire = categories(labels), whole(labels)
    shares = [[count / (sum(row) or 1) for count in row] for row in counts]
    figure = Chart()
    figure.add_heatmap(
        z=[[100 * share for share in row] for row in shares],
        x=names,
        y=names,
        text=[[f"{count:,}" for count in row] for row in counts],
        texttemplate="%{text}" if len(labels) <= 12 else None,
        colorscale=heat(),
        zmin=0,
        zmax=100,
        xgap=2,
        ygap=2,
        colorbar={"ticksuffix": " %", "thickness": 10},
        customdata=[[[row, column] for column in entire] for row in entire],
        hovertemplate="%{customdata[0]} → %{customdata[1]}: %{text} (%{z:.1f} %)<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    return finish(
        figure,
        Wording("What it takes for what"),
        alt=Wording(
            "How often the model says which of {0} labels where which is right.", len(labels)
        ),
        columns=[Wording("Right"), *labels],
        rows=[[label, *row] for label, row in zip(labels, counts, strict=True)],
        # Below a chart, too, Plotly leaves no more than half of it to turned labels.
        height=150 + max(34 * len(labels), 110, 10 * max(map(len, names), default=0)),
        revision="confusion",
        x=Wording("What the model says"),
        y=Wording("Right"),
    )


def answers(pieces: Sequence[str], starts: Sequence[float], ends: Sequence[float]) -> go.Figure:
    """How likely an answer begins and ends at each piece of a text.

    Args:
        pieces: As they stand in the text.
        starts: Probability that the answer begins there.
        ends: That it ends there.
    """
    one_each(len(pieces), "piece", starts=starts, ends=ends)
    names = categories(pieces)
    figure = Chart()
    for name, values, tone in (
        (Wording("begins"), starts, "model"),
        (Wording("ends"), ends, "hidden"),
    ):
        figure.add_bar(
            x=names,
            y=[100 * value for value in values],
            name=name,
            marker={"color": colour(tone)},
            hovertext=whole(pieces),
            hovertemplate="%{hovertext}: %{y:.2f} %<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(type="category", tickangle=-60)
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    return finish(
        figure,
        Wording("Where the answer begins and ends"),
        alt=Wording("The probability of {0} pieces to begin and to end the answer.", len(pieces)),
        columns=[Wording("Piece"), Wording("begins"), Wording("ends")],
        rows=[list(each) for each in zip(pieces, starts, ends, strict=True)],
        height=300,
        revision="answers",
    )
