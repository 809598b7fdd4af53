"""How long spans are: the law that pretraining draws from, and draws on a text. No weights."""

from collections.abc import Sequence
from functools import lru_cache

import plotly.graph_objects as go
import torch

from app.labs.spans.answers import LONGEST, Cut, describe
from core_models.masking import spans as span_masking
from core_models.prediction.spans import Span
from viz.spans import lengths
from viz.svg import Wording

RATE = 0.15
_DRAWN_PIECES = 6_000


def law(sentence: Cut, found: Sequence[Span]) -> go.Figure:
    """The law of lengths beside draws on this text; marks stand for what is hidden above."""
    shares = span_masking.geometric(longest=LONGEST)
    now = [min(describe(sentence, span).words, LONGEST) for span in found]
    drawn, draws, drawn_words = _drawn_lengths(_words(sentence))
    all_drawn = sum(drawn) or 1
    means = [
        sum(n * share for n, share in enumerate(shares, 1)),
        drawn_words / all_drawn if any(drawn) else None,  # a text of gaps alone
    ]
    names = Wording("the law"), Wording("draws on this text")
    return lengths(
        {names[0]: list(shares), names[1]: [count / all_drawn for count in drawn]},
        last=f"{LONGEST}+",
        title=Wording(
            "Mean length: {0} words by the law, {1} in {2} draws of 15 % of this text.",
            *("\N{EN DASH}" if mean is None else f"{mean:.2f}" for mean in means),
            draws,
        ),
        means=dict(zip(names, means, strict=True)),
        hidden=[now.count(length) for length in range(1, LONGEST + 1)],
    )


def _words(sentence: Cut) -> tuple[int, ...]:
    """The word of each piece that may be hidden, -1 for the others: a gap is hidden already."""
    return tuple(
        -1 if token.special or token.masked or token.word is None else token.word
        for token in sentence.tokens
    )


@lru_cache(maxsize=64)
def _drawn_lengths(words: tuple[int, ...]) -> tuple[list[int], int, int]:
    """Counts of the lengths 1 to 10 (and more) in words over draws of a text; draws, all words."""
    draws = max(8, min(200, _DRAWN_PIECES // len(words)))
    groups = torch.tensor(words).expand(draws, -1)
    masked = span_masking.spans(
        torch.zeros_like(groups),
        groups >= 0,
        groups,
        generator=torch.Generator().manual_seed(0),
        mask_id=1,
        vocabulary=2,
        rate=RATE,
    )
    counts = [0] * LONGEST
    found = [len(set(words[start:stop])) for _, start, stop in masked.spans.tolist()]
    for length in found:
        counts[min(LONGEST, length) - 1] += 1
    return counts, draws, sum(found)


def draw(sentence: Cut, seed: int) -> list[tuple[int, int]]:
    """Spans of characters hidden as in pretraining: 15 % of the pieces, in runs of whole words."""
    words = torch.tensor(_words(sentence))
    masked = span_masking.spans(
        torch.zeros_like(words),
        words >= 0,
        words,
        generator=torch.Generator().manual_seed(seed),
        mask_id=1,
        vocabulary=2,
        rate=RATE,
    )
    tokens = sentence.tokens
    return [(tokens[a].start, tokens[b - 1].end) for _, a, b in masked.spans.tolist()]
