"""What bombs have in common."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

GIGABYTE = 2**30


class Bomb(NamedTuple):
    """A file or a folder that should do no harm."""

    kind: str
    """What reads it (``tests/bombs/reading.py``)."""
    make: Callable[[Path], None]
    """Changes a folder of that kind; the first line of its docstring says how."""


def sparse(path: Path, size: int, head: bytes = b"") -> None:
    """A file of ``size`` bytes of which only the first take room; the others are zero."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def endless(path: Path) -> None:
    """A name for the device that never stops to give zeros."""
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    """A pipe that nobody writes into: who opens it waits."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
