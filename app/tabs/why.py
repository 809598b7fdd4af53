"""The Why tab: what in the sentence speaks for an answer of the model, and what against it.

The view is drawn by why.js. A question that takes longer is answered with its progress; the view
then asks again, which also says that somebody still waits.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gradio as gr

from app.ask import read_revision
from app.sentence import Shared
from app.session import Session
from app.views import payload, view
from app.why_methods import METHODS
from app.why_service import NOTHING, Explainer
from viz.records import records_csv
from viz.why import Attributed, attributions_svg

FILE_TYPES = {"svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}
TITLES = {
    "integrated": "Integrated gradients",
    "gradient": "Input x gradient",
    "saliency": "Saliency",
    "occlusion": "Occlusion",
}


class Controls(NamedTuple):
    """What the tab consists of."""

    why: gr.HTML
    """Asks with ``ask``, ``check`` (re-drawn layers), ``stop`` and ``save``."""


def build(shared: Shared) -> Controls:
    """Lay the tab out."""
    return Controls(view("why", events=["ask", "check", "stop", "save"]))


def wire(controls: Controls, shared: Shared, session: Session) -> None:
    """Answer each event of the view."""
    explainer = Explainer(session)

    async def on_ask(event: gr.EventData, request: gr.Request) -> dict[str, Any]:
        return await show(explainer, payload(event), _visitor(request))

    async def on_check(event: gr.EventData, request: gr.Request) -> dict[str, Any]:
        return await check(explainer, payload(event), _visitor(request))

    async def on_stop(event: gr.EventData, request: gr.Request) -> dict[str, Any]:
        revision = read_revision(payload(event))
        return {"rev": revision, "what": "stop", **explainer.leave(_visitor(request))}

    async def on_save(event: gr.EventData, request: gr.Request) -> dict[str, Any]:
        return await export(explainer, payload(event), _visitor(request))

    events = controls.why
    for listen, answer in (
        (events.ask, on_ask),
        (events.check, on_check),
        (events.stop, on_stop),
        (events.save, on_save),
    ):
        listen(
            answer,
            None,
            controls.why,
            show_progress="hidden",
            trigger_mode="multiple",
            concurrency_limit=None,
            api_visibility="private",
        )


def _visitor(request: gr.Request) -> str:
    return str(request.session_hash or "")


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
    found = {"rev": read_revision(question), "what": "file"}
    what, method = question.get("what"), question.get("method", METHODS[0])
    if what not in FILE_TYPES:
        error = f"The kind of file is {str(what)[:40]!r}; it must be svg or csv."
        return found | {"error": error}
    if method not in METHODS:
        error = f"The method is {str(method)[:40]!r}; it must be one of {', '.join(METHODS)}."
        return found | {"error": error}
    answer = await explainer.explain(question, visitor)
    if answer["error"] or answer["state"] != "done":
        return found | {"error": answer["error"] or NOTHING}
    text = _csv(answer) if what == "csv" else _svg(answer, method)
    return found | {
        "error": None,
        "name": f"cloze-why.{what}",
        "type": FILE_TYPES[what],
        "text": text,
    }


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
    return attributions_svg(
        tokens, title=f"{scene['model']}: {asked(scene)}", method=TITLES[method]
    )


def asked(scene: Mapping[str, Any]) -> str:
    """The question in a few words."""
    names = {choice["index"]: choice["name"] for choice in scene["choices"]}
    if not names:
        return f"{scene['kind']} at {scene['position']}" if scene["places"] else scene["kind"]
    what = f"“{names[scene['answer']]}”"
    if scene["against"] is not None:
        what += f" rather than “{names[scene['against']]}”"
    return what
