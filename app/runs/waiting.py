"""Which runs wait for a place: a file in each one's folder with the time of the request."""

import contextlib
import time
from pathlib import Path

from core_models import InputError, plain_files
from core_models.training import durable
from core_models.training.folder import RunFolder

_QUEUE = "queue"


def ids(root: Path) -> list[str]:
    """Runs of a folder that wait, the next one first."""
    return [path.parent.name for path in sorted(root.glob(f"*/{_QUEUE}"), key=_asked)]


def waits(path: Path) -> bool:
    """Whether a run waits."""
    return (path / _QUEUE).exists()


def join(path: Path) -> None:
    """Put a run behind those that wait, also where the clock was set back since."""
    last = max(map(_asked, path.parent.glob(f"*/{_QUEUE}")), default=0.0)
    durable.write_text(path / _QUEUE, repr(max(time.time(), last + 0.001)))


def leave(path: Path) -> None:
    """Take a run out of the queue."""
    (path / _QUEUE).unlink(missing_ok=True)


def refuse(folder: RunFolder, error: InputError | PermissionError) -> str:
    """End the wait of a run that cannot be started, which holds up all others; the reason."""
    reason = str(error)
    if isinstance(error, PermissionError):  # its text has a path of this machine
        reason = f"This run cannot be started: {error.strerror}."
    with contextlib.suppress(OSError):
        leave(folder.path)
        folder.write_status(folder.status() | {"state": "failed", "reason": reason})
    return reason


def _asked(path: Path) -> float:
    try:
        return float(plain_files.read(path, 100))
    except (OSError, ValueError):
        return 0.0
