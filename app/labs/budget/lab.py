"""The Budget lab: what models cost, counted from the modules themselves.

It needs no sentence. Published sizes are chosen by name, and one size may be the visitor's own.
"""

import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

import core_models as cm
from app.labs.budget import answers, timing
from app.labs.budget.known import MODEL, chosen_name, exact, known_models, label
from app.labs.budget.tables import costs, published_figures
from app.page.sentence import Shared
from app.parts.controls import Answering, answer, remember
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Kept, Line, SentenceInput, Table, sentences
from app.serving.session import Session
from core_models import Config, InputError
from viz.budget import bars, narrow_tables
from viz.svg import Wording

PRESETS = {
    "BERT against ALBERT": ["bert-base-uncased", "albert-base"],
    "Four ways to be base": [
        "bert-base-uncased",
        "albert-base",
        "electra-small-discriminator",
        "deberta-v3-base",
    ],
    "The vocabulary grows": [
        "bert-base-chinese",
        "bert-base-uncased",
        "bert-base-multilingual-cased",
        "mdeberta-v3-base",
    ],
    "Relative positions": [
        "bert-base-uncased",
        "xlnet-base-cased",
        "deberta-base",
        "deberta-v3-base",
    ],
    "From 2018 to 2024": [
        "bert-base-uncased",
        "roberta-base",
        "deberta-v3-base",
        "modernbert-base",
        "neobert",
    ],
}
FIRST = PRESETS["Four ways to be base"]
SET = f"(name, count) => [({json.dumps(PRESETS)})[name], false, count + 1]"
NAMED = f"""(sizes, own) => Object.entries({json.dumps(PRESETS)})
  .find(([, names]) => !own && JSON.stringify(names) === JSON.stringify(sizes))?.[0] ?? null"""
ADD = "(added, sizes, count) => [[...new Set([...sizes ?? [], added.name])], count + 1]"
LENGTH = 64
BASE = "bert-base-uncased"
LABELS = {
    "vocabulary": "Vocabulary, V",
    "embedding": "Width of the tables, E",
    "width": "Hidden width, H",
    "layers": "Layers, L",
    "heads": "Number of heads",
    "inner": "Inner width",
}
SHARINGS = {
    "none: every layer has weights of its own": "none",
    "all: one block for every layer": "all",
    "groups of layers share a block": "groups",
}


class Controls(NamedTuple):
    """What the lab consists of."""

    preset: gr.Radio
    sizes: gr.Dropdown
    chosen: SentenceInput
    """The model of the sentence block."""
    this: gr.Button
    length: gr.Number
    shares: gr.Checkbox
    problem: Line
    said: Line
    chart: Figure
    costs: Table
    measure: gr.Button
    narrow: Figure
    own: dict[str, Component]
    """The switch ``own`` and the values of the visitor's own size, ``own.base`` and so on."""
    code: Code


def build(shared: Shared) -> Controls:
    """Lay the lab out: what is chosen, the picture, and folds for all else."""
    Heading("What does a model cost?")
    with gr.Row(elem_classes=["choices"]):
        preset = gr.Radio(
            list(PRESETS), value="Four ways to be base", label="What to try", scale=3, min_width=300
        )
        sizes = gr.Dropdown(
            list(cm.sizes()),
            value=FIRST,
            label="Models",
            multiselect=True,
            allow_custom_value=True,
            elem_id="budget-sizes",
            scale=4,
            min_width=300,
        )
        this = gr.Button("This model", elem_id="budget-this", size="sm", scale=0, min_width=110)
    chosen = SentenceInput(("model",))
    problem = Line(problem=True, elem_id="budget-problem")
    chart = Figure(elem_id="budget-bars", main=True)
    with gr.Row(elem_classes=["choices"]):
        said = Line(elem_id="budget-said")
        shares = gr.Checkbox(False, label="Each bar to full length", elem_id="budget-shares")
    with gr.Accordion("Parameters, bytes, operations, time", open=False):
        length = gr.Number(
            LENGTH, label="Tokens in the sequence", precision=0, elem_id="budget-length"
        )
        costs = Table(elem_id="budget-costs")
        measure = gr.Button("Measure on this machine", elem_id="budget-measure", size="sm")
    own = _own()
    with gr.Accordion("Narrow tables", open=False):
        narrow = Figure(elem_id="budget-narrow")
    with gr.Accordion("What is printed, and what is counted", open=False) as printed:
        claims = Table(elem_id="budget-claims")
    # Counted when it is wanted; the models of all claims take a second.
    printed.expand(published_figures, None, claims, queue=False, api_visibility="private")
    code = Code(elem_id="budget-code")
    return Controls(
        preset,
        sizes,
        chosen,
        this,
        length,
        shares,
        problem,
        said,
        chart,
        costs,
        measure,
        narrow,
        own,
        code,
    )


