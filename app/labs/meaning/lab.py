"""The Meaning lab: one word in several sentences, layer by layer, and its neighbours in a corpus.

The model comes from the sentence block, the sentences are the lab's own.
"""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.meaning import answers as meaning
from app.labs.meaning import said as told
from app.labs.meaning.answers import EXAMPLES, FIRST, LAST, SENTENCES
from app.labs.meaning.corpus import Corpus
from app.page.sentence import Shared
from app.parts.controls import OpenRadio, OpenSlider, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Line, SentenceInput
from app.serving.ask import clean_name
from app.serving.session import Session
from core_models.prediction.meaning import is_chinese
from viz.meaning import Path, alike, layer_name, likeness, neighbours, paths
from viz.svg import Wording

WAYS = {"mean subtracted": "centred", "as they are": "raw"}
STEP = 0.9
"""Seconds of one layer while it plays."""
AGAIN = 0.7
"""Seconds between looks at an index that is being built."""
SHOWN, SHOWN_NEAR = 11, 4
"""How many values the answers have."""
ABOUT = """\
The table of pieces has one vector for a word, whatever it means. Layer by layer its surroundings \
move it: follow one word through several sentences, and see beside which words of the Primer it \
ends up."""
AXES = """\
The axes are fitted once on all layers and sentences together (the two main directions of their \
differences) and stay while you step. All paths begin at the static embedding, before position \
and sentence are added."""
MEAN = """\
With the mean subtracted, what all words of the Primer share at a layer does not move the picture; \
of vectors as they are, much of the way is what every word goes through."""
CONE = """\
Contextual vectors crowd into a cone, so any two have a high cosine. The dashed line is the mean \
cosine of different words of the Primer: only what lies above it is likeness."""
FILLED = {n: {"word": n, "sentences": each.text} for n, each in EXAMPLES.items()}
FILL = f"name => Object.values(({json.dumps(FILLED)})[name])"
# What a visitor writes is no example any more: said here, so that no late answer has to. The word
# of an example comes before its sentences.
MATCH = f"""(word, sentences, example) => {{
  const known = {json.dumps(FILLED)};
  const name = Object.keys(known).find((each) => known[each].sentences === sentences.trim());
  return name && [name, example].includes(word) ? word : null;
}}"""
NEXT = """(layer, playing) => {
  const last = Number(document.querySelector('#meaning-layer input[type=range]')?.max ?? 0);
  const next = layer < last ? layer + 1 : 0;
  return [next, next < last];
}"""
ADD = r"""(text, all) => `${all.trimEnd()}\n${text.replace(/\s*\n\s*/g, ' ').slice(0, 300)}`"""


class Controls(NamedTuple):
    """What the lab consists of."""

    model: SentenceInput
    example: gr.Radio
    way: gr.Dropdown
    layer: gr.Slider
    playing: gr.Checkbox
    clock: gr.Timer
    word: gr.Textbox
    sentences: gr.Textbox
    take: gr.Button
    problem: Line
    said: Line
    paths: Figure
    alike: Figure
    pieces: Line
    missing: Line
    likeness: Figure
    code: Code
    near: "Near"


class Near(NamedTuple):
    """The neighbours: nothing is asked before they are first seen."""

    model: SentenceInput
    which: gr.Radio
    others: gr.Checkbox
    clock: gr.Timer
    problem: Line
    said: Line
    chart: Figure


