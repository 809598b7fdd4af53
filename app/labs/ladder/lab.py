"""The Ladder lab: from BERT to ModernBERT, one change at a time, and what each change bought.

It needs no sentence. What is shown was measured before, by ``python -m benchmarks.ladder``.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

from app.labs.ladder import answers as ladder
from app.labs.ladder.answers import MEASURES, RUNGS
from app.page.sentence import Shared
from app.parts.controls import answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Line, Table
from app.serving.session import Session

FIRST, FIGURE = "no-pairs", "right"
NAMES = [rung.name for rung in RUNGS]
NEXT = f"""name => {{
  const all = {json.dumps(NAMES)};
  return all[(all.indexOf(name) + 1) % all.length];
}}"""
ABOUT = """\
Each rung is the model of the rung before with one change, so what it gains or loses is that \
change's work. All begin with random weights and read the same text for the same processor time: a \
change that makes a step dearer reads fewer tokens for it."""
HONEST = """\
This is a small model and a short run. Changes that are for deep models, long texts or GPUs cannot \
show their worth here: norms before the branches, local layers and a stable rate were made for \
those. What a second seed of the same rung changes is chance."""
MEASURED = """\
Held-out text always has 15 % of its pieces hidden, whatever was hidden in training; the same \
pieces for all. Minimal pairs are two sentences of which one is right: the model should find it \
likelier."""


class Controls(NamedTuple):
    """What the lab consists of."""

    rung: gr.Dropdown
    following: gr.Button
    measure: gr.Radio
    problem: Line
    chart: Figure
    title: Heading
    why: Line
    said: Line
    changes: Table
    figures: Table
    everything: Table
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: which change and figure, the picture beside what changed, and folds."""
    Heading("What did each change buy?")
    with gr.Row(elem_classes=["choices"]):
        rung = gr.Dropdown(
            [(rung.title, rung.name) for rung in RUNGS],
            value=FIRST,
            label="Change",
            filterable=False,
            scale=1,
            min_width=210,
        )
        following = gr.Button("Next change", size="sm", scale=0, min_width=120)
        measure = gr.Radio(
            [(str(each.title), name) for name, each in MEASURES.items()],
            value=FIGURE,
            label="Figure",
            scale=5,
            min_width=300,
        )
    problem = Line(problem=True)
    with gr.Row():
        with gr.Column(scale=3, min_width=330):
            chart = Figure(elem_id="ladder-rungs", main=True)
        with gr.Column(scale=2, min_width=300):
            title, why, said = Heading(), Line(), Line()
            changes = Table(elem_id="ladder-changes")
    with gr.Accordion("What it costs and what it reached", open=False):
        figures = Table(elem_id="ladder-figures")
    with gr.Accordion("All figures", open=False):
        everything = Table(elem_id="ladder-all")
    with gr.Accordion("What this shows", open=False):
        Line(ABOUT)
        Line(HONEST)
        Line(MEASURED)
    shown = (chart, title, why, said, changes, figures, everything)
    return Controls(rung, following, measure, problem, *shown, Code())


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice."""
    c = controls
    asked = {"rung": c.rung, "measure": c.measure}
    outputs = [c.chart, c.title, c.why, c.said, c.changes, c.figures, c.everything, c.code]
    # The button and links write the choice, too.
    answer([c.rung.change, c.measure.change], show, asked, outputs, c.problem, first=True)
    c.following.click(None, c.rung, c.rung, js=NEXT)
    remember("ladder", asked)


# --- answers: plain values in, plain values out ---------------------------------------------------


def show(question: Mapping[str, Any]) -> list[Any]:
    """The chart, what the chosen rung changed and why, and its figures."""
    number, name = ladder.read_rung(question["rung"]), ladder.read_measure(question["measure"])
    found = ladder.reached()
    return [
        ladder.chart(found, number, name),
        ladder.title_of(number),
        ladder.why(number),
        ladder.said(found, number, name),
        ladder.changes(number),
        ladder.figures(found, number),
        ladder.everything(found),
        ladder.code_lines(number),
    ]
