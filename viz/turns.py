"""What a distance is worth under rotary positions: one query with one key, and with every key."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.check import one_each, within
from viz.figure import Chart, categories, colour, finish, plain
from viz.svg import Wording

SEEN, UNSEEN = Wording("seen"), Wording("not seen")
BEFORE, AFTER = Wording("Before the turn"), Wording("After the turn")
RINGS = Wording("After the turn, not seen")


def score_by_distance(
    scores: Sequence[float],
    *,
    reach: int,
    distance: int,
    window: int | None,
    title: str,
) -> go.Figure:
    """The score of one query and one key at every distance, with the true one marked.

    Args:
        scores: For the distances -reach to reach.
        reach: Most distance, each way.
        distance: At which the two stand in the text.
        window: Distances that a local layer sees, each way: shaded; None = all.
        title: Who looks at whom.
    """
    one_each(2 * reach + 1, "distance", scores=scores)
    within("distance", distance, -reach, reach)
    figure = Chart()
    figure.add_scatter(
        x0=-reach,
        dx=1,
        y=list(scores),
        mode="lines",
        line={"color": colour("model"), "width": 2},
        name=Wording("at this distance"),
        hovertemplate="%{x}: %{y:.4g}<extra></extra>",
    )
    true = scores[distance + reach]
    figure.add_scatter(
        x=[distance],
        y=[true],
        mode="markers",
        marker={"color": colour("hidden"), "size": 11},
        name=Wording("where it stands"),
        hovertemplate="%{x}: %{y:.4g}<extra></extra>",
    )
    figure.add_vline(x=distance, line={"dash": "dot", "width": 1, "color": colour("hidden")})
    if window is not None:
        edge = min(window, reach) + 0.5
        figure.add_vrect(
            -edge, edge, fillcolor=colour("heat_1"), opacity=0.5, line={"width": 0}, layer="below"
        )
    figure.update_xaxes(range=[-reach - 0.5, reach + 0.5])
    columns: list[str] = [Wording("Distance"), Wording("Score")]
    rows: list[list[str | int | float | None]] = [
        [at, score] for at, score in enumerate(scores, -reach)
    ]
    if window is not None:
        columns.append(Wording("Seen"))
        rows = [
            [*row, SEEN if abs(at) <= window else UNSEEN] for at, row in enumerate(rows, -reach)
        ]
    return finish(
        figure,
        title,
        alt=Wording(
            "Score of one query and one key at the distances {0} to {1}, from {2} to {3}; it is "
            "{4} at distance {5}, where they stand in the text.",
            *(-reach, reach, *(f"{each:.3g}" for each in (min(scores), max(scores), true))),
            distance,
        ),
        columns=columns,
        rows=rows,
        height=340,
        revision=f"{reach}",
        x=Wording("Distance"),
        y=Wording("Score"),
    )


def score_by_piece(
    pieces: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    seen: Sequence[bool],
    *,
    first: int,
    key: int,
    title: str,
) -> go.Figure:
    """The scores of one query with every piece, before and after the turn.

    Args:
        pieces: Texts of N pieces.
        before: [N], scores as if nothing were turned.
        after: [N], scores of the model.
        seen: [N], which pieces the query may see; the others are drawn as rings.
        first: Position of the first piece.
        key: Position of the piece that is marked.
        title: Who looks.
    """
    one_each(len(pieces), "piece", before=before, after=after, seen=seen)
    places = list(range(first, first + len(pieces)))
    figure = Chart()
    # As categories: Plotly leaves out those texts that a narrow chart has no room for.
    labels, whole = categories(pieces), [plain(piece) for piece in pieces]
    across: list[str | None] = []
    heights: list[float | None] = []
    for label, low, high in zip(labels, before, after, strict=True):
        across += [label, label, None]
        heights += [low, high, None]
    figure.add_scatter(
        x=across,
        y=heights,
        mode="lines",
        line={"color": colour("line"), "width": 3},
        showlegend=False,
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=labels,
        y=list(before),
        mode="markers",
        marker={"color": colour("soft"), "size": 7, "symbol": "square"},
        name=BEFORE,
        hovertext=whole,
        hovertemplate="%{hovertext}: %{y:.4g}<extra>%{fullData.name}</extra>",
    )
    for shown, name, symbol in ((True, AFTER, "circle"), (False, RINGS, "circle-open")):
        drawn = [n for n, each in enumerate(seen) if bool(each) is shown]
        if not drawn:
            continue
        tones = [colour("hidden" if places[n] == key else "model") for n in drawn]
        figure.add_scatter(
            x=[labels[n] for n in drawn],
            y=[after[n] for n in drawn],
            mode="markers",
            marker={"color": tones, "size": 9, "symbol": symbol},
            name=name,
            hovertext=[whole[n] for n in drawn],
            hovertemplate="%{hovertext}: %{y:.4g}<extra>%{fullData.name}</extra>",
        )
    figure.update_xaxes(type="category", range=[-0.6, len(pieces) - 0.4], showgrid=False)
    return finish(
        figure,
        title,
        alt=Wording("Scores of one query with {0} pieces, before and after the turn.", len(pieces)),
        columns=[Wording("Looks at"), BEFORE, AFTER, Wording("Seen")],
        rows=[
            [f"{place} {piece}", low, high, SEEN if each else UNSEEN]
            for place, piece, low, high, each in zip(
                places, pieces, before, after, seen, strict=True
            )
        ],
        height=280,
        revision=f"{first} {len(pieces)}",
        y=Wording("Score"),
    )
