"""The Spans lab: a hidden run of words, told by each place and by the two tokens around it.

The sentence and what is hidden come from the sentence block. Its model answers where it has both
heads of SpanBERT, else the first installed one that has, or the one that was chosen here.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.spans import answers as spans
from app.labs.spans.answers import EXAMPLES
from app.labs.spans.asked import Asked, read, say_heads, say_moved, say_notes
from app.labs.spans.lengths import draw as draw_spans
from app.labs.spans.lengths import law
from app.labs.spans.picture import SpanPicture, picture
from app.page.sentence import Shared
from app.parts.controls import OpenDropdown, OpenNumber, OpenRadio, answer, offer, remember
from app.parts.figure import Figure
from app.parts.plain import (
    Code,
    Heading,
    Kept,
    Line,
    SentenceInput,
    SentenceOutput,
    Table,
    table,
)
from app.serving.ask import MOST_SEED, whole_number
from app.serving.session import Session
from viz.spans import heads
from viz.svg import Wording
from viz.words import percent

HEADS = (Wording("Masked-token head"), Wording("Span-boundary head"))
INSIDE = {
    "[MASK] (8 of 10)": "mask",
    "Other words (1 of 10)": "random",
    "Its own words (1 of 10)": "kept",
}
MOST_CHOICES = 24
"""Hidden runs that can be chosen between."""
SHOWN = 13
"""How many values an answer has."""
ABOUT = """\
SpanBERT hides runs of words. Its masked-token head answers from each hidden place itself; a \
second head answers from the two tokens around the run and the number of the place alone, so that \
these two learn to know what lies between them."""
LINES = """\
Each line carries the state of a boundary token to a place. With the number of the place that is \
all that the boundary head gets. Under each number: its first choice."""
CASES = """\
Of ten spans in pretraining, eight are [MASK] throughout, one holds other words and one its own; \
the draw is made once for the whole span. The boundary head never reads these places: what it says \
can change only as far as the encoder carries the inside into the two boundary states."""
LAW = """\
Lengths in words follow a geometric law with p = 0.2, cut at 10 and scaled up again. On a short \
text the 15 % are soon used up, so spans are cut short; spans that meet become one."""
LACKING = Wording(
    "No SpanBERT with both heads is installed, so nothing is predicted here. The files on the "
    "model hub lack these heads as well. Train one: choose SpanBERT in the Train tab, or run {0}",
    "python -m zoo build spanbert-mini",
)
PICK = "(first, count) => ({ first, count, at: Date.now() })"
DRAW = "() => ({ draw: true, at: Date.now() })"


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    hides: SentenceOutput
    example: gr.Radio
    inside: gr.Dropdown
    reader: gr.Radio
    which: gr.Radio
    first: gr.Dropdown
    count: gr.Dropdown
    draw: gr.Button
    roll: gr.Number
    problem: Line
    notes: Line
    picture: SpanPicture
    said: Line
    heads: Figure
    choices: Table
    moved: Line
    law: Figure
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try, the picture, what is hidden, and folds for all else."""
    Heading("What the edges of a span know")
    with gr.Row(elem_classes=["choices"]):
        example = gr.Radio(list(EXAMPLES), label="What to try", scale=4, min_width=300)
        inside = gr.Dropdown(
            list(INSIDE.items()),
            value="mask",
            label="What stands inside",
            filterable=False,
            elem_id="spans-inside",
            scale=1,
            min_width=230,
        )
        roll = OpenNumber(
            1,
            label="Seed of the other words",
            precision=0,
            minimum=0,
            visible="hidden",
            scale=1,
            min_width=130,
        )
    sentence, hides, problem = SentenceInput(), SentenceOutput(), Line(problem=True)
    with gr.Column(elem_classes=["answers"]):
        drawn = SpanPicture(elem_id="spans-picture", main=True)
        with gr.Row(elem_classes=["choices"]):
            first = OpenDropdown([], label="First word", scale=2, min_width=150)
            count = OpenDropdown(
                list(range(1, spans.LONGEST + 1)), label="Number of words", scale=1, min_width=130
            )
            draw = gr.Button("Draw spans as in pretraining", size="sm", scale=1, min_width=230)
        which = OpenRadio([], value=0, label="Which span", visible="hidden")
        reader = OpenRadio([], value="", label="Model", visible="hidden")
        notes, said, moved = Line(), Line(), Line()
        with gr.Row():
            with gr.Column(scale=3, min_width=320):
                bars = Figure(elem_id="spans-heads", main=True)
            with gr.Column(scale=2, min_width=300):
                choices = Table(elem_id="spans-choices")
        with gr.Accordion("How long the spans are", open=False):
            law = Figure(elem_id="spans-law")
            Line(LAW)
        with gr.Accordion("What this shows", open=False):
            for text in (ABOUT, LINES, CASES):
                Line(text)
        code = Code()
    chosen = (sentence, hides, example, inside, reader, which, first, count, draw, roll)
    return Controls(*chosen, problem, notes, drawn, said, bars, choices, moved, law, code)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; what is hidden is always hidden in the sentence block."""
    c = controls
    kept = {"run": c.which, "inside": c.inside, "roll": c.roll, "reader": c.reader}
    asked = {"sentence": c.sentence, **kept}
    # Links and examples write these, too.
    changed = [c.inside.change, c.which.change, c.roll.change, c.reader.change]
    outputs = [c.reader, c.which, c.first, c.count, c.picture, c.notes, c.said, c.heads]
    outputs += [c.choices, c.moved, c.roll, c.law, c.code]
    answer([c.sentence.change, *changed], partial(show, session), asked, outputs, c.problem)
    examples = {
        name: {"text": e.text, "hide": [e.characters], "inside": e.inside, "run": 0}
        for name, e in EXAMPLES.items()
    }
    offer(c.example, examples, c.sentence, {"inside": c.inside, "run": c.which})
    # One event, so that the last act counts; what was picked no answer changes on its way.
    act = Kept()
    for event, js in ((c.first.input, PICK), (c.count.input, PICK), (c.draw.click, DRAW)):
        event(None, [c.first, c.count], act, js=js)
    hiding = {**asked, "hides": c.hides, "act": act}
    answer([act.change], partial(hide, session), hiding, [c.hides], c.problem)  # type: ignore[attr-defined]
    remember("spans", kept)


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """A span and what both heads make of it."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    asked = await asyncio.to_thread(read, session, question)
    told = None
    if asked.reader is not None:
        work = (asked.model, asked.sentence, asked.hidden, asked.setting)
        told = await session.compute(lambda: spans.look(*work), asked.model)
    return await asyncio.to_thread(shown, session, asked, told, question)


