"""Which language a model reads, as far as measurements must know."""

from core_models.tokenizer import Tokenizer
from core_models.tokenizer.chinese import chinese_share

_CHINESE = 0.2
"""Share of pieces with a Chinese character above which a vocabulary is Chinese."""


def language_of(tokenizer: Tokenizer) -> str:
    """``zh`` where a fifth of the pieces hold a Chinese character, else ``en``."""
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocabulary)]
    share = chinese_share(pieces, byte_level=tokenizer.kind == "byte_bpe")
    return "zh" if share >= _CHINESE else "en"
