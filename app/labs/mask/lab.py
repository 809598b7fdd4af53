"""The Mask tab: what the model expects at every marked position, and four closer looks at it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.mask import folds
from app.labs.mask import models as mask_models
from app.labs.mask import sections as mask_sections
from app.labs.mask.folds import Fold, Look
from app.labs.mask.pictures import predictions_svg
from app.labs.mask.scene import check_fills, scene
from app.page.sentence import Shared
from app.parts.figure import Figure
from app.parts.plain import Line
from app.parts.views import listen, payload, view
from app.serving.ask import read_ask, read_revision
from app.serving.session import Session
from core_models import InputError

SCRIPTS = ("labs/mask/guess.js", "labs/mask/predictions.js", "labs/mask/index.js")
"""The lab that the page opens with is drawn at once."""
SECTIONS = {
    "models": mask_models.models,
    "together": mask_sections.together,
    "word": mask_sections.word,
}
"""Closed at first and asked only while open; drawn by sections.js."""
CHART = """\
The head learnt to read the last layer only. A low rank early on means that the head cannot read \
the word there, not that nothing in the layer points to it."""


def _ranks() -> list[Component]:
    chart = Figure(elem_id="mask-layers")
    Line(CHART)
    return [chart]


LOOKS = (
    Look(
        "layers",
        "Layer by layer",
        "The model's own head reads the gap after every layer. Rank 1 is at the top; follow the "
        "answer and its rivals upwards.",
        {
            "Paris": {
                "text": "The capital of France is Paris.",
                "hide": ["paris"],
                "words": "london, cat",
                "at": "",
            },
            "Snow": {
                "text": "In winter the mountains are covered with snow.",
                "hide": ["snow"],
                "words": "ice, sand",
                "at": "",
            },
        },
        mask_sections.layers,
        _ranks,
        "Rivals",
    ),
)
"""Closed at first and asked only while open."""


class Controls(NamedTuple):
    """What the tab consists of."""

    predictions: gr.HTML
    """Asks with ``ask``, for its picture with ``picture``, and opens another model with ``choose``;
    drawn by predictions.js."""
    sections: dict[str, gr.HTML]
    """Each asks with ``ask``."""
    folds: tuple[Fold, ...]
    """As they stand in `LOOKS`."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    predictions = view("predictions", events=["ask", "picture", "choose"])
    sections = {name: view(f"mask-{name}", events=["ask"]) for name in SECTIONS}
    return Controls(predictions, sections, tuple(folds.build(look) for look in LOOKS))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each question of the views."""
    listen(
        controls.predictions,
        {"ask": partial(predict, session), "picture": partial(picture, session)},
    )

    def on_choose(event: gr.EventData) -> Any:
        name = chosen(session, payload(event).get("name"))
        return gr.skip() if name is None else name

    # Only the value: choices would come back in English (language.js).
    controls.predictions.choose(
        on_choose,
        None,
        shared.model,
        show_progress="hidden",
        trigger_mode="multiple",
        queue=False,
        api_visibility="private",
    )
    for name, component in controls.sections.items():
        listen(component, {"ask": partial(mask_sections.answer, SECTIONS[name], session)})
    for fold, look in zip(controls.folds, LOOKS, strict=True):
        folds.wire(fold, look, session)


def chosen(session: Session, value: Any) -> str | None:
    """The model that a button of the tab opens; None for one that is not in the list."""
    return value if value in [name for _, name in session.choices()] else None


async def predict(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Candidates for the page, with the revision of its question."""
    revision = read_revision(question)
    try:
        ask = read_ask(question)
        model = await asyncio.to_thread(session.model, ask.model)
        check_fills(model)
        result = await session.fill(ask)
    except InputError as error:
        return {"rev": revision, "error": str(error), "predictions": []}
    tokenizer = model.tokenizer
    predictions = [prediction.to_json() for prediction in result.predictions]
    return {
        "rev": revision,
        "error": None,
        "predictions": predictions,
        "vocabulary": tokenizer.vocabulary,
        "seen": {
            str(mark.position): tokenizer.display(mark.piece)
            for mark in ask.marks
            if mark.piece is not None
        },
    }


async def picture(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates of every gap as an SVG document, with the revision of the question."""
    revision = read_revision(question)
    try:
        ask = read_ask(question)
        model = await asyncio.to_thread(session.model, ask.model)
        check_fills(model)
        svg = predictions_svg(await session.fill(ask), scene(ask, model))
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, "svg": svg}
