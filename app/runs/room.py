"""A full disk, told in a sentence: what was there stays, and nothing is left half-written."""

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from core_models import InputError

FULL = (
    "The disk of this server is full, so nothing of this was kept. Make room, for example by "
    "deleting runs, and try again."
)
WAITS = "The disk of this server is full. The run waits in the queue and starts when there is room."
LEAST = 64 << 10
"""Bytes of a disk that is as good as full: not even a status can be written."""
_ERRORS = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException) -> bool:
    """Whether something failed for want of room."""
    return isinstance(error, OSError) and error.errno in _ERRORS


def free(path: Path) -> float:
    """Bytes that are free where a folder lies; no limit for one that is gone."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(path).free
    return float("inf")


@contextlib.contextmanager
def told(sentence: str = FULL) -> Iterator[None]:
    """InputError with this sentence where the disk is full; also for use as a decorator."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise InputError(sentence) from None
        raise


@contextlib.contextmanager
def whole(*paths: Path) -> Iterator[None]:
    """Files that are made together: what fails leaves none of them that was not there before."""
    made = [path for path in paths if not path.exists()]
    try:
        yield
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise
