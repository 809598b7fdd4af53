"""Two texts as a model reads them: pieces in a row, with the segment below each."""

from typing import Any

from app.parts.views import Part, mounted
from viz.figure import wordings


class Reading(Part):
    """A row of pieces, coloured by their segment; special and unknown ones are marked.

    Its value has ``pieces`` (each with ``piece``, ``id``, ``segment``, ``special``, ``unknown``)
    and ``said``, a line below the row; it has no events.

    Example::

        row = Reading({**pairs.drawn(model, "One.", "Two."), "said": "Both texts."})
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("reading", module="labs/pairs/reading"), **more})

    def postprocess(self, value: Any) -> Any:
        """With the texts that the page translates."""
        return value and {**value, "words": wordings({"said": value["said"]})}
