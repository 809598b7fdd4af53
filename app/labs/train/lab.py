"""The Train lab: start training runs, watch them, and open what they learned in the other labs.

Forms are Gradio's components, made from the schemas of the settings; so are the list of runs and
the run that is shown (:mod:`app.labs.train.runs`). The two meet in two values: the page's ``wish``
(a form, a run to copy, a model to fine-tune) and the run that was ``started``.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.train.form import Form
from app.labs.train.parts import Told, packed
from app.labs.train.pretraining import Pretraining
from app.labs.train.racing import Racing
from app.labs.train.runs import Panel
from app.labs.train.tuning import Tuning
from app.page.sentence import Shared
from app.parts.controls import answer
from app.parts.plain import Kept, Line
from app.parts.views import listen, view
from app.runs.config import kind_of
from app.runs.forms import preview as run_preview
from app.runs.runs import OFF, Runs
from app.serving.ask import clean_name
from app.serving.session import Session

SCRIPTS = ("labs/train/index.js",)
FORMS: dict[str, tuple[str, type[Form]]] = {
    "pretraining": ("Pretrain", Pretraining),
    "task": ("Fine-tune", Tuning),
    "race": ("Race", Racing),
}
ABOUT = (
    "A run is a process of its own: close the page, come back, open it on another computer; it "
    "goes on, and this page finds it again."
)
SHOW = """kind => Cloze.trainKind(kind)"""


class Controls(NamedTuple):
    """What the lab consists of."""

    panel: Panel
    kind: gr.Radio
    columns: list[gr.Column]
    forms: dict[str, Form]
    wish: Told
    started: Told
    offers: Kept
    off: Line
    problem: Line


def build(shared: Shared) -> Controls:
    """The list of runs, and beside it a run or a form."""
    with gr.Row(elem_id="train-lab"):
        panel = Panel()
        with gr.Column(elem_id="train-main", min_width=0):
            panel.lay_out()
            with gr.Column(elem_id="train-forms"):
                Line(ABOUT)
                kind = gr.Radio(
                    [(title, name) for name, (title, _) in FORMS.items()],
                    value="pretraining",
                    label="Kind of run",
                )
                wish, started = Told("wish"), Told("started")
                offers = Kept()
                off, problem = Line(elem_classes=["wrong"]), Line(problem=True)
                columns, forms = [], {}
                for name, (_, form) in FORMS.items():
                    with gr.Column(
                        visible=name == "pretraining", elem_classes=[f"kind-{name}"]
                    ) as column:
                        forms[name] = form()
                    columns.append(column)
    return Controls(panel, kind, columns, forms, wish, started, offers, off, problem)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Forms answer for themselves; a wish of the list fills one."""
    listen(controls.panel.watch, {"open": partial(opened, session)})
    controls.panel.wire()
    c = controls
    turns = run_preview.Turns()
    for form in c.forms.values():
        form.wire(session, turns, c.wish, c.started)
    c.kind.change(None, c.kind, c.columns, js=SHOW)
    filling = [form.filling for form in c.forms.values()]

    def on_wish(question: Mapping[str, Any]) -> list[Any]:
        return granted(session, c.forms, question["wish"])

    outputs = [c.offers, c.off, c.kind, *filling]
    answer([c.wish.change], on_wish, {"wish": c.wish}, outputs, c.problem)
    for form in c.forms.values():
        form.offer(c.offers)


def granted(session: Session, forms: Mapping[str, Form], wish: Any) -> list[Any]:
    """Models that are there now, the kind of form, and its settings, as the list of runs wishes."""
    wish = wish if isinstance(wish, Mapping) else {}
    runs = session.library if isinstance(session.library, Runs) else None
    kind, new = None, None
    if wish.get("copy") is not None and runs is not None:
        config = runs.as_form(str(wish["copy"])[:80])
        kind = kind_of(config)
        config = {name: value for name, value in config.items() if name != "threads"}
        new = forms[kind].fill(config, source=wish["copy"])
    elif wish.get("tune") is not None:
        kind = "task"
        new = forms[kind].begin_with(clean_name(wish["tune"]))
    elif wish.get("kind") in forms:
        kind = wish["kind"]
    models = [list(choice) for choice in session.choices()]
    return [
        {"models": models},
        "" if runs is not None and runs.enabled else OFF,
        kind or gr.skip(),
        *(
            packed(form.filled(), new) if new and name == kind else gr.skip()
            for name, form in forms.items()
        ),
    ]


def outside(shared: Shared, session: Session) -> None:
    """An empty view that is there before any tab is: a link may name a snapshot of a run."""
    listen(view("finder", events=["open"]), {"open": partial(opened, session)})


def opened(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A model that is there, and the models to choose from; the page chooses it if it is wanted."""
    choices, name = choose(session, question.get("name"))
    return {"name": name, "choices": [list(choice) for choice in choices]}


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
