"""The finished runs that a new runs folder begins with: a page has something to scrub at once."""

import shutil
from pathlib import Path

from core_models.errors import InputError
from core_models.training import durable

SHIPPED = Path(__file__).resolve().parents[2] / "assets" / "runs"
_SEEN = ".shipped"
"""Names that were put into a runs folder; one that its keeper deletes does not come back."""


def install(root: Path) -> None:
    """Copy the shipped runs that this folder has not had yet.

    Raises:
        InputError: the folder cannot be written.
    """
    if not SHIPPED.is_dir():
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        note = root / _SEEN
        seen = note.read_text(encoding="utf-8").split() if note.exists() else []
        # The first by name is made last: the page begins with the newest.
        for source in sorted((p for p in SHIPPED.iterdir() if p.is_dir()), reverse=True):
            if source.name in seen:
                continue
            if not (root / source.name).exists():
                aside = root / f".{source.name}{durable.ASIDE}"
                shutil.rmtree(aside, ignore_errors=True)
                try:
                    shutil.copytree(source, aside, copy_function=shutil.copyfile)
                    aside.rename(root / source.name)
                finally:
                    shutil.rmtree(aside, ignore_errors=True)
            seen.append(source.name)
            durable.write_text(note, "\n".join(seen) + "\n")
    except OSError as error:
        message = f"The folder of runs {root} cannot be written: {error.strerror}."
        raise InputError(message) from None
