"""The Permutation lab: an order of prediction, what both streams see, what a model makes of it.

The sentence and the model come from the sentence block. Where that model has one stream only, the
first installed one with two answers; the grids need none.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

import core_models as cm
from app.labs.permutation import answers as permutation
from app.labs.permutation import chances, said
from app.labs.permutation.answers import Cut, Setting
from app.labs.permutation.grid import OrderGrid, grid, names
from app.labs.permutation.said import STREAMS
from app.page.sentence import Shared
from app.parts.controls import (
    NEXT_SEED,
    OpenDropdown,
    OpenNumber,
    OpenSlider,
    answer,
    new_value,
    offer,
    remember,
)
from app.parts.figure import Figure
from app.parts.plain import Code, Files, Heading, Kept, Line, SentenceInput, Table
from app.serving.ask import MOST_SEED, clean_name, clean_text, whole_number
from app.serving.session import Session
from viz.permutation import Mask, masks_svg
from viz.svg import Wording

ROME = "Rome is the capital of Italy."  # xlnet-mini has its last word first
PLAIN: dict[str, Any] = {"order": [], "k": 3, "variant": "paper", "leak": False}
EXAMPLES: dict[str, dict[str, Any]] = {
    "The last word sees all": {"text": ROME, "order": ["last"], "k": 12},
    "The first word comes last": {"order": ["right"], "k": 12},
    "Predict every piece": {"k": 1},
    "Why two streams": {"order": ["left"], "k": 2, "leak": True},
    "As released": {"variant": "released"},
}
SHOWN = 10
"""How many values an answer has."""
ABOUT = """\
XLNet hides nothing. It draws an order of the pieces, and predicts each from those before it in \
that order. A content stream knows what stands at a place; a query stream knows only where the \
place is, so that it can be asked what stands there."""
MOVE = """\
Drag a piece, or focus it and press the arrow keys. The number before a piece is its step, the one \
behind it its place in the text. Framed pieces are predicted."""
READ = """\
Each row can be read as a sentence: point at it, or focus its name. Filled: seen. Ring: the piece \
itself."""
RELEASED = """\
In the released code spans are drawn from the seed and only they are predicted; all other pieces \
are seen by everyone. The order decides only among the framed pieces."""
CHAIN = """\
By the chain rule every order gives a probability of the whole sentence; a perfect model would \
give the same for all of them."""
LOOKS = """\
Stronger colour: more weight (by its square root). Both streams read keys and values of the \
content stream; pieces in ⟨ ⟩ are remembered."""
DRAWN = f"(seed) => [({NEXT_SEED})(seed), []]"
# An order of the visitor's own belongs to the text in which it was made.
FORGET = """(sentence, order, grid) => [
  typeof order[0] === 'number' && grid?.text && grid.text !== sentence?.text ? [] : order]"""


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    example: gr.Radio
    kept: dict[str, Any]
    """What a link keeps and a question holds, by name."""
    shuffle: gr.Button
    problem: Line
    grid: OrderGrid
    notes: Line
    files: Files
    bits: Line
    chances: Figure
    guesses: Table
    maps: dict[str, Figure]
    """By stream."""
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try, the order with its grids, and folds for all else."""
    kept: dict[str, Any] = {"order": Kept([])}
    with gr.Row(elem_classes=["choices"]):
        Heading("In which order is a sentence predicted?")
        example = gr.Radio(list(EXAMPLES), label="What to try", scale=6, min_width=300)
        kept["k"] = OpenSlider(
            1,
            permutation.MOST_K,
            value=3,
            step=1,
            label="Predict one piece in",
            buttons=[],
            scale=2,
            min_width=210,
        )
        shuffle = gr.Button("Shuffle", variant="primary", scale=0, min_width=110)
    problem, sentence = Line(problem=True), SentenceInput(["text", "model"])
    with gr.Column(elem_classes=["answers"]):
        drawn, notes = OrderGrid(elem_id="cloze-permutation", main=True), Line()
        with gr.Accordion("How probable is each piece?", open=False):
            bits = Line()
            with gr.Row():
                with gr.Column(scale=3, min_width=320):
                    bars = Figure(elem_id="permutation-chances")
                with gr.Column(scale=2, min_width=300):
                    guesses = Table(elem_id="permutation-guesses")
            Line(CHAIN)
        with gr.Accordion("Where both streams look", open=False):
            with gr.Row(elem_classes=["choices"]):
                for name, label in (("layer", "Layer"), ("head", "Head")):
                    kept[name] = OpenDropdown([("1", 0)], value=0, label=label, min_width=120)
            with gr.Row():
                maps = {}
                for name in STREAMS:
                    with gr.Column(min_width=340):
                        maps[name] = Figure(elem_id=f"permutation-{name}")
            Line(LOOKS)
    # In sight whatever is refused: what is refused may stand here.
    with gr.Accordion("How it is drawn", open=False):
        files = _drawing(kept)
    with gr.Column(elem_classes=["answers"]):
        with gr.Accordion("What this shows", open=False):
            for text in (ABOUT, MOVE, READ):
                Line(text)
        code = Code()
    return Controls(
        sentence,
        example,
        kept,
        shuffle,
        problem,
        drawn,
        notes,
        files,
        bits,
        bars,
        guesses,
        maps,
        code,
    )


