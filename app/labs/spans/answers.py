"""A hidden run of words, told by its own states and by the two tokens around it. No Gradio in it.

The geometry of a span needs no weights; what a model makes of a span is in
:mod:`core_models.prediction.spans`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import torch

import core_models as cm
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import SentenceToken, sentence_tokens
from core_models import InputError
from core_models.prediction import SpanPiece, fill_spans, shift
from core_models.prediction.results import Prediction
from core_models.prediction.spans import HEAD, Shift, Span, loss_of
from core_models.tokenizer import Encoding, Tokenizer
from viz.spans import Given, Place

NEEDED = ("masked_token", HEAD)
INSIDE = ("mask", "random", "kept")
"""What stands in a hidden span: [MASK] (80 % of the spans in pretraining), other words, its own."""
TOP = 5
MOST_PIECES = 32
"""Pieces of one span that are shown."""
LONGEST = 10
"""Words of a span."""
USUAL_WORDS = 3


class Example(NamedTuple):
    """A sentence, what is hidden in it, and what stands there."""

    text: str
    hide: str
    inside: str = "mask"

    @property
    def characters(self) -> tuple[int, int]:
        """Where the hidden words are."""
        start = self.text.index(self.hide)
        return start, start + len(self.hide)


# Telling with spanbert-mini: both heads' first choices are right at most places.
EXAMPLES = {
    "Three words": Example("Madrid is the capital of Spain.", "the capital of"),
    "A name": Example(
        "People who visit Argentina often begin in the capital, Buenos Aires.", "Buenos Aires"
    ),
    "Other words inside": Example(
        "The government of Turkey meets in Ankara, the capital.", "meets in Ankara", "random"
    ),
    "At the edge": Example("The heart pumps blood through the body.", "The heart"),
}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A sentence in pieces."""

    text: str
    encoding: Encoding
    tokens: tuple[SentenceToken, ...]
    words: tuple[tuple[int, ...], ...]
    """Positions of each word; at least one."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the visitor chose."""

    run: int
    """Which of the hidden runs is looked at; the last one where there are fewer."""
    inside: str
    """One of `INSIDE`."""
    roll: int
    """Seed of the other words."""


def cut(model: cm.Model, text: str) -> Cut:
    """A text in the pieces of a model; InputError where nothing but special pieces is left."""
    (encoding,) = model.encode([clean_text(text)])
    groups = groupby(
        (n for n, special in enumerate(encoding.special) if not special),
        key=lambda n: encoding.words[n],
    )
    words = tuple(tuple(group) for _, group in groups)
    if not words:
        raise InputError("This text has no word to hide. Type a few words.")
    tokens = sentence_tokens(encoding, model.tokenizer)
    return Cut(text=encoding.text, encoding=encoding, tokens=tokens, words=words)


def read_setting(question: Mapping[str, Any]) -> Setting:
    """The setting in an event of the page; InputError for anything that does not fit."""
    inside = question.get("inside", "mask")
    if inside not in INSIDE:
        raise InputError(f"inside is {str(inside)[:40]!r}; it must be mask, random or kept.")
    return Setting(
        # A link may name any: it is shown in a sentence that may have fewer.
        run=max(0, whole_number(question.get("run", 0), "run", -(10**9), 10**9)),
        inside=inside,
        roll=whole_number(question.get("roll", 1), "seed", 0, MOST_SEED),
    )


# --- spans of the sentence ------------------------------------------------------------------------


def words_of(sentence: Cut) -> list[tuple[str, int, int]]:
    """Each word with its characters [start, end)."""
    found = []
    for word in sentence.words:
        start, end = sentence.tokens[word[0]].start, sentence.tokens[word[-1]].end
        found.append((sentence.text[start:end].strip(), start, end))
    return found


def hidden_runs(sentence: Cut, characters: Sequence[tuple[int, int]]) -> list[Span]:
    """Runs of pieces under spans of characters; gaps that the text holds are always hidden."""
    hidden = [
        token.position
        for token in sentence.tokens
        if not token.special
        and (token.masked or any(token.start < e and s < token.end for s, e in characters))
    ]
    return runs(hidden)


def runs(positions: Iterable[int]) -> list[Span]:
    """Neighbouring positions as spans."""
    found: list[list[int]] = []
    for position in sorted(positions):
        if found and found[-1][1] == position:
            found[-1][1] += 1
        else:
            found.append([position, position + 1])
    return [(start, stop) for start, stop in found]


def usual(sentence: Cut) -> Span:
    """The span that is looked at where nothing is hidden: three words in the middle."""
    count = len(sentence.words)
    length = min(USUAL_WORDS, max(1, count - 2))
    first = (count - length) // 2
    return sentence.words[first][0], sentence.words[first + length - 1][-1] + 1


@dataclass(frozen=True, kw_only=True)
class Described:
    """Where a span lies."""

    words: int
    first: int
    """Number of its first word."""
    whole: bool
    """It cuts no word."""
    edge: bool
    """Pretraining would not ask its boundary."""


def describe(sentence: Cut, span: Span) -> Described:
    """Where a span lies and whether pretraining would ask its boundary."""
    start, stop = span
    special = sentence.encoding.special
    touched = [n for n, w in enumerate(sentence.words) if w[0] < stop and start <= w[-1]]
    first, last = sentence.words[touched[0]], sentence.words[touched[-1]]
    return Described(
        words=len(touched),
        first=touched[0],
        whole=first[0] == start and last[-1] == stop - 1,
        edge=special[start - 1] or all(special[stop : stop + 1]),
    )


