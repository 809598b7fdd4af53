"""The Pairs tab: next sentence against sentence order, similarity, and the input of two texts.

The view is drawn by pairs.js. The first text and the model come from the sentence bar; each head
answers by the bar's model where that has it, else by the first installed model that does.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app import pairs
from app.ask import clean_name, read_revision, whole_number
from app.forge import loadable
from app.sentence import Shared
from app.session import Session
from app.views import payload, view
from core_models import InputError
from viz.pairs import Square, squares_svg
from viz.records import records_csv

FILE_TYPES = {"svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}
CELLS = ("same_right", "same_wrong", "other_right", "other_wrong")


class Controls(NamedTuple):
    """What the tab consists of."""

    pairs: gr.HTML
    """Asks with ``ask`` (a pair), ``example``, ``measure`` (many examples) and ``save``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("pairs", events=["ask", "example", "measure", "save"]))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view; measurements queue up, one at a time for all visitors."""

    async def on_ask(event: gr.EventData) -> dict[str, Any]:
        return await show(session, payload(event))

    async def on_example(event: gr.EventData) -> dict[str, Any]:
        return await asyncio.to_thread(example, payload(event))

    async def on_measure(event: gr.EventData) -> dict[str, Any]:
        return await measure(session, payload(event))

    async def on_save(event: gr.EventData) -> dict[str, Any]:
        return await export(session, payload(event))

    handlers = {"ask": on_ask, "example": on_example, "measure": on_measure, "save": on_save}
    for name, answer in handlers.items():
        getattr(controls.pairs, name)(
            answer,
            None,
            controls.pairs,
            show_progress="hidden",
            trigger_mode="multiple",
            concurrency_limit=1 if name == "measure" else None,
            api_visibility="private",
        )


async def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """What the models say about a pair, with the revision of its question."""
    revision = read_revision(question)
    try:
        pair, base = pairs.read_pair(question)
        name = clean_name(question.get("model"))
        model, answering, readers = await _readers(session, name)
        found = await session.compute(lambda: pairs.look(model, readers, pair, base))
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "pair",
        "model": name,
        "answering": answering,
        **found,
        "code": pairs.code_lines(
            loadable(name), {h: loadable(n) for h, n in answering.items() if n}, pair
        ),
    }


def example(question: Mapping[str, Any]) -> dict[str, Any]:
    """Sentences of the Primer that stand in every relation."""
    revision = read_revision(question)
    try:
        number = whole_number(question.get("number"), "number", 0, pairs.MOST_EXAMPLES)
        found = pairs.example(number)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, "kind": "example", **found._asdict()}


async def measure(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """How often each head says yes to each kind of pair, over many examples of the Primer."""
    revision = read_revision(question)
    try:
        name = clean_name(question.get("model"))
        model, answering, readers = await _readers(session, name)
        said: dict[str, list[dict[str, float]]] = {}
        for number in range(pairs.MEASURED):
            found = pairs.example(number)
            # One example at a time, so that other visitors are answered in between.
            given = await session.compute(lambda found=found: pairs.scores(model, readers, found))
            for judge, kinds in given.items():
                said.setdefault(judge, []).append(kinds)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "measured",
        "answering": answering,
        "model": name,
        "examples": pairs.MEASURED,
        "counts": {
            head: {
                kind: sum(each[kind] >= pairs.YES for each in said[head]) for kind in pairs.KINDS
            }
            for head in readers
        },
        "wins": {judge: pairs.wins(each) for judge, each in said.items()},
    }


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (each head's 2 x 2) or "csv" (verdicts and cosines)."""
    answer = await show(session, question)
    what = question.get("what")
    if answer["error"] is None and what not in tuple(FILE_TYPES):
        answer["error"] = f"The kind of file is {str(what)[:40]!r}; it must be svg or csv."
    if answer["error"] is None and what == "svg" and not answer["heads"]:
        answer["error"] = "No model judges pairs here, so there is nothing to draw."
    if answer["error"]:
        return {"rev": answer["rev"], "error": answer["error"]}
    return {
        "rev": answer["rev"],
        "error": None,
        "kind": "file",
        "name": f"cloze-pairs.{what}",
        "type": FILE_TYPES[what],
        "text": _svg(answer) if what == "svg" else _csv(answer, question),
    }


def _svg(answer: Mapping[str, Any]) -> str:
    return squares_svg(
        [
            Square(
                title=f"{said['model']}: probability “{said['now']['labels'][0]}”",
                chances=[said["cells"][name] for name in CELLS],
            )
            for said in answer["heads"].values()
        ],
        rows=("Same topic", "Other topic"),
        columns=("first → second", "second → first"),
        title="Topic or order?",
        notes=[
            f"{label}: {text}"
            for label, text in zip(
                ("First", "Second", "Other topic"),
                (*answer["cells"]["same_right"], answer["cells"]["other_right"][1]),
                strict=True,
            )
        ],
    )


def _csv(answer: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    first, second = question["text"], question["second"]
    rows: list[list[str | float | None]] = []
    for head, said in answer["heads"].items():
        labels = said["now"]["labels"]
        rows.append([head, said["model"], "pair", first, second, said["now"]["probabilities"][0]])
        rows += [
            [head, said["model"], cell, *answer["cells"][cell], chance]
            for cell, chance in said["cells"].items()
        ]
        rows[-5:] = [[*row, labels[0]] for row in rows[-5:]]
    for kind, cosine in answer["similarity"]["pair"].items():
        rows.append([f"cosine_{kind}", answer["model"], "pair", first, second, cosine, "cosine"])
    header = ("head", "model", "case", "first", "second", "value", "meaning")
    return records_csv(header, rows)


async def _readers(
    session: Session, name: str
) -> tuple[cm.Model, dict[str, str | None], dict[str, cm.Model]]:
    """The bar's model, the name of the model that answers for each head, and those models."""
    model = await asyncio.to_thread(session.model, name)
    answering = pairs.judges(session.models(), name, list(model.heads))
    readers = {
        head: await asyncio.to_thread(session.model, reader)
        for head, reader in answering.items()
        if reader is not None
    }
    return model, answering, readers
