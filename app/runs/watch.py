"""The watch over the queue of runs: a loop that no error ends."""

import logging
import threading
from collections.abc import Callable

from core_models import InputError

_LOG = logging.getLogger(__name__)


def keep_looking(look: Callable[[], None], closed: threading.Event, seconds: float) -> None:
    """Call ``look`` again and again, ``seconds`` apart, until ``closed`` is set."""
    while not closed.wait(seconds):
        try:
            look()
        except (InputError, OSError):
            pass  # a disk that is full for a moment, or a run deleted by hand
        except Exception:
            # Whatever it was: without the watch nothing that waits would ever start.
            _LOG.exception("A look at the queue failed")
