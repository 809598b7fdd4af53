"""Settings of a form for the command line. No Gradio in it.

What the page has sent, and models of its runs, have no names there.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.runs.names import BESIDE
from app.runs.words import listed, ours, sentences

RUN = "run/"
_TEXTS = ("name", "description", "columns")
"""Settings whose texts are no names of models."""


def file_name(name: Any, otherwise: str) -> str:
    """What the file with the settings is called, without its ending."""
    return re.sub(r"[^a-z0-9]+", "-", str(name or "").lower()).strip("-") or otherwise


def for_shell(config: Mapping[str, Any], sent: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings as they go into a file.

    Args:
        config: Of a form.
        sent: ``name``, and of a table ``column``, of what was sent: it will lie beside the file.
    """
    values: dict[str, Any] = copy.deepcopy(dict(config))
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
    models = list(dict.fromkeys(_runs(config)))
    columns = list(dict.fromkeys(each["column"] for each in sent if each.get("column")))
    parts = []
    if files:
        key = "Put this beside the file with the settings first: {0}"
        parts.append(ours(key, listed(files)))
    if columns[1:] and not task:
        key = "The command reads one column of all tables, {0}: rename {1}."
        parts.append(ours(key, columns[0], listed(columns[1:])))
    if models:
        key = "In place of {0} write the folder of that model; its run offers it as a download."
        parts.append(ours(key, listed(models)))
    return sentences(parts)


def _runs(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(RUN):
        yield value
    elif isinstance(value, Mapping):
        for key, child in value.items():
            if key not in _TEXTS:
                yield from _runs(child)
    elif isinstance(value, list):
        for child in value:
            yield from _runs(child)
