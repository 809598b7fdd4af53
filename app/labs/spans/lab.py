"""The Spans tab: a hidden run of words, told by each place and by the two tokens around it.

The view is drawn by spans.js. The sentence and what is hidden come from the sentence bar; the model
is the bar's own where it has both heads of SpanBERT, else the first installed one that has.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr
import plotly.graph_objects as go

import core_models as cm
from app.labs.spans import answers as spans
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import (
    MOST_SEED,
    clean_marks,
    clean_name,
    clean_text,
    read_revision,
    whole_number,
)
from app.serving.names import loadable
from app.serving.session import Session
from core_models import InputError
from viz.records import records_csv
from viz.spans import SpanColumn, lengths, span_svg
from viz.svg import Wording

AROUND = 4
"""Pieces on either side of the span in the picture."""


class Controls(NamedTuple):
    """What the tab consists of."""

    spans: gr.HTML
    """Asks with ``ask`` (a span), ``draw`` (spans as in pretraining) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("spans", events=["ask", "draw", "save"], module="labs/spans/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(
        controls.spans,
        {
            "ask": partial(show, session),
            "draw": partial(draw, session),
            "save": partial(export, session),
        },
    )


def readers(session: Session) -> list[cm.ModelInfo]:
    """Every installed model with both heads."""
    return [i for i in session.models() if all(name in i.heads for name in spans.NEEDED)]


class Asked(NamedTuple):
    """A question, read."""

    reader: str | None
    model: cm.Model
    """The reader, or the model of the sentence bar where there is none."""
    sentence: spans.Cut
    hidden: list[spans.Span]
    """What the visitor has hidden, or the one span that stands in for it."""
    usual: bool
    """Nothing is hidden above the tabs."""
    setting: spans.Setting


def _read(session: Session, question: Mapping[str, Any]) -> Asked:
    name, setting = clean_name(question.get("model")), spans.read_setting(question)
    model = session.model(name)
    able = [info.name for info in readers(session)]
    reader: str | None = None
    if (wanted := question.get("reader")) in able:
        reader = wanted
    elif all(head in model.heads for head in spans.NEEDED):
        reader = name
    elif able:
        reader = able[0]
    text = clean_text(question.get("text"))
    marks = clean_marks(question.get("marks", ()))
    characters = []
    if marks:
        # The sentence bar may cut the text into other pieces: what is hidden are characters.
        tokens = session.sentence(text, name).tokens
        characters = [
            (tokens[mark.position].start, tokens[mark.position].end)
            for mark in marks
            if mark.position < len(tokens) and not tokens[mark.position].special
        ]
    if reader not in (None, name):
        model = session.model(reader)
    sentence = spans.cut(model, text)
    found = spans.hidden_runs(sentence, characters)
    return Asked(reader, model, sentence, found or [spans.usual(sentence)], not found, setting)


