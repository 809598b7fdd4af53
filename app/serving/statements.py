"""What something on the page may be meant to show, each in a form that can be measured.

Values only: `benchmarks.demonstrations` says how each is measured.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class First:
    """Every hidden piece is the first choice, with at least some probability."""

    text: str
    hide: str
    least: float = 0.0


@dataclass(frozen=True)
class Surer:
    """The hidden word is the first choice, and another model gives it a third or less of that."""

    text: str
    hide: str
    than: str


@dataclass(frozen=True)
class Prefers:
    """In place of what is hidden a word, of any number of pieces, is likelier than its rivals."""

    text: str
    hide: str
    word: str
    rivals: tuple[str, ...]
    pieces: int = 1
    """The word has at least so many."""


@dataclass(frozen=True)
class Overtakes:
    """The hidden word is first in the end, and some layer had a rival before it."""

    text: str
    hide: str
    rivals: tuple[str, ...]


@dataclass(frozen=True)
class Together:
    """Gaps filled by themselves do not fit together; one after the other they do, and are likelier.

    Attributes:
        apart: what comes out of the first way.
        chained: and of the second.
    """

    text: str
    hide: tuple[str, ...]
    apart: tuple[str, ...]
    chained: tuple[str, ...]


@dataclass(frozen=True)
class Ends:
    """Where nothing follows the gap, the model expects the end of the sentence there."""

    text: str
    hide: str


@dataclass(frozen=True)
class Helps:
    """The hidden word is at least ten times as likely with its sentence as with nothing."""

    text: str
    hide: str


@dataclass(frozen=True)
class LooksAt:
    """In some head the hidden word looks most at another word."""

    text: str
    hide: str
    at: str


@dataclass(frozen=True)
class NeedsHead:
    """Without the head that it needs most, or a layer's heads, so much of its chance is left."""

    text: str
    hide: str
    left: float
    """At most, of what it was."""
    whole_layer: bool = False


@dataclass(frozen=True)
class GivesLess:
    """The head with most attention on special pieces gets a smaller part of what it moves there."""

    text: str


@dataclass(frozen=True)
class NeedsTerms:
    """Without these terms the hidden word is no longer first and loses nine tenths or more."""

    text: str
    hide: str
    off: tuple[str, ...]


@dataclass(frozen=True)
class Accuses:
    """Of a sentence's tokens only this word is taken for a replaced one."""

    text: str
    word: str


@dataclass(frozen=True)
class Trusts:
    """A word that is not the original is taken for it."""

    text: str
    word: str


@dataclass(frozen=True)
class Hotter:
    """Hot draws of the model's generator arouse more suspicion than cool ones, over many draws."""

    text: str
    hide: str
    temperature: float


@dataclass(frozen=True)
class Recovers:
    """A hidden span comes back piece by piece."""

    text: str
    hide: str


@dataclass(frozen=True)
class Neighbours:
    """A head about two texts tells the next sentence, or its order; see the fields.

    Attributes:
        other: about something else; a next-sentence head finds it out and does not see a swap, a
            sentence-order head finds the swap out
    """

    first: str
    next: str
    other: str


@dataclass(frozen=True)
class Smaller:
    """A published size has fewer parameters than another, by a factor; both cost about the same.

    Attributes:
        work: the largest ratio of operations at 128 pieces, either way; None = not said.
    """

    size: str
    than: str
    times: float
    work: float | None = None


@dataclass(frozen=True)
class Cuts:
    """A line is cut into these pieces somewhere, as people read them."""

    text: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Emerges:
    """Of a text whose words are hidden but for some, another text comes out, surest first.

    Attributes:
        stays: words that stay.
        comes: what comes out, in small letters.
        fits: whether it is likelier than what comes out in one step (pseudo-log-likelihood).
    """

    text: str
    stays: tuple[str, ...]
    steps: int
    comes: str
    fits: bool = False


@dataclass(frozen=True)
class Contexts:
    """Over the epochs, a piece is seen in so many different inputs: at least, at most."""

    regime: str
    """static, copies or dynamic."""
    epochs: int
    copies: int
    least: int
    most: int


Statement = (
    First | Surer | Prefers | Overtakes | Together | Ends | Helps | LooksAt | NeedsHead | GivesLess
    | NeedsTerms | Accuses | Trusts | Hotter | Recovers | Neighbours | Smaller | Cuts | Contexts
    | Emerges
)  # fmt: skip
