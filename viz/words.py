"""Plain words for numbers: the sentence under a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from viz.attention import strongest, without_special
from viz.check import something
from viz.encoding import Weights
from viz.svg import Wording

PATTERNS = {
    "itself": Wording("Each token mostly looks at itself"),
    "previous": Wording("Each token mostly looks one token back"),
    "next": Wording("Each token mostly looks one token ahead"),
}
CLEAR_SHARE = 0.4
"""A pattern is named when it holds at least this share of the attention."""


def percent(weight: float) -> str:
    """A share in [0, 1] as people read it: "41 %", "3.2 %", "0.04 %", with a no-break space.

    Only a share that rounds to 100.0 % is called 100 %. What is no number is a dash.
    """
    value = weight * 100
    if math.isnan(value):
        return "\N{EN DASH}"
    if value >= 99.95:
        text = "100"
    elif value >= 99.5:
        text = f"{min(value, 99.9):.1f}"
    elif value >= 9.95:
        text = f"{value:.0f}"
    elif value >= 0.095:
        text = f"{value:.1f}"
    elif value >= 0.005:
        text = f"{value:.2f}"
    elif weight > 0:
        return Wording("under {0}", "0.01\N{NO-BREAK SPACE}%")
    else:
        text = "0"
    return f"{text}\N{NO-BREAK SPACE}%"


def quote(label: str) -> str:
    """A token in typographic quotes."""
    return f"\N{LEFT DOUBLE QUOTATION MARK}{label}\N{RIGHT DOUBLE QUOTATION MARK}"


def shares(weights: Weights) -> dict[str, float]:
    """Which share of a head's attention goes where, averaged over the tokens that look.

    Args:
        weights: [L, L], row = the token that looks.

    Returns:
        Shares of the total weight for "itself", "previous" and "next".
    """
    total = float(weights.sum())
    if total <= 0:
        return dict.fromkeys(PATTERNS, 0.0)
    offsets = {"itself": 0, "previous": -1, "next": 1}
    return {
        name: float(np.trace(weights, offset=offset)) / total for name, offset in offsets.items()
    }


def favourite(weights: Weights) -> tuple[int, float]:
    """The token that gets the largest share of a head's attention, and that share.

    Args:
        weights: [L, L], row = the token that looks; L at least 1.
    """
    something("token", weights)
    received = weights.sum(axis=0)
    position = int(received.argmax())
    total = float(received.sum())
    return position, float(received[position]) / total if total > 0 else 0.0


def summary(
    weights: Weights,
    labels: Sequence[str],
    special: Sequence[bool],
    *,
    hide: bool = False,
    of: Weights | None = None,
) -> str:
    """What one head does with this sentence, in one or two sentences.

    Args:
        weights: [L, L], row = the token that looks.
        labels: L words.
        special: L flags; special tokens are left out when ``hide`` is set, without re-normalising.
        hide: see ``special``.
        of: [L, L], the weights before links were filtered; None where none were.
    """
    return " ".join(sentences(weights, labels, special, hide=hide, of=of))


def sentences(
    weights: Weights,
    labels: Sequence[str],
    special: Sequence[bool],
    *,
    hide: bool = False,
    of: Weights | None = None,
) -> list[str]:
    """The sentences of :func:`summary`, one by one."""
    length = len(labels)
    if weights.shape != (length, length) or len(special) != length:
        raise ValueError(
            f"weights are {' x '.join(map(str, weights.shape))}, with {length} labels and "
            f"{len(special)} flags; all must be equal"
        )
    keep = without_special(special) if hide else list(range(len(labels)))
    if not keep:
        return [
            Wording("Every token of this sentence is a special one; there is nothing left to show.")
        ]
    part = weights[np.ix_(keep, keep)]
    if not part.any():
        return [Wording("None of these links is there.")]
    # Rows of a maximum, or of links that were filtered, are not all of a token's attention.
    whole = np.allclose(weights[keep].sum(axis=1), 1, atol=0.01)
    found: list[str] = []
    # The rows of a maximum are no shares, so nothing is a share of them.
    if of is not None and np.allclose(of.sum(axis=1), 1, atol=0.01):
        carried = percent(float(part.sum()) / float(of.sum()))
        found.append(Wording("These links carry {0} of the attention.", carried))
    words = [labels[position] for position in keep]
    found.append(_pattern(part, words, hide or not whole, filtered=of is not None))
    link = strongest(weights, 1, keep=keep)[0]
    ends = quote(labels[link.source]), quote(labels[link.target])
    found.append(Wording("Strongest link: {0} looks at {1}, {2}.", *ends, percent(link.weight)))
    if hide and whole:
        rest = percent(max(1 - float(part.sum()) / len(keep), 0.0))
        found.append(Wording("{0} of their attention goes to the hidden tokens.", rest))
    return [sentence for sentence in found if sentence]


def _pattern(part: Weights, labels: Sequence[str], hide: bool, *, filtered: bool) -> str:
    """The clearest pattern as a sentence; none for one or two tokens, where all are the same.

    Of links that were filtered none is clear where they are spread: the others are not seen.
    """
    if len(labels) < 3:
        return ""
    found = shares(part)
    name = max(found, key=lambda key: found[key])
    position, received = favourite(part)
    if max(received, found[name]) < CLEAR_SHARE:
        return "" if filtered else Wording("No single pattern: the attention is spread.")
    pattern, share = PATTERNS[name], percent(found[name])
    if received > found[name]:
        pattern = Wording("Most of the attention rests on {0}", quote(labels[position]))
        share = percent(received)
    if hide:
        return Wording("{0} ({1} of what the shown tokens give each other).", pattern, share)
    return Wording("{0} ({1} of the attention).", pattern, share)
