"""The Mask tab: what the model expects at every marked position, and four closer looks at it."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.mask import folds, said
from app.labs.mask import models as mask_models
from app.labs.mask import sections as mask_sections
from app.labs.mask.folds import Fold, Look
from app.labs.mask.pictures import predictions_svg
from app.labs.mask.scene import check_fills, scene
from app.page.sentence import Shared
from app.parts.figure import Figure
from app.parts.plain import Line
from app.parts.views import listen, view
from app.serving.ask import read_ask
from app.serving.session import Session

SCRIPTS = ("labs/mask/guess.js", "labs/mask/predictions.js")
"""The lab that the page opens with is drawn at once."""
CAPITAL = "The capital of France is Paris."
STATES = "New York is a large city in the United States."
BULGARIA = "The language of Bulgaria is Bulgarian."
WINE = "He drank a glass of wine."
SIGHT = """\
The grids show who looks at whom, measured in this pass: the word of a row looks at the words of \
the filled columns, in some head of some layer. The outlined row is the one that the prediction is \
read from."""
SCORES = """\
Each piece is hidden in turn, and a word is the product of its pieces; a model that reads from the \
left sees only the words before, and its value is a perplexity proper. Pseudo-perplexity is the \
geometric mean of 1 / p over words: how many equally likely words would be as hard to guess. Words \
of several pieces look easier than they are, as the other pieces stay in sight."""
CHAINED = """\
“As separate gaps” multiplies what the model says while all gaps are open. “As a whole” follows \
the chain rule from left to right: each word is put in before the next is asked for. A small \
number shows the turn where words were filled in another order."""
LENGTH = """\
The gap is made as long as the word, so the model knows how many pieces are missing: compare words \
of the same number of pieces first. A model that reads from the left sees nothing of the gap."""
CHART = """\
The head learnt to read the last layer only. A low rank early on means that the head cannot read \
the word there, not that nothing in the layer points to it."""
PARTS = 4
"""Values that a model's column has."""


def _figure(name: str, explained: str) -> list[Component]:
    chart = Figure(elem_id=f"mask-{name}")
    Line(explained)
    return [chart]


def _columns() -> list[Any]:
    """A column for each model, and the words of the sentence under them."""
    shown: list[Any] = []
    with gr.Row():
        for n in range(mask_models.MOST_MODELS):
            with gr.Column(min_width=260, visible=n < 2) as column:
                bars, said = Figure(elem_id=f"mask-model-{n}"), Line()
                shown += [column, bars, said, Figure(elem_id=f"mask-sight-{n}")]
    Line(SIGHT)
    shown.append(Figure(elem_id="mask-models"))
    Line(SCORES)
    return shown


async def _models(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Several models on a gap, each in a column of its own."""
    found = await mask_models.models(session, question)
    shown: list[Any] = []
    for entry in found["models"]:
        shown += [gr.Column(visible=True), *said.of_model(entry)]
    for _ in range(mask_models.MOST_MODELS - len(found["models"])):
        shown += [gr.Column(visible=False), *[None] * (PARTS - 1)]
    return {**found, "shown": [*shown, said.each_word(found["models"], found["words"])]}


LOOKS = (
    Look(
        "models",
        "Several models side by side",
        "The same gap read from both sides, in an order, or from the left. Each model answers "
        "through its own head and in its own pieces; answers are compared as words.",
        {
            "The end tells": {"text": "Paris is the capital of France.", "hide": ["paris"]},
            "Nothing follows": {"text": "The capital of France is Paris", "hide": ["paris"]},
        },
        _models,
        _columns,
        models=mask_models.MOST_MODELS,
    ),
    Look(
        "together",
        "Several gaps together",
        "A masked model answers for each gap as if the others stayed open. Two answers that are "
        "best apart need not fit together; putting one in before asking for the next lets the "
        "second know the first.",
        {
            "A capital and its country": {"text": CAPITAL, "hide": ["france", "paris"]},
            "Two words": {"text": STATES, "hide": ["united", "states"]},
        },
        mask_sections.together,
        partial(_figure, "together", CHAINED),
    ),
    Look(
        "word",
        "A word of several pieces",
        "One gap holds one piece of the vocabulary, so a rare word has no probability of its own. "
        "It gets one when its pieces are put in from left to right, each after those before it.",
        {
            "Bulgarian": {
                "text": BULGARIA,
                "hide": ["bulgarian"],
                "words": "english, russian, macedonian",
            }
        },
        mask_sections.word,
        partial(_figure, "word", LENGTH),
        "Words",
    ),
    Look(
        "layers",
        "Layer by layer",
        "The model's own head reads the gap after every layer. Rank 1 is at the top; follow the "
        "answer and its rivals upwards.",
        {
            "Paris": {"text": CAPITAL, "hide": ["paris"], "words": "london, people"},
            "Wine": {"text": WINE, "hide": ["wine"], "words": "water, milk"},
        },
        mask_sections.layers,
        partial(_figure, "layers", CHART),
        "Rivals",
    ),
)
"""Closed at first and asked only while open."""


class Controls(NamedTuple):
    """What the tab consists of."""

    predictions: gr.HTML
    """Asks with ``ask``, and for its picture with ``picture``; drawn by predictions.js."""
    folds: tuple[Fold, ...]
    """As they stand in `LOOKS`."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    predictions = view("predictions", events=["ask", "picture"])
    return Controls(predictions, tuple(folds.build(look) for look in LOOKS))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each question of the views."""
    listen(
        controls.predictions,
        {"ask": partial(predict, session), "picture": partial(picture, session)},
    )
    for fold, look in zip(controls.folds, LOOKS, strict=True):
        folds.wire(fold, look, session)


async def predict(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Candidates for every hidden place; InputError for a question that has none."""
    ask = read_ask(question)
    model = await session.ready(ask.model)
    check_fills(model)
    result = await session.fill(ask)
    tokenizer = model.tokenizer
    return {
        "predictions": [prediction.to_json() for prediction in result.predictions],
        "vocabulary": tokenizer.vocabulary,
        "load": session.loadable(ask.model),
        "seen": {
            str(mark.position): tokenizer.display(mark.piece)
            for mark in ask.marks
            if mark.piece is not None
        },
    }


async def picture(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates of every gap as an SVG document; InputError where there are none."""
    ask = read_ask(question)
    model = await session.ready(ask.model)
    check_fills(model)
    return {"svg": predictions_svg(await session.fill(ask), scene(ask, model))}
