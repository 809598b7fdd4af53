"""One page for the tests of a file: what an earlier test has left there is put back."""

from collections.abc import Iterator
from typing import Any

from tests.app.visitors import Cloze

SENTENCE = "The capital of France is Paris."
MODEL = "bert-mini"
CLOSE = """() => {
  for (const each of document.querySelectorAll('.view details[open]:not(.fold)')) each.open = false;
  document.activeElement?.blur();
}"""
SHOWN = "([text, model]) => Cloze.sentence.text === text && Cloze.sentence.model === model"


def choose(cloze: Cloze, model: str) -> None:
    """Choose a model in the sentence bar and wait until the sentence is cut by it."""
    page = cloze.page
    if not page.is_visible("#sentence-model input"):  # the open lab does not read it
        page.evaluate("name => Cloze.chooseModel(name)", model)
    elif page.evaluate("Cloze.sentence.model") != model:
        page.click("#sentence-model input")
        page.click(f'[role="option"][aria-label^="{model} ·"]')
    page.wait_for_function("model => Cloze.sentence.model === model", arg=model)


def mark(cloze: Cloze, *positions: int) -> None:
    """Hide these pieces and no others."""
    cloze.page.evaluate(
        """positions => Cloze.change({marks: new Map(
            positions.map((position) => [position, {position, case: 'mask'}]))})""",
        list(positions),
    )


def start_over(cloze: Cloze, *, text: str = SENTENCE, model: str = MODEL, marks=()) -> None:
    """Text, model and marks as a link gives them; what folds out is folded in."""
    cloze.page.evaluate(CLOSE)
    cloze.write(text)
    choose(cloze, model)
    cloze.page.wait_for_function(SHOWN, arg=[text, model])
    mark(cloze, *marks)


def renewed(cloze: Cloze, script: str = "") -> Iterator[Cloze]:
    """What a fixture yields: the page started over, and this script run; no problem at the end."""
    start_over(cloze)
    cloze.page.evaluate(script)
    yield cloze
    assert cloze.problems == []


def lab(cloze: Cloze, tab: type, text: str, start: str) -> Iterator[Any]:
    """What a fixture yields: a lab over this text, its controls as a script sets them."""
    start_over(cloze, text=text)
    opened = tab(cloze)
    opened.page.evaluate(start)
    opened.settle()
    yield opened
    assert cloze.problems == []
