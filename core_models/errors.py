"""Errors whose message is meant for people.

The command line prints them and the page shows them word for word, so every message names the
value that was refused, what is allowed, and what to do next. Any other exception is a defect of
ours and is never shown.
"""

import errno
import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 2_000
"""Characters of a message: what a file names itself by may be as long as the file."""


class InputError(ValueError):
    """A value from outside (text, file, name, configuration) that cannot be used.

    Args:
        message: for people; of one that is too long, beginning and end are kept.
    """

    def __init__(self, message: str = "") -> None:
        half = MOST // 2
        super().__init__(
            message if len(message) <= MOST else f"{message[:half]} … {message[-half:]}"
        )


def listed(values: object, name: str) -> list[Any]:
    """Values as a list; InputError for a text, or for what is none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, not {type(values).__name__}.")
    try:
        return list(values)
    except TypeError:  # a tensor or an array that is a single number
        raise InputError(f"{name} must be a list, not a single number.") from None


def listed_of(kind: type[T], values: object, name: str) -> list[T]:
    """The same of values of one kind; InputError names the first that is of another."""
    found = listed(values, name)
    for number, value in enumerate(found, start=1):
        if not isinstance(value, kind):
            raise InputError(
                f"{name} must hold {kind.__name__}s; the one at place {number} is "
                f"{type(value).__name__}."
            )
    return found


def by_position(values: object, name: str) -> dict[Any, Any]:
    """Pieces by position as a dictionary; InputError for what says none."""
    if not isinstance(values, Mapping):
        raise InputError(
            f"{name} must give a piece for each position, not be {type(values).__name__}."
        )
    return dict(values)


def not_json(error: Exception) -> str:
    """Why a text is no JSON; what Python says of long numbers and deep nesting is for programs."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return str(error)
    return "a number has thousands of digits"


def refused(error: OSError) -> str:
    """What the system refused, in words for the command line; any other defect is raised again."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = "" if error.filename is None else f": no room for {error.filename}"
        return f"The disk is full{where}; make room and ask again."
    if error.filename is None and error.errno in (errno.EIO, errno.EFBIG, errno.ESTALE):
        return f"The disk refuses what is written ({error.strerror}); give a path on another one."
    if error.filename is None or error.strerror is None:
        raise error
    return f"{error.filename}: {error.strerror}; give another path, or make room for this one."


def let_go() -> None:
    """After output that failed: Python flushes it once more at exit, and would complain there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