def build(shared: Shared) -> Controls:
    """Lay the lab out: what is chosen, the pictures, and folds for all else."""
    Heading("One word, many meanings")
    with gr.Row(elem_classes=["choices"]):
        example = OpenRadio(
            [name for name in EXAMPLES if language_of(name) == language_of(FIRST)],
            value=FIRST,
            label="What to try",
            scale=4,
            min_width=300,
        )
        layer = OpenSlider(
            0,
            LAST,
            value=LAST,
            step=1,
            label="Layer",
            buttons=[],
            elem_id="meaning-layer",
            elem_classes=["bare"],
            scale=3,
            min_width=200,
        )
        playing = gr.Checkbox(False, label="Play", scale=0, min_width=90)
        way = gr.Dropdown(
            list(WAYS.items()),
            value="centred",
            label="Vectors",
            filterable=False,
            elem_id="meaning-way",
            scale=2,
            min_width=150,
        )
    clock = gr.Timer(STEP, active=False)
    problem = Line(problem=True)
    model = SentenceInput(["model"])
    said = Line()
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            path = Figure(elem_id="meaning-paths", main=True)
        with gr.Column(scale=2, min_width=300):
            square = Figure(elem_id="meaning-alike", main=True)
    with gr.Accordion("The word and its sentences", open=False):
        word = gr.Textbox(FIRST, label="Word", max_lines=1)
        sentences = gr.Textbox(
            EXAMPLES[FIRST].text,
            label="Sentences, one in each line",
            lines=4,
            max_lines=12,
        )
        pieces, missing = Line(), Line()
        with gr.Row():
            take = gr.Button("Take the sentence of the page", size="sm", scale=0, min_width=240)
    with gr.Accordion("How alike are they, layer by layer?", open=False):
        lines = Figure(elem_id="meaning-likeness")
        Line(CONE)
    near = _near()
    with gr.Accordion("What this shows", open=False):
        for text in (ABOUT, AXES, MEAN):
            Line(text)
    chosen = (model, example, way, layer, playing, clock, word, sentences, take)
    return Controls(*chosen, problem, said, path, square, pieces, missing, lines, Code(), near)


def _near() -> Near:
    with gr.Accordion("Its neighbours in the Primer", open=False):
        with gr.Row(elem_classes=["choices"]):
            numbers = [(str(n + 1), n) for n in range(SENTENCES[1])]
            which = OpenRadio(numbers, value=0, label="Neighbours of sentence", scale=3)
            others = gr.Checkbox(False, label="Other words only", scale=1)
        problem = Line(problem=True)
        model = SentenceInput(["model"])
        chart = Figure(elem_id="meaning-near")
        said = Line()
    return Near(model, which, others, gr.Timer(AGAIN, active=False), problem, said, chart)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; the layer plays and examples are filled in without a request."""
    c, near = controls, controls.near
    corpus = Corpus(session)
    words = {"word": c.word, "sentences": c.sentences}
    asked = {**words, "layer": c.layer, "way": c.way, "example": c.example}
    # Examples, links and the clock write these, too.
    changed = [c.word.change, c.sentences.change, c.layer.change, c.way.input]
    outputs = [c.example, c.word, c.sentences, c.layer]
    outputs += [c.said, c.paths, c.alike, c.likeness, c.pieces, c.missing, c.code]
    answer(
        [c.model.change, *changed],
        partial(show, session, corpus),
        {"model": c.model, **asked},
        outputs,
        c.problem,
    )
    kept = {"which": near.which, "others": near.others}
    answer(
        [near.model.change, *changed, near.which.input, near.others.input, near.clock.tick],
        partial(show_near, session, corpus),
        {"model": near.model, **asked, **kept},
        [near.which, near.chart, near.said, near.clock],
        near.problem,
    )
    c.example.input(None, c.example, [c.word, c.sentences], js=FILL)
    for box in (c.word, c.sentences):
        box.change(None, [c.word, c.sentences, c.example], c.example, js=MATCH)
    c.take.click(None, [shared.text, c.sentences], c.sentences, js=ADD)
    active = "active => ({ __type__: 'update', active })"
    c.playing.change(None, c.playing, c.clock, js=active)
    c.clock.tick(None, [c.layer, c.playing], [c.layer, c.playing], js=NEXT)
    c.layer.input(None, None, c.playing, js="() => false")
    remember("meaning", {**asked, **kept}, {"example": FILLED})


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, corpus: Corpus, question: Mapping[str, Any]) -> list[Any]:
    """The word's way through the layers, as far as the chosen one."""
    if not ready(question):
        return [gr.skip()] * SHOWN
    name = clean_name(question["model"].get("model"))
    model = await asyncio.to_thread(session.model, name)
    language = (await asyncio.to_thread(session.card, name))["language"]
    example, word, text = chosen(question, language), question["word"], question["sentences"]
    moved = example not in (None, word)
    if moved:
        word, text = example, EXAMPLES[example].text
    words = meaning.read_words(word, text)
    key = (session.number(model), words)
    if (found := corpus.compared.get(key)) is None:
        found = await session.compute(lambda: meaning.compare(corpus, model, words), model)
        corpus.compared.put(key, found, 1)
    layer = meaning.read_layer(question["layer"], found.last - 1)
    way = question["way"]
    used = [words.sentences[number] for number in found.numbers]
    # No choice is sent that is right already, and none is taken away: the visitor may have made
    # another one meanwhile, and the page itself sees what is no example.
    radio = {"choices": [name for name in EXAMPLES if language_of(name) == language]}
    if example not in (None, question["example"]):
        radio["value"] = example
    return [
        gr.Radio(**radio),
        word if moved else gr.skip(),
        text if moved else gr.skip(),
        gr.Slider(maximum=found.last),
        told.say(found, layer, way),
        paths(
            [
                Path(number=number + 1, sentence=text, points=points)
                for number, text, points in zip(found.numbers, used, found.points[way], strict=True)
            ],
            layer=layer,
            shares=found.shares[way],
            word=words.word,
        ),
        alike(
            [number + 1 for number in found.numbers],
            found.cosines["raw"],
            found.cosines["centred"],
            layer=layer,
            way=way,
        ),
        likeness(found.cosines[way], found.random[way], layer=layer),
        told.say_pieces(found),
        told.say_missing(found, words),
        meaning.code_lines(session.loadable(name), words, used, way),
    ]


