"""Translations of the page: English texts are the keys.

Each room and each lab of the page has its words beside it, in ``zh.json`` for Chinese. A key holds
``{0}``, ``{1}``, ... where the page or a message of Python puts a value.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from core_models import InputError
from viz.svg import VALUE, Wording

APP = Path(__file__).resolve().parents[1]


def files(language: str) -> list[Path]:
    """The files with the words of a language."""
    return sorted(APP.rglob(f"{language}.json"))


def languages() -> list[str]:
    """Languages beside English, for example ``zh``."""
    return sorted({path.stem for path in APP.rglob("*.json")})


def catalogue(language: str) -> dict[str, str]:
    """Every translation into a language; InputError where two files disagree about a key."""
    merged: dict[str, str] = {}
    for path in files(language):
        for key, text in json.loads(path.read_text("utf-8")).items():
            if merged.setdefault(key, text) != text:
                name = path.relative_to(APP)
                raise InputError(f"{name}: “{key}” is translated otherwise in another file.")
    return merged


def script(language: str) -> str:
    """The catalogue as a script for the browser."""
    return f"window.ClozeCatalogue = {json.dumps(catalogue(language), ensure_ascii=False)};\n"


def spoken(text: str, language: str) -> str:
    """A text in a language of the page: a `Wording` translated, any other text as it is."""
    if not isinstance(text, Wording):
        return text
    values = [spoken(value, language) for value in text.values]
    key = _words(language).get(text.key, text.key)
    return VALUE.sub(lambda found: values[int(found[1])], key)


@cache
def _words(language: str) -> Mapping[str, str]:
    return catalogue(language) if language in languages() else {}