def _own() -> dict[str, Component]:
    """The size of the visitor's own: it starts from a published one."""
    first = answers.values(cm.size(BASE))
    with gr.Accordion("A size of your own", open=False):
        found: dict[str, Component] = {
            "own": gr.Checkbox(False, label="Show it", elem_id="budget-own"),
            "own.base": gr.Dropdown(
                list(cm.sizes()),
                value=BASE,
                label="Start from",
                allow_custom_value=True,
                elem_id="budget-base",
            ),
        }
        with gr.Row():
            for name, label in LABELS.items():
                found[f"own.{name}"] = gr.Number(
                    first[name], label=label, precision=0, elem_id=f"budget-{name}", min_width=150
                )
        with gr.Row():
            found["own.sharing"] = gr.Dropdown(
                list(SHARINGS.items()),
                value=first["sharing"],
                label="Sharing of blocks",
                elem_id="budget-sharing",
            )
            found["own.groups"] = gr.Number(2, label="Groups", precision=0, elem_id="budget-groups")
    return found


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer every choice; measurements queue up, one at a time for all visitors."""
    c = controls
    kept = {"sizes": c.sizes, "length": c.length, "shares": c.shares, **c.own}
    asked = {**kept, "costs": c.costs}
    outputs = [c.said, c.chart, c.costs, c.narrow, c.code]
    parts: list[Any] = [
        c.sizes,
        c.length,
        c.shares,
        c.own["own"],
    ]

    def knowing(answering: Answering) -> Answering:
        return lambda question: answering({**question, "known": known_models(session, question)})

    # Presets and what a measurement ends with count this up: one event has all answers, in order.
    again = Kept(0)
    triggers = [again.change, *(part.input for part in parts)]  # type: ignore[attr-defined]
    answer(triggers, knowing(partial(show, session)), asked, outputs, c.problem, first=True)
    c.preset.input(None, [c.preset, again], [c.sizes, c.own["own"], again], js=SET)
    for part in (c.sizes, c.own["own"]):
        part.change(None, [c.sizes, c.own["own"]], c.preset, js=NAMED)  # type: ignore[attr-defined]
    added = Kept()
    wanted = {**asked, "chosen": c.chosen}

    def on_this(question: Mapping[str, Any]) -> list[Any]:
        name = chosen_name(question)
        asked = {**question, "sizes": [*(question["sizes"] or ()), name]}
        chosen_configs({**asked, "known": known_models(session, asked)})
        return [{"name": name, "time": time.time()}]

    answer([c.this.click], on_this, wanted, [added], c.problem)
    added.change(None, [added, c.sizes, again], [c.sizes, again], js=ADD)  # type: ignore[attr-defined]
    values = [c.own[f"own.{name}"] for name in (*LABELS, "sharing", "groups")]
    for part in values:  # a number that is changed is to be seen
        part.input(None, again, [c.own["own"], again], js="count => [true, count + 1]")
    started = [c.own["own"], *values, again]
    c.own["own.base"].input(None, [c.own["own.base"], again], started, js=_starts())
    measured = answer([c.measure.click], knowing(measure), asked, [c.costs], c.problem, alone=True)
    # Whatever was chosen meanwhile: times of another length or size are dropped.
    measured.then(None, again, again, js="count => count + 1")
    remember("budget", kept)


# --- answers: plain values in, plain values out ---------------------------------------------------


def chosen_configs(question: Mapping[str, Any]) -> dict[str, Config]:
    """The configs that are shown, by name: published ones first, then the visitor's own."""
    known = question.get("known", {})
    names = answers.read_names(question["sizes"] or (), known)
    configs = {name: known[name].config if name in known else cm.size(name) for name in names}
    if own := own_values(question):
        configs[answers.OWN] = answers.read_own(own)
    return configs


