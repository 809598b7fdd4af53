"""Which word of a sentence looks at which in a model, measured in one forward pass."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

import core_models as cm
from app.labs.mask.scene import words_of
from app.serving.passes import check_maps
from core_models.prediction.passes import KINDS, head_name, hidden_at, seen_with
from core_models.tokenizer import Encoding

MOST_WORDS = 12
"""Most words of a picture; a longer sentence is cut to those around the gap."""


def sight(model: cm.Model, text: str, gap: Sequence[int], hidden: Sequence[int]) -> dict[str, Any]:
    """Who looks at whom while the model predicts a gap.

    Args:
        model: one that predicts pieces.
        text: the sentence in the model's spelling.
        gap: positions of the gap.
        hidden: positions of the other gaps.

    Returns:
        ``words`` (numbers among all words of the text), ``cut`` (whether words are left out before
        and after them), ``names`` [W], ``seen`` [W][W] whether the
        row looks at the column in some head of some layer, ``gap`` (row of the gap), ``read``
        (row that the prediction is read from; None for what stands before the first word) and
        ``reads`` [W], whether the place that it is read from looks at the column.
    """
    tokenizer = model.tokenizer
    changes = dict.fromkeys([*gap, *hidden], tokenizer.mask_id)
    (given,) = model.encode([text])
    check_maps(model, len(given.ids))
    encoding = seen_with(given, changes)
    trace = cm.Trace(["probabilities"])
    hidden_at(model, [encoding], [(0, gap[0])], trace)
    seen = _looks(trace.stack("probabilities"))
    kind = KINDS[head_name(model)]
    if kind == "order":
        seen[gap[0]] = _looks(trace.stack("probabilities", stream="query"))[0]
    spans, at = words_of(text), _first(text, *encoding.offsets[gap[0]])
    # A piece may be blanks alone, which are no word by eye: hidden, it stands for itself.
    blank = not any(begin <= at < after for begin, after in spans)
    spans = sorted([*spans, (at, at + 1)]) if blank else spans
    places = _places(encoding, spans, gap)
    own = next(n for n, word in enumerate(spans) if word[0] <= at < word[1])
    first = max(0, min(own - MOST_WORDS // 2, len(spans) - MOST_WORDS))
    words = [n for n in range(first, min(first + MOST_WORDS, len(spans))) if places[n]]
    reader = gap[0] - 1 if kind == "causal" else gap[0]
    looking = [[gap[0]] if word == own else places[word] for word in words]
    rows = [[bool(seen[row][:, places[column]].any()) for column in words] for row in looking]
    read = next((row for row, word in enumerate(words) if reader in places[word]), None)
    names = [_name(text, spans[word], tokenizer.piece(tokenizer.mask_id)) for word in words]
    if blank:
        names[words.index(own)] = tokenizer.display(given.ids[gap[0]])
    return {
        "words": words,
        "cut": [words[:1] > [0], words[-1:] < [len(spans) - 1]],
        "names": names,
        "seen": rows,
        "gap": words.index(own),
        "read": read,
        "reads": [bool(seen[reader, places[column]].any()) for column in words],
    }


def _looks(maps: Tensor) -> Tensor:
    """Bool [Q, K] from probabilities [steps, 1, H, Q, K]."""
    return maps[:, 0].amax(dim=(0, 1)) > 0


def _places(
    encoding: Encoding, spans: Sequence[tuple[int, int]], gap: Sequence[int]
) -> list[list[int]]:
    """Positions of the pieces of each word; all pieces of the gap belong to its word."""
    places: list[list[int]] = [[] for _ in spans]
    for position, (start, end) in enumerate(encoding.offsets):
        if encoding.special[position]:
            continue
        if position in gap:
            start, end = encoding.offsets[gap[0]]
        first = _first(encoding.text, start, end)
        for number, (begin, after) in enumerate(spans):
            if begin <= first < after:
                places[number].append(position)
    return places


def _name(text: str, span: tuple[int, int], mask: str) -> str:
    """A word of the text; [MASK] is three words by eye, and only the first has a piece."""
    start, end = span
    return mask if text.startswith(mask, start) else text[start:end]


def _first(text: str, start: int, end: int) -> int:
    """Where the letters of a piece begin: some vocabularies count the space before."""
    return start + len(text[start:end]) - len(text[start:end].lstrip())
