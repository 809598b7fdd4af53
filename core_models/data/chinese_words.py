"""Words of Chinese text, which has no blanks: for masking whole words (arXiv 1906.08101).

The released Chinese whole-word models were made with the segmenter of LTP; here it is jieba, an
optional library (``pip install jieba``), whose dictionary lies on the disk after installation.
"""

import importlib
import logging
from collections.abc import Callable
from functools import cache

from core_models.errors import InputError

Segmenter = Callable[[str], frozenset[int]]
"""Characters of a text at which a word begins."""


@cache
def segmenter() -> Segmenter:
    """The segmenter, made once; its dictionary takes a second to load.

    Raises:
        InputError: jieba is not installed.
    """
    try:
        jieba = importlib.import_module("jieba")
    except ImportError:
        raise InputError(
            "Words of Chinese text need the library jieba: pip install jieba. Without it every "
            "character is a word (data.chinese_words false)."
        ) from None
    jieba.setLogLevel(logging.ERROR)
    own = jieba.Tokenizer()

    def begins(text: str) -> frozenset[int]:
        return frozenset(start for _, start, _ in own.tokenize(text))

    return begins
