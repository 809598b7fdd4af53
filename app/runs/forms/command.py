"""Settings of a form for the command line. No Gradio in it.

What the page has sent, and models of its runs and of opened folders, have no names there; a model
of the hub has another one.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.runs.forms.words import listed, ours, sentences
from app.runs.names import BESIDE, ELSEWHERE, TEACHER, leaves
from app.serving.names import FOLDER_PREFIX, HUB_PREFIX, RUN_PREFIX
from core_models.hub import fetch as hub

MODELS = ("checkpoint", "encoder_from", TEACHER)
"""Settings that name a model, of whatever part."""
_VOCABULARY = "folder"
"""The setting that names a model for its vocabulary, which has to lie in a folder."""


def file_name(name: Any, otherwise: str) -> str:
    """What the file with the settings is called, without its ending."""
    return re.sub(r"[^a-z0-9]+", "-", str(name or "").lower()).strip("-") or otherwise


def for_shell(
    config: Mapping[str, Any],
    sent: Sequence[Mapping[str, Any]],
    place: Callable[[str], str] = str,
) -> dict[str, Any]:
    """The settings as they go into a file.

    Args:
        config: Of a form.
        sent: ``name``, and of a table ``column``, of what was sent: it will lie beside the file.
        place: See :func:`with_hub_ids`.
    """
    values = with_hub_ids(config, place)
    names = [each["name"] for each in sent]
    if "task" in values:
        values["task"] |= dict(zip(("set", "dev"), names, strict=False))
        return values
    data = values.setdefault("data", {})
    data["texts"] = [*data.get("texts", []), *names]
    if column := next((each["column"] for each in sent if each.get("column")), None):
        data["column"] = column
    return values


def before(config: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]) -> str:
    """What has to be done before the command can run; "" where nothing has."""
    task = config.get("task") or {}
    named = [*(config.get("data") or {}).get("texts", []), task.get("set"), task.get("dev")]
    own = [name for name in named if isinstance(name, str) and name.startswith(f"{BESIDE}/")]
    files = list(dict.fromkeys([*(each["name"] for each in sent), *own]))
    columns = list(dict.fromkeys(each["column"] for each in sent if each.get("column")))
    parts = []
    if files:
        key = "Put this beside the file with the settings first: {0}"
        parts.append(ours(key, listed(files)))
    if columns[1:] and not task:
        key = "The command reads one column of all tables, {0}: rename {1}."
        parts.append(ours(key, columns[0], listed(columns[1:])))
    return sentences([*parts, *_in_place(with_hub_ids(config))])


def models_in(config: Mapping[str, Any]) -> list[str]:
    """The models that settings name, each once."""
    named = leaves(config)
    fields = (*MODELS, _VOCABULARY)
    return list(dict.fromkeys(name for at, name in named if at.rpartition(".")[2] in fields))


def with_hub_ids(config: Mapping[str, Any], place: Callable[[str], str] = str) -> dict[str, Any]:
    """A copy of settings in which models of the hub are named as ``core_models`` loads them.

    Args:
        config: With models by their names on the page, or by their folders.
        place: Of a model's name its folder, as far as that is known: it tells the commit.
    """
    values: dict[str, Any] = copy.deepcopy(dict(config))
    _name_by_id(values, place)
    return values


def _name_by_id(value: Any, place: Callable[[str], str]) -> None:
    for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(child, dict | list):
            _name_by_id(child, place)
        elif key in MODELS and isinstance(child, str):
            value[key] = hub.pinned(place(child)) or child.removeprefix(HUB_PREFIX)


def _in_place(config: Mapping[str, Any]) -> list[str]:
    """What has to be written in place of names that only the page knows."""
    names = models_in(config)
    runs = [name for name in names if name.startswith(RUN_PREFIX)]
    folders = [name for name in names if name.startswith((FOLDER_PREFIX, ELSEWHERE))]
    parts = []
    if runs:
        key = "In place of {0} write the folder of that model; its run offers it as a download."
        parts.append(ours(key, listed(runs)))
    if folders:
        key = (
            "In place of {0} write the path of the folder that was opened; the page does not tell "
            "where it lies."
        )
        parts.append(ours(key, listed(folders)))
    for name in (name for name in names if name.startswith(HUB_PREFIX)):
        key = (
            "In place of {0} write the folder of its vocabulary; hf download {1} fetches it and "
            "says where it lies."
        )
        parts.append(ours(key, name, name.removeprefix(HUB_PREFIX)))
    return parts