def own_values(question: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values of the visitor's own size; None while it is switched off."""
    if question["own"] is not True:
        return None
    return {n.removeprefix("own."): v for n, v in question.items() if n.startswith("own.")}


def show(session: Session, question: Mapping[str, Any]) -> list[Any]:
    """The sentence, the bars, the costs, the narrow tables and the code of what is chosen."""
    length = answers.read_length(question["length"])
    known = question.get("known", {})
    configs = chosen_configs(question)
    rows = [answers.describe(name, config, length) for name, config in configs.items()]
    if not rows:
        return ["Choose a model above.", None, None, None, ""]
    names = {row["name"]: label(row["name"]) for row in rows}
    times = known_times(question, length)
    own = own_values(question)
    chart = bars(
        {names[row["name"]]: row["parts"] for row in rows},
        answers.PARTS,
        shares=question["shares"] is True,
        total=Wording("With pretraining heads"),
    )
    spent = {name: time["fastest"] for name, time in times.items() if time.get("fastest")}
    code = answers.code_lines(
        [name for name in configs if name != answers.OWN and name not in known],
        None if own is None else (own["base"], configs[answers.OWN]),
        length,
        {name: session.loadable(name.removeprefix(MODEL)) for name in known},
    )
    return [
        sentences(*exact(known), answers.compare(rows, names, answers.read_times(spent))),
        chart,
        costs(rows, length, times, own),
        narrow(rows),
        code,
    ]


def _starts() -> str:
    """The values of a published size, for the visitor's own one; of a name that is none, none."""
    found = {name: [True, *start(name).values()] for name in cm.sizes()}
    return f"""(name, count) => {{
      const none = [true, ...Array({len(LABELS) + 2}).fill({{ __type__: 'update' }})];
      return [...({json.dumps(found)})[name] ?? none, count + 1];
    }}"""


def start(name: str) -> dict[str, Any]:
    """The values of the visitor's own size, as they are in a published one."""
    first = answers.values(cm.size(name))
    first["groups"] = min(first["groups"], first["layers"])
    return {each: first[each] for each in (*LABELS, "sharing", "groups")}


def known_times(question: Mapping[str, Any], length: int) -> dict[str, dict[str, Any]]:
    """Times that the table shows already, if they are of this length and size."""
    shown = question["costs"]
    if not isinstance(shown, Mapping) or shown.get("length") != length:
        return {}
    times = shown.get("times")
    found = dict(times) if isinstance(times, Mapping) else {}
    if shown.get("own") != own_values(question):
        found.pop(answers.OWN, None)
    return {str(n)[:100]: dict(t) for n, t in found.items() if isinstance(t, Mapping)}


def measure(question: Mapping[str, Any]) -> Iterator[list[Any]]:
    """One forward pass of every size, timed here, one after the other."""
    length = answers.read_length(question["length"])
    configs = chosen_configs(question)
    rows = [answers.describe(name, config, length) for name, config in configs.items()]
    times: dict[str, dict[str, Any]] = {}
    for name, config in configs.items():
        try:
            times[name] = {"fastest": timing.measure(config, length)}
        except InputError as error:
            times[name] = {"error": str(error)}
        yield [costs(rows, length, times, own_values(question))]


def narrow(rows: list[dict[str, Any]]) -> Any:
    """The first model with narrow tables, else the first one."""
    row = next((row for row in rows if row["factorisation"]["factorised"]), rows[0])
    found = row["factorisation"]
    return narrow_tables(
        row["vocabulary"],
        row["width"],
        row["embedding"],
        full=found["full"],
        narrow=found["narrow"],
        break_even=found["break_even"],
    )
