"""Under the model card: the same sentence through transformers, and how far apart the two are."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.parts.controls import InsteadError, answer
from app.parts.plain import Kept, Line, sentences
from app.serving.ask import clean_name, clean_text
from app.serving.session import Session
from core_models import InputError
from core_models.foreign.proof import proof
from viz.svg import Wording

_ONE = threading.Lock()
"""A page that is gone no longer waits, and its thread goes on: no second copy is loaded beside."""
FORGET = "() => [null, null]"
# An answer about another sentence or model, which come meanwhile, is not shown.
SHOWN = """(found, text, model) => (found?.of[0] === text && found.of[1] === model
  ? [found.said, { __type__: 'update' }] : [null, null])"""


class Controls(NamedTuple):
    """The button and its answer."""

    button: gr.Button
    said: Line
    problem: Line


def build() -> Controls:
    """Lay it out."""
    with gr.Column(elem_id="model-proof", min_width=0):
        button = gr.Button("The same sentence through transformers", size="sm", scale=0)
        return Controls(button, Line(), Line(problem=True))


def wire(controls: Controls, text: Component, model: Component, session: Session) -> None:
    """Compare when asked to; what was said of another sentence or model goes."""
    told = [controls.said, controls.problem]
    changes = [text.change, model.change]  # type: ignore[attr-defined]
    gr.on(changes, None, None, told, js=FORGET)
    alone = asyncio.Lock()

    async def on_click(question: Mapping[str, Any]) -> list[Any]:
        of = [question["text"], question["model"]]
        try:
            async with alone:  # each loads the model once more
                said = await asyncio.to_thread(compare, session, question)
        except InputError as error:
            raise InsteadError(str(error), [{"of": of, "said": None}]) from error
        return [{"of": of, "said": controls.said.postprocess(said)}]

    found, asked = Kept(), {"text": text, "model": model}
    after = answer([controls.button.click], on_click, asked, [found], controls.problem, once=True)
    after.then(None, [found, text, model], told, js=SHOWN)


def compare(session: Session, question: Mapping[str, Any]) -> str:
    """Largest differences between our model and transformers', and the time of each.

    Raises:
        InputError: transformers has no class for the model, or there is no text.
    """
    text, name = clean_text(question["text"]), clean_name(question["model"])
    with _ONE:
        found = proof(session.model(name), session.folder(name), text)
    farthest = max(found.predictions.values(), default=None)
    return sentences(
        Wording("{0} as {1} of transformers {2}.", name, found.made_for, found.version),
        Wording("Largest difference of hidden states: {0}.", _small(found.hidden)),
        None if farthest is None else Wording("Of all predicted scores: {0}.", _small(farthest)),
        None if found.attention is None else Wording("Of attention: {0}.", _small(found.attention)),
        Wording(
            "One pass took {0} ms here and {1} ms there.",
            f"{1e3 * found.ours:,.1f}",
            f"{1e3 * found.theirs:,.1f}",
        ),
    )


def _small(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"
