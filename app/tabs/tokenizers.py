"""The Tokenizers tab: the sentence of the page, cut by each kind of vocabulary.

The view is drawn by tokenizers.js; the sentence and the model come from the sentence bar.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

from app import tokenizers
from app.ask import clean_name, clean_text, read_revision
from app.sentence import Shared
from app.session import Session
from app.views import payload, view
from core_models import InputError
from viz.records import records_csv
from viz.tokenizers import Line, Piece, pieces_svg

FILE_TYPES = {"svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}


class Controls(NamedTuple):
    """What the tab consists of."""

    tokenizers: gr.HTML
    """Asks with ``ask`` (the cuts) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("tokenizers", events=["ask", "save"]))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""

    async def on_ask(event: gr.EventData) -> dict[str, Any]:
        return await asyncio.to_thread(show, session, payload(event))

    async def on_save(event: gr.EventData) -> dict[str, Any]:
        return await asyncio.to_thread(export, session, payload(event))

    for listen, answer in (
        (controls.tokenizers.ask, on_ask),
        (controls.tokenizers.save, on_save),
    ):
        listen(
            answer,
            None,
            controls.tokenizers,
            show_progress="hidden",
            trigger_mode="multiple",
            concurrency_limit=None,
            api_visibility="private",
        )


def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The cuts of the sentence, with the revision of its question."""
    revision = read_revision(question)
    try:
        text, name, rows = _rows(session, question)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    answer: dict[str, Any] = {
        "rev": revision,
        "error": None,
        "kind": "cuts",
        "rows": rows,
        "summary": tokenizers.summary(rows),
        "code": tokenizers.code_lines(name, text),
    }
    if question.get("whole") is True:
        answer["templates"] = list(tokenizers.templates())
    return answer


def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (the boxes) or "csv" (a row for each piece)."""
    revision = read_revision(question)
    what = question.get("what")
    try:
        if what not in FILE_TYPES:
            raise InputError(f"The kind of file is {str(what)[:40]!r}; it must be svg or csv.")
        _, _, rows = _rows(session, question)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    text = _csv(rows) if what == "csv" else _svg(rows)
    return {
        "rev": revision,
        "error": None,
        "kind": "file",
        "name": f"tokenizers.{what}",
        "type": FILE_TYPES[what],
        "text": text,
    }


def _rows(session: Session, question: Mapping[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
    text, name = clean_text(question.get("text")), clean_name(question.get("model"))
    return text, name, tokenizers.compare(name, session.model(name).tokenizer, text)


def _csv(rows: list[dict[str, Any]]) -> str:
    header = ("vocabulary", "position", "piece", "id", "bytes", "word", "special", "unknown")
    return records_csv(
        header,
        [
            [
                row["title"],
                position,
                piece["piece"],
                piece["id"],
                piece["bytes"],
                piece["word"],
                int(piece["special"]),
                int(piece["unknown"]),
            ]
            for row in rows
            for position, piece in enumerate(row["pieces"])
        ],
    )


def _svg(rows: list[dict[str, Any]]) -> str:
    lines = [
        Line(
            title=f"{row['title']}: {row['content']} pieces, {row['words']} words",
            pieces=[
                Piece(
                    text=piece["prefix"] + piece["text"].strip(),
                    number=piece["id"],
                    word=piece["word"],
                    unknown=piece["unknown"],
                )
                for piece in row["pieces"]
            ],
        )
        for row in rows
    ]
    return pieces_svg(lines, title="One text, cut by each kind of vocabulary")
