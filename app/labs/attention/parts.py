"""What no library has: the grid of all heads, and one head as lines from token to token."""

from typing import Any

from app.parts.views import Part, mounted


class HeadGrid(Part):
    """Every head of a model as a small map, the means of the layers beside them.

    Its value has ``layers``, ``heads``, ``labels`` and what :class:`viz.Overview` sends. Which
    cells are marked, and which was clicked, is the value of :class:`Chosen`.
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        parts = mounted("head-grid", module="labs/attention/heads", main=True)
        super().__init__(value, **{**parts, **more})


class Chosen(Part):
    """The cells of the :class:`HeadGrid` that are marked; it draws nothing itself.

    Its value has ``cells`` and ``own`` ("layer.head" of each that is marked, and that was chosen)
    and ``kind``: ``one`` cell is looked at, or several are ``picked`` or ``off``. After a click it
    also has ``picked``: ``layer`` and ``head`` (-1 for a mean) and, of several, the new ``own``.

    Events:
        pick: a cell was clicked, or Enter pressed on it.

    Example::

        chosen.pick(None, chosen, layer, js="({ picked }) => picked.layer")
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        parts = mounted("chosen-heads", module="labs/attention/heads", events=["pick"])
        super().__init__(value, **{**parts, **more})


class HeadLines(Part):
    """One head as lines from the tokens that look to those looked at; pointing isolates a token.

    Its value has ``title``, ``tokens`` (``label``, ``original``, ``position``, ``word``,
    ``special``, ``masked``) and the numbers of :func:`viz.head_numbers`; None for nothing.
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        parts = mounted("head-lines", module="labs/attention/lines", main=True)
        super().__init__(value, **{**parts, **more})
