"""Which language a model reads, as far as measurements must know."""

from core_models.tokenizer import Tokenizer

_CHINESE = 0.2
"""Share of pieces with a Chinese character above which a vocabulary is Chinese."""


def language_of(tokenizer: Tokenizer) -> str:
    """``zh`` where a fifth of the pieces hold a Chinese character, else ``en``.

    Byte-level vocabularies show no characters and count as English.
    """
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]
    found = sum(any("\u4e00" <= c <= "\u9fff" for c in piece) for piece in pieces)
    return "zh" if found >= _CHINESE * len(pieces) else "en"
