"""Where words begin among the pieces of a text, and how text of a corpus is read."""

import json
import re
from collections.abc import Sequence

import numpy as np
import tokenizers
from numpy.typing import NDArray

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]")
"""Characters that BERT's tokenizer parts (google-research/bert, _is_chinese_char)."""


def word_starts(groups: Sequence[int | None], marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each piece starts a word [n].

    Args:
        groups: Word of each piece, as the ``tokenizers`` library counts them.
        marks: Pieces that are words of their own whatever stands beside them [n].
    """
    starts = np.ones(len(groups), dtype=np.bool_)
    numbers = np.array([-1 if group is None else group for group in groups], dtype=np.int32)
    starts[1:] = (numbers[1:] != numbers[:-1]) | marks[1:] | marks[:-1]
    return starts


def part_chinese(starts: NDArray[np.bool_], text: str, offsets: Sequence[tuple[int, int]]) -> None:
    """Let a word begin at every Chinese character that begins a piece, and behind it, in place.

    Byte-level and unigram vocabularies take all that stands between two blanks for a word, which
    in Chinese is a clause. A piece of several characters stays whole, and so does a character of
    several pieces.

    Args:
        starts: Whether each piece starts a word [n].
        text: What the pieces were cut from.
        offsets: First character of each piece, and the one behind its last.
    """
    if not _CHINESE.search(text):
        return
    end, chinese = 0, False
    for place, (at, stop) in enumerate(offsets):
        if at >= end and (chinese or _CHINESE.match(text, at)):
            starts[place] = True
        end, chinese = stop, stop > 0 and _CHINESE.match(text, stop - 1) is not None


def join_chinese(
    starts: NDArray[np.bool_],
    text: str,
    offsets: Sequence[tuple[int, int]],
    begins: frozenset[int],
) -> None:
    """Let Chinese characters that begin no word belong to the word before them, in place.

    Args:
        starts: Whether each piece starts a word [n].
        text: What the pieces were cut from.
        offsets: First and last character of each piece.
        begins: Characters at which words begin.
    """
    for place, (at, _) in enumerate(offsets):
        if place and starts[place] and "\u4e00" <= text[at : at + 1] <= "\u9fff":
            starts[place] = at in begins


def begins_chinese(text: str) -> bool:
    """Whether a text begins with a Chinese character, before which no blank stands."""
    return _CHINESE.match(text) is not None


def is_mark(piece: str) -> bool:
    """Whether a piece is punctuation or another sign, without letter or digit."""
    bare = piece.replace("\u2581", "")
    return bool(bare) and not any(character.isalnum() for character in bare)


def blind_to_specials(definition: str) -> tokenizers.Tokenizer:
    """The same vocabulary, to which "[SEP]" written in a text is text like any other.

    A corpus may write about [MASK] or hold the marks of another program. Released code never makes
    special pieces of it: BERT's parts the brackets, and SentencePiece does not match its control
    symbols.

    Args:
        definition: The content of tokenizer.json.
    """
    parsed = json.loads(definition)
    special = {token["content"] for token in parsed["added_tokens"] if token["special"]}
    parsed["added_tokens"] = [t for t in parsed["added_tokens"] if not t["special"]]
    parsed["post_processor"] = None
    if parsed["model"]["type"] == "Unigram":
        # This model finds any piece of its list in a text, but none with a blank: blanks are
        # written as "\u2581" before.
        parsed["model"]["vocab"] = [
            [f" {piece}" if piece in special else piece, score]
            for piece, score in parsed["model"]["vocab"]
        ]
    return tokenizers.Tokenizer.from_str(json.dumps(parsed))
