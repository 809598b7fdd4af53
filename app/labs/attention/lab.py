"""The Attention tab: which words look at which, in every head of a model.

The sentence, the model and the marks come from the sentence bar. The page asks only while the tab
is seen; choosing another head, hiding tokens, exporting and drawing work on the cached result and
never run the model again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import gradio as gr
import numpy as np

import viz
from app.labs.attention import answers as attention_lab
from app.labs.attention import compare as attention_compare
from app.labs.attention import prediction as attention_prediction
from app.labs.attention.answers import Figure
from app.labs.attention.code import one_head
from app.labs.attention.scene import Lab, describe, filtered, read_filter, read_scene, second_of
from app.page.sentence import Shared
from app.parts.files import FILE_TYPES, file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import Ask, read_revision, whole_number
from app.serving.session import AttentionResult, Session
from core_models import InputError
from viz.attention_grid import Grid, grids_svg
from viz.svg import Wording

Place = int | None | Literal["auto"]
"""A layer or head: its number from 0, None for the mean, "auto" for the page's own choice."""

SCRIPTS = ("labs/attention/index.js",)
MOST_PLACES = 1_000
MODES: dict[str, Callable[[Lab, Ask, Mapping[str, Any]], Awaitable[Figure]]] = {
    "combined": attention_lab.combined,
    "rollout": attention_lab.rolled,
    "norms": attention_lab.norms,
    "off": attention_prediction.switched,
    "damage": attention_prediction.damaged,
    "products": attention_prediction.multiplied,
    "compare": attention_compare.compared,
}
"""What each mode beside single heads computes; "damage" is one layer of the sweep of "off"."""
FILES = MODES | {"off": attention_prediction.written}


class Source(Protocol):
    """Where maps come from: a ``Lab``, or a session for one sentence."""

    async def attention(self, ask: Ask) -> AttentionResult:
        """Every head's map."""

    async def segments(self, ask: Ask) -> dict[str, Any]:
        """The segment of each token of a pair; asked for where there is a second sentence."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What the visitor looks at: a sentence for a model and one head of it."""

    ask: Ask
    revision: int
    layer: Place
    head: Place
    hide: bool
    part: str
    """Which links of a pair are shown."""


def read_selection(data: Mapping[str, Any]) -> Selection:
    """The selection in an event of the page; InputError for anything that is not one."""
    return Selection(
        ask=read_scene(data),
        revision=read_revision(data),
        layer=_read_place(data.get("layer", "auto"), "layer"),
        head=_read_place(data.get("head", "auto"), "head"),
        hide=data.get("hide") is True,
        part=read_filter(data),
    )


def _read_place(value: Any, name: str) -> Place:
    if value is None or value == "auto":
        return value  # type: ignore[no-any-return]
    return whole_number(value, name, 0, MOST_PLACES)


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Source, data: Mapping[str, Any]) -> dict[str, Any]:
    """The selected head and, when ``whole`` is set, the tokens and the overview of all heads."""
    selection = read_selection(data)
    result = await session.attention(selection.ask)
    whole = data.get("whole") is True
    # Shrinking 144 heads of 512 tokens takes a quarter of a second: not on the event loop.
    found = await asyncio.to_thread(answer, selection, result, whole=whole)
    if whole and second_of(selection.ask):
        found["segments"] = await session.segments(selection.ask)
    return found


async def export(session: Source, data: Mapping[str, Any]) -> dict[str, Any]:
    """A file of one head: ``kind`` "svg" or "csv" (the numbers).

    The picture ``shows`` "lines" or, as a map of its numbers, "heat".
    """
    kind = read_file_kind(data.get("kind"))
    selection = read_selection(data)
    focus = _read_focus(data)
    result = await session.attention(selection.ask)
    heat = data.get("shows") == "heat"
    return await asyncio.to_thread(write_file, selection, result, kind, focus, heat=heat)


def answer(selection: Selection, result: AttentionResult, *, whole: bool) -> dict[str, Any]:
    """The answer to the page: one head, and when ``whole`` is set the tokens and all heads."""
    tokens = describe(result.tokens, result.seen, selection.ask)
    found: dict[str, Any] = {
        "rev": selection.revision,
        "error": None,
        "head": describe_head(selection, result, tokens),
    }
    if whole:
        special = [token["special"] for token in tokens]
        small = viz.overview(result.probabilities, special, hide=selection.hide)
        found |= {
            "model": selection.ask.model,
            "second": second_of(selection.ask),
            "tokens": tokens,
            "overview": small.to_json(),
        }
    return found


