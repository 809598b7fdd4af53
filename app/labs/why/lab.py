"""The Why lab: what in the sentence speaks for an answer of the model, and what against it.

A question that takes long is answered with its progress, and a clock asks again, which also says
that somebody still waits. What a visitor chooses of a sentence (place, answer, rival) belongs to
that sentence: ``of`` says to which, and `FOLLOW` forgets it with the next one.
"""

from functools import partial
from typing import NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.why import words
from app.labs.why.methods import STEPS, WINDOWS
from app.labs.why.replies import MOST_NOTES, SECOND, check, offered, show
from app.labs.why.service import Explainer
from app.labs.why.tries import FILL, FIRST, FOLLOW, STAY, TRIES, WRITE
from app.page.sentence import Shared
from app.parts.controls import OpenDropdown, OpenRadio, OpenSlider, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Kept, Line, SentenceInput, Table
from app.serving.session import Session
from viz.svg import Wording

AGAIN = 0.3
"""Seconds between looks at a computation."""
SCALE_TITLES = {
    "log-probability": "log_probability",
    "probability": "probability",
    "logit (raw score)": "logit",
}
BASELINE_TITLES = {
    "[MASK], where the model reads it": "",
    "[MASK] everywhere": "mask",
    "[PAD] everywhere": "pad",
    "zero vectors": "zero",
}
INTRO = (
    "Every word gets a share of the answer: upwards it speaks for it, downwards against it. Four "
    "methods tell four stories; where they disagree, none of them is the truth about the model."
)
ABOUT = {
    "integrated": "The gradient is added up on the straight way from an empty baseline to the "
    "sentence. The shares add up to what the sentence changes.",
    "gradient": "The gradient at the sentence itself, times the vector of the word. Quick, but it "
    "sees only what an infinitely small change would do.",
    "saliency": "How strongly the answer reacts to a small change of the word\u2019s vector. It "
    "has no sign: it does not tell for from against.",
    "occlusion": "Each word, or several in a row, gives way to the baseline in turn; the bar is by "
    "how much the answer falls, on average. What words do together is counted twice or not at all.",
}
FORGOTTEN = (
    "The head and more and more of the last layers get fresh random weights (Adebayo et al. 2018). "
    "A method whose bars hardly change does not show what those layers had learnt."
)
DRAW = "(draw, shown) => [[(draw?.[0] ?? 0) + 1, shown]]"
GIVE_UP_DRAW = "(draw) => [[draw[0], null]]"


class Controls(NamedTuple):
    """What the lab consists of."""

    sentence: SentenceInput
    of: Kept
    """The sentence that the choices belong to, or the try that is on its way."""
    shown: Kept
    """Which question is shown or computed, see `replies.mark`."""
    given_up: Kept
    """The question that the visitor does not wait for any more. No answer changes it: one that is
    late would undo what has been clicked since."""
    clock: gr.Timer
    problem: Line
    tries: gr.Radio
    fold: gr.Accordion
    """What to explain."""
    kept: dict[str, Component]
    """What can be chosen, by its name in links."""
    told: dict[str, Component]
    """What an answer fills, besides."""
    cancel: gr.Button
    again: gr.Button
    check: "Check"


class Check(NamedTuple):
    """The check with layers that are drawn anew."""

    draw: Kept
    """How often it was asked for, and the question that is to be checked."""
    begin: gr.Button
    cancel: gr.Button
    clock: gr.Timer
    problem: Line
    working: Line
    said: Line
    stages: Table


def build(shared: Shared) -> Controls:
    """Lay the lab out: what to try, the picture, and folds for all else."""
    Heading("Why this answer?")
    names = [str(name) for name, (_, _, chosen) in TRIES.items() if "kind" not in chosen]
    tries = OpenRadio(names, label="What to try")
    problem = Line(problem=True)
    sentence = SentenceInput(["text", "model", "marks", "language"])
    of, shown, given_up = Kept(), Kept(), Kept()
    with gr.Row(elem_classes=["choices"]):
        told: dict[str, Component] = {"said": Line(), "working": Line()}
        cancel, again = _button("Cancel"), _button("Compute")
    told["chart"] = Figure(elem_id="why-bars", main=True)
    told["strongest"] = Line()
    with gr.Accordion("What to explain", open=False) as fold:
        kept = _choices()
        told |= {f"note {n}": Line() for n in range(MOST_NOTES)}
    with gr.Accordion("How it is computed", open=False):
        for method, text in ABOUT.items():
            Line(Wording("{0}: {1}", words.TITLES[method], Wording(text)))
        with gr.Row():
            kept["steps"] = OpenSlider(
                *STEPS, value=FIRST["steps"], step=10, label="Steps", buttons=[]
            )
            kept["baseline"] = gr.Dropdown(
                list(BASELINE_TITLES.items()),
                value="",
                label="Baseline",
                filterable=False,
                min_width=220,
            )
            kept["window"] = OpenSlider(
                *WINDOWS, value=1, step=1, label="Words at a time", buttons=[]
            )
        told["total"] = Line()
    with gr.Accordion("Do the methods agree?", open=False):
        told["agreement"] = Table(elem_id="why-agreement")
    with gr.Accordion("Would a model that has forgotten say the same?", open=False):
        check = _check()
    with gr.Accordion("What this shows", open=False):
        Line(INTRO)
    told["code"] = Code()
    clock = gr.Timer(AGAIN, active=False)
    return Controls(
        *(sentence, of, shown, given_up, clock),
        *(problem, tries, fold, kept, told, cancel, again, check),
    )


