"""Translations of the page: English texts are the keys, one JSON file for each part of the page.

A key holds ``{0}``, ``{1}``, ... where the page or a message of Python puts a value.
"""

import json
from pathlib import Path

from core_models import InputError

LOCALES = Path(__file__).resolve().parent.parent / "assets" / "locales"


def languages() -> list[str]:
    """Languages beside English, for example ``zh``."""
    return sorted(path.name for path in LOCALES.iterdir() if path.is_dir())


def catalogue(language: str) -> dict[str, str]:
    """Every translation into a language; InputError where two files disagree about a key."""
    merged: dict[str, str] = {}
    for path in sorted((LOCALES / language).glob("*.json")):
        for key, text in json.loads(path.read_text("utf-8")).items():
            if merged.setdefault(key, text) != text:
                raise InputError(f"{path.name}: “{key}” is translated otherwise in another file.")
    return merged


def script(language: str) -> str:
    """The catalogue as a script for the browser."""
    return f"window.ClozeCatalogue = {json.dumps(catalogue(language), ensure_ascii=False)};\n"
