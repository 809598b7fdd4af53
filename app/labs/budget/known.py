"""Models of the picker among the sizes of the Budget lab, counted in the headers of their files."""

from collections.abc import Mapping
from typing import Any

import core_models as cm
from app.labs.budget import answers
from app.serving.ask import clean_name
from app.serving.names import FOLDER_PREFIX, HUB_PREFIX, RUN_PREFIX
from app.serving.session import Session
from core_models import InputError, Inspection
from viz.svg import Wording

MODEL = "model/"
"""Before the name of an installed model: a published size may have the same."""
PREFIXES = (RUN_PREFIX, HUB_PREFIX, FOLDER_PREFIX)


def known_models(session: Session, question: Mapping[str, Any]) -> dict[str, Inspection]:
    """What the headers of the models among the sizes say, by their names here.

    Raises:
        InputError: a model is not here, or only transformers knows its parts.
    """
    found = {}
    sizes = question["sizes"]
    for name in sizes[: answers.MOST_SIZES] if isinstance(sizes, list) else ():
        if str(name).startswith((MODEL, *PREFIXES)):
            found[name] = inspected = cm.inspect(session.folder(name.removeprefix(MODEL)))
            if inspected.config is None:
                raise InputError(
                    f"{name.removeprefix(MODEL)} has {inspected.parameters:,} parameters in its "
                    "files. It is run by transformers, so there are no counts by part."
                )
    return found


def chosen_name(question: Mapping[str, Any]) -> str:
    """The model of the sentence block, as a size is called."""
    chosen = clean_name((question["chosen"] or {}).get("model"))
    return chosen if chosen.startswith(PREFIXES) else MODEL + chosen


def exact(known: Mapping[str, Inspection]) -> list[str]:
    """How many parameters the files of each model have."""
    return [
        Wording("{0} has {1} parameters in its files.", label(name), f"{found.parameters:,}")
        for name, found in known.items()
    ]


def label(name: str) -> str:
    """A published size is called as it is, the visitor's own one in the page's language.

    An installed model of a published size's name is told from it.
    """
    plain = name.removeprefix(MODEL)
    if name.startswith(MODEL) and plain in cm.sizes():
        return Wording("{0} (installed)", plain)
    return Wording("own size") if name == answers.OWN else plain
