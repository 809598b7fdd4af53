"""A text as it comes out of [MASK]s: a row for each step, a column for each piece."""

from collections.abc import Mapping
from typing import Any

from app.labs.unmasking.answers import Cut, Setting, sign
from app.parts.views import Part, mounted


class Steps(Part):
    """Rows of pieces, one for each step, of which one is looked at; above them the text itself.

    A row is chosen by its number, by the slider, or by letting all steps run. A click on a word of
    the text lets it stay in place, or go. Its value is what :func:`steps` gives.

    Events:
        stay: Which words stay has changed; ``wish`` of the value holds the text's sign and their
            numbers.
        scrub: Another step is looked at; ``at`` of the value is its number.

    Example::

        shown = Steps(steps(sentence, setting, rows(model, sentence, found)), elem_id="steps")
        shown.stay(None, shown, stays, js="value => [value.wish]")
    """

    def __init__(self, value: Mapping[str, Any] | None = None, **more: Any) -> None:
        parts = mounted("steps", module="labs/unmasking/steps", events=["stay", "scrub"], main=True)
        super().__init__(value, **{**parts, **more})


def steps(
    sentence: Cut, setting: Setting, rows: list[list[dict[str, Any]]], **kept: Any
) -> dict[str, Any]:
    """The value of a :class:`Steps`.

    Args:
        sentence: The text.
        setting: Which words stay.
        rows: As :func:`app.labs.unmasking.answers.rows`.
        kept: ``at``: the step that is looked at; ``by``: names of the models that answered.
    """
    columns = [
        {"text": sentence.tokens[place].text, "word": number, "stays": number in setting.stays}
        for number, word in enumerate(sentence.words)
        for place in word
    ]
    return {
        "text": sentence.text,
        "sign": sign(sentence.text),
        "columns": columns,
        "rows": rows,
        **kept,
    }
