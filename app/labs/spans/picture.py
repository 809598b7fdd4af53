"""The span between its neighbours: what stands where, and what the two tokens around it tell."""

from collections.abc import Mapping
from typing import Any

from app.labs.spans.answers import MOST_PIECES, Cut, Span, Told, describe
from app.parts.views import Part, mounted

AROUND = 4
"""Pieces on either side of the span."""


class SpanPicture(Part):
    """Words as chips with a hidden span, lines from the tokens around it to each place in it.

    Under each place stands its number and the first choice of the head that is told by the two
    tokens. The picture scrolls sideways where it is wider than the page, and begins at the span.

    Its value is what :func:`picture` gives. It has no events.

    Example::

        chosen = SpanPicture(elem_id="span", main=True)
        chosen.value = picture(sentence, (3, 5), told)
    """

    def __init__(
        self, value: Mapping[str, Any] | None = None, *, main: bool = False, **more: Any
    ) -> None:
        parts = mounted("span", module="labs/spans/picture", main=main)
        super().__init__(value, **{**parts, **more})


def picture(sentence: Cut, span: Span, told: Told | None, **kept: Any) -> dict[str, Any]:
    """The value of a :class:`SpanPicture`; ``told`` is None where no model tells."""
    start, stop = span
    tokens, edge = sentence.tokens, describe(sentence, span).edge
    last = min(stop, start + MOST_PIECES)
    shown = [*range(max(0, start - AROUND), last), *range(stop, min(len(tokens), stop + AROUND))]
    columns = []
    for n in shown:
        token = tokens[n]
        column: dict[str, Any] = {"text": token.text, "special": token.special}
        column["boundary"] = not edge and n in (start - 1, stop)
        if start <= n < stop:
            said = told.pieces[n - start].span_boundary if told else None
            column |= {
                "place": n - start,
                "seen": told.seen[n - start] if told else "[MASK]",
                "gap": token.masked,
                "first": said and [said.candidates[0].display, said.candidates[0].probability],
            }
        columns.append(column)
    return {
        "columns": columns,
        "before": shown[0] > 0,
        "after": shown[-1] < len(tokens) - 1,
        **kept,
    }
