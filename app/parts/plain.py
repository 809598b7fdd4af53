"""Small parts of labs: what Python answered, in the page's language (line, table, listing, file).

And two for the sentence block: what Python is asked with (:class:`SentenceInput`), and what a lab
hides there (:class:`SentenceOutput`).
"""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import count
from typing import Any

import gradio as gr
from gradio.components import Component

from app.parts.views import Part, mounted
from viz.figure import wordings
from viz.svg import Wording, told

MODULE = "parts/plain"
_NUMBERS = count(1)


class Line(Part):
    """A line of text from Python, translated on the page; read out when it changes.

    Its value is a wording or the English text, or None or "" for nothing. Texts of visitors inside
    it stay as they are: the page finds the sentence by its pattern (``message`` of language.js).
    Several sentences: :func:`sentences`.

    Args:
        value: The first text.
        elem_id: Id in the page.
        problem: Whether it tells what went wrong. Such a line has the event ``seen``: it, and the
            lab around it, was seen for the first time.
        names: What settings are called on the page, by their paths: a line that begins with such a
            path begins with that name there.
    """

    def __init__(
        self,
        value: str | None = None,
        *,
        elem_id: str | None = None,
        problem: bool = False,
        names: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self._names = dict(names or {})
        self._folds: dict[str, list[str]] = {}
        name, events = ("problem-line", ["seen"]) if problem else ("answer-line", [])
        parts = mounted(name, module=MODULE, events=events)
        super().__init__(value, elem_id=elem_id, **{**parts, **more})

    def call(self, parts: Mapping[str, Component]) -> None:
        """Call values, by their names, as the components that hold them are labelled.

        Where a problem is told of a value, the folds that its component stands in are opened.
        """
        self._folds |= {name: folds for name, part in parts.items() if (folds := _folds(part))}
        labels = {name: getattr(part, "label", None) for name, part in parts.items()}
        self._names = {name: label for name, label in labels.items() if label} | self._names

    def postprocess(self, value: Any) -> Any:
        """A wording also goes as its key and its values, a message with the names for its paths."""
        found = super().postprocess(value)
        if isinstance(value, Wording):
            return {**found, "told": told(value)}
        lines = value.splitlines() if isinstance(value, str) else []
        paths = {re.match(r"[\w.]*", line)[0] for line in lines}  # type: ignore[index]
        names = {path: name for path, name in self._names.items() if path in paths}
        folds = [fold for path in names for fold in self._folds.get(path, ())]
        found = {**found, "names": names} if names else found
        return {**found, "folds": folds} if folds else found


def _folds(part: Component) -> list[str]:
    """Labels of the folds that a component stands in, the outermost first."""
    found, around = list[str](), part.parent
    while around is not None:
        if isinstance(around, gr.Accordion) and around.label:
            found.insert(0, around.label)
        around = around.parent
    return found


class SentenceInput(Part):
    """What the sentence block holds, as an input of a lab; it draws nothing.

    Its value is None until the lab around it is first seen, then an object of what it reads. It has
    the event ``change`` then, and whenever that is another one; a lab that nobody looks at asks
    nothing, and catches up once it is opened.

    Args:
        reads: What is in its value, of ``text``, ``model``, ``marks`` and ``language`` (of the
            page).
    """

    def __init__(self, reads: Sequence[str] = ("text", "model", "marks"), **more: Any) -> None:
        super().__init__(**{**mounted("sentence-input", module=MODULE, reads=reads), **more})


class Kept(Part):
    """A plain value that nothing shows: it goes with each question, and a link may keep it.

    It has the event ``change``. Answers set it as they set any component, and so do components
    without a request::

        button.click(None, [word, words], words, js="(word, words) => [[...words, word]]")
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("kept", module=MODULE), **more})


class SentenceOutput(Part):
    """What a lab hides in the sentence block, as an output; it draws nothing.

    Its value is ``{"text": ..., "hide": [[start, end], ...]}``: of this text, these characters and
    nothing else are hidden, if it is still the one that is there. An example with a text of its own
    needs no answer: ``Cloze.chooseExample`` of the page's chips.js.
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("sentence-output", module=MODULE), **more})


class Heading(Part):
    """What a lab asks, or what is shown, in a line; its value is as that of a line."""

    def __init__(self, value: str | None = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("heading", module=MODULE), **more})

    def postprocess(self, value: Any) -> Any:
        """A wording also goes as its key and its values."""
        found = super().postprocess(value)
        return {**found, "told": told(value)} if isinstance(value, Wording) else found


class Table(Part):
    """A table of plain values: numbers as they are, texts as they are, wordings translated.

    Its value is what :func:`table` gives. A cell may be a number, a text, None, or a pair of the
    number, as which it is kept, and the text that is shown.

    Args:
        value: The first table.
        elem_id: Id in the page, and the name of the file that it is saved as; None = it is not.
        copies: Whether a button copies it, as text with tabs, which spreadsheets take.
    """

    def __init__(
        self,
        value: Mapping[str, Any] | None = None,
        *,
        elem_id: str | None = None,
        copies: bool = False,
        **more: Any,
    ) -> None:
        parts = mounted("table", module=MODULE, files=elem_id, copies=copies)
        super().__init__(value, elem_id=elem_id, **{**parts, **more})


class Code(Part):
    """Lines of Python in a fold, with a button that copies them; its value is the text."""

    def __init__(
        self, value: str | None = None, *, elem_id: str | None = None, **more: Any
    ) -> None:
        super().__init__(value, elem_id=elem_id, **{**mounted("listing", module=MODULE), **more})


class Files(Part):
    """Buttons that save a drawing of the lab as SVG or PNG, in the page's language.

    It has the event ``ask``; the answer, and its value, is the drawing as text (:mod:`viz.svg`).
    Tables and figures have buttons of their own.

    Args:
        name: What the files are called.
    """

    def __init__(self, name: str = "picture", *, value: str | None = None, **more: Any) -> None:
        parts = mounted("files", module=MODULE, events=["ask"], files=name)
        super().__init__(value, **{**parts, **more})

    def postprocess(self, value: Any) -> Any:
        """With a number of its own: the same drawing may be saved again."""
        found = super().postprocess(value)
        return {**found, "number": next(_NUMBERS)} if isinstance(value, str) else found


def sentences(*texts: str | None) -> str:
    """Several wordings as the text of one line, without those that are None or empty."""
    said = [text for text in texts if text]
    return reduce(lambda all_, text: Wording("{0} {1}", all_, text), said) if said else ""


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    messages: Sequence[int] = (),
    **kept: Any,
) -> dict[str, Any]:
    """The value of a :class:`Table`.

    Args:
        caption: What it shows.
        columns: Headings.
        rows: Cells of each row.
        messages: Columns of texts of ours that are translated by their pattern, as errors are.
        kept: Comes back with the value when it is an event's input.
    """
    found = {"caption": caption, "columns": list(columns), "rows": [list(row) for row in rows]}
    return {**found, "words": wordings(found), "messages": list(messages), **kept}
