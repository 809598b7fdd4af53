"""Charts of a generator's choice for each gap, and of where two models get a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from viz.check import one_each, something, within
from viz.figure import Chart, categories, colour, finish, plain, tick
from viz.svg import Wording
from viz.words import percent

MOST_GAPS = 12
ROW = 23
"""Pixels of a bar with its gap."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A word that the generator may write into a gap."""

    text: str
    probability: float
    drawn: bool
    """It is what the generator wrote."""
    true: bool
    """It is the word of the text."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A place that was hidden."""

    position: int
    text: str | None
    """What stood there; None where the text itself has a gap."""
    drawn: str
    choices: Sequence[Choice]
    """The most probable ones, then what was drawn and what stood there if they are not among them.
    """


KINDS = {
    (False, False): (Wording("other words"), "heat_2"),
    (True, False): (Wording("drawn: a forgery"), "random"),
    (False, True): (Wording("the word of the text"), "hidden"),
    (True, True): (Wording("drawn, and the word of the text: real"), "model"),
}
"""Legend and colour by whether a word was drawn and is that of the text."""


def generated(gaps: Sequence[Gap]) -> go.Figure:
    """Probabilities of words for each gap as bars, gap after gap; which was drawn is marked.

    Raises:
        ValueError: There is no gap.
    """
    something("gap", gaps)
    shown = gaps[:MOST_GAPS]
    rows: list[Choice | str] = []
    for gap in shown:
        before = Wording("gap") if gap.text is None else f"<b>{plain(gap.text)}</b>"
        rows += [Wording("{0} → [MASK] → {1}", before, f"<b>{plain(gap.drawn)}</b>"), *gap.choices]
    figure = Chart()
    for kind, (name, tone) in KINDS.items():
        listed = [
            (n, row)
            for n, row in enumerate(rows)
            if isinstance(row, Choice) and (row.drawn, row.true) == kind
        ]
        if listed:
            figure.add_bar(
                x=[row.probability for _, row in listed],
                y=[n for n, _ in listed],
                orientation="h",
                width=0.75,  # Plotly measures by the nearest two bars of a trace, here gaps apart
                name=name,
                marker={"color": colour(tone)},
                text=[percent(row.probability) for _, row in listed],
                textposition="outside",
                textfont={"color": colour("ink")},
                cliponaxis=False,
                customdata=[plain(row.text) for _, row in listed],
                hovertemplate="%{customdata}: %{x:.4f}<extra></extra>",
            )
    heads = [(n, row) for n, row in enumerate(rows) if not isinstance(row, Choice)]
    figure.add_scatter(
        x=[0] * len(heads),
        y=[n for n, _ in heads],
        mode="text",
        text=[row for _, row in heads],
        textposition="middle right",
        textfont={"color": colour("ink"), "size": 14},
        hoverinfo="skip",
        showlegend=False,
    )
    choices = [(n, row) for n, row in enumerate(rows) if isinstance(row, Choice)]
    figure.update_layout(barmode="overlay")
    # Room for the numbers beside the bars.
    figure.update_xaxes(range=[0, 1.16], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%")
    figure.update_yaxes(
        range=[len(rows) - 0.5, -0.6],
        tickmode="array",
        tickvals=[n for n, _ in choices],
        ticktext=[tick(row.text) for _, row in choices],
        showgrid=False,
    )
    words = Wording("{0} words were hidden; the first became “{1}”.")
    if len(gaps) == 1:
        words = Wording("{0} word was hidden and became “{1}”.")
    finish(
        figure,
        "",
        alt=Wording(words, len(gaps), gaps[0].drawn),
        columns=[
            Wording("Position"),
            Wording("In the text"),
            Wording("Word"),
            Wording("Probability"),
            Wording("Drawn"),
        ],
        rows=[
            [gap.position, gap.text, each.text, each.probability, "✓" if each.drawn else ""]
            for gap in gaps
            for each in gap.choices
        ],
        height=92 + ROW * len(rows),
        revision=str([gap.position for gap in gaps]),
    )
    figure.update_layout(margin={"t": 44}, legend={"itemclick": False, "itemdoubleclick": False})
    return figure


def losses(
    tokens: Sequence[str],
    generator: Sequence[tuple[int, float]],
    discriminator: Sequence[float | None],
) -> go.Figure:
    """Where each of the two models gets a loss, and how much.

    Args:
        tokens: Of the text, special ones too.
        generator: Positions that were hidden, and the loss there in nats.
        discriminator: Its loss at every token; None where it has none (a gap of the text).
    """
    one_each(len(tokens), "token", discriminator=discriminator)
    for position, _ in generator:
        within("a generator's position", position, 0, len(tokens) - 1)
    judged = [(n, loss) for n, loss in enumerate(discriminator) if loss is not None]
    labels = categories(tokens)
    figure = Chart()
    for name, tone, found in (
        (Wording("Generator"), "random", generator),
        (Wording("Discriminator"), "model", judged),
    ):
        figure.add_bar(
            x=[labels[n] for n, _ in found],
            y=[loss for _, loss in found],
            name=name,
            marker={"color": colour(tone)},
            hovertext=[plain(tokens[n]) for n, _ in found],
            hovertemplate="%{hovertext}: %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(
        type="category", categoryorder="array", categoryarray=labels, showgrid=False
    )
    figure.update_layout(barmode="group", bargap=0.2)
    of_generator = dict(generator)
    alt = Wording(
        "The generator has a loss at {0} of {1} tokens, the discriminator at all of them.",
        len(generator),
        len(tokens),
    )
    if len(judged) < len(tokens):
        alt = Wording(
            "The generator has a loss at {0} of {1} tokens, the discriminator at {2}.",
            len(generator),
            len(tokens),
            len(judged),
        )
    return finish(
        figure,
        "",
        alt=alt,
        columns=[
            Wording("Position"),
            Wording("Token"),
            Wording("Generator"),
            Wording("Discriminator"),
        ],
        rows=[
            [n, token, of_generator.get(n), loss]
            for n, (token, loss) in enumerate(zip(tokens, discriminator, strict=True))
        ],
        height=300,
        revision=str(len(tokens)),
        y=Wording("Loss in nats"),
    ).update_layout(margin={"t": 36})
