"""The models that a run began with, and the licences that their own cards name.

No Gradio in it.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from app.runs.forms.command import MODELS
from app.runs.names import TEACHER, leaves
from app.runs.runs import Runs
from app.serving.names import HUB_PREFIX, RUN_PREFIX
from core_models import InputError, plain_files
from core_models.hub import fetch as hub
from core_models.training.settings import ASSETS

_DEPTH = 8
"""Runs that began with runs: how far back their starts are followed."""
_MOST_CARD = 1_000_000
"""Bytes of a card that is read."""
_HEAD = re.compile(r"---[ \t]*\r?\n(.*?\n)---[ \t]*(?:\r?\n|$)", re.S)
_LICENCE = re.compile(r"^license: *([\"']?)([\w.+-]{1,60})\1[ \t]*\r?$", re.M | re.A)
_UNTOLD = ("other", "unknown")
"""What the hub has people write for a licence without an id."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A model that a run, or one before it, began with."""

    name: str
    """As ``cm.load`` takes it: a shipped name or a hub id; of a folder what the page calls it."""
    kind: str
    """``shipped``, ``hub`` or, of all else, ``folder``."""
    licence: str | None
    """The id in its own card; None where the card has none or does not lie in its folder."""
    teacher: bool
    """Whether its answers alone were learnt, so that none of its weights are in the run's model."""
    commit: str | None = None
    """Of a model of the hub, where the run's settings tell it."""

    @property
    def pinned(self) -> str:
        """Its name, with the commit: what ``cm.load`` opens is then what the run read."""
        return f"{self.name}@{self.commit}" if self.commit else self.name

    def told(self) -> str:
        """A sentence of Markdown: what it is, and what is known of its licence."""
        begun = "It learnt from the answers of" if self.teacher else "It began with"
        if self.kind == "shipped":
            known = self.licence or "named in its own card"
            return f"{begun} the shipped model `{self.name}`, whose licence is {known}."
        if self.kind == "hub":
            what = f"the model `{self.pinned}` of the Hugging Face hub"
            card = f"Its own card names its licence: <https://huggingface.co/{self.name}>."
        else:
            what = f"the model {code(self.name)}, which is not part of Cloze"
            card = "Its own card names its licence; where it has none, ask whoever made it."
        if self.licence:
            card = f"Its own card names the licence `{self.licence}`."
        return f"{begun} {what}. {card}"


def starts(runs: Runs, run: str) -> tuple[Start, ...]:
    """The models at the beginning of a run, by their names; runs between are followed."""
    found = _found(runs, run, _DEPTH)
    return tuple(found[key] for key in sorted(found))


def shipped(name: str) -> Path | None:
    """The folder of a shipped model; None for a name that is none."""
    folder = ASSETS / "models" / name
    plain = re.fullmatch(r"[\w.-]+", name) and not name.startswith(".")
    return folder if plain and folder.is_dir() else None


def code(text: str) -> str:
    """A text of a visitor as code in Markdown."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def _found(runs: Runs, run: str, depth: int) -> dict[tuple[str, str], Start]:
    """By name and licence: of folders elsewhere two may be called the same."""
    found: dict[tuple[str, str], Start] = {}
    try:
        config = runs.config(run)
    except InputError:
        return found  # deleted since
    for at, place in leaves(config):
        if not place or (field := at.rpartition(".")[2]) not in MODELS:
            continue
        name, teacher = runs.named(place), field == TEACHER
        if name.startswith(RUN_PREFIX):
            before = list(_found(runs, name.split("/")[1], depth - 1).values()) if depth else []
        else:
            before = [_start(name, Path(place))]
        for start in before:
            key = start.pinned, start.licence or ""
            # Of two ways to the same model the one that took its weights counts.
            known = key not in found or found[key].teacher
            found[key] = replace(start, teacher=known and (start.teacher or teacher))
    return found


def _start(name: str, place: Path) -> Start:
    """One that is no run, with its weights.

    Args:
        name: of the model, as the page has it.
        place: as the run's settings have it: its folder, a shipped name or a hub id.
    """
    asked = hub.pinned(str(place)) or name.removeprefix(HUB_PREFIX)
    hub_id, commit, fetched = None, None, hub.local(asked)
    with suppress(InputError):
        hub_id, commit = hub.parted(asked)
    if (ours := shipped(name)) is not None:
        kind, place, commit = "shipped", ours, None
    elif hub_id and (asked != name or commit or fetched):
        kind, name, place = "hub", hub_id, fetched or place
    else:
        kind = "folder"
    licence = _licence(place) if place.is_absolute() else None
    return Start(name=name, kind=kind, licence=licence, teacher=False, commit=commit)


def _licence(folder: Path) -> str | None:
    """The licence in the head of the card in a model's folder.

    Nothing but an id is taken: cards of others may hold anything.
    """
    try:
        card = plain_files.read(folder / "README.md", _MOST_CARD).decode("utf-8-sig")
    except (InputError, OSError, UnicodeDecodeError):
        return None
    head = _HEAD.match(card)
    named = head and _LICENCE.search(head[1])
    return named[2] if named and named[2] not in _UNTOLD else None