def shown(
    session: Session, asked: Asked, told: spans.Told | None, question: Mapping[str, Any]
) -> list[Any]:
    """What the page gets of a span."""
    sentence, setting, span = asked.sentence, asked.setting, asked.hidden[asked.run]
    places = spans.places(told, sentence, span) if told else []
    name = asked.reader or asked.bar
    code = ""
    if asked.reader is not None:
        code = spans.code_lines(
            session.loadable(asked.reader), asked.model, sentence, asked.hidden, setting
        )
    return [
        gr.Radio(choices=asked.readers, visible=len(asked.readers) > 1 or "hidden"),
        runs(asked, question["run"]),
        *words(asked),
        picture(sentence, span, told, by=session.languages(name)),
        say_notes(asked),
        say_heads(told) if told else LACKING,
        heads(places, HEADS, title=Wording("{0}: probability of the hidden words", name))
        if places
        else None,
        expected(told, sentence, span) if told else None,
        say_moved(told, spans.describe(sentence, span).edge) if told else "",
        gr.Number(visible=setting.inside == "random" or "hidden"),
        law(sentence, [] if asked.usual else asked.hidden),
        code,
    ]


def runs(asked: Asked, chosen: Any) -> Any:
    """The hidden runs, to choose between; each by its first pieces."""
    tokens = asked.sentence.tokens
    names = []
    for n, (start, stop) in enumerate(asked.hidden[:MOST_CHOICES]):
        names.append((" ".join(t.text for t in tokens[start : min(stop, start + 4)]), n))
    several: dict[str, Any] = {"choices": names, "visible": len(names) > 1 or "hidden"}
    # A choice that is right already is not sent: the visitor may have made another one meanwhile.
    return gr.Radio(**several) if chosen == asked.run else gr.Radio(**several, value=asked.run)


def words(asked: Asked) -> list[Any]:
    """The first word of the span and how many they are, to choose another."""
    found = spans.describe(asked.sentence, asked.hidden[asked.run])
    names = [(f"{n + 1}. {word}", n) for n, (word, *_) in enumerate(spans.words_of(asked.sentence))]
    return [gr.Dropdown(choices=names, value=found.first), min(found.words, spans.LONGEST)]


def expected(told: spans.Told, sentence: spans.Cut, span: spans.Span) -> dict[str, Any]:
    """The best words of both heads at every place."""
    rows: list[list[Any]] = []
    for n, piece in enumerate(told.pieces[: spans.MOST_PIECES]):
        token = sentence.tokens[span[0] + n]
        word = Wording("Gap in the text") if token.masked else token.text
        for rank in range(spans.TOP):
            row: list[Any] = [n, word, rank + 1]
            for said in (piece.masked_token, piece.span_boundary):
                best = said.candidates[rank] if said and rank < len(said.candidates) else None
                chance = best and [best.probability, percent(best.probability)]
                row += [best and best.display, chance]
            rows.append(row)
    columns = [Wording("Place"), Wording("Word"), Wording("Rank")]
    columns += [text for head in HEADS for text in (head, Wording("Probability"))]
    return table(Wording("The best words of both heads at every hidden place"), columns, rows)


# --- what is hidden -------------------------------------------------------------------------------


def hide(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """What was asked for last: the words that were picked, or a draw."""
    act = question["act"] if isinstance(question["act"], Mapping) else {}
    if act.get("draw"):
        return draw(session, question)
    return pick(session, {**question, "first": act.get("first"), "count": act.get("count")})


def pick(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Hide the words that were chosen by number."""
    sentence = read(session, question).sentence
    found = spans.words_of(sentence)
    first = whole_number(question["first"], "first", 0, len(found) - 1)
    count = whole_number(question["count"], "count", 1, spans.LONGEST)
    last = min(first + count, len(found)) - 1
    return [{"text": question["sentence"]["text"], "hide": [[found[first][1], found[last][2]]]}]


def draw(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Hide spans as in pretraining; each draw takes the next seed."""
    before = question["hides"]
    seed = before.get("seed") if isinstance(before, Mapping) else None
    seed = whole_number(seed or 0, "seed", 0, MOST_SEED - 1) + 1
    found = draw_spans(read(session, question).sentence, seed)
    text = question["sentence"]["text"]
    return [{"text": text, "hide": [list(each) for each in found], "seed": seed}]
