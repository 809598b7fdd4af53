"""transformers, one thread at a time: building and loading of its models is not safe in threads."""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core_models.errors import InputError

_LOCK = threading.RLock()


@contextmanager
def transformers() -> Iterator[Any]:
    """The library, imported on first use, quiet, and for this thread alone.

    Raises:
        InputError: it is not installed.
    """
    with _LOCK:
        try:
            library: Any = importlib.import_module("transformers")
        except ImportError:
            raise InputError(
                "Models of this type need the package transformers, which is not installed: "
                "pip install transformers."
            ) from None
        logging = library.utils.logging
        level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity(logging.CRITICAL)
        logging.disable_progress_bar()
        try:
            yield library
        finally:
            logging.set_verbosity(level)
            if bar:
                logging.enable_progress_bar()
