"""The Mask tab: what the model expects at every marked position."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

from app.ask import read_ask, read_revision
from app.sentence import Shared
from app.session import Session
from app.views import payload, view
from core_models import InputError


class Controls(NamedTuple):
    """What the tab consists of."""

    predictions: gr.HTML
    """Asks with ``ask``; drawn by predictions.js."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("predictions", events=["ask"]))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each question of the view."""

    async def on_ask(event: gr.EventData) -> dict[str, Any]:
        return await predict(session, payload(event))

    controls.predictions.ask(
        on_ask,
        None,
        controls.predictions,
        show_progress="hidden",
        trigger_mode="multiple",
        concurrency_limit=None,
        api_visibility="private",
    )


async def predict(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Candidates for the page, with the revision of its question."""
    revision = read_revision(question)
    try:
        ask = read_ask(question)
        result = await session.fill(ask)
    except InputError as error:
        return {"rev": revision, "error": str(error), "predictions": []}
    tokenizer = session.model(ask.model).tokenizer
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
