"""Which language a text is written in, by its letters, and which shipped model reads it."""

import re

from app.serving.session import Session
from core_models.evaluation.language import language_of

READERS = {"en": "bert-mini", "zh": "bert-mini-chinese"}
"""The model that a page in a language opens with and that is offered for its texts."""
_CHINESE = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_LETTERS = 4
"""Latin letters that count as much as one Chinese character, which is about a word."""


def script_of(text: str) -> str | None:
    """``zh``, ``en`` for Latin letters of any language, or None for other scripts and signs."""
    chinese, latin = len(_CHINESE.findall(text)), len(_LATIN.findall(text))
    if not chinese and not latin:
        return None
    return "zh" if chinese * _LETTERS > latin else "en"


def reader_of(session: Session, language: str) -> str | None:
    """The model that is offered for a language; None where none fills gaps in it."""
    able = [info.name for info in session.models() if "masked_token" in info.heads]
    able.sort(key=lambda name: name != READERS.get(language))
    readers = (name for name in able if language_of(session.model(name).tokenizer) == language)
    return next(readers, None)
