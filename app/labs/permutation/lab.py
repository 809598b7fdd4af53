"""The Permutation tab: an order of prediction, what both streams see, what a model makes of it.

The view is drawn by permutation.js; the sentence and the model come from the sentence bar. Where
that model has one stream only, the first installed one with two answers; the masks need none.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.permutation import answers as permutation
from app.labs.permutation import chances as permutation_chances
from app.labs.permutation.answers import Cut, Setting
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_name, clean_text, read_revision, whole_number
from app.serving.session import Session
from core_models import InputError
from viz.permutation import Mask, masks_svg
from viz.records import records_csv
from viz.svg import Wording


class Controls(NamedTuple):
    """What the tab consists of."""

    permutation: gr.HTML
    """Asks with ``ask`` (masks), ``judge`` (probabilities, attention) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(
        view("permutation", events=["ask", "judge", "save"], module="labs/permutation/view")
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(
        controls.permutation,
        {
            "ask": partial(show, session),
            "judge": partial(judge, session),
            "save": partial(export, session),
        },
    )


class Asked(NamedTuple):
    """A question, read."""

    text: str
    reader: str | None
    model: cm.Model
    """The reader, or the model of the sentence bar where there is none."""
    sentence: Cut
    setting: Setting


def _read(session: Session, question: Mapping[str, Any]) -> Asked:
    text, name = clean_text(question.get("text")), clean_name(question.get("model"))
    model = session.model(name)
    # The name of the bar's model, as a run's model has another one of its own.
    reader = name if permutation.HEAD in model.heads else None
    if reader is None:
        reader = permutation.reader(session.models(), model)
    if reader not in (None, name):
        model = session.model(reader)
    sentence = permutation.cut(model.tokenizer, text)
    return Asked(text, reader, model, sentence, permutation.read_setting(question, sentence))


def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Order, targets and masks, with the revision of the question."""
    revision = read_revision(question)
    try:
        asked = _read(session, question)
        before = permutation_chances.remembered(asked.model, asked.setting)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    count = 0 if before is None else before.plain[-1] + 1
    return {
        "rev": revision,
        "error": None,
        "kind": "masks",
        "reader": asked.reader,
        "by": [asked.reader or asked.model.name],
        "vocabulary": asked.model.name,
        **permutation.describe(asked.sentence, asked.setting, count),
        "code": permutation.code_lines(asked.reader, asked.text, asked.sentence, asked.setting),
    }


async def judge(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Probabilities under several orders and the attention of one head."""
    revision = read_revision(question)
    try:
        asked = await asyncio.to_thread(_read, session, question)
        if asked.reader is None:
            raise InputError("No model with two streams is installed, so nothing can be predicted.")
        layers, heads = asked.model.config.steps, asked.model.config.attention.heads
        # Another model may have fewer: then the last one is shown.
        layer = whole_number(question.get("layer", 0), "layer", 0, permutation.MOST_STEP)
        head = whole_number(question.get("head", 0), "head", 0, permutation.MOST_STEP)
        layer, head = min(layer, layers - 1), min(head, heads - 1)
        work = (asked.model, asked.sentence, asked.setting)
        found, seen = await session.compute(
            lambda: (
                permutation_chances.judge(*work),
                permutation_chances.attention(*work, layer, head),
            )
        )
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, "kind": "chances", **found, "attention": seen}


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (both masks) or "csv" (a row for each target)."""
    kind = read_file_kind(question.get("what"))
    masks = await asyncio.to_thread(show, session, question)
    if masks["error"]:
        return masks
    judged = None
    if kind == "csv" and masks["reader"] is not None:
        judged = await judge(session, question)
        if judged["error"]:
            return judged
    text = _svg(masks) if kind == "svg" else _csv(masks, judged)
    return file_answer(question, "cloze-permutation", kind, text)


def _csv(masks: Mapping[str, Any], judged: Mapping[str, Any] | None) -> str:
    """What each target sees, and its probability under each order where a model answers."""
    orders = [] if judged is None else [entry["name"] for entry in judged["orders"]]
    header = ["position", "piece", "sees", *(f"probability_{name}" for name in orders)]
    header += ["probability_leak", "probability_without_memory"] if judged else []
    rows: list[list[str | float | None]] = []
    for n, row in enumerate(masks["query"]):
        position = row["position"]
        seen = [str(k) for k, flag in enumerate(row["seen"]) if flag == "1"]
        cells = [position, masks["pieces"][position]["text"], " ".join(seen)]
        if judged:
            found = judged["rows"][n]
            cells += [
                *(found["chances"][name] for name in orders),
                found["leak"],
                found["forgotten"],
            ]
        rows.append(cells)
    return records_csv(header, rows)


def _svg(masks: Mapping[str, Any]) -> str:
    names = [piece["text"] for piece in masks["pieces"]]
    return masks_svg(
        [
            Mask(
                title=title,
                rows=[row["position"] for row in masks[name]],
                seen=[[flag == "1" for flag in row["seen"]] for row in masks[name]],
            )
            for title, name in (
                (Wording("Content stream"), "content"),
                (Wording("Query stream"), "query"),
            )
        ],
        names,
        title=Wording("What each stream may see"),
        note=Wording("Filled: a row's piece sees the column's. Ring: the piece itself."),
    )
