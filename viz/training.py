"""Curves of training runs: figures over steps, how a run trains, a race, a word over snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from viz.check import among, something
from viz.figure import MOST_TABLE_ROWS, Chart, colour, finish, safe, series
from viz.svg import Wording, listed

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
Points = Sequence[tuple[float, float]]
AXES = {
    "step": Wording("Steps"),
    "tokens": Wording("Tokens"),
    "flops": Wording("Operations"),
    "seconds": Wording("Time, {0}", "s"),
}
MOST_POINTS = 1_000
SHARES = ("accuracy", "f1", "share", "found", "lucky", "exact", "precision", "recall", "error")
"""What a figure that is shown in percent has in its name."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A figure of one run."""

    name: str
    """The run's."""
    number: int
    """Its place among those that are drawn, from 0: the colour."""
    points: Points
    held_out: bool = False


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What can be had without a model."""

    name: str
    value: float


def is_share(key: str) -> bool:
    """Whether a figure is a share, shown in percent."""
    return not key.endswith("_loss") and any(word in key for word in SHARES)


def curves(
    found: Sequence[Curve],
    baselines: Sequence[Baseline] = (),
    *,
    key: str,
    name: str,
    by: str,
    title: str,
    kinds: tuple[str, str],
) -> go.Figure:
    """One figure of one or several runs: lines in training, dots where it is held out.

    Args:
        found: Curves that have at least a point.
        baselines: Drawn across.
        key: The figure's name in the reports: says whether it is a share.
        name: The figure's name for people.
        by: One of ``AXES``.
        title: What is shown.
        kinds: What a line and what dots stand for, where there is one run.
    """
    among("by", by, AXES)
    figure = Chart()
    scale, unit = (
        _time([x for curve in found for x, _ in curve.points]) if by == "seconds" else (1, "")
    )
    factor = 100 if is_share(key) else 1
    one = len({curve.number for curve in found}) < 2
    rows: list[list[str | int | float | None]] = [
        [each.name, None, each.value] for each in baselines
    ]
    every, left_out = _rows(found, MOST_TABLE_ROWS - len(rows))
    for curve, told in zip(found, every, strict=True):
        points = thinned(curve.points)
        called: str = Wording("{0}, held out", curve.name) if curve.held_out else curve.name
        if one:
            called = kinds[curve.held_out]
        tone = series(curve.number)
        dash = "dot" if curve.held_out else DASHES[curve.number % len(DASHES)]
        figure.add_scatter(
            x=[x / scale for x, _ in points],
            y=[factor * y for _, y in points],
            name=called,
            mode="lines+markers" if curve.held_out or len(points) == 1 else "lines",
            line={"color": tone, "dash": dash, "width": 1.5 if curve.held_out else 2},
            marker={"color": tone, "size": 8, "symbol": "circle-open"},
            hovertemplate="%{y:.4g}<extra>%{fullData.name}</extra>",
            showlegend=True,
        )
        rows += [[called, x, y] for x, y in told]
    _across(figure, found, baselines, scale, factor)
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(tickformat="~s" if by in ("tokens", "flops") else None, rangemode="tozero")
    figure.update_yaxes(ticksuffix=" %" if factor == 100 else "")
    along = Wording("Time, {0}", unit) if by == "seconds" else AXES[by]
    return finish(
        figure,
        title,
        alt=Wording("{0} over the run: {1} curves.", name, len(found)),
        columns=[Wording("Run"), AXES[by], name],
        rows=rows,
        height=360,
        revision=f"{title} {key} {by}",
        x=along,
        y=name,
        left_out=left_out,
    )


def _across(
    figure: go.Figure,
    found: Sequence[Curve],
    baselines: Sequence[Baseline],
    scale: float,
    factor: float,
) -> None:
    last = max((x for curve in found for x, _ in curve.points), default=1.0) / scale
    for number, each in enumerate(baselines):
        shown = f"{100 * each.value:.1f} %" if factor == 100 else f"{each.value:.2f}"
        figure.add_scatter(
            x=[0, last],
            y=[factor * each.value] * 2,
            name=Wording("{0}: {1}", each.name, shown),
            mode="lines",
            line={"color": colour("grey"), "dash": DASHES[(number + 1) % len(DASHES)], "width": 1},
            hoverinfo="skip",
            showlegend=True,
        )


def several(
    figures: Mapping[str, Sequence[Curve]], names: Mapping[str, str], *, by: str
) -> go.Figure:
    """A small chart for each of several figures, two side by side: how a run trains.

    Args:
        figures: Curves by the figure's name in the reports.
        names: The figures' names for people.
        by: One of ``AXES``.
    """
    among("by", by, AXES)
    something("figure", figures)
    for key in figures:
        among("figure", key, names)
    lines = math.ceil(len(figures) / 2)
    spacing = 0.34 / max(1, lines)
    figure = make_subplots(rows=lines, cols=2, vertical_spacing=spacing, figure=Chart())
    xs = [x for found in figures.values() for curve in found for x, _ in curve.points]
    scale, unit = _time(xs) if by == "seconds" else (1, "")
    rows: list[list[str | int | float | None]] = []
    every, left_out = _rows([curve for found in figures.values() for curve in found])
    told = iter(every)
    for place, (key, found) in enumerate(figures.items()):
        row, column = divmod(place, 2)
        factor = 100 if is_share(key) else 1
        for curve in found:
            points = thinned(curve.points)
            figure.add_scatter(
                x=[x / scale for x, _ in points],
                y=[factor * y for _, y in points],
                name=curve.name,
                mode="lines+markers" if len(points) == 1 else "lines",
                line={
                    "color": series(curve.number),
                    "dash": DASHES[curve.number % len(DASHES)],
                    "width": 1.5,
                },
                hovertemplate="%{x:.4~s}: %{y:.4~g}<extra>%{fullData.name}</extra>",
                showlegend=False,
                row=row + 1,
                col=column + 1,
            )
            rows += [[names[key], curve.name, x, y] for x, y in next(told)]
        figure.update_yaxes(
            ticksuffix=" %" if factor == 100 else "",
            rangemode="normal" if key == "gradient_norm" else "tozero",
            nticks=4,
            row=row + 1,
            col=column + 1,
        )
    figure.update_xaxes(tickformat="~s" if by in ("tokens", "flops") else None, nticks=5)
    along = Wording("Time, {0}", unit) if by == "seconds" else AXES[by]
    figure.update_xaxes(title={"text": along}, row=lines)
    # Above its chart: beside it, on a phone, a name would lie over the chart to its left.
    figure.update_layout(
        annotations=[
            {
                "text": safe(names[key]),
                "xref": f"x{place + 1 if place else ''} domain",
                "yref": f"y{place + 1 if place else ''} domain",
                "x": 0,
                "y": 1,
                "xshift": -28,
                "yshift": 4,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
            }
            for place, key in enumerate(figures)
        ]
    )
    finish(
        figure,
        "",
        alt=Wording("How the run trains: {0}.", listed(names[key] for key in figures)),
        columns=[Wording("Figure"), Wording("Run"), AXES[by], Wording("Value")],
        rows=rows,
        height=60 + 170 * lines,
        revision=f"{','.join(figures)} {by}",
        left_out=left_out,
    )
    figure.update_layout(margin={"t": 28})
    return figure


def calibration(bins: Sequence[tuple[float, float, int]], *, error: float) -> go.Figure:
    """Whether a model knows how sure it may be.

    Args:
        bins: Mean probability of the answers, share of them that is right, and how many.
        error: Mean distance of the two, 0 to 1.
    """
    something("bin", bins)
    low = min(0.5, *(chance for chance, _, _ in bins))
    figure = Chart()
    figure.add_scatter(
        x=[100 * low, 100],
        y=[100 * low, 100],
        mode="lines",
        line={"color": colour("grey"), "dash": "dash"},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=[100 * chance for chance, _, _ in bins],
        y=[100 * right for _, right, _ in bins],
        mode="lines+markers",
        marker={"color": colour("model"), "size": 9},
        line={"color": colour("model"), "width": 1},
        customdata=[count for _, _, count in bins],
        hovertemplate="%{x:.1f} %: %{y:.1f} % (n = %{customdata})<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(ticksuffix=" %")
    figure.update_yaxes(ticksuffix=" %")
    return finish(
        figure,
        "",
        alt=Wording(
            "The mean distance of sureness and right answers is {0} %.", f"{100 * error:.1f}"
        ),
        columns=[Wording("Probability"), Wording("Right"), Wording("Rows")],
        rows=[list(each) for each in bins],
        height=280,
        x=Wording("How sure the model was"),
        y=Wording("Share of right answers"),
    )


def followed(points: Sequence[tuple[int, float]], *, title: str) -> go.Figure:
    """The probability of one word at every snapshot of a run.

    Args:
        points: Steps, and the probability there.
        title: Whose probability, and where.
    """
    figure = Chart()
    figure.add_scatter(
        x=[f"{step:,}" for step, _ in points],
        y=[100 * chance for _, chance in points],
        mode="lines+markers",
        line={"color": colour("hidden")},
        hovertemplate="%{x}: %{y:.3g} %<extra></extra>",
    )
    # A page moves it to the snapshot that it shows.
    figure.add_vline(len(points) - 1, line={"color": colour("grey"), "width": 1})
    figure.update_xaxes(type="category")
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    return finish(
        figure,
        title,
        alt=Wording("{0}, at {1} snapshots", title, len(points)),
        columns=[Wording("Steps"), Wording("Probability")],
        rows=[[step, chance] for step, chance in points],
        height=260,
        revision=title,
        x=Wording("Steps"),
    )


def thinned(points: Points, most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """At most ``most`` points, evenly, and the last one."""
    every = math.ceil(len(points) / most) or 1
    kept = list(points[::every])
    if points and kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def _rows(found: Iterable[Curve], room: int = MOST_TABLE_ROWS) -> tuple[list[Points], int]:
    """What a table has of each curve: where there are too many points, fewer of the long ones.

    Returns:
        The points of every curve, and how many that are drawn are not among them.
    """
    drawn: list[Points] = [thinned(curve.points) for curve in found]
    sizes = [len(points) for points in drawn]
    tries = range(MOST_POINTS + 1, 1, -1)
    most = next((n for n in tries if sum(min(size, n + 1) for size in sizes) <= room), 1)
    kept: list[Points] = [thinned(points, most) for points in drawn]
    return kept, sum(sizes) - sum(map(len, kept))


def _time(seconds: Sequence[float]) -> tuple[float, str]:
    """How many seconds a unit has that suits a run, and the unit."""
    most = max(seconds, default=0.0)
    if most < 120:
        return 1.0, "s"
    return (60.0, "min") if most < 7200 else (3600.0, "h")
