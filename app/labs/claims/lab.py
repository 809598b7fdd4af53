"""The Claims tab: popular statements, measured on this machine and judged by a rule.

The view is drawn by claims.js. It needs no sentence; the model of the sentence bar answers where a
measurement needs a trained one and that one can.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.claims import desk as claims
from app.claims.desk import Desk, Result
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, listen_to_visitors, view
from app.serving.ask import read_revision
from app.serving.session import Session
from core_models import InputError
from viz.claims import Card, Row, bars, claims_svg
from viz.records import records_csv

MOST_LETTERS = 400
SMALL = 0.001
HEADER = (
    "claim",
    "family",
    "statement",
    "verdict",
    "rule",
    "seed",
    "model",
    "number",
    "label",
    "value",
    "unit",
)
SAID = {"right": "Right", "wrong": "Wrong", "half": "Half right", "depends": "It depends"}


class Controls(NamedTuple):
    """What the tab consists of."""

    claims: gr.HTML
    """Asks with ``ask`` (every card), ``run`` (one measurement) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("claims", events=["ask", "run", "save"], module="labs/claims/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view; a visitor has one measurement at a time."""
    desk = Desk(session)
    listen(controls.claims, {"ask": partial(show, session), "save": partial(export, desk)})
    listen_to_visitors(controls.claims, {"run": partial(run, desk)})


def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Every card, none of them judged yet."""
    return {
        "rev": read_revision(question),
        "error": None,
        "kind": "cards",
        "cards": claims.cards(session),
        "families": list(claims.FAMILIES),
    }


async def run(desk: Desk, question: Mapping[str, Any], visitor: str) -> dict[str, Any]:
    """One card's numbers and verdict, with the revision of the question."""
    revision = read_revision(question)
    try:
        claim, seed, chosen = claims.read_run(question)
        found = await desk.run(visitor, claim, seed, chosen)
    except InputError as error:
        name = str(question.get("name"))[:60]
        return {"rev": revision, "error": str(error), "kind": "result", "name": name}
    return {
        "rev": revision,
        "error": None,
        "kind": "result",
        **found.to_json(),
        "code": claims.code_lines(claim, found.seed),
        "bars": bars([(number.value, number.unit) for number in found.numbers]),
    }


def export(desk: Desk, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file of measured cards: ``what`` "svg" or "csv" (a row for each number).

    ``words`` may hold texts of the page in its language: ``title``, and by card ``statement``,
    ``said`` and ``labels``.
    """
    kind = read_file_kind(question.get("what"))
    results = [found for entry in claims.read_list(question) if (found := desk.known(*entry))]
    if not results:
        raise InputError("Nothing has been measured yet. Press a card's button first.")
    text = _csv(results) if kind == "csv" else _svg(results, question.get("words"))
    return file_answer(question, "cloze-claims", kind, text)


def _csv(results: list[Result]) -> str:
    return records_csv(
        HEADER,
        [
            [
                found.claim.name,
                found.claim.family,
                found.claim.statement,
                found.verdict,
                found.claim.rule.text,
                found.seed,
                found.model,
                number.key,
                number.label,
                number.value,
                number.unit,
            ]
            for found in results
            for number in found.numbers
        ],
    )


def _svg(results: list[Result], words: Any) -> str:
    cards = []
    for found in results:
        own = _inside(words, found.claim.name)
        numbers = found.numbers
        labels = own.get("labels") if isinstance(own.get("labels"), list) else []
        labels = labels if len(labels) == len(numbers) else [n.label for n in numbers]
        shares = bars([(number.value, number.unit) for number in numbers])
        cards.append(
            Card(
                statement=_short(own.get("statement"), found.claim.statement),
                verdict=found.verdict,
                said=_short(own.get("said"), SAID[found.verdict]),
                rows=[
                    Row(label=_short(label, number.label), shown=readable(number), share=share)
                    for label, number, share in zip(labels, numbers, shares, strict=True)
                ],
            )
        )
    title = words.get("title") if isinstance(words, Mapping) else None
    return claims_svg(cards, title=_short(title, "Popular statements, measured"))


def _inside(words: Any, name: str) -> Mapping[str, Any]:
    found = words.get(name) if isinstance(words, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _short(text: Any, otherwise: str) -> str:
    return text[:MOST_LETTERS] if isinstance(text, str) and text else otherwise


def readable(number: claims.Number) -> str:
    """A number as the page shows it."""
    value, unit = number.value, number.unit
    if value == int(value) and abs(value) < 1e15 and unit in ("", "million"):
        shown = f"{int(value):,}"
    elif value and abs(value) < SMALL:
        shown = f"< {SMALL}"
    elif abs(value) >= 100:
        shown = f"{value:,.1f}"
    elif abs(value) >= 1 or value == 0:
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
    else:
        shown = f"{value:.3g}"
    return {"%": f"{shown} %", "million": f"{shown} M", "ms": f"{shown} ms"}.get(unit, shown)
