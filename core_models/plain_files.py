"""Opening files that somebody else made: ordinary ones alone, and no larger than they may be.

And what the system refuses to the writers of libraries, as an error of the system.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from core_models.errors import InputError

MOST_JSON = 20_000_000
"""Bytes of a file of settings or figures."""
_SUSPICIOUS = 100
"""Times the size of a packed file that no text unpacks to: they shrink to a quarter or a tenth."""
_HARMLESS = 8 << 20
"""Bytes that a packed file may hold in any case."""
_SYSTEM = re.compile(r"\(os error (\d+)\)")
"""How a library in Rust tells the system's number of an error."""


def check(path: Path, most: int | None = None) -> int:
    """The size of a file, in bytes.

    Args:
        path: of a file, or a link to one.
        most: bytes that it may have; None = any number.

    Raises:
        InputError: it is a pipe or a device, which would never end, or a folder; or too large.
        OSError: it is not there, or cannot be looked at.
    """
    return _checked(path, path.stat(), most)


def opened(path: Path, most: int | None = None) -> BinaryIO:
    """A file for reading; errors as in :func:`check`.

    A pipe is not waited for, and what is looked at is what is read, also where names change.
    """
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        _checked(path, os.fstat(descriptor), most)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read(path: Path, most: int = MOST_JSON) -> bytes:
    """The content of a file; errors as in :func:`check`."""
    with opened(path, most) as file:
        return file.read(most)


@contextlib.contextmanager
def written(path: Path | str) -> Iterator[None]:
    """OSError with the name of a file for what the system refuses to the writer of safetensors.

    That writer has one exception for all of it, whose text has the system's number.
    """
    try:
        yield
    except Exception as error:
        given = _SYSTEM.search(str(error))
        if given is None or isinstance(error, OSError):
            raise
        number = int(given[1])
        raise OSError(number, os.strerror(number), str(path)) from error


def allowed(path: Path) -> int:
    """Bytes that a packed file of texts may hold."""
    return max(_HARMLESS, _SUSPICIOUS * path.stat().st_size)


def unpacks(name: str) -> InputError:
    """What is said of a packed file that holds too much."""
    return InputError(
        f"{name} unpacks to more than {_SUSPICIOUS} times its size, as no text does; unpack it "
        "and look at what it holds."
    )


def _checked(path: Path, found: os.stat_result, most: int | None) -> int:
    if not stat.S_ISREG(found.st_mode):
        raise InputError(
            f"{path.name} cannot be read: it is a folder, a pipe or a device, no ordinary file."
        )
    if most is not None and found.st_size > most:
        raise InputError(f"{path.name} has {found.st_size:,} bytes; at most {most:,} fit.")
    return found.st_size
