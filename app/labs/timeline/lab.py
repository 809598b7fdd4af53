"""The Timeline tab: one text masked epoch by epoch, span lengths, and RoBERTa's input formats.

The view is drawn by timeline.js; the text and the vocabulary come from the sentence bar.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.timeline import answers as timeline
from app.labs.timeline import formats as timeline_formats
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen, view
from app.serving.ask import clean_name, clean_text, read_revision
from app.serving.session import Session
from core_models import InputError
from viz.records import records_csv
from viz.spans import lengths as span_lengths
from viz.svg import Wording
from viz.timeline import growth, timeline_svg

MASKING = {
    "static": Wording("static masking"),
    "copies": Wording("masking with copies"),
    "dynamic": Wording("dynamic masking"),
}
ALL = "all"
LEGEND = (
    ("M", Wording("the model sees [MASK]")),
    ("R", Wording("it sees another piece")),
    ("K", Wording("it sees the piece itself")),
)


class Controls(NamedTuple):
    """What the tab consists of."""

    timeline: gr.HTML
    """Asks with ``ask`` (the draws), ``formats`` (documents cut) and ``save`` (a file)."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(
        view("timeline", events=["ask", "formats", "save"], module="labs/timeline/view")
    )


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    listen(
        controls.timeline,
        {
            "ask": partial(show, session),
            "formats": partial(formats, session),
            "save": partial(export, session),
        },
    )


def show(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """Every epoch of every regime, with the revision of the question."""
    revision = read_revision(question)
    try:
        text, name = clean_text(question.get("text")), clean_name(question.get("model"))
        setting = timeline.read_setting(question)
        tokenizer = session.model(name).tokenizer
        found = timeline.describe(tokenizer, text, setting)
        lengths = timeline.lengths(tokenizer, setting.kind, setting.seed)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {
        "rev": revision,
        "error": None,
        "kind": "masks",
        "masking": setting.kind,
        **found,
        "figures": figures(found["regimes"], lengths),
        "code": timeline.code_lines(name, text, setting),
    }


def figures(
    regimes: Mapping[str, Mapping[str, Any]], found: Mapping[str, Any] | None
) -> dict[str, Any]:
    """How contexts grow, and how long the spans are where the masking has a law of lengths."""
    contexts = growth({MASKING[name]: each["growth"] for name, each in regimes.items()})
    if found is None:
        return {"growth": drawn(contexts), "lengths": None}
    counts, means = found["counts"], found["means"]
    names = (
        Wording("Published share"),
        Wording("Drawn ({0})", f"{counts['drawn']:,}"),
        Wording("Runs found ({0})", f"{counts['found']:,}"),
    )
    kinds = ("published", "drawn", "found")
    shares = {name: list(found[kind]) for name, kind in zip(names, kinds, strict=True)}
    shares[names[2]].append(found["longer"])
    told = {name: means[kind] for name, kind in zip(names, kinds, strict=True)}
    bars = span_lengths(shares, last=Wording("longer"), means=told)
    return {"growth": drawn(contexts), "lengths": drawn(bars)}


def formats(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """The first documents of the Primer in each of the four formats."""
    revision = read_revision(question)
    try:
        length, seed = timeline_formats.read_formats(question)
        tokenizer = session.model(clean_name(question.get("model"))).tokenizer
        found = timeline_formats.formats(tokenizer, length, seed)
    except InputError as error:
        return {"rev": revision, "error": str(error)}
    return {"rev": revision, "error": None, "kind": "formats", **found}


def export(session: Session, question: Mapping[str, Any]) -> dict[str, Any]:
    """A file: ``what`` "svg" or "csv" (a row per regime, epoch and chosen piece).

    ``regime`` is the one of the picture, "all" for all of them.
    """
    kind, regime = read_file_kind(question.get("what")), question.get("regime", "dynamic")
    if regime not in (*timeline.REGIMES, ALL):
        allowed = ", ".join((*timeline.REGIMES, ALL))
        raise InputError(f"regime is {str(regime)[:40]!r}; it must be one of {allowed}.")
    answer = show(session, question)
    if answer["error"]:
        return answer
    if kind == "csv":
        text = _csv(answer)
    else:
        names = timeline.REGIMES if regime == ALL else (regime,)
        visits = {name: answer["regimes"][name]["visits"] for name in names}
        text = timeline_svg(
            [
                (MASKING[name], [answer["draws"][n]["cases"] for n in found])
                for name, found in visits.items()
            ],
            [token["text"] for token in answer["tokens"]],
            title=Wording("What is hidden, epoch by epoch: {0}", answer["kind_title"]),
            legend=LEGEND,
        )
    return file_answer(question, "cloze-timeline", kind, text)


def _csv(answer: Mapping[str, Any]) -> str:
    rows: list[list[str | float | None]] = []
    for regime, found in answer["regimes"].items():
        for epoch, number in enumerate(found["visits"], 1):
            draw = answer["draws"][number]
            rows += [
                [
                    regime,
                    epoch,
                    token["position"],
                    token["text"],
                    case,
                    draw["random"].get(str(token["position"])),
                ]
                for token, case in zip(answer["tokens"], draw["cases"], strict=True)
                if case != "."
            ]
    return records_csv(("regime", "epoch", "position", "piece", "case", "random_piece"), rows)