def _drawing(kept: dict[str, Any]) -> Files:
    with gr.Row(elem_classes=["choices"]):
        kept["variant"] = gr.Radio(
            [("Paper", "paper"), ("Released code", "released")],
            value="paper",
            label="Variant",
            scale=2,
            min_width=280,
        )
        kept["seed"] = OpenNumber(
            1, label="Seed", precision=0, minimum=0, maximum=MOST_SEED, min_width=120
        )
        kept["leak"] = gr.Checkbox(False, label="Leak: a query sees itself", min_width=220)
        kept["memory"] = gr.Textbox(
            "",
            label="A sentence before, which is remembered",
            placeholder="Paris lies on the river Seine.",
            max_lines=1,
            max_length=400,
            scale=3,
            min_width=280,
        )
    Line(RELEASED)
    return Files("cloze-permutation")


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; examples, draws and moved pieces are set without a request."""
    c, kept = controls, controls.kept
    c.sentence.change(None, [c.sentence, kept["order"], c.grid], kept["order"], js=FORGET)  # type: ignore[attr-defined]
    asked: dict[str, Component] = {"sentence": c.sentence, **kept}
    outputs = [c.grid, c.notes, kept["layer"], kept["head"], c.bits, c.chances, c.guesses]
    outputs += [*c.maps.values(), c.code]
    changed = [part.change for part in asked.values()]  # type: ignore[attr-defined]
    answer(changed, partial(show, session), asked, outputs, c.problem)
    answer([c.files.ask], partial(draw, session), asked, [c.files], c.problem)  # type: ignore[attr-defined]
    sets = {name: kept[name] for name in PLAIN}
    offer(c.example, EXAMPLES, c.sentence, sets, PLAIN)
    c.grid.move(None, c.grid, kept["order"], js="grid => [grid.wish]")  # type: ignore[attr-defined]
    c.shuffle.click(None, kept["seed"], [kept["seed"], kept["order"]], js=DRAWN)
    kept["seed"].input(None, None, kept["order"], js="() => [[]]")
    remember("permutation", kept)


# --- answers: plain values in, plain values out ---------------------------------------------------


class Asked(NamedTuple):
    """A question, read."""

    text: str
    bar: str
    """The model of the sentence block."""
    reader: str | None
    """Who answers; None where no model has two streams."""
    model: cm.Model
    """The reader, or the model of the sentence block where there is none."""
    sentence: Cut
    setting: Setting
    before: Cut | None
    """The sentence before, remembered."""
    own: bool
    """The order is the visitor's."""


def read(session: Session, question: Mapping[str, Any]) -> Asked:
    """Who reads which pieces, and in which order they are predicted."""
    given = question["sentence"]
    text, bar = clean_text(given.get("text")), clean_name(given.get("model"))
    model = session.model(bar)
    # The name of the block's model, as a run's model has another one of its own.
    reader = bar if permutation.HEAD in model.heads else None
    if reader is None:
        reader = permutation.reader(session.models(), model)
    if reader not in (None, bar):
        model = session.model(reader)
    sentence = permutation.cut(model.tokenizer, text)
    setting = permutation.read_setting(question, sentence)
    before = chances.remembered(model, setting)
    own = bool(question["order"]) and setting.fits and type(question["order"][0]) is int
    return Asked(text, bar, reader, model, sentence, setting, before, own)


async def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The order, what both streams see, and what the model makes of it."""
    if not isinstance(question["sentence"], Mapping):
        return [gr.skip()] * SHOWN
    asked = await asyncio.to_thread(read, session, question)
    count = 0 if asked.before is None else asked.before.plain[-1] + 1
    name = asked.reader or asked.bar
    own = {"own": asked.own, "text": asked.text, "by": session.languages(name)}
    drawn = grid(asked.sentence, asked.setting, count, **own)
    load = session.loadable(asked.reader) if asked.reader else None
    code = permutation.code_lines(load, asked.text, asked.sentence, asked.setting)
    head = [drawn, said.notes(asked)]
    if asked.reader is None:
        return [*head, gr.skip(), gr.skip(), said.LACKING, None, None, None, None, code]
    shape = asked.model.config.steps, asked.model.config.attention.heads
    # Another model may have fewer: then the last one is shown.
    at = [
        min(whole_number(question[part], part, 0, permutation.MOST_STEP), size - 1)
        for part, size in zip(("layer", "head"), shape, strict=True)
    ]
    work = (asked.model, asked.sentence, asked.setting)
    judged, seen = await session.compute(
        lambda: (chances.judge(*work), chances.attention(*work, *at)), asked.model
    )
    return [
        *head,
        *(
            _choice(size, value, question[part])
            for part, size, value in zip(("layer", "head"), shape, at, strict=True)
        ),
        said.bits(judged),
        said.probabilities(judged, names(asked.sentence), name),
        said.guesses(judged, names(asked.sentence)),
        *(said.look(seen, names(asked.sentence), stream, drawn) for stream in STREAMS),
        code,
    ]


def _choice(size: int, value: int, chosen: Any) -> Any:
    """Numbers to choose from; a value that is right already is not sent."""
    choices = [(str(n + 1), n) for n in range(size)]
    return gr.Dropdown(choices=choices, **new_value(value, chosen))


def draw(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """Both grids as a drawing."""
    asked = read(session, question)
    found = grid(asked.sentence, asked.setting)
    masks = [
        Mask(
            title=STREAMS[name],
            rows=[row["position"] for row in found[name]],
            seen=[[flag == "1" for flag in row["seen"]] for row in found[name]],
        )
        for name in ("content", "query")
    ]
    return [
        masks_svg(
            masks,
            found["pieces"],
            title=Wording("What each stream may see"),
            note=Wording("Filled: a row's piece sees the column's. Ring: the piece itself."),
        )
    ]