def ready(question: Mapping[str, Any]) -> bool:
    """Whether the lab has been seen, and of an example that was picked the sentences are there."""
    word, shown = question["word"], meaning.example_of(question["sentences"])
    half = word == question["example"] and shown not in (None, word)
    return isinstance(question["model"], Mapping) and not half


def chosen(question: Mapping[str, Any], language: str) -> str | None:
    """The example that is shown, in the model's language; None for a visitor's own words."""
    example = meaning.example_of(question["sentences"])
    if example != question["word"]:
        return None
    readable = (name for name in EXAMPLES if language_of(name) == language)
    return example if example is None or language_of(example) == language else next(readable)


def language_of(example: str) -> str:
    """Which models read an example."""
    return "zh" if is_chinese(example) else "en"


async def show_near(session: Session, corpus: Corpus, question: Mapping[str, Any]) -> list[Any]:
    """Neighbours of one occurrence, or how far the index is that they are looked up in."""
    if not ready(question):
        return [gr.skip()] * SHOWN_NEAR
    words = meaning.read_words(question["word"], question["sentences"])
    name = clean_name(question["model"].get("model"))
    model = await asyncio.to_thread(session.model, name)
    building = await asyncio.to_thread(corpus.building, model, words.language)
    if (index := building.index) is None:
        progress = min(100, 100 * building.done // building.of)
        said = Wording("This model reads the words of the Primer, once: {0} % are done.", progress)
        return [gr.skip(), gr.skip(), said, gr.Timer(active=True)]
    found = await session.compute(
        lambda: meaning.neighbours(corpus, index, model, words, question), model
    )
    radio = {"choices": [(str(number + 1), number) for number in found["numbers"]]}
    if question["which"] not in found["numbers"]:
        radio["value"] = found["which"]
    text = Wording(
        "{0}: looked up among {1} words of the Primer, drawn with a fixed seed; {2} of them are "
        "the same word."
    )
    if found["same"] == 1:
        text = Wording(
            "{0}: looked up among {1} words of the Primer, drawn with a fixed seed; {2} of them is "
            "the same word."
        )
    said = Wording(text, layer_name(found["layer"]), f"{found['count']:,}", found["same"])
    chart = neighbours(found["near"])
    return [gr.Radio(**radio), chart, said, gr.Timer(active=False)]
