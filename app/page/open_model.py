"""Beside the list of models: open one of the hub, or a folder of this machine.

Nothing is fetched that was not told before: what is named is looked at first, and its size stands
above the button that fetches it. Then it is in the list like any other.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import gradio as gr

from app.parts.controls import OpenDropdown, answer
from app.parts.plain import Kept, Line, sentences
from app.parts.views import view
from app.serving.opened.library import Job, Offer
from app.serving.opened.suggestions import choices
from app.serving.session import Session
from core_models import InputError
from viz.svg import Wording

OFFER = "(offer, named) => Cloze.offeredModel(offer, named)"
PAUSE = 0.2
"""Seconds between two looks at what has come."""


class Controls(NamedTuple):
    """What the fold consists of."""

    named: OpenDropdown
    said: Line
    offer: Kept
    """The text that was looked at and what is said of it (:func:`look`), or None."""
    go: gr.Button
    stop: gr.Button
    progress: gr.HTML
    problem: Line
    opened: Kept
    """Name and title of the model that has just been opened."""


def build(session: Session) -> Controls | None:
    """Lay the fold out; None where nothing may be opened."""
    if session.opened is None or not session.opened.policy.opens:
        return None
    with gr.Column(elem_id="open-model", min_width=0):
        with gr.Row(equal_height=False, elem_id="open-model-row"):
            named = OpenDropdown(
                choices(session.opened),
                value=None,
                label="Model of the hub, or a folder"
                if session.opened.policy.mode == "any"
                else "Model of the list of this server",
                allow_custom_value=True,
                elem_id="open-named",
                scale=5,
                min_width=220,
            )
            go = gr.Button("Open it", variant="primary", visible=False, elem_id="open-go")
            stop = gr.Button("Cancel", visible=False, elem_id="open-stop")
        said = Line(elem_id="open-said")
        progress = view("open-progress", events=["ask"])
        problem = Line(problem=True, elem_id="open-problem")
        return Controls(named, said, Kept(), go, stop, progress, problem, Kept())


def wire(controls: Controls, model: gr.Dropdown, session: Session) -> None:
    """Look at what is named, fetch it when asked to, then choose it."""
    c = controls
    asked = {"named": c.named}

    async def on_go(text: Any, request: gr.Request) -> AsyncIterator[list[Any]]:
        async for found in follow(session, text, str(request.session_hash or "")):
            yield found

    async def on_stop(request: gr.Request) -> None:
        if session.opened:
            session.opened.cancel(str(request.session_hash or ""))

    def on_look(question: Mapping[str, Any]) -> list[Any]:
        offer = look(session, question["named"])
        return [{**offer, "said": c.said.postprocess(offer["said"])} if offer else None]

    # A link names a model, too; then, and while a new one is looked at, the last offer is void.
    c.progress.ask(None, None, c.named, js="() => Cloze.askedModel")
    c.named.change(None, None, [c.go, c.said], js="() => [Cloze.hiddenPart, null]")
    answer([c.named.change], on_look, asked, [c.offer], c.problem)
    # An older look may come when another model is named already.
    c.offer.change(None, [c.offer, c.named], [c.said, c.go], js=OFFER)  # type: ignore[attr-defined]
    common: dict[str, Any] = {
        "show_progress": "hidden",
        "show_progress_on": [],
        "api_visibility": "private",
    }
    c.go.click(
        on_go,
        c.offer,
        [c.progress, c.go, c.stop, c.opened, c.problem],
        concurrency_limit=None,
        trigger_mode="once",
        **common,
    )
    c.stop.click(on_stop, None, None, queue=False, **common)
    # In the page alone, as the titles are told in its language.
    c.opened.change(None, c.opened, [model, c.named], js="(found) => Cloze.openedModel(found)")


# --- answers: plain values in, plain values out ---------------------------------------------------


def look(session: Session, text: Any) -> dict[str, Any] | None:
    """What a hub id or a folder is, where it can be opened; None of no name."""
    assert session.opened is not None
    if not text:
        return None
    offer = session.opened.look(text)
    # With the time, so that a name that is named again is news.
    return {"text": str(text), "said": tell(offer), "time": time.time()}


def tell(offer: Offer) -> str:
    """What a model is, and what is fetched before it is here."""
    count = f"{offer.parameters / 1e6:,.1f}"
    known = (
        Wording("{0}: {1} million parameters.", offer.title, count)
        if offer.counted
        else Wording("{0}: about {1} million parameters.", offer.title, count)
    )
    size = megabytes(offer.size)
    if not offer.missing:
        old = Wording("The hub cannot be reached: this is what was fetched from it last.")
        return sentences(
            known, Wording("All of its {0} MB are here.", size), old if offer.kept else ""
        )
    return sentences(
        known, Wording("{0} of {1} MB come from the hub.", megabytes(offer.missing), size)
    )


async def follow(session: Session, text: Any, visitor: str) -> AsyncIterator[list[Any]]:
    """Open what was looked at, and tell how far that is, until it is in the list of models."""
    hidden, shown = gr.update(visible=False), gr.update(visible=True)
    try:
        given = text.get("text") if isinstance(text, Mapping) else None
        job = await asyncio.to_thread(session.open, given, visitor)
    except InputError as error:
        yield [None, gr.skip(), hidden, gr.skip(), str(error)]
        return
    while not job.done.is_set():
        yield [progress(job), hidden, shown, gr.skip(), ""]
        await asyncio.sleep(PAUSE)
    if job.problem is not None:
        yield [None, shown, hidden, gr.skip(), job.problem]
        return
    titles = {name: title for title, name in await asyncio.to_thread(session.choices)}
    name = job.offer.name
    # With the time, so that a model that is opened again, after a restart say, is news.
    found = {"name": name, "title": titles.get(name, name), "time": time.time()}
    yield [None, hidden, hidden, found, ""]


def progress(job: Job) -> dict[str, Any]:
    """How far a job is, for the bar."""
    return {
        "title": job.offer.title,
        "received": job.received,
        "size": job.offer.size,
        "loading": job.loading,
    }


def megabytes(size: int) -> str:
    """Millions of bytes, as the hub counts them."""
    return f"{size / 1e6:,.1f}"
