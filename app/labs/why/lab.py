"""The Why tab: what in the sentence speaks for an answer of the model, and what against it.

The view is drawn by why.js. A question that takes longer is answered with its progress; the view
then asks again, which also says that somebody still waits.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import gradio as gr

from app.labs.why.methods import METHODS
from app.labs.why.service import Explainer
from app.page.sentence import Shared
from app.parts.figure import drawn
from app.parts.views import listen_to_visitors, view
from app.serving.ask import read_revision
from app.serving.session import Session
from viz.svg import Wording
from viz.why import Attributed, attributions

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
    """Asks with ``ask``, ``check`` (re-drawn layers) and ``stop``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("why", events=["ask", "check", "stop"], module="labs/why/view"))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    explainer = Explainer(session)
    replies = {"ask": show, "check": check, "stop": stop}
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
    if answer["state"] == "done":
        answer["figure"] = await asyncio.to_thread(figure, answer)
    return {"rev": read_revision(question), "what": "ask", **answer}


async def check(
    explainer: Explainer, question: Mapping[str, Any], visitor: str = ""
) -> dict[str, Any]:
    """The check with re-drawn layers or its progress."""
    answer = await explainer.check(question, visitor)
    return {"rev": read_revision(question), "what": "check", **answer}


def figure(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The picture of an explanation."""
    scene, methods = answer["scene"], answer["answer"]["methods"]
    one_place = scene["kind"] in ("piece", "replaced", "tag")
    tokens = [
        Attributed(
            text=token["text"],
            read=token["read"] if token["changed"] else token["text"],
            second=token["number"] == 1,
            asked=one_place and token["position"] == scene["position"],
        )
        for token in scene["tokens"]
    ]
    title = Wording("{0}: {1}", scene["model"], asked(scene))
    return drawn(
        attributions(tokens, {TITLES[name]: methods[name] for name in METHODS}, title=title)
    )


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
