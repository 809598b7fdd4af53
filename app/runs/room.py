"""A disk that is full or takes nothing, told in a sentence.

What was there stays, and nothing is left half-written.
"""

import contextlib
import errno
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from core_models import InputError

_LOG = logging.getLogger("cloze.train")
FULL = (
    "The disk of this server is full, so nothing of this was kept. Make room, for example by "
    "deleting runs, and try again."
)
WAITS = "The disk of this server is full. The run waits in the queue and starts when there is room."
REFUSES = (
    "The disk of this server refuses to write ({}), so nothing of this was kept. Whoever runs the "
    "server makes its folder of runs one that can be written, or names another with CLOZE_RUNS; "
    "then try again."
)
LEAST = 64 << 10
"""Bytes of a disk that is as good as full: not even a status can be written."""
_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE)


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
    """InputError where the disk refuses to write; also for use as a decorator.

    Args:
        sentence: where it is full.
    """
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise InputError(sentence) from None
        if error.errno in _REFUSED:
            _LOG.warning("the disk refuses to write", exc_info=True)
            raise InputError(REFUSES.format(error.strerror)) from None
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
