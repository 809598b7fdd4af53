"""The Unmasking lab: a text comes out of [MASK]s, and every step of it can be looked at.

The sentence comes from the sentence block; its words are hidden but for those that stay. Its model
writes where it predicts pieces, else the one that the page offers for the text's language.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

import core_models as cm
from app.labs.unmasking import answers as unmasking
from app.labs.unmasking.answers import EXAMPLES, ORDER_NAMES
from app.labs.unmasking.steps import STAY, Steps, steps
from app.page.sentence import Shared
from app.parts.controls import NEXT_SEED, OpenNumber, OpenSlider, answer, offer, remember
from app.parts.plain import (
    Code,
    Files,
    Heading,
    Kept,
    Line,
    SentenceInput,
    Table,
    sentences,
    table,
)
from app.serving.ask import MOST_SEED, clean_name, clean_text
from app.serving.languages import reader_of, script_of
from app.serving.pieces import cut_note
from app.serving.session import Session
from core_models.prediction import Unmasking
from core_models.prediction.passes import KINDS
from viz.svg import Wording, listed
from viz.unmasking import Cell, steps_svg
from viz.words import percent

SHOWN = 4
SEEN = Wording(
    "Each row is one pass of the model: what it put in is coloured, what was still hidden is a dot,"
    " or [MASK] in the chosen row."
    " Click a word above the rows to let it stay or go."
)
ABOUT = """\
At first all words are [MASK] but those that stay. Each step asks the model for every hidden piece \
in one pass and keeps some of the answers; the next step reads them, so later words fit earlier \
ones. In a single step nothing fits: each piece is told as if the others were unknown."""
ORDERS = """\
Masked diffusion is trained on any share of hidden pieces, so its steps may come in any order \
(diffusion-mini; recipe masked-diffusion in the Train tab). A BERT has always had the same small \
share hidden: it writes, too, but knows little of texts that are almost all [MASK]."""
AGAIN = """\
Pieces that were put in with the least probability can go back to [MASK] before the next step, and \
are answered anew with more in sight."""


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    example: gr.Radio
    kept: dict[str, Any]
    """What a link keeps and a question holds, by name."""
    again: gr.Button
    problem: Line
    picture: Steps
    said: Line
    table: Table
    files: Files
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try, the steps, and folds for all else."""
    kept: dict[str, Any] = {"stays": Kept([]), "at": Kept(-1)}
    with gr.Row(elem_classes=["choices"]):
        Heading("How does a text come out of [MASK]s?")
        example = gr.Radio(list(EXAMPLES), label="What to try", scale=4, min_width=300)
        kept["order"] = gr.Dropdown(
            [(str(text), name) for name, text in ORDER_NAMES.items()],
            value="surest",
            label="Order",
            filterable=False,
            elem_id="unmasking-order",
            scale=2,
            min_width=150,
        )
        kept["steps"] = OpenSlider(
            1, unmasking.MOST_STEPS, value=8, step=1, label="Steps", buttons=[], min_width=190
        )
        again = gr.Button("Next seed", size="sm", scale=0, min_width=110)
    problem, sentence = Line(problem=True), SentenceInput(["text", "model"])
    with gr.Column(elem_classes=["answers"]):
        picture, said = Steps(elem_id="unmasking-steps"), Line()
    with gr.Accordion("How pieces are put in", open=False):
        with gr.Row(elem_classes=["choices"]):
            kept["drawn"] = gr.Checkbox(
                False, label="Draw each piece by its probability", min_width=240
            )
            kept["again"] = OpenSlider(
                0.0,
                unmasking.MOST_AGAIN,
                value=0.0,
                step=0.05,
                label="Share that goes back to [MASK]",
                buttons=[],
                min_width=240,
            )
            kept["seed"] = OpenNumber(
                1, label="Seed", precision=0, minimum=0, maximum=MOST_SEED, min_width=120
            )
        Line(AGAIN)
    with gr.Column(elem_classes=["answers"]):
        with gr.Accordion("Every step", open=False):
            every = Table(elem_id="unmasking-table", copies=True)
            files = Files("cloze-unmasking")
        with gr.Accordion("What this shows", open=False):
            for text in (ABOUT, ORDERS):
                Line(text)
        code = Code()
    return Controls(sentence, example, kept, again, problem, picture, said, every, files, code)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; examples, seeds, words that stay and steps are set without a request."""
    c, kept = controls, controls.kept
    asked: dict[str, Component] = {"sentence": c.sentence, **kept}
    changed = [part.change for name, part in asked.items() if name != "at"]  # type: ignore[attr-defined]
    outputs = [c.picture, c.said, c.table, c.code]
    answer(changed, partial(show, session), asked, outputs, c.problem)
    answer([c.files.ask], partial(draw, session), asked, [c.files], c.problem)  # type: ignore[attr-defined]
    c.picture.stay(None, [c.picture, kept["stays"]], kept["stays"], js=STAY)  # type: ignore[attr-defined]
    c.picture.scrub(None, c.picture, kept["at"], js="value => value.at")  # type: ignore[attr-defined]
    c.again.click(None, kept["seed"], kept["seed"], js=NEXT_SEED)
    sets = {name: kept[name] for name in ("steps", "order", "stays")}
    offer(c.example, tries(), c.sentence, sets)
    remember("unmasking", kept)


def tries() -> dict[str, dict[str, Any]]:
    """An example's text and what it sets, by its name."""
    return {
        name: {"text": e.text, "hide": [], "steps": e.steps, "order": e.order, "stays": stays(e)}
        for name, e in EXAMPLES.items()
    }


