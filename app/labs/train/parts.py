"""Parts of the forms that have a script of their own."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from gradio.components import Component

from app.parts.views import Part, mounted
from core_models import InputError

MOST_SENT = 20


class Told(Part):
    """A value that the list of runs and the forms tell each other; watch.js has the other end.

    ``wish`` is the page's: ``owner`` (the secret of the browser), ``kind`` of the form, and a run
    to ``copy`` or a model to ``tune``. ``started`` is Python's: ``id`` of the run. ``tick`` is the
    page's, too: there is something new to show of a run.
    """

    def __init__(self, name: str = "wish", value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted(f"train-{name}"), **more})


COPIES = "Whoever sees this page can copy the run, with the texts and tables that were sent for it."
"""What stands where something is sent."""


class Upload(Part):
    """A field for files, which go to the server at once (``/train/texts``), and a list of them.

    Gradio's own ``gr.File`` would need its route for uploads, which the page does not have. The
    value is an object: ``sent`` is a list of what the server made of each file, ``sending`` how
    many are under way. It has the event ``change``. Python adds one that came another way by
    ``{"add": {...}}`` and empties the list by ``{"clear": True}``.

    Args:
        label: What is sent.
        labelled: Whether it is a table of a labelled set.
        several: Whether a file is added to those before it, or takes their place.
    """

    def __init__(
        self,
        label: str = "",
        *,
        labelled: bool = False,
        several: bool = False,
        value: Any = None,
        **more: Any,
    ) -> None:
        first = {"label": label, "labelled": labelled, "several": several, "sent": []}
        parts = mounted("upload", module="labs/train/view")
        super().__init__(value or first, **{**parts, **more})


class Batch(Part):
    """The first batch of a run, piece by piece: what is hidden, what is to be said, who sees whom.

    Its value is what :func:`app.runs.forms.preview.first_batch` gives; None shows nothing.

    Example::

        batch = Batch()
        button.click(first_batch, settings, batch, queue=False)
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("batch", module="labs/train/view"), **more})


class Scrub(Part):
    """One sentence through the snapshots of a run: a slider, what the model says, where it looks.

    Its value is an object: the id of the ``run``, its ``stops`` (steps that can be asked for),
    whether the model ``detects`` replaced pieces, and whether the run has ``finished``; None shows
    nothing.
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("scrub", module="labs/train/view"), **more})


class Passages(Part):
    """Held-out examples with what was asked in them, and what the model said instead.

    Its value is what a run keeps as ``validation.json``; None shows nothing.
    """

    def __init__(self, value: Any = None, **more: Any) -> None:
        super().__init__(value, **{**mounted("passages", module="labs/train/view"), **more})


def sent(value: Any) -> list[Mapping[str, Any]]:
    """What an :class:`Upload` holds.

    Raises:
        InputError: a file is under way, or there are too many.
    """
    if not isinstance(value, Mapping):
        return []
    if value.get("sending"):
        raise InputError("A text is still on its way. Ask again as soon as it is there.")
    found = value.get("sent")
    listed: Sequence[Any] = found if isinstance(found, list) else []
    if len(listed) > MOST_SENT:
        raise InputError(f"At most {MOST_SENT} texts go into one run.")
    return [each for each in listed if isinstance(each, Mapping)]


def packed(
    parts: Sequence[Component], values: Sequence[Any], held: Mapping[int, Any] | None = None
) -> dict[str, Any]:
    """New values of a form for the page, which takes them but for what was changed meanwhile.

    Args:
        parts: What gets them.
        values: Of each part, plain or an update.
        held: By their places, what parts held when this was asked for; None = all are taken.
    """
    return {
        "values": [_posted(*each) for each in zip(parts, values, strict=True)],
        "held": {str(place): value for place, value in (held or {}).items()},
        "time": time.time(),  # the same settings, chosen again, are news
    }


def _posted(part: Component, value: Any) -> Any:
    """A new value, or an update, as Gradio sends it to the page."""
    if not isinstance(value, Mapping) or value.get("__type__") != "update":
        return part.postprocess(value)
    return {**value, "value": part.postprocess(value["value"])} if "value" in value else value
