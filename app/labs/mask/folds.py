"""Closer looks below the candidates: folds of Gradio's components, each asked only while open."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.parts.controls import (
    InsteadError,
    OpenDropdown,
    OpenRadio,
    answer,
    choices,
    offer,
    remember,
)
from app.parts.plain import Code, Kept, Line, SentenceInput
from app.serving.session import Session
from core_models import InputError
from viz.svg import Wording

Section = Callable[[Session, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""From a question (``text``, ``model``, ``marks``, ``at``, ``rivals``, ``models``) to ``gaps`` and
``at`` of the chooser, ``said``, ``shown`` (a value for each part that shows it), ``notes``,
``code``, and where models can be chosen ``choices`` and the ``models`` that have answered."""
MOST_NOTES = 8
MIXED = Wording("Here every marked word is hidden, also those that were replaced or kept above.")
BESIDE = "(parent) => [Cloze.besideParent(parent)]"
OPENS = "(open) => ({ __type__: 'update', open })"


class Look(NamedTuple):
    """What a fold asks and offers."""

    name: str
    """In links, after ``mask-``; it never changes."""
    title: str
    intro: str
    tries: Mapping[str, Mapping[str, Any]]
    """``text``, ``hide`` and ``words`` by the name of the example."""
    section: Section
    shows: Callable[[], list[Component]]
    """Lays out what shows the answer."""
    words: str = ""
    """The label of the words that a visitor adds; "" where none are."""
    models: int = 0
    """How many models can be chosen; 0: that of the sentence block answers."""


class Fold(NamedTuple):
    """What a fold consists of."""

    open: Kept
    box: gr.Accordion
    sentence: SentenceInput
    problem: Line
    tries: gr.Radio
    chosen: dict[str, Component]
    """What can be chosen, by its name in links."""
    readers: gr.Dropdown | None
    """Shows which models answer, as long as nobody has chosen any."""
    parent: Kept
    """The published parent of the sentence's model, beside which it can be set."""
    beside: gr.Button
    shown: list[Component]


def build(look: Look) -> Fold:
    """Lay a fold out: what to choose, the answer, and how to recompute it."""
    is_open = Kept(False)
    with gr.Accordion(look.title, open=False) as box:
        sentence = SentenceInput()
        Line(look.intro)
        with gr.Row(elem_classes=["choices"]):
            tries = OpenRadio(list(look.tries), label="What to try", scale=2, min_width=260)
            chosen: dict[str, Component] = {}
            if look.words:
                chosen["words"] = gr.Textbox(
                    "",
                    label=look.words,
                    placeholder="words, with commas between",
                    max_length=400,
                    max_lines=1,
                    scale=2,
                    min_width=240,
                )
            readers = None
            if look.models:
                chosen["models"] = Kept([])
                readers = OpenDropdown(
                    [],
                    value=[],
                    label=f"Models, up to {look.models}",
                    multiselect=True,
                    max_choices=look.models,
                    scale=3,
                    min_width=300,
                )
            parent = Kept()
            beside = gr.Button(
                "Beside its published parent", visible=False, size="sm", scale=0, min_width=220
            )
            chosen["at"] = OpenDropdown(
                [("", "")], value="", label="Gap", visible="hidden", scale=1, min_width=160
            )
        problem, said = Line(problem=True), Line()
        shown = look.shows()
        notes = [Line() for _ in range(MOST_NOTES)]
        shown = [chosen["at"], said, *shown, *notes, Code()]
        shown += [readers, parent, beside] if readers else []
    return Fold(is_open, box, sentence, problem, tries, chosen, readers, parent, beside, shown)


def wire(fold: Fold, look: Look, session: Session) -> None:
    """Answer every choice while the fold is open, and keep whether it is."""
    fold.box.expand(None, None, fold.open, js="() => true")
    fold.box.collapse(None, None, fold.open, js="() => false")
    fold.open.change(None, fold.open, fold.box, js=OPENS)  # type: ignore[attr-defined]
    sets = {name: part for name, part in fold.chosen.items() if name != "models"}
    tries = {name: {"at": "", **each} for name, each in look.tries.items()}
    offer(fold.tries, tries, fold.sentence, sets)
    triggers = [part.change for part in (fold.sentence, *fold.chosen.values())]  # type: ignore[attr-defined]
    asked = {"sentence": fold.sentence, **fold.chosen}
    if fold.readers is not None:
        fold.readers.input(None, fold.readers, fold.chosen["models"], js="names => [names]")
        asked["readers"] = fold.readers
        fold.beside.click(None, fold.parent, fold.chosen["models"], js=BESIDE)
    # A column has no value that could be taken away.
    empty = [gr.skip() if isinstance(part, gr.Column) else None for part in fold.shown]
    answer(triggers, partial(show, look.section, session, empty), asked, fold.shown, fold.problem)
    remember(f"mask-{look.name}", {"open": fold.open, **fold.chosen})


async def show(
    section: Section, session: Session, empty: Sequence[Any], question: Mapping[str, Any]
) -> list[Any]:
    """What a fold shows of a question; where there is no answer, only the reason.

    Args:
        section: Answers.
        session: The page's service.
        empty: The values of an answer that is none.
        question: What the fold asks.
    """
    sentence, at = question["sentence"], question["at"]
    if not isinstance(sentence, Mapping):  # not open yet
        return [gr.skip()] * len(empty)
    place = re.fullmatch(r"#(\d{1,4})", at, re.ASCII) if isinstance(at, str) else None
    asked: dict[str, Any] = {"at": int(place[1]) if place else None}
    asked |= {"rivals": split(question.get("words")), "models": question.get("models")}
    readers = "readers" in question
    try:
        found = await section(session, {**sentence, **asked})
    except InputError as error:
        kept = [gr.skip()] * (3 if readers else 0)
        shown = empty[1 : len(empty) - len(kept)]
        raise InsteadError(str(error), [gr.Dropdown(visible="hidden"), *shown, *kept]) from error
    mixed = any(mark.get("case") != "mask" for mark in sentence["marks"])
    notes = [*found["notes"], *([MIXED] if mixed else [])][:MOST_NOTES]
    answered = [
        gap_choices(found["gaps"], found["at"], at),
        found["said"],
        *found["shown"],
        *notes,
        *[None] * (MOST_NOTES - len(notes)),
        found["code"],
    ]
    if not readers:
        return answered
    names = [entry["name"] for entry in found["models"]]
    value = {} if question["readers"] == names else {"value": names}
    parent = found["parent"]
    offered = gr.update(visible=parent is not None)
    return [*answered, gr.update(choices=found["choices"], **value), parent, offered]


def gap_choices(gaps: Sequence[Mapping[str, Any]], at: int | None, value: Any) -> Any:
    """The chooser of gaps, which is there where there are several."""
    options = {f"#{gap['positions'][0]}": f"{gap['text']} ({gap['positions'][0]})" for gap in gaps}
    chosen = next((f"#{gap['positions'][0]}" for gap in gaps if at in gap["positions"]), "")
    return gr.Dropdown(
        choices=choices(options, "en", chosen, value), visible=len(gaps) > 1 or "hidden"
    )


def split(text: Any) -> list[str]:
    """Words that were typed with commas between them."""
    words = re.split(r"[,\uff0c;\u3001\n]", text) if isinstance(text, str) else []
    return list(dict.fromkeys(word.strip() for word in words if word.strip()))
