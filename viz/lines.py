"""The head view as a self-contained SVG: two columns of tokens, joined by their attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from viz.attention import Pair, strongest
from viz.encoding import Weights, check_weights
from viz.svg import INK, MONO, SERIF, SOFT, Wording, document, write
from viz.words import percent

MOST_LINES = 600
LEAST_WEIGHT = 0.01
ROW = 22
COLUMN = 150
MIDDLE = 200
TOP = 56
MODEL, HIDDEN = "#0f5c63", "#a23f05"
ATTENTION = Wording("Attention")
_text = partial(write, size=11)


@dataclass(frozen=True, kw_only=True)
class Focus:
    """One token whose links alone are drawn."""

    position: int
    side: str
    """"from": what this token looks at; "to": which tokens look at it."""


def head_svg(
    weights: Weights,
    labels: Sequence[str],
    *,
    title: str = ATTENTION,
    marked: Sequence[int] = (),
    keep: Sequence[int] | None = None,
    focus: Focus | None = None,
) -> str:
    """Draw one head as lines from token to token.

    Args:
        weights: [L, L], row = the token that looks.
        labels: L words; they may hold anything, the text is escaped.
        title: the line above the picture.
        marked: positions drawn in the second colour (masked tokens).
        keep: positions to show, None for all; nothing is re-normalised.
        focus: draw only the links of this token, with their numbers.

    Returns:
        An SVG document. At most 600 lines of at least 1 % are drawn, and the picture says so when
        there are more.

    Raises:
        ValueError: when labels and weights do not fit or a position does not exist.
    """
    length = len(labels)
    if weights.shape != (length, length):
        raise ValueError(f"weights are {weights.shape}, but there are {length} labels")
    check_weights(weights)
    shown = list(range(length)) if keep is None else list(keep)
    rows = {position: row for row, position in enumerate(shown)}
    if focus is not None and focus.position not in rows:
        raise ValueError(f"position {focus.position} is not among the tokens shown")
    links, left_out = _links(weights, shown, focus)
    width, height = 2 * COLUMN + MIDDLE, TOP + ROW * len(shown) + 30
    parts = [
        _text(width / 2, 22, title, anchor="middle", family=SERIF, size=15),
        _text(COLUMN, TOP - 10, Wording("from"), anchor="end", fill=SOFT),
        _text(COLUMN + MIDDLE, TOP - 10, Wording("to"), fill=SOFT),
        *(_curve(link, rows, focus) for link in reversed(links)),
        *_labels(labels, rows, set(marked), links, focus),
        _text(width / 2, height - 10, _note(left_out), anchor="middle", size=10.5, fill=SOFT),
    ]
    return document(width, height, title, parts)


def _links(weights: Weights, shown: list[int], focus: Focus | None) -> tuple[list[Pair], int]:
    """The links to draw, strongest first, and how many of at least 1 % are left out."""
    part = weights[shown][:, shown]
    if focus is not None:
        part = np.zeros_like(part)
        row = shown.index(focus.position)
        if focus.side == "from":
            part[row] = weights[focus.position, shown]
        else:
            part[:, row] = weights[shown, focus.position]
    links = [
        Pair(source=shown[link.source], target=shown[link.target], weight=link.weight)
        for link in strongest(part, MOST_LINES)
        if link.weight >= LEAST_WEIGHT
    ]
    return links, int((part >= LEAST_WEIGHT).sum()) - len(links)


def _middle_of(row: int) -> float:
    return TOP + ROW * (row + 0.5)


def _curve(link: Pair, rows: dict[int, int], focus: Focus | None) -> str:
    start, end = COLUMN + 8, COLUMN + MIDDLE - 8
    bend = (end - start) * 0.45
    source, target = _middle_of(rows[link.source]), _middle_of(rows[link.target])
    route = f"M{start} {source}C{start + bend} {source} {end - bend} {target} {end} {target}"
    # Lines that stand alone may be stronger: nothing lies behind them.
    opacity = 0.2 + 0.8 * link.weight**0.5 if focus else 0.06 + 0.94 * link.weight
    return (
        f'<path d="{route}" fill="none" stroke="{HIDDEN if focus else MODEL}" '
        f'stroke-width="{0.6 + 4.4 * link.weight:.2f}" stroke-opacity="{opacity:.3f}"/>'
    )


def _labels(
    labels: Sequence[str],
    rows: dict[int, int],
    marked: set[int],
    links: list[Pair],
    focus: Focus | None,
) -> list[str]:
    """Both columns of words; beside the focused token's partners stand their numbers."""
    numbers: dict[tuple[str, int], str] = {}
    for link in links if focus else ():
        end = ("to", link.target) if focus and focus.side == "from" else ("from", link.source)
        numbers[end] = percent(link.weight)
    parts = []
    for position, row in rows.items():
        for side, x, anchor in (("from", COLUMN, "end"), ("to", COLUMN + MIDDLE, "start")):
            words = [labels[position], numbers.get((side, position), "")]
            text = "\N{EN SPACE}".join(reversed(words) if side == "from" else words).strip()
            chosen = focus == Focus(position=position, side=side)
            parts.append(
                _text(
                    x,
                    _middle_of(row) + 4,
                    text,
                    anchor=anchor,
                    family=MONO,
                    size=12.5,
                    fill=HIDDEN if chosen or position in marked else INK,
                    bold=chosen,
                )
            )
    return parts


def _note(left_out: int) -> str:
    if left_out > 0:
        return Wording(
            "Lines of at least 1 %; darker and thicker means more attention. {0} of the weaker "
            "ones are left out.",
            left_out,
        )
    return Wording("Lines of at least 1 %; darker and thicker means more attention.")