def stays(example: unmasking.Example) -> list[int]:
    """The words that stay in an example, as a link says it; words are parted by blanks."""
    words = example.text.rstrip(".").split()
    numbers = [words.index(word) for word in example.stays.split()]
    return [unmasking.sign(example.text), *numbers]


Written = tuple[str, unmasking.Cut, unmasking.Setting, Unmasking, list[list[dict[str, Any]]]]
"""Who wrote, the text, what was chosen, every step, and the cells of the rows."""


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Every step, what came out, and the code."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    name, sentence, setting, found, rows = await _written(session, question)
    at = question.get("at")
    at = min(at, len(rows) - 1) if type(at) is int and at >= 0 else -1
    return [
        steps(sentence, setting, rows, at=at, by=session.languages(name)),
        sentences(came(found), SEEN, cut_note(sentence.cut, sum(map(len, sentence.words)))),
        every(rows),
        unmasking.code_lines(session.loadable(name), sentence, setting),
    ]


async def draw(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Every step as a drawing."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()]
    name, _, _, _, rows = await _written(session, question)
    cells = [[Cell(**cell) for cell in row] for row in rows]
    return [steps_svg(cells, title=Wording("{0}: the text, step by step", name))]


async def _written(session: Session, question: Mapping[str, Any]) -> Written:
    name, model = await asyncio.to_thread(writer, session, question["sentence"])
    sentence = unmasking.cut(model, clean_text(question["sentence"].get("text")))
    setting = unmasking.read_setting(question, sentence)
    unmasking.hidden(sentence, setting)
    found = await session.compute(lambda: unmasking.write(model, sentence, setting), model)
    return name, sentence, setting, found, unmasking.rows(model, sentence, found)


def writer(session: Session, given: Mapping[str, Any]) -> tuple[str, cm.Model]:
    """The chosen model, or one that predicts pieces."""
    name = clean_name(given.get("model"))
    model = session.model(name)
    if not set(KINDS) & set(model.heads):
        other = reader_of(session, script_of(clean_text(given.get("text"))) or "en")
        if other is not None:
            return other, session.model(other)
    return name, model


def came(found: Unmasking) -> str:
    """The text, and how sure the model was of its pieces."""
    chances = found.probabilities.values()
    sure = percent(sum(chances) / len(chances))
    if len(found.hidden) == 1:
        return Wording("“{0}”: one piece, put in with {1}.", found.text, sure)
    if len(found.steps) == 1:
        text = "“{0}”: all {1} pieces at once, put in with {2} on average."
        return Wording(text, found.text, len(found.hidden), sure)
    text = "“{0}”: {1} pieces in {2} steps, put in with {3} on average."
    return Wording(text, found.text, len(found.hidden), len(found.steps), sure)


def every(rows: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Each step with what it put in and what went back."""
    lines: list[list[Any]] = []
    for number, row in enumerate(rows[1:], 1):
        new = [
            Wording("{0} {1}", cell["text"], percent(cell["chance"]))
            for cell in row
            if cell["kind"] == "new"
        ]
        before = rows[number - 1]
        back = [
            old["text"]
            for old, cell in zip(before, row, strict=True)
            if cell["kind"] == "again" or (cell["kind"] == "new" and old["text"])
        ]
        text = " ".join(cell["text"] or "[MASK]" for cell in row)
        lines.append([number, text, listed(new), listed(back)])
    columns = [Wording("Step"), Wording("Text"), Wording("Put in"), Wording("Went back to [MASK]")]
    return table(Wording("The text, step by step"), columns, lines)