def _choices() -> dict[str, Component]:
    """What is explained; which of it can be chosen an answer tells."""
    found: dict[str, Component] = {"kind": OpenRadio([], value="", label="What to explain")}
    found["second"] = gr.Textbox("", label=SECOND, max_lines=4, visible="hidden")
    with gr.Row():
        for name, label in (
            ("position", "At"),
            ("word", "The answer to explain"),
            ("against", "rather than"),
        ):
            found[name] = OpenDropdown(
                [("", "")], value="", label=label, allow_custom_value=True, min_width=220
            )
        found["scale"] = gr.Dropdown(
            list(SCALE_TITLES.items()),
            value=FIRST["scale"],
            label="Measured in",
            filterable=False,
            min_width=220,
        )
    return {name: found[name] for name in FIRST if name in found}


def _check() -> Check:
    Line(FORGOTTEN)
    problem = Line(problem=True)
    with gr.Row():
        begin = _button("Draw the top layers anew", visible=True)
        working, cancel = Line(), _button("Cancel")
    draw = Kept()
    clock = gr.Timer(AGAIN, active=False)
    return Check(draw, begin, cancel, clock, problem, working, Line(), Table(elem_id="why-check"))


def _button(label: str, *, visible: bool = False) -> gr.Button:
    return gr.Button(label, size="sm", scale=0, min_width=150, visible=visible)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; a try is filled in without a request."""
    c, kept, checked = controls, controls.kept, controls.check
    explainer = Explainer(session)
    chosen = [kept[name] for name in FIRST]
    asked = {"sentence": c.sentence, "of": c.of, "shown": c.shown, "given_up": c.given_up, **kept}
    c.sentence.change(
        None,
        follow := [c.sentence, c.of, *chosen],
        follows := [c.of, c.tries, *chosen[:4]],
        js=FOLLOW,
    )
    filled = c.tries.input(None, c.tries, [*chosen, c.of], js=FILL)
    written = filled.then(None, c.tries, None, js=WRITE)
    written.then(None, follow, follows, js=FOLLOW)
    gr.on([part.input for part in chosen], None, [c.tries, *chosen], c.tries, js=STAY)
    kept["second"].input(None, None, kept["position"], js="() => ''")
    c.cancel.click(None, c.shown, c.given_up, js="(shown) => [shown]")
    c.again.click(None, None, c.given_up, js="() => null")
    answer(
        [
            *(c.of.change, kept["second"].change, kept["position"].change, c.clock.tick),
            c.given_up.change,
            *(kept[name].input for name in ("kind", "word", "against", "scale", "baseline")),
            # Gradio tells of a slider's release only what a pointer did, and brings a number that
            # is out of bounds back without any other event.
            *(kept[name].change for name in ("steps", "window")),
        ],
        partial(show, explainer),
        asked,
        [c.shown, c.tries, *chosen, *c.told.values(), c.clock, c.cancel, c.again],
        c.problem,
    )
    # Gradio 6.31 forgets what is to be seen in a fold that was never open.
    answer([c.fold.expand], partial(offered, explainer), asked, chosen, c.problem)
    checked.begin.click(None, [checked.draw, c.shown], checked.draw, js=DRAW)
    checked.cancel.click(None, checked.draw, checked.draw, js=GIVE_UP_DRAW)
    ends = [checked.working, checked.clock, checked.cancel]
    answer(
        [checked.draw.change, checked.clock.tick, c.shown.change],
        partial(check, explainer),
        {**asked, "draw": checked.draw},
        [*ends, checked.said, checked.stages],
        checked.problem,
    )
    remember("why", kept)
