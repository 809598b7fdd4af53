"""File operations of which one fails: errors of a full or a broken disk, and half a write."""

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

NAMES = ("fsync", "replace", "rename", "mkdir", "open", "unlink", "rmdir", "write")
ERRORS = (errno.ENOSPC, errno.EIO)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
SHORT = -1
"""In place of an error: half of what was to be written is, as on a disk that fills up."""


@dataclass
class Disk:
    """Counts the operations; the one with the number ``moment`` fails once."""

    moment: int
    error: int
    calls: int = 0
    failed: str | None = None
    """The operation that did."""

    def due(self, name: str) -> bool:
        """Whether this operation is the one that fails."""
        if self.failed is None:
            self.calls += 1
            if self.calls == self.moment:
                self.failed = name
                return True
        return False


@contextlib.contextmanager
def failing(moment: int, error: int, names: tuple[str, ...] = NAMES) -> Iterator[Disk]:
    """Let the n-th operation of this process on files fail, of these kinds; reading never does."""
    disk = Disk(moment, error)
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, _wrapped(name, getattr(os, name), disk))
        patch.setattr(io, "open", _opened(io.open, disk))
        yield disk


def _wrapped(name: str, real: Callable[..., Any], disk: Disk) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if name == "open" and not arguments[1] & WRITING:
            return real(*arguments, **options)
        if name == "write" and disk.error == SHORT and disk.due(name):
            target, content = arguments
            return real(target, content[: len(content) // 2])
        if disk.error != SHORT and disk.due(name):
            raise OSError(disk.error, os.strerror(disk.error), str(arguments[0]))
        return real(*arguments, **options)

    return call


def _opened(real: Callable[..., Any], disk: Disk) -> Callable[..., Any]:
    """``io.open``, by which paths are opened, of which writes and the close may fail."""

    def opened(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wax+") or disk.error == SHORT:
            return real(file, mode, *arguments, **options)
        if disk.due("open"):
            raise OSError(disk.error, os.strerror(disk.error), str(file))
        made = real(file, mode, *arguments, **options)
        write = made.write

        def written(content: Any) -> Any:
            if disk.due("write"):
                write(content[: len(content) // 2])
                made.flush()
                raise OSError(disk.error, os.strerror(disk.error), str(file))
            return write(content)

        with contextlib.suppress(AttributeError):  # a raw file has no room for it
            made.write = written
        return made

    return opened
