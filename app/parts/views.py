"""Parts of the page that our own scripts draw.

Templates are static: what visitors type reaches a view as data and the page as ``textContent``.
(Values inside a template would be run as a JavaScript template literal even after escaping.)
"""

import asyncio
import inspect
from abc import ABCMeta
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.component_meta import ComponentMeta, updateable
from gradio.components import Component

from app.serving.ask import read_revision
from app.serving.metrics import counted
from core_models import InputError

# The scripts may arrive before or after this runs: shell.js takes over the queue.
_MOUNT = "(window.ClozeViews ??= []).push(['{name}', element, props, trigger, watch, [{events}]]);"


def view(
    name: str,
    value: Any = None,
    *,
    events: Sequence[str] = (),
    elem_id: str | None = None,
    module: str | None = None,
) -> gr.HTML:
    """A view that a script of ours draws.

    Args:
        name: name under which the script registered it (``Cloze.register(name, ...)``).
        value: first data, a JSON-able object.
        events: names that the script may trigger; each becomes a method of the component. Gradio
            finds them by looking for the quoted name in the script below.
        elem_id: id in the page; None = ``cloze-<name>``.
        module: a script of this package without its ending, for example ``labs/budget/view``,
            whose ``mount(view)`` draws it. It and the style sheet of the same name load when the
            view is first seen, not with the page. None = a script that the page has loaded.
    """
    return gr.HTML(
        value,
        **mounted(name, module=module, events=events),
        elem_id=elem_id or f"cloze-{name}",
    )


def mounted(
    name: str,
    *,
    module: str | None = None,
    events: Sequence[str] = (),
    main: bool = False,
    files: str | None = None,
    reads: Sequence[str] = (),
    copies: bool = False,
) -> dict[str, Any]:
    """Arguments of ``gr.HTML`` for a part that a script of ours draws; see :func:`view`.

    ``main``: whether it is the main picture of its lab. ``files``: what its saved files are called.
    ``reads``: what it takes of the sentence block (``Cloze.question`` of shell.js). ``copies``:
    whether a button copies it as text.
    """
    listed = ", ".join(f"'{event}'" for event in events)
    place = f' data-module="{module}"' if module else ""
    place += " data-picture" if main else ""
    place += f' data-files="{files}"' if files else ""
    place += f' data-reads="{" ".join(reads)}"' if reads else ""
    place += " data-copies" if copies else ""
    return {
        "html_template": f'<div class="view view-{name}"{place}></div>',
        "js_on_load": _MOUNT.format(name=name, events=listed),
        "apply_default_css": False,
        "elem_classes": ["cloze-view"],
    }


class Ours(ComponentMeta):
    """Of components of ours, which have the events of what they are made from.

    For each class Gradio 6.31 writes an interface file (``.pyi``) beside its module, whenever that
    is imported: it parses module and file, and compiles a template.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> type:
        """The class; of what Gradio does with one, only what a class without events needs."""
        if "__init__" in attributes:
            attributes["__init__"] = updateable(attributes["__init__"])
        return ABCMeta.__new__(cls, name, bases, attributes)


class Part(gr.HTML, metaclass=Ours):
    """A part of the page that a script of ours draws, as a component of its own.

    Subclasses name their module (:func:`mounted`). ``more`` is what Gradio itself passes on when it
    makes the component anew for an update.
    """

    def __init__(self, value: Any = None, *, elem_id: str | None = None, **more: Any) -> None:
        # With classes of its own it is still one of our parts.
        classes = dict.fromkeys(["cloze-view", *(more.pop("elem_classes", None) or [])])
        super().__init__(value, elem_id=elem_id, elem_classes=[*classes], **more)

    def postprocess(self, value: Any) -> Any:
        """A text goes as an object: Gradio would write a string into the part itself."""
        return {"text": value} if isinstance(value, str) else value

    def get_block_name(self) -> str:
        """The page draws it as any other HTML part."""
        return "html"

    def get_config(self) -> dict[str, Any]:
        """What the page is told of it: as of any other, without looking for our own arguments."""
        found = Component.get_config(self, gr.HTML)
        return {**found, "component_class_name": self.component_class_name}


def payload(event: gr.EventData) -> Mapping[str, Any]:
    """What a view sent with an event; anything but an object counts as nothing."""
    data = event._data
    return data if isinstance(data, Mapping) else {}


Answer = dict[str, Any]
Reply = Callable[[Mapping[str, Any]], Awaitable[Answer] | Answer]


def listen(
    component: gr.HTML,
    replies: Mapping[str, Reply],
    *,
    into: gr.HTML | None = None,
    one_at_a_time: Collection[str] = (),
) -> None:
    """Answer a view's events, each with its reply to what the view sent (:func:`answered`).

    A view has one question in flight and then sends the newest (``Cloze.asker`` in shell.js), so
    Gradio must neither drop nor delay any.

    Args:
        component: The view that asks.
        replies: For each event a coroutine, or a function, which runs in a thread.
        into: The view that shows the answers; None = the one that asks.
        one_at_a_time: Events of which one is answered at a time, for all visitors together.
    """
    for name, reply in replies.items():
        _connect(component, name, reply, into, name in one_at_a_time)


async def answered(reply: Reply, question: Mapping[str, Any]) -> Answer:
    """What a view gets: the reply with the revision of the question.

    In place of an InputError comes its message as ``error``, which is None otherwise.
    """
    head = {"rev": read_revision(question), "error": None}
    try:
        with counted(reply):
            if inspect.iscoroutinefunction(reply):
                return head | await reply(question)
            return head | await asyncio.to_thread(reply, question)
    except InputError as error:
        return head | refused(error)


def refused(error: InputError) -> Answer:
    """A message, and where the server is too busy, the seconds after which to ask again."""
    again = getattr(error, "again", None)
    return {"error": str(error)} | ({"again": again} if again else {})


def _connect(
    component: gr.HTML,
    name: str,
    reply: Reply,
    into: gr.HTML | None = None,
    alone: bool = False,
) -> None:
    async def on_event(event: gr.EventData) -> Answer:
        return await answered(reply, payload(event))

    if not alone:
        on_event.reply = reply  # type: ignore[attr-defined]  # taken by app/serving/direct.py
    getattr(component, name)(
        on_event,
        None,
        component if into is None else into,
        show_progress="hidden",
        show_progress_on=[],
        trigger_mode="multiple",
        concurrency_limit=1 if alone else None,
        # Answered in the response itself. The queue costs two requests and up to 40 ms, and what
        # it orders has an order already: the model thread's own (app/serving/batcher.py).
        queue=alone,
        api_visibility="private",
    )
