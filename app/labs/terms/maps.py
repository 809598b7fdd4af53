"""Aligned maps of one head's score terms, one cell read in all of them at once."""

from collections.abc import Mapping
from typing import Any

from app.parts.views import Part, mounted
from viz.figure import wordings
from viz.svg import Wording

LABELS = {
    "content": Wording("content to content"),
    "c2p": Wording("content to position"),
    "p2c": Wording("position to content"),
    "position": Wording("content to position"),
    "segment": Wording("content to segment"),
}
OFF = {
    "head": Wording("off in this head"),
    "layer": Wording("off in this layer"),
    "model": Wording("off in every layer"),
}


class TermMaps(Part):
    """Maps over the same rows and columns: the terms of a score, their sum, its softmax.

    A cell that is pointed at, or reached by arrow keys, is marked in all maps and told as a sum.
    Each term has a switch. Below stands a button that saves every cell of all maps as CSV.

    Its value is what :func:`maps` gives; after a switch was turned, ``wish`` in it are the terms
    that are to be off.

    Events:
        turn: a switch was turned.
        told: the tour has given a choice back (``Cloze.kept``).

    Example::

        shown = TermMaps(elem_id="maps", main=True)
        shown.turn(None, shown, off, js="maps => [maps.wish]")
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
            "maps", module="labs/terms/maps", events=["turn", "told"], main=main, files=elem_id
        )
        super().__init__(value, elem_id=elem_id, **{**parts, **more})


def name_of(names: list[str], name: str) -> str:
    """What a term is called; one product alone holds contents and positions together."""
    return LABELS[name] if len(names) > 1 else Wording("q·k: contents and positions together")


def maps(found: Mapping[str, Any], **kept: Any) -> dict[str, Any]:
    """The value of a :class:`TermMaps` from what ``examine`` found."""
    names, off, tokens = found["names"], found["off"], found["tokens"]
    terms = [
        {
            "term": name,
            "title": name_of(names, name),
            "note": OFF[found["scope"]] if name in off else "",
            "values": values,
        }
        for name, values in zip(names, found["terms"], strict=True)
    ]
    value = {
        "terms": terms,
        "off": off,
        "top": found["top"],
        **{name: found[name] for name in ("scores", "probabilities", "before")},
        "rows": [[n, tokens[n]["text"]] for n in found["rows"]],
        "columns": [[n, tokens[n]["text"]] for n in found["columns"]],
        **kept,
    }
    return {**value, "words": wordings(value)}
