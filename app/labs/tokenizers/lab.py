"""The Tokenizers lab: the sentence of the page, cut by each kind of vocabulary.

The sentence and the model come from the sentence block.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.tokenizers import answers as tokenizers
from app.labs.tokenizers import tables
from app.labs.tokenizers.answers import EXAMPLES
from app.labs.tokenizers.pieces import Pieces
from app.page.sentence import Shared
from app.parts.controls import OpenRadio, answer, remember
from app.parts.plain import Code, Files, Heading, Line, SentenceInput, Table
from app.serving.ask import clean_name, clean_text
from app.serving.session import Session

READS = ("text", "model")
INTRO = """\
A model never sees words, only pieces of its vocabulary. The kind of vocabulary decides where the \
cuts are, what is unknown, and what counts as a whole word."""
BOXES = "Pieces of one word stand in one box; neighbours change colour."
FRAMES = """\
Models that are installed here may have a vocabulary of their own; where one differs, it stands \
below its family."""
WRITE = f"name => ({json.dumps(EXAMPLES)})[name]"


class Controls(NamedTuple):
    """What the lab consists of."""

    example: gr.Radio
    off: gr.CheckboxGroup
    sentence: SentenceInput
    problem: Line
    said: Line
    pieces: Pieces
    counted: SentenceInput
    numbers: Table
    listed: SentenceInput
    every: Table
    fold: gr.Accordion
    frames: Table
    files: Files
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try, the picture, and folds for all else."""
    Heading("One line, cut four ways")
    with gr.Row(elem_classes=["choices"]):
        example = OpenRadio(list(EXAMPLES), label="What to try", scale=3, min_width=300)
        off = gr.CheckboxGroup(
            [("Ids", "ids"), ("Bytes", "bytes"), ("Special pieces", "special")],
            value=[],
            label="Hide",
            elem_id="tokenizers-off",
            scale=2,
            min_width=260,
        )
    problem, sentence, said = Line(problem=True), SentenceInput(READS), Line()
    pieces = Pieces()
    with gr.Accordion("Pieces, words, characters", open=False):
        counted = SentenceInput(READS)
        numbers = Table(elem_id="tokenizers-numbers")
    with gr.Accordion("Every piece", open=False):
        listed = SentenceInput(READS)
        every = Table(elem_id="tokenizers")
        files = Files("tokenizers")
    with gr.Accordion("Where the special pieces go in the published models", open=False) as fold:
        Line(FRAMES)
        frames = Table(elem_id="tokenizers-templates")
    with gr.Accordion("What this shows", open=False):
        Line(INTRO)
        Line(BOXES)
        Table(tables.rules(), elem_id="tokenizers-rules")
    chosen = (example, off, sentence, problem, said, pieces)
    return Controls(*chosen, counted, numbers, listed, every, fold, frames, files, Code())


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every sentence; examples are written and pieces hidden without a request."""
    c = controls
    asked = {"sentence": c.sentence, "example": c.example}
    shown = [c.example, c.said, c.pieces, c.code]
    answer([c.sentence.change], partial(show, session), asked, shown, c.problem)
    # Tables are asked for while they are unfolded.
    for making, sentence, table in (
        (tables.numbers, c.counted, c.numbers),
        (tables.every_piece, c.listed, c.every),
    ):
        read = {"sentence": sentence}
        answer([sentence.change], partial(tabled, session, making), read, [table], c.problem)
    answer([c.files.ask], partial(save, session), asked, [c.files], c.problem)
    c.example.input(None, c.example, shared.text, js=WRITE)
    c.fold.expand(
        lambda: tables.frames(session.models()),
        None,
        c.frames,
        queue=False,
        show_progress="hidden",
        show_progress_on=[],
        api_visibility="private",
    )
    remember("tokenizers", {"off": c.off})


# --- answers: plain values in, plain values out ---------------------------------------------------


def rows(session: Session, question: Mapping[str, Any]) -> list[tokenizers.Cut]:
    """The cuts of the sentence, first the chosen model's own."""
    text, name = clean_text(question.get("text")), clean_name(question.get("model"))
    return tokenizers.compare(name, session.model(name).tokenizer, text)


def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """What each vocabulary makes of the sentence."""
    sentence = question["sentence"] or {}
    cuts = rows(session, sentence)
    text = sentence["text"]
    example = next((name for name, line in EXAMPLES.items() if line == text), None)
    return [
        # A choice that is right already is not sent: another one may be on its way.
        gr.skip() if example == question["example"] else gr.Radio(value=example),
        tokenizers.summary(cuts),
        cuts,
        tokenizers.code_lines(session.loadable(sentence["model"]), text),
    ]


def tabled(
    session: Session, making: Callable[[Any], dict[str, Any]], question: Mapping[str, Any]
) -> list[Any]:
    """A table of the cuts."""
    return [making(rows(session, question["sentence"] or {}))]


def save(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The boxes as a drawing."""
    return [tables.picture(rows(session, question["sentence"] or {}))]
