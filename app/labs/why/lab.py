"""The Why tab: what in the sentence speaks for an answer of the model, and what against it.

The view is drawn by why.js. A question that takes longer is answered with its progress; the view
then asks again, which also says that somebody still waits.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.why.methods import METHODS
from app.labs.why.service import NOTHING, Explainer
from app.page.sentence import Shared
from app.parts.files import file_answer, read_file_kind
from app.parts.views import listen_to_visitors, view
from app.serving.ask import read_revision
from app.serving.session import Session
from core_models import InputError
from viz.records import records_csv
from viz.svg import Wording
from viz.why import Attributed, attributions_svg

TITLES = {
    "integrated": Wording("Integrated gradients"),
    "gradient": Wording("Input \N{MULTIPLICATION SIGN} gradient"),
    "saliency": Wording("Saliency"),
    "occlusion": Wording("Occlusion"),
}
NAMELESS = {
    "score": Wording("The score"),
    "start": Wording("Start of the answer"),
    "end": Wording("End of the answer"),
}
"""Questions whose answers have no names."""
OWN_HEADS = ("replaced_token", "next_sentence", "sentence_order")
"""Heads whose labels are the program's, not those of a visitor's data."""
VERDICTS = {
    "real": Wording("real"),
    "replaced": Wording("replaced"),
    "next": Wording("next"),
    "random": Wording("random"),
    "in order": Wording("in order"),
    "swapped": Wording("swapped"),
}


class Controls(NamedTuple):
    """What the tab consists of."""

    why: gr.HTML
    """Asks with ``ask``, ``check`` (re-drawn layers), ``stop`` and ``save``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("why", events=["ask", "check", "stop", "save"], module="labs/why/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    explainer = Explainer(session)
    replies = {"ask": show, "check": check, "stop": stop, "save": export}
    listen_to_visitors(
        controls.why, {name: partial(reply, explainer) for name, reply in replies.items()}
    )


async def stop(
    explainer: Explainer, question: Mapping[str, Any], visitor: str = ""
) -> dict[str, Any]:
    """Leave the work that this visitor asked for."""
    return {"rev": read_revision(question), "what": "stop", **explainer.leave(visitor)}


async def show(
    explainer: Explainer, question: Mapping[str, Any], visitor: str = ""
) -> dict[str, Any]:
    """The explanation or its progress, with the revision of the question."""
    answer = await explainer.explain(question, visitor)
    return {"rev": read_revision(question), "what": "ask", **answer}


async def check(
    explainer: Explainer, question: Mapping[str, Any], visitor: str = ""
) -> dict[str, Any]:
    """The check with re-drawn layers or its progress."""
    answer = await explainer.check(question, visitor)
    return {"rev": read_revision(question), "what": "check", **answer}


async def export(
    explainer: Explainer, question: Mapping[str, Any], visitor: str = ""
) -> dict[str, Any]:
    """The explanation as a file: ``what`` "svg" (one method) or "csv" (all of them)."""
    kind, method = read_file_kind(question.get("what")), question.get("method", METHODS[0])
    if method not in tuple(METHODS):
        allowed = ", ".join(METHODS)
        raise InputError(f"The method is {str(method)[:40]!r}; it must be one of {allowed}.")
    answer = await explainer.explain(question, visitor)
    if answer["error"] or answer["state"] != "done":
        raise InputError(answer["error"] or NOTHING)
    text = _csv(answer) if kind == "csv" else _svg(answer, method)
    return {**file_answer(question, "cloze-why", kind, text), "what": "file"}


def _csv(answer: Mapping[str, Any]) -> str:
    methods = answer["answer"]["methods"]
    rows = [
        [
            token["position"],
            token["piece"],
            token["read"],
            int(token["special"]),
            *(methods[method][token["position"]] for method in METHODS),
        ]
        for token in answer["scene"]["tokens"]
    ]
    header = ("position", "piece", "read", "special", "integrated_gradients")
    return records_csv((*header, "input_x_gradient", "saliency", "occlusion"), rows)


def _svg(answer: Mapping[str, Any], method: str) -> str:
    scene, values = answer["scene"], answer["answer"]["methods"][method]
    tokens = [
        Attributed(
            text=token["read"] if token["changed"] else token["text"],
            value=values[token["position"]],
            quiet=token["special"],
            asked=scene["kind"] in ("piece", "replaced", "tag")
            and token["position"] == scene["position"],
        )
        for token in scene["tokens"]
    ]
    title = Wording("{0}: {1}", scene["model"], asked(scene))
    return attributions_svg(tokens, title=title, method=TITLES[method])


def asked(scene: Mapping[str, Any]) -> Wording:
    """The question in a few words."""
    names = {choice["index"]: choice["name"] for choice in scene["choices"]}
    if not names:
        kind = NAMELESS[scene["kind"]]
        return Wording("{0}, token {1}", kind, scene["position"]) if scene["places"] else kind
    if scene["named"] in OWN_HEADS:
        names = {index: VERDICTS.get(name, name) for index, name in names.items()}
    answer = names[scene["answer"]]
    if scene["against"] is None:
        return Wording("“{0}”", answer)
    return Wording("“{0}” rather than “{1}”", answer, names[scene["against"]])