def others(sentence: Cut, found: Sequence[Span], span: Span) -> list[int]:
    """Hidden positions of the other runs."""
    return [p for start, stop in found if (start, stop) != span for p in range(start, stop)]


# --- what stands inside ---------------------------------------------------------------------------


def strangers(tokenizer: Tokenizer, count: int, seed: int) -> list[int]:
    """Ids of words drawn at random, as in one of ten spans of pretraining.

    Drawn evenly among the vocabulary's words: the released code draws by how often a word occurs.
    """
    source = torch.Generator().manual_seed(seed)
    found: list[int] = []
    for index in torch.randint(tokenizer.vocabulary, (50 * count,), generator=source).tolist():
        if len(found) == count:
            break
        word = tokenizer.display(index)
        if index not in tokenizer.special_ids and tokenizer.starts_word(index) and word.isalpha():
            found.append(index)
    # A vocabulary of a few signs only may give fewer: then [UNK] stands there.
    return found + [tokenizer.unknown_id] * (count - len(found))


def standing(model: cm.Model, span: Span, setting: Setting) -> dict[str, Any]:
    """Arguments of `fill_spans` for what stands in the span."""
    if setting.inside == "mask":
        return {}
    if setting.inside == "kept":
        return {"kept": True}
    start, stop = span
    ids = strangers(model.tokenizer, stop - start, setting.roll)
    return {"replaced": dict(zip(range(start, stop), ids, strict=True))}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What both heads make of a span."""

    pieces: Sequence[SpanPiece]
    seen: Sequence[str]
    """What the model sees at each of them."""
    masked: Sequence[SpanPiece] | None
    """The same with [MASK] inside, where something else stands there."""
    moved: Shift | None
    """How far that moves the last states."""
    unread: Sequence[bool]
    """Whether the vocabulary lacks the word that stood at each of them."""


def look(model: cm.Model, sentence: Cut, found: Sequence[Span], setting: Setting) -> Told:
    """What both heads make of one span; runs the model."""
    span = found[min(setting.run, len(found) - 1)]
    masks = others(sentence, found, span)
    inside = standing(model, span, setting)
    (told,) = fill_spans(model, sentence.text, [span], masks=masks, top_k=TOP, **inside)
    masked, moved = None, None
    if inside:
        (base,) = fill_spans(model, sentence.text, [span], masks=masks, top_k=1)
        masked = base.pieces
        moved = shift(model, sentence.text, span, masks=masks, **inside)
    replaced = inside.get("replaced", {})
    seen = [_seen(model, sentence, p, replaced, setting) for p in range(*span)]
    unread = [sentence.tokens[p].unknown for p in range(*span)]
    return Told(pieces=told.pieces, seen=seen, masked=masked, moved=moved, unread=unread)


def _seen(
    model: cm.Model, sentence: Cut, position: int, replaced: Mapping[int, int], setting: Setting
) -> str:
    token = sentence.tokens[position]
    if position in replaced:
        return model.tokenizer.display(replaced[position])
    return "[MASK]" if setting.inside == "mask" or token.masked else token.text


def given(said: Prediction | None, masked: Prediction | None) -> Given | None:
    """What a head gives the word of the text; None where it is not asked or nobody knows it."""
    if said is None or said.original is None:
        return None
    before = None if masked is None or masked.original is None else masked.original.probability
    return Given(
        probability=said.original.probability,
        rank=said.original.rank,
        loss=loss_of(said) or 0.0,
        masked=before,
    )


def places(told: Told, sentence: Cut, span: Span) -> list[Place]:
    """The hidden places with what each head gives their words."""
    found = []
    for n, piece in enumerate(told.pieces[:MOST_PIECES]):
        base = told.masked[n] if told.masked else None
        heads = [given(getattr(piece, h), getattr(base, h, None)) for h in NEEDED]
        if told.unread[n]:
            heads = [None] * len(NEEDED)
        text = sentence.tokens[span[0] + n].text
        found.append(Place(word=text, seen=told.seen[n], given=heads))
    return found


def mean_loss(told: Told, head: str) -> float | None:
    """Mean loss of a head over the pieces that it is asked for: a term of equation 1.

    A word that the vocabulary lacks has none: what is predicted there is [UNK].
    """
    read = [piece for piece, unread in zip(told.pieces, told.unread, strict=True) if not unread]
    losses = [loss_of(getattr(piece, head)) for piece in read]
    known = [loss for loss in losses if loss is not None and math.isfinite(loss)]
    return sum(known) / len(known) if known else None


def code_lines(
    model: str, loaded: cm.Model, sentence: Cut, found: Sequence[Span], setting: Setting
) -> str:
    """Python that recomputes what both heads say."""
    span = found[min(setting.run, len(found) - 1)]
    inside = standing(loaded, span, setting)
    extra = "".join(f", {name}={value!r}" for name, value in inside.items())
    if masks := others(sentence, found, span):
        extra = f", masks={masks}{extra}"
    return "\n".join(
        [
            "import core_models as cm",
            "from core_models.prediction import fill_spans",
            "from core_models.prediction.spans import loss_of",
            "",
            f"model = cm.load({model!r})",
            f"text = {sentence.text!r}",
            f"(span,) = fill_spans(model, text, [{span}]{extra})",
            "for piece in span.pieces:",
            "    print(piece.place, loss_of(piece.masked_token), loss_of(piece.span_boundary))",
        ]
    )
