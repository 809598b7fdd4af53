"""Lines of JSON that somebody else made: nothing in them is lost without a word."""

import json
from collections.abc import Sequence
from typing import Any

from core_models.errors import InputError


def read_line(line: str, where: str) -> Any:
    """The value of a line; of an object, each name may be there once.

    Args:
        line: JSON.
        where: its place, for the message.

    Raises:
        InputError: an object names a value twice, of which JSON's readers keep the last.
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """

    def unique(fields: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(fields)
        if len(found) < len(fields):
            names = [name for name, _ in fields]
            doubled = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"{where}: it names {doubled!r} twice; give each value a name of its own."
            )
        return found

    return json.loads(line, object_pairs_hook=unique)


def refuse_objects(first: str, name: str) -> None:
    """InputError for a table of cells whose first line is an object of JSON: it names no columns.

    It would be read all the same, each line cut at its commas.
    """
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        raise InputError(
            f"{name} holds an object of JSON on each line; call it .jsonl, or begin it with a line "
            "of column names."
        )
