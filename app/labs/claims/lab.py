"""The Claims lab: popular statements; guess, and this machine measures and a rule judges.

It needs no sentence; the model of the sentence block answers where a measurement needs a trained
one and that one can.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.claims.desk import CLAIMS, Desk
from app.labs.claims import answers as claims
from app.labs.claims.answers import FIRST, GUESSES, TOPICS
from app.labs.claims.card import Card
from app.page.sentence import Shared
from app.parts.controls import answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Kept, Line, SentenceInput, Table
from app.serving.session import Session

PAUSE = 0.2
"""Seconds between measurements that follow each other."""
MEASURING = "Measuring …"
INTRO = """\
Statements that are often heard about these models, right ones and wrong ones. Guess first; then \
this machine measures, and a rule that stands on the card makes the verdict from the numbers."""
ARTICLES = """\
Five Chinese articles on these models, named by their headings. Most of what they say is right; \
the cards take up what can be measured."""
NEXT = f"""(name, topic, only) => {{
  const names = only.length ? only : ({json.dumps(TOPICS)})[topic];
  return names[(names.indexOf(name) + 1) % names.length];
}}"""
ADD = """(found, ran, guesses) => (!found ? [ran, guesses] : [
  [...ran.filter((each) => each.split('.')[0] !== found.name), `${found.name}.${found.seed}`],
  { ...guesses, [found.name]: found.guess },
])"""

# A guess, and what is measured, are of a statement and a model; Gradio may tell of a change twice.
OTHER = """(model, claim, of) => {
  const now = JSON.stringify([model, claim]);
  const known = now === of ? { __type__: 'update' } : null;
  return [now, known, known];
}"""
# What an answer makes of choices that do not go together, unless others were made meanwhile.
MEANT = """(found, topic, claim, only) => {
  const keep = { __type__: 'update' };
  const now = [topic, claim, only];
  if (!found || JSON.stringify(now) !== JSON.stringify(found.asked)) return [keep, keep, keep];
  return found.meant.map((value, n) => (
    JSON.stringify(value) === JSON.stringify(now[n]) ? keep : value));
}"""
# Once it is measured; an answer may be about the statement before the one that is chosen.
GUESSED = """(card, claim) => (card?.measured && card.name === claim ? card.guessed
  : { __type__: 'update' })"""


class Controls(NamedTuple):
    """What the lab consists of."""

    model: SentenceInput
    topic: gr.Dropdown
    claim: gr.Dropdown
    next: gr.Button
    card: Card
    guess: gr.Radio
    again: gr.Button
    problem: Line
    busy: Line
    chart: Figure
    score: Line
    verdicts: Table
    all: gr.Checkbox
    clock: gr.Timer
    forget: gr.Button
    code: Code
    only: Kept
    """Names that an old link chose."""
    ran: Kept
    """Name and seed of what was measured, the last one last."""
    guesses: Kept
    """Guesses by name."""
    found: Kept
    """What was measured last: name, seed, guess."""
    meant: Kept
    """What the choices should be where they do not go together, for ``MEANT``."""
    linked: Kept
    """True until the first answer: a link may still say what is shown. Then topic and ``only`` of
    the last answer: whoever changes the claim alone may leave them."""


def build(shared: Shared) -> Controls:
    """Lay the lab out: which statement, the card with its numbers, and folds for all else."""
    Heading("True or false?")
    with gr.Row(elem_classes=["choices"]):
        topic = gr.Dropdown(
            claims.TOPIC_NAMES, value="", label="What to try", scale=1, min_width=200
        )
        claim = gr.Dropdown(
            [(str(claim.statement), name) for name, claim in CLAIMS.items()],
            value=FIRST,
            label="Statement",
            scale=3,
            min_width=300,
        )
        following = gr.Button("Next statement", size="sm", scale=0, min_width=150)
    problem, model = Line(problem=True), SentenceInput(["model"])
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            card = Card()
            with gr.Row(elem_classes=["choices"]):
                guess = gr.Radio(
                    [(label, name) for name, label in GUESSES.items()], label="Your guess", scale=3
                )
                again = gr.Button(
                    "Measure again", size="sm", scale=0, min_width=150, interactive=False
                )
            busy = Line()
        with gr.Column(scale=2, min_width=300):
            chart = Figure(elem_id="claims-numbers", main=True)
    score = Line()
    with gr.Accordion("All verdicts", open=False):
        verdicts = Table(elem_id="claims")
        with gr.Row(elem_classes=["choices"]):
            every = gr.Checkbox(False, label="Measure all of these statements, one by one")
            forget = gr.Button("Forget my guesses", size="sm", scale=0, min_width=180)
    clock = gr.Timer(PAUSE, active=False)
    with gr.Accordion("What this shows", open=False):
        Line(INTRO)
        Line(ARTICLES)
        Table(claims.articles(), elem_id="claims-articles")
    chosen = (model, topic, claim, following, card, guess, again, problem, busy, chart, score)
    kept = (Kept([]), Kept([]), Kept({}), Kept(), Kept(), Kept(True))
    return Controls(*chosen, verdicts, every, clock, forget, Code(), *kept)


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; what is measured joins the list, and what is shown follows it."""
    c, desk = controls, Desk(session)
    asked = {"model": c.model, "topic": c.topic, "claim": c.claim, "only": c.only}
    asked |= {"ran": c.ran, "guesses": c.guesses, "linked": c.linked}
    answer(
        [c.model.change, c.topic.change, c.claim.change, c.ran.change, c.guesses.change],
        partial(claims.show, desk),
        asked,
        [
            *(c.meant, c.guess, c.again, c.card, c.chart),
            *(c.score, c.verdicts, c.code, c.clock, c.linked),
        ],
        c.problem,
    )
    chosen: list[Any] = [c.topic, c.claim, c.only]
    c.meant.change(None, [c.meant, *chosen], chosen, js=MEANT)
    done = {**asked, "guess": c.guess, "all": c.all}
    for trigger, measuring in (
        (c.guess.input, claims.measure),
        (c.again.click, claims.measure_again),
    ):
        trigger(None, None, c.busy, js=f"() => ({{ text: {json.dumps(MEASURING)} }})")
        after = answer([trigger], partial(measuring, desk), done, [c.found], c.problem)
        after.then(None, None, c.busy, js="() => null")
    rest = partial(claims.measure_next, desk)
    answer([c.clock.tick], rest, done, [c.found, c.all, c.clock], c.problem)
    c.found.change(None, [c.found, c.ran, c.guesses], [c.ran, c.guesses], js=ADD)
    of = Kept()
    for other in (c.model.change, c.claim.change):  # type: ignore[attr-defined]
        other(None, [c.model, c.claim, of], [of, c.guess, c.busy], js=OTHER)
    c.card.change(None, [c.card, c.claim], c.guess, js=GUESSED)  # type: ignore[attr-defined]
    c.next.click(None, [c.claim, c.topic, c.only], c.claim, js=NEXT)
    c.topic.input(None, None, c.only, js="() => []")
    c.all.input(None, c.all, c.clock, js="active => ({ __type__: 'update', active })")
    c.forget.click(None, None, c.guesses, js="() => ({})")
    kept: Mapping[str, Any] = {"family": c.topic, "claim": c.claim, "only": c.only, "ran": c.ran}
    remember("claims", kept)
