"""Questions and answers as plain values: no tensor leaves this package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


class Plain:
    """A result that turns into plain JSON values."""

    def to_json(self) -> dict[str, Any]:
        """Dictionaries, lists, strings and numbers only."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    assert not is_dataclass(value)
    return value


@dataclass(frozen=True)
class Token(Plain):
    """One piece of the input."""

    position: int
    id: int
    """The piece of the text, whatever the model sees there."""
    piece: str
    """Raw ("##ing")."""
    display: str
    """As people read it ("ing")."""
    start: int
    """First character (code point) in the text, or in the pair for pieces of the second text."""
    end: int
    """Character after the last."""
    word: int | None
    special: bool
    masked: bool
    """The model sees [MASK] here."""


@dataclass(frozen=True)
class Candidate(Plain):
    """A piece with its probability at one position."""

    id: int
    piece: str
    display: str
    continues: bool
    """It continues the word before it."""
    probability: float
    rank: int
    """1 = the most probable; equally probable pieces share a rank."""


@dataclass(frozen=True)
class Watched(Plain):
    """A word that was asked for. Where ``rank`` is None there is a ``note`` that says why."""

    word: str
    pieces: tuple[str, ...]
    """The word in pieces of this vocabulary."""
    note: str | None = None
    id: int | None = None
    piece: str | None = None
    display: str | None = None
    probability: float | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Prediction(Plain):
    """What the model expects at one position."""

    position: int
    case: str
    """What it sees there: "mask" = [MASK], "random" = another piece, "kept" = the piece itself."""
    original: Candidate | None
    """The piece of the text; None where the text itself says [MASK]."""
    candidates: list[Candidate]
    entropy: float
    """Of the whole distribution, in nats (0 = certain, ln V = no idea)."""
    watched: list[Watched]


@dataclass(frozen=True)
class FillResult(Plain):
    """The pieces of an input and what the model expects at the positions asked for."""

    text: str
    pair: str | None
    head: str
    """Name of the head that answered: masked_token, permutation or causal."""
    tokens: list[Token]
    predictions: list[Prediction]
    """In order of position."""
    truncated: bool
    """The input was longer than the model's longest and lost its end."""


@dataclass(frozen=True)
class FillRequest:
    """A question for `fill_many`. Every [MASK] in the text is a position asked for, too."""

    text: str
    masks: Sequence[int] = ()
    """Positions (piece numbers, [CLS] is 0) where the model sees [MASK]."""
    top_k: int = 5
    watch: Sequence[str | int] = ()
    """Words whose probability is wanted."""
    pair: str | None = None
    replaced: Mapping[int, int] = field(default_factory=dict)
    """Position -> piece id the model sees there instead (the "random" case of pretraining)."""
    kept: Sequence[int] = ()
    """Positions that stay as they are and are predicted all the same."""


@dataclass(frozen=True)
class TokenScore(Plain):
    """One summand of a score."""

    position: int
    id: int
    piece: str
    display: str
    word: int | None
    score: float
    """log p(token | all others), or for a causal model log p(token | those before it), nats."""


@dataclass(frozen=True)
class Score(Plain):
    """How likely a model finds a text."""

    text: str
    kind: str
    """``pseudo-log-likelihood``, or ``log-likelihood`` for a causal model."""
    total: float
    """Sum over tokens, nats."""
    per_token: list[TokenScore]
    tokens: int
    """Number of summands."""
    words: int
    """Number of word groups they belong to."""
    truncated: bool


@dataclass(frozen=True)
class Verdict(Plain):
    """A discriminator's judgement of one token."""

    position: int
    id: int
    """The piece that the model read."""
    display: str
    special: bool
    replaced: bool
    """It is not the text's own piece."""
    probability: float
    """That the token was replaced, as the model sees it."""


@dataclass(frozen=True)
class DetectResult(Plain):
    """A discriminator's judgement of every token of an input."""

    text: str
    verdicts: list[Verdict]
    truncated: bool


