"""The Terms tab: attention scores taken apart into their named terms, and terms switched off.

The view is drawn by terms.js; the sentence, the model and what is hidden come from the sentence
bar. Another installed model whose scores have several terms can be looked at in the bar's place.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
import plotly.graph_objects as go

import core_models as cm
from app.labs.terms import answers as terms
from app.labs.terms import tables as terms_tables
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_marks, clean_name, clean_text, read_revision
from app.serving.names import loadable
from app.serving.session import Session
from core_models import InputError
from viz.distances import table_rows, worth
from viz.records import records_csv
from viz.svg import Wording
from viz.terms import TermMap, maps_svg

LABELS = {
    "content": Wording("content to content"),
    "c2p": Wording("content to position"),
    "p2c": Wording("position to content"),
    "position": Wording("content to position"),
    "segment": Wording("content to segment"),
}
STREAMS = {"query": Wording("query stream"), "mask_decoder": Wording("mask decoder")}


class Controls(NamedTuple):
    """What the tab consists of."""

    terms: gr.HTML
    """Asks with ``ask`` (a sentence), ``table`` (a size's table of distances) and ``save``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("terms", events=["ask", "table", "save"], module="labs/terms/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(
        controls.terms,
        {
            "ask": partial(show, session),
            "table": partial(distance_table, session),
            "save": partial(export, session),
        },
    )


async def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Maps, predictions and distances, with the revision of the question."""
    revision = read_revision(question)
    try:
        return {"rev": revision, "error": None, "kind": "terms", **await _look(session, question)}
    except InputError as error:
        return {"rev": revision, "error": str(error)}


async def _look(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    text, bar = clean_text(question.get("text")), clean_name(question.get("model"))
    wanted = question.get("reader")
    marks = clean_marks(question.get("marks", ()))
    offered = await asyncio.to_thread(readers, session)
    names = [info.name for info in offered]
    name = wanted if wanted in names else bar
    model = await asyncio.to_thread(session.model, name)
    spans = []
    if marks:
        # The sentence bar may cut the text into other pieces: what is hidden are characters.
        tokens = (await session.tokenize(text, bar)).tokens
        spans = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
    setting = terms.read_setting(question, spans)
    found = await session.compute(lambda: terms.examine(model, setting))
    return {
        "reader": name,
        "by": [name],
        "bar": bar,
        "family": model.config.family,
        "offered": [[info.name, info.title] for info in offered],
        "marked": len(marks),
        **found,
        "curves": _without_numbers(found["curves"]),
        "figure": drawn(distances(name, found, setting.reach)),
        "code": terms_tables.code_lines(loadable(name), text, found),
    }


def _without_numbers(curves: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What is said about the curves; their numbers are in the figure."""
    return curves and {name: curves[name] for name in ("edges", "exact")}


def distances(reader: str, found: Mapping[str, Any], reach: int) -> go.Figure:
    """What a distance is worth to the head that is shown."""
    names: dict[str, str] = {name: LABELS[name] for name in found["names"]}
    if len(names) == 1:
        names = dict.fromkeys(names, Wording("q·k: contents and positions together"))
    known = found["curves"] or {}
    title = Wording(
        "{0}: {1}", reader, Wording("layer {0}, head {1}", found["layer"] + 1, found["head"] + 1)
    )
    return worth(
        {int(at): (pairs, means) for at, pairs, *means in found["distances"]},
        names,
        reach=reach,
        curves={name: known[name] for name in ("c2p", "p2c") if known.get(name)},
        edges=known.get("edges", ()),
        title=title,
    )


def readers(session: Session) -> list[cm.ModelInfo]:
    """Installed models whose scores have terms beside the content score."""
    return [info for info in session.models() if terms_tables.has_terms(info.family)]


async def distance_table(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The table of distances of a published size or of an installed model."""
    revision = read_revision(question)
    known = terms_tables.published()
    installed = [info.name for info in await asyncio.to_thread(readers, session)]
    try:
        name = question.get("size") or known[0]
        if name in known:
            config = cm.size(name)
        elif name in installed:
            config = (await asyncio.to_thread(session.model, name)).config
        else:
            raise InputError(f"There is no size {str(name)[:40]!r} with a table of distances.")
        found = terms_tables.table(config)
    except InputError as error:
        return {"rev": revision, "error": str(error), "kind": "table"}
    sizes = [*known, *(each for each in installed if each not in known)]
    return {
        "rev": revision,
        "error": None,
        "kind": "table",
        "size": name,
        "sizes": sizes,
        "family": config.family,
        **found,
        "figure": drawn(
            table_rows(
                found["rows"],
                reach=found["reach"],
                count=found["count"],
                exact=found["exact"],
                title=name,
            )
        ),
    }


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The maps that are shown as a file: ``what`` "svg" or "csv" (a row for each pair)."""
    kind = read_file_kind(question.get("what"))
    answer = await show(session, question)
    if answer["error"]:
        return answer
    text = _svg(answer) if kind == "svg" else _csv(answer)
    return file_answer(question, "cloze-terms", kind, text)


def _csv(answer: Mapping[str, Any]) -> str:
    columns, tokens = answer["columns"], answer["tokens"]
    names = ("scores", "probabilities", "before")
    maps = [terms.decoded(text, len(columns)) for text in answer["terms"]]
    maps += [terms.decoded(answer[name], len(columns)) for name in names]
    rows = []
    for r, query in enumerate(answer["rows"]):
        for c, key in enumerate(columns):
            values = [float(numbers[r, c]) for numbers in maps]
            shown = [None if value != value else value for value in values]
            ends = [query, tokens[query]["text"], key, tokens[key]["text"]]
            rows.append([*ends, query - key, *shown])
    header = ("query", "query_piece", "key", "key_piece", "distance", *answer["names"])
    return records_csv((*header, "score", "probability", "probability_before"), rows)


def _svg(answer: Mapping[str, Any]) -> str:
    columns, tokens = answer["columns"], answer["tokens"]

    def numbers(text: str) -> list[list[float]]:
        return [[float(value) for value in row] for row in terms.decoded(text, len(columns))]

    def label(number: int, name: str) -> str:
        said = LABELS[name] if len(answer["names"]) > 1 else Wording("q·k")
        if name in answer["off"]:
            said = Wording("{0} (off)", said)
        return Wording("+ {0}", said) if number else said

    top, scores = answer["top"], Wording("= score")
    maps = [
        TermMap(title=label(number, name), values=numbers(text), top=top)
        for number, (name, text) in enumerate(zip(answer["names"], answer["terms"], strict=True))
    ]
    maps.append(TermMap(title=scores, values=numbers(answer["scores"]), top=top))
    weights = numbers(answer["probabilities"])
    maps.append(TermMap(title=Wording("softmax: attention"), values=weights, top=1.0, share=True))
    place = Wording("layer {0}, head {1}", answer["layer"] + 1, answer["head"] + 1)
    if stream := STREAMS.get(answer["stream"]):
        place = Wording("{0}, {1}", place, stream)
    return maps_svg(
        maps,
        rows=[tokens[position]["text"] for position in answer["rows"]],
        columns=[tokens[position]["text"] for position in columns],
        title=Wording("{0}: {1}", answer["reader"], place),
    )
