"""How the Attention lab is laid out, and what its buttons set."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr
from gradio.components import Component

from app.labs.attention import fold
from app.labs.attention.asked import AUTO, GAP, LINK, STARING
from app.labs.attention.parts import Chosen, HeadGrid, HeadLines
from app.labs.attention.prediction import WORST
from app.parts.controls import OpenDropdown
from app.parts.figure import Figure
from app.parts.plain import Code, Heading, Line, SentenceInput, Table

MODES = {
    "Heads": "heads",
    "Combined": "combined",
    "Rollout & flow": "rollout",
    "Norms": "norms",
    "Switch off": "off",
    "q·k": "products",
    "Compare": "compare",
}
LINKS = {
    "all": "all",
    "first → second": "ab",
    "second → first": "ba",
    "inside a sentence": "within",
}
LEADS = {
    "combined": "Click heads to take them in or out, the mean of a layer for all of it. Mean: "
    "averaged over them. Maximum: the strongest link of any of them.",
    "rollout": "Each layer mixes what the layers before have mixed. Rollout multiplies the maps of "
    "all layers, half of each token staying what it was; flow is the most that could run through "
    "the same links.",
    "norms": "A token may be looked at much and give little, because its value is small. The norm "
    "is the length of the vector it adds through this head: weight times value, after the output "
    "projection.",
    "off": "Click heads to switch them off: their output becomes zero, everything else stays. The "
    "bars show what the model puts into the gap with all heads and without these.",
    "products": "One token asks (query), every token offers (key): two lists of numbers, "
    "multiplied place by place. Sum, scale and softmax turn each row into a share.",
    "compare": "Two models read the same sentence, each cut into its own pieces. Only maps over "
    "the same words can be compared by eye: head 3 of one has nothing to do with head 3 of the "
    "other.",
}
CAPITAL = "The capital of France is Paris."


class Preset(NamedTuple):
    """A button of a mode."""

    label: str
    values: Mapping[str, Any]
    """What it sets, by the names of what is asked."""
    text: str = ""
    """A sentence that it puts into the sentence block first, as it is when ""."""
    hide: str = ""
    """A word that it hides there."""


PRESETS = {
    "combined": (
        Preset("All heads of the last layer", {"picks": "last", "how": "mean"}),
        Preset("The strongest link of any head", {"picks": "all", "how": "max"}),
        Preset(
            "Two sentences: who looks across?",
            {"second": "Many people live in Paris.", "part": "ab", "picks": "all", "how": "max"},
            CAPITAL,
        ),
        Preset("All heads", {"picks": "all"}),
        Preset("No heads", {"picks": "none"}),
    ),
    "rollout": (
        Preset("What does [CLS] hold?", {"token": -1, "upto": -1}),
        Preset("What fills the gap?", {"token": GAP, "upto": -1, "second": ""}, CAPITAL, "paris"),
        Preset("Only the first layer", {"upto": 1}),
    ),
    "norms": (
        Preset("A head that stares at [CLS] or [SEP]", {"layer": STARING, "head": STARING}),
        Preset("A head that links words", {"layer": AUTO, "head": AUTO}),
        Preset("All heads of the last layer together", {"layer": -1, "head": -1}),
    ),
    "off": (
        Preset(
            "Hide “Paris” and sweep",
            {"off": "", "gap": -1, "second": "", "sweep": True},
            CAPITAL,
            "paris",
        ),
        Preset("Switch off the head that hurts most", {"off": WORST, "sweep": True}),
        Preset("Switch off the last layer", {"off": "last"}),
        Preset("Switch all on", {"off": ""}),
    ),
    "products": (
        Preset("The gap looks for its word", {"query": GAP, "second": ""}, CAPITAL, "paris"),
        Preset("The head with the clearest link", {"layer": AUTO, "head": AUTO, "query": LINK}),
    ),
    "compare": (
        Preset("Mean over all heads of both", {"what": "mean"}),
        Preset(
            "The clearest head of each", {"what": "head", "layer": AUTO, "head": AUTO, "place": ""}
        ),
        Preset("Rollout of both", {"what": "rollout"}),
    ),
}


class Controls(NamedTuple):
    """What the lab consists of."""

    scene: SentenceInput
    asked: dict[str, Component]
    """What a question holds beside the sentence."""
    shown: dict[str, Component]
    """What an answer fills beside the values of ``asked``."""
    presets: list[tuple[Preset, gr.Button]]
    problem: Line
    acted: gr.Number
    """Counts acts that set several values: one question for all of them."""
    clock: gr.Timer
    settled: gr.Textbox
    """What an answer found for values that stand for another one, such as the clearest head."""
    seen: fold.Fold


def lay_out() -> Controls:
    """The lab: what is looked at, heads and pictures, and folds for all else."""
    asked: dict[str, Component] = {}
    shown: dict[str, Component] = {}
    presets: list[tuple[Preset, gr.Button]] = []
    Heading("Which words look at which?")
    with gr.Row(elem_classes=["choices"]):
        asked["mode"] = gr.Radio(
            list(MODES.items()),
            value="heads",
            label="What to look at",
            scale=5,
            min_width=300,
            elem_classes=["modes"],
        )
        asked["layer"] = _choice("Layer", AUTO, elem_classes=["one-head"])
        asked["head"] = _choice("Head", AUTO, elem_classes=["one-head"])
        asked["hide"] = gr.Checkbox(
            False, label="Hide [CLS] and [SEP]", scale=0, elem_classes=["whole-label"]
        )
    scene, problem = SentenceInput(), Line(problem=True)
    for mode, lead in LEADS.items():
        with gr.Column(elem_classes=["room", f"room-{mode}"]):
            Line(lead)
            with gr.Row(elem_classes=["choices"]):
                asked |= ROWS[mode]()
                with gr.Row(elem_classes=["choices", "presets"]):
                    for preset in PRESETS[mode]:
                        presets.append((preset, gr.Button(preset.label, size="sm", min_width=0)))
    with gr.Row():
        with gr.Column(scale=4, min_width=300, elem_classes=["room", "room-grid"]):
            shown["grid"], shown["chosen"] = HeadGrid(), Chosen()
        with gr.Column(scale=7, min_width=300):
            shown["said"], shown["switched"] = Line(), Line()
            with gr.Row(elem_classes=["attention-pictures"]):
                with gr.Column(min_width=300):
                    shown["lines"] = HeadLines()
                with gr.Column(min_width=300):
                    shown["first"] = Figure(elem_id="attention-map", main=True)
                with gr.Column(min_width=300):
                    shown["second_map"] = Figure(elem_id="attention-more", main=True)
            shown["swept"], shown["note"] = Line(), Line()
            shown["steps"] = Table(elem_id="attention-steps")
    with gr.Accordion("A second sentence, and colours", open=False):
        asked["second"] = gr.Textbox("", label="Second sentence", max_lines=1, max_length=1000)
        asked["part"] = gr.Radio(list(LINKS.items()), value="all", label="Links")
        shown["segments"] = Line()
        asked["own"] = gr.Checkbox(False, label="Each map on its own colour scale")
    seen = fold.build()
    shown["code"] = Code()
    asked |= {name: gr.Textbox("", visible="hidden") for name in ("picks", "off", "drawn")}
    shown["drawn"] = asked["drawn"]
    acted = gr.Number(0, visible="hidden")
    clock, settled = gr.Timer(0.05, active=False), gr.Textbox("", visible="hidden")
    return Controls(scene, asked, shown, presets, problem, acted, clock, settled, seen)


def _choice(label: str, value: int | str, wide: int = 120, **more: Any) -> OpenDropdown:
    """A choice whose answers come with the sentence and the model."""
    return OpenDropdown(
        [("\N{EN DASH}", value)],
        value=value,
        label=label,
        filterable=False,
        scale=0,
        min_width=wide,
        **more,
    )


def _combined() -> dict[str, Component]:
    ways = [("mean", "mean"), ("maximum", "max")]
    return {"how": gr.Radio(ways, value="mean", label="How the heads are combined")}


def _rollout() -> dict[str, Component]:
    return {"token": _choice("Token", -1, 180), "upto": _choice("Up to layer", -1)}


def _off() -> dict[str, Component]:
    return {
        "gap": _choice("Hidden word", -1, 180),
        "sweep": gr.Checkbox(False, label="Sweep: every head off in turn", min_width=200),
        "shared": gr.Checkbox(
            True, label="In every layer that shares the weights", visible="hidden", min_width=200
        ),
    }


def _products() -> dict[str, Component]:
    return {"query": _choice("Token that looks", -1, 180)}


def _compare() -> dict[str, Component]:
    ways = [("mean over all heads", "mean"), ("one head of each", "head"), ("rollout", "rollout")]
    return {
        "other": _choice("Second model", "", 230),
        "what": gr.Radio(
            ways, value="mean", label="What is compared", scale=4, elem_classes=["compared"]
        ),
        "place": _choice("Its layer · head", "", visible="hidden"),
    }


ROWS: dict[str, Any] = {
    "combined": _combined,
    "rollout": _rollout,
    "norms": dict,
    "off": _off,
    "products": _products,
    "compare": _compare,
}


def setting(preset: Preset) -> str:
    """A function of the page: what a preset sets, once its sentence is read."""
    values = json.dumps(list(preset.values.values()))
    example = json.dumps({"text": preset.text, "hide": [preset.hide] if preset.hide else []})
    stage = f"await Cloze.chooseExample({example});" if preset.text else ""
    return f"async (acted) => {{ {stage} return [...{values}, acted + 1]; }}"
