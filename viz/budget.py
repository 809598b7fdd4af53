"""What models cost: parameters by part as stacked bars, and what narrow tables save."""

# ruff: noqa: RUF001 (multiplication signs are meant)

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from viz.figure import Chart, categories, colour, finish, whole
from viz.svg import Wording, listed
from viz.words import percent

COLOURS = {
    "pieces": "#17747c",
    "positions": "#79b4b4",
    "segments": "#cfe3e1",
    "projection": "#e69f00",
    "attention": "#0072b2",
    "feed_forward": "#7fb8dc",
    "norms": "#8f8a81",
    "relative": "#cc79a7",
    "other": "#7a4f9a",
    "head": "#c4500b",
}
"""One colour for each part of a model, the same in all themes: none is a colour of ``LIGHT``, of
which a page in the dark takes the twin."""


def short_number(value: float) -> str:
    """A number as people say it: 109,482,240 is "109.5 M"."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.99995 * size:  # what would be 1000.0 of the unit below
            return f"{value / size:.1f} {unit}" if unit != "G" else f"{value / size:.2f} {unit}"
    return f"{value:g}"


def bars(
    sizes: Mapping[str, Mapping[str, int]],
    names: Mapping[str, str],
    *,
    shares: bool = False,
    total: str | None = None,
) -> go.Figure:
    """Stacked bars, one for each size, from the first at the top.

    Args:
        sizes: Parameters by part, by the name of the size.
        names: Every part, of those in `COLOURS`, in the order of stacking, with its name in words.
        shares: Each bar to full length instead of all to one scale.
        total: What the sum of the parts is called in the table.

    Raises:
        ValueError: A size has a part without a name, or a part has no colour.
    """
    for size, parts in sizes.items():
        if unknown := parts.keys() - names.keys():
            raise ValueError(f"{size} has parts without a name: {', '.join(sorted(unknown))}")
    if strange := [part for part in names if part not in COLOURS]:
        raise ValueError(f"no part is called {strange[0]!r}; there are {', '.join(COLOURS)}")
    totals = {size: sum(parts.values()) for size, parts in sizes.items()}
    labels = categories(list(sizes))
    figure = Chart()
    for part, name in names.items():
        counts = [parts.get(part, 0) for parts in sizes.values()]
        if not any(counts):
            continue
        lengths = [
            100 * count / total if shares and total else count
            for count, total in zip(counts, totals.values(), strict=True)
        ]
        figure.add_bar(
            x=lengths,
            y=labels,
            name=name,
            orientation="h",
            marker={"color": COLOURS[part]},
            customdata=[
                [f"{count:,}", percent(count / max(1, total))]
                for count, total in zip(counts, totals.values(), strict=True)
            ],
            hovertext=whole(list(sizes)),
            hovertemplate="%{hovertext}<br>%{fullData.name}<br>"
            "%{customdata[0]} (%{customdata[1]})<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed")
    if not shares:
        _say_totals(figure, labels, list(totals.values()))
    rows: list[list[str | int | float | None]] = [
        [name, *(parts.get(part, 0) for parts in sizes.values())]
        for part, name in names.items()
        if any(parts.get(part) for parts in sizes.values())
    ]
    return finish(
        figure,
        "",
        alt=Wording(
            "Parameters by part: {0}",
            listed(Wording("{0} {1}", size, short_number(n)) for size, n in totals.items()),
        ),
        columns=[Wording("Part"), *sizes],
        rows=[*rows, [total or Wording("Sum"), *totals.values()]],
        height=150 + 44 * max(1, len(sizes)),
        revision=f"{','.join(sizes)} {shares}",
        x=Wording("Share of the parameters, %") if shares else Wording("Parameters"),
    )


def _say_totals(figure: go.Figure, labels: Sequence[str], totals: Sequence[int]) -> None:
    figure.add_scatter(
        x=list(totals),
        y=list(labels),
        mode="text",
        text=[f" {short_number(total)}" for total in totals],
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    figure.update_xaxes(range=[0, 1.1 * max(totals, default=1)])
    figure.update_layout(margin={"r": 44})  # on a phone a total needs more than that tenth


def narrow_tables(
    vocabulary: int, width: int, embedding: int, *, full: int, narrow: int, break_even: float
) -> go.Figure:
    """V x H against V x E + E x H as E grows, with the break-even and where a model stands.

    Args:
        vocabulary: V.
        width: H, of the layers.
        embedding: E, of the model's tables.
        full: Parameters of tables of full width, counted.
        narrow: Parameters of the model's tables and projection, counted; ``full`` without one.
        break_even: Width E below which narrow tables save parameters.
    """
    most = 1.12 * width
    figure = Chart()
    figure.add_scatter(
        x=[0, most], y=[full, full], mode="lines", name="V × H", line={"color": colour("hidden")}
    )
    figure.add_scatter(
        x=[0, most],
        y=[0, (vocabulary + width) * most],
        mode="lines",
        name="V × E + E × H",
        line={"color": colour("model")},
    )
    factorised = embedding != width
    figure.add_scatter(
        x=[embedding],
        y=[narrow if factorised else full],
        mode="markers",
        name=Wording("This model"),
        marker={"size": 12, "color": colour("model" if factorised else "hidden")},
    )
    figure.add_vline(x=break_even, line={"dash": "dot", "color": colour("grey")})
    return finish(
        figure,
        "",
        alt=Wording("Narrow tables save parameters below E = {0}.", f"{break_even:.0f}"),
        columns=["V", "H", "E", "V × H", "V × E + E × H", Wording("Break-even E")],
        rows=[[vocabulary, width, embedding, full, narrow if factorised else None, break_even]],
        height=300,
        revision=f"{vocabulary} {width}",
        x=Wording("E, width of the tables"),
        y=Wording("Parameters"),
    )
