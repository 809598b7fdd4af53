"""The Attention tab: which words look at which, in every head of a model.

The sentence, the model and the marks come from the sentence bar. The page asks only while the tab
is seen; choosing another head, hiding tokens, exporting and drawing work on the cached result and
never run the model again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import gradio as gr
import numpy as np

import viz
from app.ask import Ask, read_ask, read_revision, whole_number
from app.sentence import Shared
from app.session import AttentionResult, Session
from app.views import payload, view
from core_models import InputError

Place = int | None | Literal["auto"]
"""A layer or head: its number from 0, None for the mean, "auto" for the page's own choice."""

MOST_PLACES = 1_000
FILE_TYPES = {"svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What the visitor looks at: a sentence for a model and one head of it."""

    ask: Ask
    revision: int
    layer: Place
    head: Place
    hide: bool


def read_selection(data: Mapping[str, Any]) -> Selection:
    """The selection in an event of the page; InputError for anything that is not one."""
    return Selection(
        ask=read_ask({key: data.get(key, ()) for key in ("text", "model", "marks")}),
        revision=read_revision(data),
        layer=_read_place(data.get("layer", "auto"), "layer"),
        head=_read_place(data.get("head", "auto"), "head"),
        hide=data.get("hide") is True,
    )


def _read_place(value: Any, name: str) -> Place:
    if value is None or value == "auto":
        return value  # type: ignore[no-any-return]
    return whole_number(value, name, 0, MOST_PLACES)


# --- answers: plain values in, plain values out ---------------------------------------------------


async def show(session: Session, data: Mapping[str, Any]) -> dict[str, Any]:
    """The selected head and, when ``whole`` is set, the tokens and the overview of all heads."""
    selection = read_selection(data)
    result = await session.attention(selection.ask)
    # Shrinking 144 heads of 512 tokens takes a quarter of a second: not on the event loop.
    return await asyncio.to_thread(describe, selection, result, whole=data.get("whole") is True)


async def export(session: Session, data: Mapping[str, Any]) -> dict[str, Any]:
    """A file of one head: ``kind`` "svg" (the lines, as on the page) or "csv" (the numbers)."""
    kind = data.get("kind")
    if kind not in FILE_TYPES:
        raise InputError(f"The kind of file is {str(kind)[:40]!r}; it must be svg or csv.")
    selection = read_selection(data)
    focus = _read_focus(data)
    result = await session.attention(selection.ask)
    return await asyncio.to_thread(write_file, selection, result, kind, focus)


def describe(selection: Selection, result: AttentionResult, *, whole: bool) -> dict[str, Any]:
    """The answer to the page: one head, and when ``whole`` is set the tokens and all heads."""
    tokens = describe_tokens(result, selection.ask)
    answer: dict[str, Any] = {
        "rev": selection.revision,
        "error": None,
        "head": describe_head(selection, result, tokens),
    }
    if whole:
        special = [token["special"] for token in tokens]
        small = viz.overview(result.probabilities, special, hide=selection.hide)
        answer |= {"model": selection.ask.model, "tokens": tokens, "overview": small.to_json()}
    return answer


def write_file(
    selection: Selection, result: AttentionResult, kind: str, focus: viz.Focus | None
) -> dict[str, Any]:
    """The lines of one head as SVG, or its numbers as CSV: name, media type and text."""
    tokens = describe_tokens(result, selection.ask)
    layer, head = choose(selection, result, tokens)
    weights = viz.head_weights(result.probabilities, layer, head)
    keep = [token["position"] for token in tokens if not (selection.hide and token["special"])]
    labels = [token["label"] for token in tokens]
    if focus is not None and focus.position not in keep:
        raise InputError("The token to isolate is not among the tokens shown.")
    if kind == "csv":
        shown = [labels[position] for position in keep]
        text = viz.csv_text(weights[np.ix_(keep, keep)], shown, shown)
    else:
        text = viz.head_svg(
            weights,
            labels,
            title=f"{selection.ask.model}, {place_name(layer, head)}",
            marked=[token["position"] for token in tokens if token["masked"]],
            keep=keep,
            focus=focus,
        )
    stem = place_name(layer, head).lower().replace(",", "").replace(" ", "-")
    return {
        "rev": selection.revision,
        "error": None,
        "name": f"attention-{stem}.{kind}",
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


def describe_tokens(result: AttentionResult, ask: Ask) -> list[dict[str, Any]]:
    """The tokens: the visitor's spelling, or at marked positions what the model saw instead."""
    marked = {mark.position for mark in ask.marks}
    tokens = []
    for token, seen in zip(result.tokens, result.seen, strict=True):
        label = seen if token.position in marked else token.text
        title = label if label == token.text else f"{label} in place of {viz.quote(token.text)}"
        tokens.append(
            {
                "position": token.position,
                "label": label,
                "title": f"{title}, token {token.position}",
                "special": token.special,
                "word": token.word,
                "masked": token.masked or token.position in marked,
            }
        )
    return tokens


def describe_head(
    selection: Selection, result: AttentionResult, tokens: list[dict[str, Any]]
) -> dict[str, Any]:
    """One head: its numbers, what it does in words, and the code that recomputes it."""
    layer, head = choose(selection, result, tokens)
    weights = viz.head_weights(result.probabilities, layer, head)
    labels = [token["label"] for token in tokens]
    special = [token["special"] for token in tokens]
    return {
        "layer": layer,
        "head": head,
        "numbers": viz.head_numbers(weights),
        "summary": viz.summary(weights, labels, special),
        "summary_plain": viz.summary(weights, labels, special, hide=True),
        "code": code_lines(selection.ask, layer, head),
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


def place_name(layer: int | None, head: int | None) -> str:
    """A layer and head in words: "Layer 3, head 2", counted from 1 as on the page."""
    if layer is None:
        return "Mean over all heads"
    return f"Layer {layer + 1}, mean" if head is None else f"Layer {layer + 1}, head {head + 1}"


def code_lines(ask: Ask, layer: int | None, head: int | None) -> str:
    """Python that computes the numbers of one head again."""
    lines = [
        "import core_models as cm",
        "",
        f"model = cm.load({ask.model!r})",
        f"batch = model.batch([{ask.text!r}])",
    ]
    masked = [mark.position for mark in ask.marks if mark.case == "mask"]
    if masked:
        lines.append(f"batch.input_ids[0, {masked}] = model.tokenizer.mask_id")
    lines += [
        f"batch.input_ids[0, {mark.position}] = {mark.piece}"
        for mark in ask.marks
        if mark.case == "random"
    ]
    lines += ['trace = cm.Trace(sites=["probabilities"])', "model.encoder(batch, trace=trace)"]
    if layer is None:
        lines.append(
            'weights = trace.stack("probabilities")[:, 0].mean((0, 1))  # [L, L], all heads'
        )
    elif head is None:
        lines.append(
            f'weights = trace["probabilities", {layer}][0].mean(0)  # [L, L], layer {layer + 1}'
        )
    else:
        comment = f"# [L, L], layer {layer + 1}, head {head + 1}"
        lines.append(f'weights = trace["probabilities", {layer}][0, {head}]  {comment}')
    return "\n".join(lines) + "\n"


# --- the tab --------------------------------------------------------------------------------------


class Controls(NamedTuple):
    """The views of this tab."""

    main: gr.HTML
    file: gr.HTML


def build(shared: Shared) -> Controls:
    """Lay out the tab; what it shows comes from the sentence that all tabs share."""
    return Controls(
        main=view("attention", events=("ask", "export")),
        file=view("attention-file"),
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Connect the events of the view to the session."""

    async def on_ask(event: gr.EventData) -> dict[str, Any]:
        return await answer_or_refuse(show, session, payload(event))

    async def on_export(event: gr.EventData) -> dict[str, Any]:
        return await answer_or_refuse(export, session, payload(event))

    settings: dict[str, Any] = {
        "show_progress": "hidden",
        # The view has one question in flight and then sends the newest (Cloze.asker in shell.js).
        "trigger_mode": "multiple",
        "concurrency_limit": None,
        "api_visibility": "private",
    }
    controls.main.ask(on_ask, None, controls.main, **settings)
    controls.main.export(on_export, None, controls.file, **settings)


async def answer_or_refuse(
    answer: Callable[[Session, Mapping[str, Any]], Awaitable[dict[str, Any]]],
    session: Session,
    data: Mapping[str, Any],
) -> dict[str, Any]:
    """The answer, or the message of an InputError in its place."""
    try:
        return await answer(session, data)
    except InputError as error:
        return {"rev": read_revision(data), "error": str(error)}
