"""Where a model is written before it takes an earlier one's place; one writer at a time."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: two writers in one folder are then not kept apart.
    fcntl = None  # type: ignore[assignment]

ASIDE = ".saving"
"""How the folder begins in which a new model is written."""
LOCK = ".saver.lock"
"""File in a folder that is there while somebody writes into it."""


@contextmanager
def aside_of(folder: Path) -> Iterator[Path]:
    """A new folder in a folder, which is made where it is missing; it is gone after the block.

    Of several who write into one folder, threads or processes, each waits for the one before. What
    a killed one left goes first.
    """
    fresh = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _aside(folder) as aside:
            yield aside
    except BaseException:
        if fresh:  # nothing of it is left: it is empty, or somebody else has filled it
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    with alone(folder):
        for left in folder.glob(f"{ASIDE}*"):
            shutil.rmtree(left, ignore_errors=True)  # nobody else writes now
        aside = folder / f"{ASIDE}-{secrets.token_hex(4)}"
        aside.mkdir()
        try:
            yield aside
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until nobody else has a folder, and keep others waiting until the block ends.

    The folder is there. The lock of a writer that was killed ends with it. A file system that
    knows no locks keeps nobody apart.
    """
    if fcntl is None:
        yield
        return
    path = folder / LOCK
    file = _taken(path)
    try:
        yield
    finally:
        with suppress(OSError):  # before others get it: who has waited for it looks
            os.unlink(path)
        with suppress(OSError):  # to close is not enough: a child forked meanwhile has it open, too
            fcntl.flock(file, fcntl.LOCK_UN)
        file.close()


def _taken(path: Path) -> IO[str]:
    """The locked file of this name."""
    while True:
        file = path.open("a")
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # who held it before has taken it away
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()
