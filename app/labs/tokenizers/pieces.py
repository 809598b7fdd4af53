"""A text in the pieces of several vocabularies, word by word."""

from collections.abc import Sequence
from typing import Any

from app.labs.tokenizers.answers import Cut, counts
from app.parts.views import Part, mounted
from viz.figure import wordings
from viz.svg import Wording


class Pieces(Part):
    """Rows of boxes, a row for each vocabulary: the pieces of one word stand in one box.

    Each piece has its id and its bytes below it; what is unknown is marked. Its value is what
    :func:`app.labs.tokenizers.answers.compare` gives; it has no events.

    Example::

        boxes = Pieces(compare("bert-mini", cm.load("bert-mini").tokenizer, "Unbelievable!"))
    """

    def __init__(self, value: Sequence[Cut] | None = None, **more: Any) -> None:
        parts = mounted("pieces", module="labs/tokenizers/pieces", main=True)
        super().__init__(value, **{**parts, **more})

    def postprocess(self, value: Any) -> Any:
        """What the page draws of the rows, with the texts that it translates."""
        if not isinstance(value, list):
            return value
        shown = {
            "rows": [
                {
                    "title": each.title,
                    "note": [each.source, Wording("{0} pieces", f"{each.vocabulary:,}")],
                    "counts": counts(each),
                    "pieces": each.pieces,
                    "truncated": each.truncated,
                }
                for each in value
            ]
        }
        return {**shown, "words": wordings(shown)}
