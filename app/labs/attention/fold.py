"""The fold of the Attention lab that shows what each token may see; it asks only while open."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.attention.visible import ORDERS, USUAL, look
from app.parts.controls import OpenDropdown, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Kept, Line, SentenceInput, Table
from app.serving.session import Session
from core_models.prediction.visibility_view import WAYS

LEAD = (
    "In every layer, each head lets every token spread 100 % of its attention over the tokens that "
    "it may see. Four ways of reading; those of this model have a frame. Click a row to read what "
    "its token sees."
)
SHOWN = 10
"""How many values an answer has."""
PICKED = "({ picked }) => picked.customdata"
OPENS = "(open) => ({ __type__: 'update', open })"


class Fold(NamedTuple):
    """What the fold consists of."""

    open: Kept
    box: gr.Accordion
    sentence: SentenceInput
    problem: Line
    kept: dict[str, Component]
    """What can be chosen, by its name in links."""
    said: Line
    grids: list[Figure]
    note: Line
    table: Table
    code: Code


def build() -> Fold:
    """Lay it out: what can be chosen, four grids side by side, and a row in words."""
    is_open = Kept(False)
    with gr.Accordion("What each token may see", open=False) as box:
        sentence, problem = SentenceInput(), Line(problem=True)
        Line(LEAD)
        with gr.Row(elem_classes=["choices"]):
            kept: dict[str, Component] = {
                "row": OpenDropdown([("", USUAL)], value=USUAL, label="Token that looks"),
                "window": OpenDropdown(
                    [("", USUAL)], value=USUAL, label="Window of “local”", filterable=False
                ),
                "order": gr.Dropdown(
                    [(label, name) for name, label in ORDERS.items()],
                    value="drawn",
                    label="Order of “permuted”",
                    filterable=False,
                ),
            }
        said = Line()
        with gr.Row():
            grids = []
            for way in WAYS:
                with gr.Column(min_width=270):
                    grids.append(Figure(elem_id=f"attention-{way}", events=["pick"]))
        note, table, code = Line(), Table(elem_id="attention-row"), Code()
    return Fold(is_open, box, sentence, problem, kept, said, grids, note, table, code)


def wire(fold: Fold, asked: Mapping[str, Component], session: Session) -> None:
    """Answer every choice while the fold is open, and keep whether it is.

    ``asked``: ``second`` and ``hide`` of the lab around it.
    """
    fold.box.expand(None, None, fold.open, js="() => true")
    fold.box.collapse(None, None, fold.open, js="() => false")
    fold.open.change(None, fold.open, fold.box, js=OPENS)  # type: ignore[attr-defined]
    parts = {**fold.kept, **asked}
    triggers = [part.change for part in (fold.sentence, *parts.values())]  # type: ignore[attr-defined]
    outputs = [fold.kept["row"], fold.kept["window"], fold.said, *fold.grids]
    outputs += [fold.note, fold.table, fold.code]
    question = {"sentence": fold.sentence, **parts}
    answer(triggers, partial(show, session), question, outputs, fold.problem)
    for grid in fold.grids:
        grid.pick(None, grid, fold.kept["row"], js=PICKED)  # type: ignore[attr-defined]
    remember("attention-visible", {"open": fold.open, **fold.kept})


def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """What the fold shows of a question."""
    if not isinstance(question["sentence"], Mapping):  # not open yet
        return [gr.skip()] * SHOWN
    found = look(session, question)
    choices = [gr.Dropdown(choices=found[name]) for name in ("row", "window")]
    parts = [found[name] for name in ("note", "table", "code")]
    return [*choices, found["said"], *found["grids"], *parts]
