"""The Tokenizers tab: the sentence of the page, cut by each kind of vocabulary.

The view is drawn by tokenizers.js; the sentence and the model come from the sentence bar.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.tokenizers import answers as tokenizers
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_name, clean_text, read_revision
from app.serving.session import Session
from core_models import InputError
from viz.records import records_csv
from viz.svg import Wording, told
from viz.tokenizers import Line, Piece, pieces_svg


class Controls(NamedTuple):
    """What the tab consists of."""

    tokenizers: gr.HTML
    """Asks with ``ask`` (the cuts) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("tokenizers", events=["ask", "save"], module="labs/tokenizers/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(controls.tokenizers, {"ask": partial(show, session), "save": partial(export, session)})


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
        "summary": told(tokenizers.summary(rows)),
        "code": tokenizers.code_lines(name, text),
    }
    if question.get("whole") is True:
        answer["templates"] = list(tokenizers.templates())
        answer["differences"] = tokenizers.differences(session.models())
    return answer


def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (the boxes) or "csv" (a row for each piece)."""
    kind = read_file_kind(question.get("what"))
    _, _, rows = _rows(session, question)
    text = _csv(rows) if kind == "csv" else _svg(rows)
    return file_answer(question, "tokenizers", kind, text)


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
            title=Wording("{0}: {1} pieces, {2} words", row["title"], row["content"], row["words"]),
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
    return pieces_svg(lines, title=Wording("One text, cut by each kind of vocabulary"))
