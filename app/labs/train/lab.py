"""The Train tab: start training runs, watch them, and open what they learned in the other tabs.

The view is drawn by train.js. It reads and changes runs through the routes of
:mod:`app.runs.routes`; only what touches another widget of the page is an event here.
"""

from typing import Any, NamedTuple

import gradio as gr

from app.page.sentence import Shared
from app.parts.views import payload, view
from app.serving.ask import clean_name, read_revision
from app.serving.session import Session
from core_models import InputError

SCRIPTS = ("labs/train/index.js",)


class Controls(NamedTuple):
    """What the tab consists of."""

    main: gr.HTML


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("train", events=["open"], module="labs/train/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Opening a model of a run chooses it in the model picker of the page."""
    _wire(controls.main, shared, session)


def outside(shared: Shared, session: Session) -> None:
    """An empty view that is there before any tab is: a link may name a snapshot of a run."""
    _wire(view("finder", events=["open"]), shared, session)


def _wire(main: gr.HTML, shared: Shared, session: Session) -> None:
    async def on_open(event: gr.EventData) -> tuple[Any, Any]:
        question = payload(event)
        try:
            choices, name = choose(session, question.get("name"))
        except InputError as error:
            return {"rev": read_revision(question), "error": str(error)}, gr.skip()
        answer = {"rev": read_revision(question), "error": None, "name": name}
        return answer, gr.Dropdown(choices=choices, value=name)

    main.open(
        on_open,
        None,
        [main, shared.model],
        show_progress="hidden",
        trigger_mode="multiple",
        concurrency_limit=None,
        api_visibility="private",
    )


def choose(session: Session, value: Any) -> tuple[list[tuple[str, str]], str]:
    """The choices of the model picker with a model of a run among them, and its name.

    Raises:
        InputError: there is no such model.
    """
    name = clean_name(value)
    session.model(name)
    choices = session.choices()
    if name not in [known for _, known in choices]:
        _, run, step = (*name.split("/"), "", "")[:3]
        choices.append((f"{run}, {step.replace('-', ' ')}", name))
    return choices, name
