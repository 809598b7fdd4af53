"""A question and its context, which is cut into windows that overlap (arXiv 1810.04805)."""

from dataclasses import dataclass

from core_models.errors import InputError
from core_models.tasks.rows import Row
from core_models.tokenizer import Encoding, Tokenizer
from core_models.tokenizer.files import FIRST, SECOND

_LONGEST_QUESTION = 64
"""Pieces; what is longer is cut (released ``run_squad.py``)."""
_WHOLE = 10**9
"""No limit of length."""


@dataclass(frozen=True)
class Read:
    """Both texts as pieces, not cut yet, and where to cut."""

    whole: Encoding
    context: range
    """Places of its pieces."""
    always: tuple[int, ...]
    """Places that every window holds: the question and the special pieces."""
    windows: list[range]
    """Places of the context in each."""


def read(row: Row, tokenizer: Tokenizer, max_length: int, stride: int) -> Read:
    """Where the windows of a row lie.

    The context comes second, but first in the family whose [CLS] is last (XLNet's released code),
    so that it is always the text that is further from [CLS].

    Args:
        row: with the context as ``text`` and the question as ``pair``.
        tokenizer: of the model.
        max_length: most pieces of one window, question and special pieces included.
        stride: by how many pieces the next window starts later.

    Raises:
        InputError: there is no question, or it leaves no room.
    """
    if row.pair is None:
        raise InputError("There is no question; write one.")
    context_first = tokenizer.template.pad_left
    texts = (row.text, row.pair) if context_first else (row.pair, row.text)
    whole = tokenizer.encode(*texts, max_length=_WHOLE)
    alone = tokenizer.encode(texts[0], max_length=_WHOLE)
    size = len(alone) - tokenizer.template.extra(pair=False)
    first, second = _sides(whole, tokenizer, size)
    question, context = (second, first) if context_first else (first, second)
    question = question[:_LONGEST_QUESTION]
    room = max_length - tokenizer.template.extra(pair=True) - len(question)
    if room < 1:
        raise InputError(
            f"The question leaves no room for the text in {max_length} pieces; raise max_length."
        )
    fixed = [i for i in range(len(whole)) if i not in first and i not in second]
    windows = []
    # A stride beyond the room would leave pieces between two windows that nobody reads.
    for begin in range(0, len(context), min(stride, room)):
        windows.append(context[begin : begin + room])
        if begin + room >= len(context):
            break
    return Read(whole, context, (*fixed, *question), windows)


def _sides(encoding: Encoding, tokenizer: Tokenizer, first: int) -> tuple[range, range]:
    """Places of the pieces of the first text, ``first`` of them, and of the second of a pair."""
    second = len(encoding) - tokenizer.template.extra(pair=True) - first
    ranges = {}
    place = 0
    for slot in tokenizer.template.pair:
        size = {FIRST: first, SECOND: second}.get(slot.content, 1)
        ranges[slot.content] = range(place, place + size)
        place += size
    assert place == len(encoding)
    return ranges[FIRST], ranges[SECOND]