@dataclass(frozen=True)
class PairResult(Plain):
    """A judgement of two texts."""

    first: str
    second: str
    head: str
    """``next_sentence`` or ``sentence_order``."""
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    """Of each label."""
    truncated: bool


@dataclass(frozen=True)
class Sample(Plain):
    """A piece that a generator drew for a gap."""

    position: int
    id: int
    piece: str
    display: str
    probability: float
    """Of this piece, at the temperature that was asked for."""
    original: int
    """The text's own piece."""
    original_probability: float
    lucky: bool
    """The draw hit the text's own piece."""


@dataclass(frozen=True)
class Forged(Plain):
    """What a generator put into the gaps of an input."""

    text: str
    samples: list[Sample]
    """In order of position."""
    truncated: bool


@dataclass(frozen=True)
class Choice(Plain):
    """A piece that was put into a gap."""

    position: int
    id: int
    piece: str
    display: str
    continues: bool
    """It continues the word before it."""
    log_probability: float
    """Natural logarithm, given the pieces that were put in before it."""


@dataclass(frozen=True)
class Filling(Plain):
    """One piece for each of several gaps. All values are natural logarithms."""

    way: str
    """One of `core_models.prediction.gaps.WAYS`, or ``given``."""
    choices: list[Choice]
    """In the order in which they were put in."""
    total: float
    """Of the whole filling, by the chain rule of that order: the sum over its choices."""
    apart: float
    """The sum with every other gap left open: what independence takes the whole to be."""
    chained: float
    """The chain rule from left to right, on which the fillings of all ways compare."""
    truncated: bool
    """Whether the text was longer than the model reads, so that its end was neither seen nor
    filled."""


@dataclass(frozen=True)
class Revealed(Plain):
    """An answer that a step kept."""

    position: int
    id: int
    display: str
    """The piece as people read it."""
    probability: float
    """Among all pieces that may be put in, given what the step read."""


@dataclass(frozen=True)
class UnmaskStep(Plain):
    """One pass and what became of its answers."""

    hidden_again: tuple[int, ...]
    """Positions that went back to [MASK] before the pass."""
    revealed: tuple[Revealed, ...]
    """Answers that were kept, in the order of the text."""
    ids: tuple[int, ...]
    """The pieces after the step, special ones included."""


@dataclass(frozen=True)
class Unmasking(Plain):
    """How a text came out of its hidden pieces."""

    hidden: tuple[int, ...]
    """Positions that were hidden at the start."""
    start: tuple[int, ...]
    """The pieces before the first step."""
    steps: tuple[UnmaskStep, ...]
    text: str
    """What came out."""
    truncated: bool
    """Whether the text was longer than the model reads: its end is in none of this."""

    @property
    def probabilities(self) -> dict[int, float]:
        """Of each piece that was put in, when it was put in for good; by position."""
        return {each.position: each.probability for s in self.steps for each in s.revealed}


@dataclass(frozen=True)
class WordScore(Plain):
    """A word of any number of pieces in one gap. Where it is None there is a ``note``."""

    word: str
    pieces: tuple[str, ...]
    """In this vocabulary, as people read them."""
    steps: tuple[float, ...] = ()
    """log p(piece | the word's pieces before it, as many gaps as pieces are left), in nats."""
    log_probability: float | None = None
    """Sum of the steps: of the word among all of as many pieces."""
    note: str | None = None


@dataclass(frozen=True)
class Layer(Plain):
    """What the head reads from one place on the way through the encoder."""

    stream: str
    """``content``, ``query`` (XLNet) or ``mask_decoder`` (DeBERTa)."""
    number: int
    """Steps of that stream so far; 0 = before the first."""
    prediction: Prediction


@dataclass(frozen=True)
class LensResult(Plain):
    """The prediction for one position after every step."""

    text: str
    head: str
    layers: list[Layer]
    """The last one is the model's own answer."""
    note: str | None
    """What keeps the earlier rows from being predictions of the model; None where nothing does."""
