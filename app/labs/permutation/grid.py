"""The order of prediction as chips that can be moved, and which piece each stream may see."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.labs.permutation.answers import Cut, Setting, leaking, ordering
from app.parts.views import Part, mounted


class OrderGrid(Part):
    """Pieces in the order of their prediction, and under them what both streams see.

    A piece is moved by dragging its chip or by the arrow keys. A row of the grids that is pointed
    at, or whose name has the focus, is told as a sentence. The grids are as wide as the page lets
    them be, all their columns in sight; a button saves them as CSV.

    Its value is what :func:`grid` gives; after a piece was moved, ``wish`` in it is the order that
    is wanted.

    Events:
        move: a piece was moved.

    Example::

        shown = OrderGrid(elem_id="order", main=True)
        shown.move(None, shown, order, js="grid => [grid.wish]")
    """

    def __init__(
        self,
        value: Mapping[str, Any] | None = None,
        *,
        elem_id: str | None = None,
        main: bool = False,
        **more: Any,
    ) -> None:
        parts = mounted(
            "order", module="labs/permutation/grid", events=["move"], main=main, files=elem_id
        )
        super().__init__(value, elem_id=elem_id, **{**parts, **more})


def grid(
    sentence: Cut, setting: Setting, remembered: int = 0, *, own: bool = False, **kept: Any
) -> dict[str, Any]:
    """The value of an :class:`OrderGrid`; a row of a grid is a string of 0 and 1.

    Args:
        sentence: The pieces.
        setting: What the visitor chose.
        remembered: Pieces of the sentence before, which everyone sees.
        own: Whether the visitor has moved a piece.
        kept: Goes with the value.
    """
    found = ordering(sentence, setting, setting.order)
    if setting.leak:
        found = leaking(found)
    targets = found.targets[0, : int(found.counts[0])].tolist()
    content, query = found.visibility[0].tolist(), found.target_visibility[0].tolist()
    return {
        "pieces": names(sentence),
        "order": list(setting.order),
        "own": own,
        "targets": targets,
        "content": [{"position": row, "seen": _bits(seen)} for row, seen in enumerate(content)],
        "query": [{"position": row, "seen": _bits(query[n])} for n, row in enumerate(targets)],
        "remembered": remembered,
        **kept,
    }


def names(sentence: Cut) -> list[str]:
    """Each piece as it is shown; a blank of its own reads as nothing: then its piece is shown."""
    return [token.text.strip() or token.piece for token in sentence.tokens]


def _bits(seen: Sequence[bool]) -> str:
    return "".join("1" if flag else "0" for flag in seen)
