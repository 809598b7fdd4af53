"""The finished runs that a new runs folder begins with: a page has something to scrub at once."""

import re
import shutil
import time
from pathlib import Path

from core_models.errors import InputError
from core_models.training import durable

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "runs"
_SEEN = ".shipped"
"""Names that were put into a runs folder; one that its keeper deletes does not come back."""
_PATIENCE = 60.0
"""Seconds that another server may take, which starts on the same folder."""


def install(root: Path) -> None:
    """Copy the shipped runs that this folder has not had yet.

    Raises:
        InputError: the folder cannot be written.
    """
    if not SHIPPED.is_dir():
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + _PATIENCE
        while unseen := _unseen(root):
            with durable.exclusive(root / ".lock") as alone:
                if alone:
                    _copy(root)
                    return
            if time.monotonic() > ends:
                raise InputError(
                    f"Another server has not put {', '.join(each.name for each in unseen)} into "
                    f"the folder of runs {root} in {_PATIENCE:g} s. Start this one again."
                )
            time.sleep(0.05)
    except OSError as error:
        # What fails within a folder is told as a list of sources, copies and reasons.
        reason = error.args[0][0][-1] if isinstance(error, shutil.Error) else error.strerror
        reason = re.sub(r"^\[Errno \d+\] ([^:]+).*", r"\1", str(reason))
        raise InputError(
            f"The folder of runs {root} cannot be written: {reason}. Make room or let this user "
            "write there, or name another folder with CLOZE_RUNS."
        ) from None


def _unseen(root: Path) -> list[Path]:
    """The shipped runs that were not put there yet; the first by name is made last.

    So the page begins with the newest.
    """
    seen = _noted(root)
    folders = (path for path in SHIPPED.iterdir() if path.is_dir() and path.name not in seen)
    return sorted(folders, reverse=True)


def _noted(root: Path) -> list[str]:
    note = root / _SEEN
    return note.read_text("utf-8", "replace").split() if note.exists() else []


def _copy(root: Path) -> None:
    for source in _unseen(root):
        if not (root / source.name).exists():
            aside = root / f".{source.name}{durable.ASIDE}"
            shutil.rmtree(aside, ignore_errors=True)
            try:
                shutil.copytree(source, aside, copy_function=shutil.copyfile)
                aside.rename(root / source.name)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        durable.write_text(root / _SEEN, "\n".join([*_noted(root), source.name]) + "\n")