def write_file(
    selection: Selection,
    result: AttentionResult,
    kind: str,
    focus: viz.Focus | None,
    *,
    heat: bool = False,
) -> dict[str, Any]:
    """One head as SVG (its lines or its map), or its numbers as CSV: name, media type and text."""
    tokens = describe(result.tokens, result.seen, selection.ask)
    layer, head = choose(selection, result, tokens)
    weights = viz.head_weights(result.probabilities, layer, head)
    weights = filtered(weights, tokens, selection.part)
    keep = [token["position"] for token in tokens if not (selection.hide and token["special"])]
    labels = [token["label"] for token in tokens]
    if focus is not None and focus.position not in keep:
        raise InputError("The token to isolate is not among the tokens shown.")
    shown, part = [labels[position] for position in keep], weights[np.ix_(keep, keep)]
    title = Wording("{0}, {1}", selection.ask.model, place_name(layer, head))
    if kind == "csv":
        text = viz.csv_text(part, shown, shown)
    elif heat:
        said = Wording("Rows look at columns; numbers are percent.")
        grid = Grid(title=said, values=part, rows=shown, columns=shown, top=1.0, share=True)
        text = grids_svg([grid], title=title)
    else:
        text = viz.head_svg(
            weights,
            labels,
            title=title,
            marked=[token["position"] for token in tokens if token["masked"]],
            keep=keep,
            focus=focus,
        )
    stem = place_name(layer, head).lower().replace(",", "").replace(" ", "-")
    return {
        "rev": selection.revision,
        "error": None,
        "name": f"attention-{'heat-' if heat and kind == 'svg' else ''}{stem}.{kind}",
        "type": FILE_TYPES[kind],
        "text": text,
    }


def _read_focus(data: Mapping[str, Any]) -> viz.Focus | None:
    if data.get("position") is None:
        return None
    side = data.get("side")
    if side not in ("from", "to"):
        raise InputError(f"side is {str(side)[:40]!r}; it must be from or to.")
    return viz.Focus(position=whole_number(data["position"], "position", 0, 2**31), side=side)


def describe_head(
    selection: Selection, result: AttentionResult, tokens: list[dict[str, Any]]
) -> dict[str, Any]:
    """One head: its numbers, what it does in words, and the code that recomputes it."""
    layer, head = choose(selection, result, tokens)
    weights = viz.head_weights(result.probabilities, layer, head)
    weights = filtered(weights, tokens, selection.part)
    labels = [token["label"] for token in tokens]
    special = [token["special"] for token in tokens]
    return {
        "layer": layer,
        "head": head,
        "numbers": viz.head_numbers(weights),
        "summary": viz.sentences(weights, labels, special),
        "summary_plain": viz.sentences(weights, labels, special, hide=True),
        "code": one_head(selection.ask, layer, head),
    }


def choose(
    selection: Selection, result: AttentionResult, tokens: list[dict[str, Any]]
) -> tuple[int | None, int | None]:
    """The head to show: the one asked for, or for "auto" the one with the clearest link.

    Raises:
        InputError: for a layer or head that this model does not have.
    """
    if selection.layer == "auto" or selection.head == "auto":
        return viz.clearest_head(result.probabilities, [token["special"] for token in tokens])
    try:
        viz.check_place(result.probabilities, selection.layer, selection.head)
    except ValueError as error:
        raise InputError(str(error)) from None
    return selection.layer, selection.head


def place_name(layer: int | None, head: int | None) -> Wording:
    """A layer and head in words: "Layer 3, head 2", counted from 1 as on the page."""
    if layer is None:
        return Wording("Mean over all heads")
    if head is None:
        return Wording("Layer {0}, mean", layer + 1)
    return Wording("Layer {0}, head {1}", layer + 1, head + 1)


# --- the other modes ------------------------------------------------------------------------------


async def compute(lab: Lab, data: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a mode: ``lab`` names it, the other values are its own (see MODES)."""
    kind = read_kind(data)
    figure = await MODES[kind](lab, read_scene(data), data)
    return {"rev": read_revision(data), "error": None, "lab": kind, **figure.to_json()}


async def save(lab: Lab, data: Mapping[str, Any]) -> dict[str, Any]:
    """A file of a mode: ``kind`` "svg" (its maps, or lines) or "csv" (its numbers)."""
    kind, what = read_file_kind(data.get("kind")), read_kind(data)
    figure = await FILES[what](lab, read_scene(data), data)
    if not figure.grids:
        raise InputError("There is nothing to save yet.")
    text = await asyncio.to_thread(figure.svg if kind == "svg" else figure.csv)
    return file_answer(data, f"attention-{what}", kind, text)


def read_kind(data: Mapping[str, Any]) -> str:
    """The mode that an event is about."""
    kind = data.get("lab")
    if not isinstance(kind, str) or kind not in MODES:
        raise InputError(f"lab is {str(kind)[:40]!r}; it must be one of {', '.join(MODES)}.")
    return kind


# --- the tab --------------------------------------------------------------------------------------


class Controls(NamedTuple):
    """The views of this tab."""

    main: gr.HTML
    file: gr.HTML
    lab: gr.HTML
    """Asks for the other modes and their files; the main view shows the answers."""


def build(shared: Shared) -> Controls:
    """Lay out the tab; what it shows comes from the sentence that all tabs share."""
    return Controls(
        main=view("attention", events=("ask", "export"), module="labs/attention/view"),
        file=view("attention-file"),
        lab=view("attention-lab", events=("ask", "save")),
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the views; the file comes through a view of its own."""
    lab = Lab(session)
    listen(controls.main, {"ask": partial(show, lab)})
    listen(controls.main, {"export": partial(export, lab)}, into=controls.file)
    listen(controls.lab, {"ask": partial(compute, lab), "save": partial(save, lab)})