async def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A span and what both heads make of it, with the revision of the question."""
    revision = read_revision(question)
    try:
        asked = await asyncio.to_thread(_read, session, question)
        told = None
        if asked.reader is not None:
            work = (asked.model, asked.sentence, asked.hidden, asked.setting)
            told = await session.compute(lambda: spans.look(*work))
        law = await asyncio.to_thread(
            spans.law, asked.sentence, [] if asked.usual else asked.hidden
        )
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    sentence, setting = asked.sentence, asked.setting
    return {
        "rev": revision,
        "error": None,
        "kind": "spans",
        "reader": asked.reader,
        "by": [asked.reader or asked.model.name],
        "readers": [{"name": info.name, "title": info.title} for info in readers(session)],
        "vocabulary": asked.model.name,
        "tokens": [
            {
                "text": token.text,
                "word": token.word,
                "start": token.start,
                "end": token.end,
                "special": token.special,
                "gap": token.masked,
            }
            for token in sentence.tokens
        ],
        "spans": [spans.describe(sentence, span) for span in asked.hidden],
        "run": min(setting.run, len(asked.hidden) - 1),
        "usual": asked.usual,
        "inside": setting.inside,
        "told": told,
        "law": {**law, "figure": drawn(law_figure(law))},
        "truncated": sentence.encoding.truncated,
        "code": ""
        if asked.reader is None
        else spans.code_lines(loadable(asked.reader), asked.model, sentence, asked.hidden, setting),
    }


def law_figure(law: Mapping[str, Any]) -> go.Figure:
    """The law of lengths beside draws on this text; marks stand for what is hidden above."""
    counts, all_drawn = law["drawn"], sum(law["drawn"]) or 1
    mean = sum(n * count for n, count in enumerate(counts, 1)) / all_drawn
    names = Wording("the law"), Wording("draws on this text")
    shares = {names[0]: law["law"], names[1]: [count / all_drawn for count in counts]}
    means = {names[0]: law["mean"], names[1]: mean}
    title = Wording(
        "Mean length: {0} words by the law, {1} in {2} draws of 15 % of this text.",
        f"{law['mean']:.2f}",
        f"{mean:.2f}",
        law["draws"],
    )
    last = f"{len(counts)}+"
    return lengths(shares, last=last, title=title, means=means, hidden=law["now"])


def draw(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Spans of characters drawn as in pretraining."""
    revision = read_revision(question)
    try:
        seed = whole_number(question.get("seed", 1), "seed", 0, MOST_SEED)
        found = spans.draw(_read(session, question).sentence, seed)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, "kind": "drawn", "spans": [list(s) for s in found]}


async def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (the picture) or "csv" (a row for each hidden piece)."""
    kind = read_file_kind(question.get("what"))
    answer = await show(session, question)
    if answer["error"]:
        return answer
    text = _svg(answer) if kind == "svg" else _csv(answer)
    return file_answer(question, "cloze-spans", kind, text)


def _told(answer: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """What was said about each shown position of the span; empty without a model."""
    found = answer["told"]
    return {} if found is None else {piece["position"]: piece for piece in found["pieces"]}


def _svg(answer: Mapping[str, Any]) -> str:
    span, told = answer["spans"][answer["run"]], _told(answer)
    tokens = answer["tokens"]
    last = min(span["stop"], span["start"] + spans.MOST_PIECES)
    shown = [
        *range(max(0, span["start"] - AROUND), last),
        *range(span["stop"], min(len(tokens), span["stop"] + AROUND)),
    ]
    columns = []
    for n in shown:
        inside = span["start"] <= n < span["stop"]
        piece = told.get(n, {})
        columns.append(
            SpanColumn(
                text=tokens[n]["text"],
                seen=piece.get("seen", "[MASK]") if inside else "",
                place=n - span["start"] if inside else None,
                boundary=not span["edge"] and n in (span["start"] - 1, span["stop"]),
                own=_chance(piece, "masked_token"),
                told=_chance(piece, "span_boundary"),
            )
        )
    name = answer["reader"] or answer["vocabulary"]
    return span_svg(columns, title=Wording("{0}: probability of the hidden words", name))


def _chance(piece: Mapping[str, Any], head: str) -> float | None:
    said = piece.get(head)
    return None if not said or said["original"] is None else said["original"]["probability"]


def _csv(answer: Mapping[str, Any]) -> str:
    span, told, tokens = answer["spans"][answer["run"]], _told(answer), answer["tokens"]
    rows: list[list[str | float | None]] = []
    for position in range(span["start"], span["stop"]):
        piece = told.get(position, {})
        cells: list[str | float | None] = []
        for head in spans.NEEDED:
            said = piece.get(head) or {"original": None, "loss": None, "candidates": []}
            best = said["candidates"][0]["display"] if said["candidates"] else None
            own = said["original"] or {"probability": None, "rank": None}
            cells += [own["probability"], own["rank"], said["loss"], best]
        place = position - span["start"]
        seen = piece.get("seen")
        rows.append([position, place, tokens[position]["text"], seen, *cells, piece.get("loss")])
    names = ("probability", "rank", "loss", "best")
    header = ["position", "place", "piece", "model_sees"]
    header += [f"{name}_{head}" for head in spans.NEEDED for name in names]
    return records_csv([*header, "loss_sum"], rows)
