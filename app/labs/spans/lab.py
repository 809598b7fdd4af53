"""The Spans lab: a hidden run of words, told by each place and by the two tokens around it.

The sentence and what is hidden come from the sentence block. Its model answers where it has both
heads of SpanBERT, else the first installed one that has, or the one that was chosen here.
"""

import asyncio
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.spans import answers as spans
from app.labs.spans.answers import EXAMPLES, NEEDED
from app.labs.spans.picture import SpanPicture, picture
from app.page.sentence import Shared
from app.parts.controls import OpenDropdown, OpenRadio, answer, offer, remember
from app.parts.figure import Figure
from app.parts.plain import (
    Code,
    Heading,
    Line,
    SentenceInput,
    SentenceOutput,
    Table,
    sentences,
    table,
)
from app.serving.ask import MOST_SEED, clean_marks, clean_name, clean_text, whole_number
from app.serving.names import loadable
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
    "python -m core_models.zoo build spanbert-mini",
)


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
        roll = gr.Number(
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
    picked = {**asked, "first": c.first, "count": c.count}
    answer([c.first.input, c.count.input], partial(pick, session), picked, [c.hides], c.problem)
    drawn = {**asked, "hides": c.hides}
    answer([c.draw.click], partial(draw, session), drawn, [c.hides], c.problem)
    remember("spans", kept)


# --- answers: plain values in, plain values out ---------------------------------------------------


def readers(session: Session) -> list[str]:
    """Every installed model with both heads."""
    return [i.name for i in session.models() if all(name in i.heads for name in NEEDED)]


class Asked(NamedTuple):
    """A question, read."""

    bar: str
    """The model of the sentence block."""
    readers: list[str]
    reader: str | None
    """Who answers; None where no model has both heads."""
    model: cm.Model
    """The reader, or the model of the sentence block where there is none."""
    sentence: spans.Cut
    hidden: list[spans.Span]
    """What the visitor has hidden, or the one span that stands in for it."""
    usual: bool
    """Nothing is hidden in the sentence block."""
    setting: spans.Setting

    @property
    def run(self) -> int:
        """Which of the hidden runs is looked at."""
        return min(self.setting.run, len(self.hidden) - 1)


def read(session: Session, question: Mapping[str, Any]) -> Asked:
    """Who reads the sentence, in which pieces, and what of it is hidden."""
    given, setting = question["sentence"], spans.read_setting(question)
    bar = clean_name(given.get("model"))
    model = session.model(bar)
    able = readers(session)
    reader: str | None = None
    if (wanted := question.get("reader")) in able:
        reader = wanted
    elif all(head in model.heads for head in NEEDED):
        reader = bar
    elif able:
        reader = able[0]
    text = clean_text(given.get("text"))
    marks = clean_marks(given.get("marks", ()))
    characters = []
    if marks:
        # The sentence block may cut the text into other pieces: what is hidden are characters.
        tokens = session.sentence(text, bar).tokens
        characters = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
    if reader not in (None, bar):
        model = session.model(reader)
    sentence = spans.cut(model, text)
    found = spans.hidden_runs(sentence, characters)
    hidden = found or [spans.usual(sentence)]
    return Asked(bar, able, reader, model, sentence, hidden, not found, setting)


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """A span and what both heads make of it."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    asked = await asyncio.to_thread(read, session, question)
    told = None
    if asked.reader is not None:
        work = (asked.model, asked.sentence, asked.hidden, asked.setting)
        told = await session.compute(lambda: spans.look(*work))
    return await asyncio.to_thread(shown, asked, told, question)


def shown(asked: Asked, told: spans.Told | None, question: Mapping[str, Any]) -> list[Any]:
    """What the page gets of a span."""
    sentence, setting, span = asked.sentence, asked.setting, asked.hidden[asked.run]
    places = spans.places(told, sentence, span) if told else []
    name = asked.reader or asked.bar
    code = ""
    if asked.reader is not None:
        code = spans.code_lines(
            loadable(asked.reader), asked.model, sentence, asked.hidden, setting
        )
    return [
        gr.Radio(choices=asked.readers, visible=len(asked.readers) > 1 or "hidden"),
        runs(asked, question["run"]),
        *words(asked),
        picture(sentence, span, told, by=[name]),
        say_notes(asked),
        say_heads(told) if told else LACKING,
        heads(places, HEADS, title=Wording("{0}: probability of the hidden words", name))
        if places
        else None,
        expected(told, sentence, span) if told else None,
        say_moved(told, spans.describe(sentence, span).edge) if told else "",
        gr.Number(visible=setting.inside == "random" or "hidden"),
        spans.law(sentence, [] if asked.usual else asked.hidden),
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


# --- what is said ---------------------------------------------------------------------------------


def say_notes(asked: Asked) -> str:
    """What to know of the span and of who answers."""
    span = spans.describe(asked.sentence, asked.hidden[asked.run])
    said: list[str] = []
    if asked.usual:
        said.append(
            Wording(
                "Nothing is hidden above the tabs, so this tab takes words from the middle. Hide a "
                "run of words above, or choose one here."
            )
        )
    if span.edge:
        said.append(
            Wording(
                "This span lies at the edge of the text. Pretraining asks the boundary head only "
                "where a word stands on either side, so here only the masked-token head answers."
            )
        )
    if not span.whole:
        said.append(Wording("This span cuts a word. SpanBERT hides whole words."))
    if asked.reader not in (None, asked.bar):
        text = "{0} does not have both heads, so {1} answers, with its own pieces."
        said.append(Wording(text, asked.bar, asked.reader))
    if asked.sentence.encoding.truncated:
        text = "The text is long: this tab uses its first {0} pieces."
        said.append(Wording(text, len(asked.sentence.tokens)))
    return sentences(*said)


def say_heads(told: spans.Told) -> str:
    """What both heads give the real words on average, and the loss of the span."""
    own, boundary = (spans.mean_loss(told, head) for head in NEEDED)
    if own is None:
        return Wording("The text itself has gaps here: nobody knows the real words.")
    if boundary is None:
        text = "On average the masked-token head gives the real words {0}."
        return Wording(text, percent(math.exp(-own)))
    return sentences(
        Wording(
            "On average (geometric mean) the masked-token head gives the real words {0}, the "
            "boundary head {1}.",
            percent(math.exp(-own)),
            percent(math.exp(-boundary)),
        ),
        Wording(
            "Loss of the span (means in nats): {0} + {1} = {2}, masked token + span boundary.",
            f"{own:.2f}",
            f"{boundary:.2f}",
            f"{own + boundary:.2f}",
        ),
    )


def say_moved(told: spans.Told, edge: bool) -> str:
    """How far other words inside move the states."""
    if told.moved is None:
        return ""
    before, after, inside = map(percent, (told.moved.before, told.moved.after, told.moved.inside))
    if edge:
        return Wording("The last states inside the span moved by {0} of their length.", inside)
    return Wording(
        "The last states of the two boundary tokens moved by {0} and {1} of their length, those "
        "inside by {2}.",
        before,
        after,
        inside,
    )


# --- what is hidden -------------------------------------------------------------------------------


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
    found = spans.draw(read(session, question).sentence, seed)
    text = question["sentence"]["text"]
    return [{"text": text, "hide": [list(each) for each in found], "seed": seed}]
