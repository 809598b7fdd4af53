"""Runs whose files a hand or a disk has changed: told as damaged, at no cost to the others."""

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from core_models import InputError

ODD = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError)
"""What values of other types than a run writes come to."""
_LOG = logging.getLogger("cloze.train")
_SAID: set[tuple[str, str]] = set()
_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")
_Own = TypeVar("_Own")


class DamagedError(InputError):
    """The files of a run hold what no run writes, or cannot be read."""


@contextlib.contextmanager
def readable(run: str) -> Iterator[None]:
    """DamagedError for what fails at the files of a run; what it was stands in the log."""
    try:
        yield
    except (InputError, FileNotFoundError):
        raise
    except OSError as error:  # another user's, or of a disk that is broken
        _log(run, error)
        raise DamagedError(
            f"Files in the folder of the run “{run}” cannot be read: {error.strerror}. Let the "
            "user of this server read them, put a copy of the folder there, or remove it."
        ) from error
    except ODD as error:
        _log(run, error)
        raise DamagedError(
            f"Files in the folder of the run “{run}” are damaged: they hold what no run writes. "
            "Put a copy of the folder there, or remove it."
        ) from error


def _log(run: str, error: Exception) -> None:
    if (run, repr(error)) not in _SAID:  # pages ask for the list all the time
        _SAID.add((run, repr(error)))
        _LOG.warning("files of the run %s", run, exc_info=True)


def guarded(
    look: Callable[Concatenate[_Own, str, _Asked], _Found],
) -> Callable[Concatenate[_Own, str, _Asked], _Found]:
    """A method about a run that fails as :func:`readable` does."""

    @functools.wraps(look)
    def looked(own: _Own, run: str, *args: _Asked.args, **options: _Asked.kwargs) -> _Found:
        with readable(run):
            return look(own, run, *args, **options)

    return looked


def in_short(run: str, reason: str) -> dict[str, Any]:
    """What stands in the list in the place of a damaged run."""
    unknown = ("place", "wait_seconds", "parameters", "main", "validation", "seconds_left")
    return dict.fromkeys((*unknown, "updated", "silent_seconds")) | {
        "id": run,
        "kind": "pretraining",
        "name": run,
        "state": "failed",
        "reason": reason,
        "model": {"family": None, "layers": None, "width": None, "from": None, "race": 0},
        "step": 0,
        "steps": 0,
        "last": {},
    }
