"""A text as it comes out of [MASK]s: a row for each step, a column for each piece."""

from collections.abc import Mapping
from typing import Any

from app.labs.unmasking.answers import Cut, Setting, sign
from app.parts.views import Part, mounted

STAY = """({ sign, columns, wish }, stays) => {
  const chosen = new Set(stays[0] === sign ? stays.slice(1)
    : columns.filter((each) => each.stays).map(({ word }) => word));
  if (!chosen.delete(wish)) chosen.add(wish);
  return [[sign, ...[...chosen].sort((a, b) => a - b)]];
}"""
"""The text's sign and the words that stay: of those chosen last, whose answer may be on its way."""


class Steps(Part):
    """Rows of pieces, one for each step, of which one is looked at; above them the text itself.

    A row is chosen by its number, by the slider, or by letting all steps run. A click on a word of
    the text lets it stay in place, or go. Its value is what :func:`steps` gives.

    Events:
        stay: A word is to stay, or to go; ``wish`` of the value is its number.
        scrub: Another step is looked at; ``at`` of the value is its number.

    Example::

        shown = Steps(steps(sentence, setting, rows(model, sentence, found)), elem_id="steps")
        shown.stay(None, [shown, stays], stays, js=STAY)
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
