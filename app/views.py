"""Parts of the page that our own scripts draw.

Templates are static: what visitors type reaches a view as data and the page as ``textContent``.
(Values inside a template would be run as a JavaScript template literal even after escaping.)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

# The scripts may arrive before or after this runs: shell.js takes over the queue.
_MOUNT = "(window.ClozeViews ??= []).push(['{name}', element, props, trigger, watch, [{events}]]);"


def view(
    name: str, value: Any = None, *, events: Sequence[str] = (), elem_id: str | None = None
) -> gr.HTML:
    """A view that ``Cloze.register(name, ...)`` of a script in assets/static draws.

    Args:
        name: name under which the script registered it.
        value: first data, a JSON-able object.
        events: names that the script may trigger; each becomes a method of the component. Gradio
            finds them by looking for the quoted name in the script below.
        elem_id: id in the page; None = ``cloze-<name>``.
    """
    listed = ", ".join(f"'{event}'" for event in events)
    return gr.HTML(
        value,
        html_template=f'<div class="view view-{name}"></div>',
        js_on_load=_MOUNT.format(name=name, events=listed),
        apply_default_css=False,
        elem_id=elem_id or f"cloze-{name}",
        elem_classes=["cloze-view"],
    )


def payload(event: gr.EventData) -> Mapping[str, Any]:
    """What a view sent with an event; anything but an object counts as nothing."""
    data = event._data
    return data if isinstance(data, Mapping) else {}
