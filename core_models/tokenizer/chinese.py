"""How much of a vocabulary is Chinese, by which the language of its model is told."""

import re
from collections.abc import Collection

from tokenizers import decoders

from core_models.tokenizer.encoding import MARKERS

_HAN = re.compile("[\u3400-\u9fff]")


def chinese_share(pieces: Collection[str], *, byte_level: bool) -> float:
    """Share of pieces that hold a Chinese character; 0 where there is no piece.

    Args:
        pieces: of a vocabulary, as it writes them.
        byte_level: whether they are signs for bytes. What these spell counts; parts of a character
            are none.
    """
    found = [piece for piece in pieces if not piece.isascii()]
    if byte_level:
        spell, blank = decoders.ByteLevel(), MARKERS["byte_bpe"].word
        # Most pieces of most vocabularies are a blank and a word of ASCII: they are not spelled.
        found = [spell.decode([p]) for p in found if not p.removeprefix(blank).isascii()]
    return sum(bool(_HAN.search(piece)) for piece in found) / max(len(pieces), 1)
