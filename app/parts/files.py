"""Files that the tabs hand out: their kinds, and the answer that carries one to the browser."""

from collections.abc import Mapping
from typing import Any

from app.serving.ask import read_revision
from core_models import InputError

FILE_TYPES = {"svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}


def read_file_kind(value: Any) -> str:
    """``svg`` or ``csv``.

    Raises:
        InputError: it is anything else.
    """
    if not isinstance(value, str) or value not in FILE_TYPES:
        raise InputError(f"The kind of file is {str(value)[:40]!r}; it must be svg or csv.")
    return value


def file_answer(question: Mapping[str, Any], name: str, kind: str, text: str) -> dict[str, Any]:
    """The answer to ``question`` that makes the browser save ``text`` as NAME.KIND."""
    return {
        "rev": read_revision(question),
        "error": None,
        "kind": "file",
        "name": f"{name}.{kind}",
        "type": FILE_TYPES[kind],
        "text": text,
    }
