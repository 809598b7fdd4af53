"""The Budget tab: what models cost, counted from the modules themselves.

The view is drawn by budget.js. It needs no sentence: the question names published sizes and, where
the visitor sets one, a size of their own.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import gradio as gr

import core_models as cm
from app.labs.budget import answers as budget
from app.labs.budget import published as budget_claims
from app.labs.budget import timing as budget_time
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.session import Session
from core_models import Config, InputError
from viz.budget import Bar, bars_svg
from viz.records import records_csv
from viz.svg import Wording

COLUMNS = (
    "vocabulary",
    "embedding",
    "width",
    "layers",
    "blocks",
    "heads",
    "inner",
    "sharing",
    "encoder",
    "base",
    "pretraining",
    "bytes_float32",
    "bytes_bfloat16",
    "per_token",
)


class Controls(NamedTuple):
    """What the tab consists of."""

    budget: gr.HTML
    """Asks with ``ask`` (counts), ``claims``, ``time`` (one size) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(
        view("budget", events=["ask", "claims", "time", "save"], module="labs/budget/view")
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view; measurements queue up, one at a time for all visitors."""
    replies = {"ask": show, "claims": claims, "time": measure, "save": export}
    listen(controls.budget, replies, one_at_a_time=["time"])


# --- answers: plain values in, plain values out ---------------------------------------------------


def chosen(question: Mapping[str, Any]) -> dict[str, Config]:
    """The configs that are shown, by name: published ones first, then the visitor's own."""
    configs = {name: cm.size(name) for name in budget.read_names(question.get("sizes", ()))}
    if question.get("own") is not None:
        configs[budget.OWN] = budget.read_own(question["own"])
    return configs


def show(question: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of every chosen size; with ``whole`` also the catalogue of published sizes."""
    length = budget.read_length(question.get("length"))
    configs = chosen(question)
    rows = [budget.describe(name, config, length) for name, config in configs.items()]
    own = (question["own"]["base"], configs[budget.OWN]) if budget.OWN in configs else None
    answer: dict[str, Any] = {
        "kind": "counts",
        "rows": rows,
        "length": length,
        "summary": budget.compare(rows, budget.read_times(question.get("times"))),
        "code": budget.code_lines([name for name in configs if name != budget.OWN], own, length),
    }
    if question.get("whole") is True:
        answer |= {
            "parts": budget.PARTS,
            "catalogue": budget.catalogue(),
            "limits": budget.LIMITS,
            "most": budget.MOST_SIZES,
        }
    return answer


def claims(question: Mapping[str, Any]) -> dict[str, Any]:
    """Published figures beside exact ones."""
    return {"kind": "claims", "claims": budget_claims.table()}


def measure(question: Mapping[str, Any]) -> dict[str, Any]:
    """One forward pass of the first size of the question, timed here."""
    length = budget.read_length(question.get("length"))
    for name, config in chosen(question).items():
        return {"kind": "time", "name": name, **asdict(budget_time.measure(config, length))}
    raise InputError("No size is named.")


def export(question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" (the bars) or "csv" (every number of the table)."""
    kind = read_file_kind(question.get("what"))
    rows = show(question)["rows"]
    if not rows:
        raise InputError("No size is chosen yet.")
    if kind == "csv":
        header = ("name", *COLUMNS, *budget.PARTS)
        text = records_csv(
            header,
            [
                [row["name"], *(row[name] for name in COLUMNS), *row["parts"].values()]
                for row in rows
            ],
        )
    else:
        own = Wording("own size")
        bars = [
            Bar(label=own if row["name"] == budget.OWN else row["name"], parts=row["parts"])
            for row in rows
        ]
        text = bars_svg(
            bars,
            budget.PARTS,
            title=Wording("Parameters by part"),
            shares=question.get("shares") is True,
        )
    return file_answer(question, "budget", kind, text)
