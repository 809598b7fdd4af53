"""A hidden run of words, told by its own states and by the two tokens around it. No Gradio in it.

The law of lengths and the geometry of a span need no weights; what a model makes of a span is in
:mod:`core_models.prediction.spans`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import torch

import core_models as cm
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import SentenceToken, sentence_tokens
from core_models import InputError, span_masking
from core_models.prediction import HiddenSpan, SpanPiece, fill_spans, shift
from core_models.prediction.results import Prediction
from core_models.prediction.spans import HEAD, Span, loss_of
from core_models.tokenizer import Encoding, Tokenizer

NEEDED = ("masked_token", HEAD)
INSIDE = ("mask", "random", "kept")
"""What stands in a hidden span: [MASK] (80 % of the spans in pretraining), other words, its own."""
TOP = 5
MOST_PIECES = 32
"""Pieces of one span that are shown."""
LONGEST = 10
USUAL_WORDS = 3
RATE = 0.15
_DRAWN_PIECES = 6_000


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
        run=whole_number(question.get("run", 0), "run", 0, 512),
        inside=inside,
        roll=whole_number(question.get("roll", 1), "roll", 0, MOST_SEED),
    )


# --- spans of the sentence ------------------------------------------------------------------------


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


def describe(sentence: Cut, span: Span) -> dict[str, Any]:
    """Where a span lies and whether pretraining would ask its boundary."""
    start, stop = span
    special = sentence.encoding.special
    touched = [word for word in sentence.words if word[0] < stop and start <= word[-1]]
    return {
        "start": start,
        "stop": stop,
        "words": len(touched),
        "whole": touched[0][0] == start and touched[-1][-1] == stop - 1,
        "edge": special[start - 1] or all(special[stop : stop + 1]),
    }


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


def look(model: cm.Model, sentence: Cut, found: Sequence[Span], setting: Setting) -> dict[str, Any]:
    """What both heads make of one span; runs the model.

    With other words inside, ``base`` holds the same with [MASK] inside.
    """
    span = found[min(setting.run, len(found) - 1)]
    masks = others(sentence, found, span)
    inside = standing(model, span, setting)
    (told,) = fill_spans(model, sentence.text, [span], masks=masks, top_k=TOP, **inside)
    base, moved = None, None
    if inside:
        (base,) = fill_spans(model, sentence.text, [span], masks=masks, top_k=1)
        moved = asdict(shift(model, sentence.text, span, masks=masks, **inside))
    replaced = inside.get("replaced", {})
    return {
        "pieces": [
            {
                "position": span[0] + piece.place,
                "place": piece.place,
                "seen": _seen(model, sentence, span[0] + piece.place, replaced, setting),
                "masked_token": _plain(piece.masked_token),
                "span_boundary": _plain(piece.span_boundary),
                "loss": piece.loss,
                "base": None if base is None else _chances(base.pieces[piece.place]),
            }
            for piece in told.pieces[:MOST_PIECES]
        ],
        "losses": losses(told),
        "moved": moved,
    }


def _seen(
    model: cm.Model, sentence: Cut, position: int, replaced: Mapping[int, int], setting: Setting
) -> str:
    token = sentence.tokens[position]
    if position in replaced:
        return model.tokenizer.display(replaced[position])
    return "[MASK]" if setting.inside == "mask" or token.masked else token.text


def _plain(prediction: Prediction | None) -> dict[str, Any] | None:
    if prediction is None:
        return None
    return {
        "candidates": [
            {"id": c.id, "display": c.display, "probability": c.probability, "rank": c.rank}
            for c in prediction.candidates
        ],
        "original": None
        if prediction.original is None
        else {
            "id": prediction.original.id,
            "display": prediction.original.display,
            "probability": prediction.original.probability,
            "rank": prediction.original.rank,
        },
        "loss": loss_of(prediction),
    }


def _chances(piece: SpanPiece) -> dict[str, float | None]:
    """The probability of the text's piece by both heads."""
    return {
        name: None if said is None or said.original is None else said.original.probability
        for name, said in (
            ("masked_token", piece.masked_token),
            ("span_boundary", piece.span_boundary),
        )
    }


def losses(told: HiddenSpan) -> dict[str, Any]:
    """Mean loss of each head over the pieces it is asked for, and their sum: equation 1."""
    means = {}
    for name in NEEDED:
        values = [
            value
            for piece in told.pieces
            if (value := loss_of(getattr(piece, name))) is not None and math.isfinite(value)
        ]
        means[name] = {
            "count": len(values),
            "mean": sum(values) / len(values) if values else None,
        }
    known = [entry["mean"] for entry in means.values() if entry["mean"] is not None]
    return {**means, "total": sum(known) if known else None}


# --- the law of lengths ---------------------------------------------------------------------------


def law(sentence: Cut, found: Sequence[Span]) -> dict[str, Any]:
    """Shares of the span lengths 1 to 10 in words: the law, draws on this text, what is hidden."""
    shares = span_masking.geometric(longest=LONGEST)
    shown = tuple(
        -1 if token.special or token.word is None else token.word for token in sentence.tokens
    )
    now = [min(describe(sentence, span)["words"], LONGEST) for span in found]
    drawn, draws = _drawn_lengths(shown)
    return {
        "law": list(shares),
        "mean": sum(n * share for n, share in enumerate(shares, 1)),
        "drawn": drawn,
        "draws": draws,
        "now": [now.count(length) for length in range(1, LONGEST + 1)],
    }


@lru_cache(maxsize=64)
def _drawn_lengths(words: tuple[int, ...]) -> tuple[list[int], int]:
    """Counts of the lengths 1 to 10 (and more) in words over draws of a text, and of the draws."""
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
    for _, start, stop in masked.spans.tolist():
        counts[min(LONGEST, len(set(words[start:stop]))) - 1] += 1
    return counts, draws


def draw(sentence: Cut, seed: int) -> list[tuple[int, int]]:
    """Spans of characters hidden as in pretraining: 15 % of the pieces, in runs of whole words."""
    ids = torch.tensor(sentence.encoding.ids)
    masked = span_masking.spans(
        ids,
        torch.tensor([not token.special and not token.masked for token in sentence.tokens]),
        torch.tensor([-1 if token.word is None else token.word for token in sentence.tokens]),
        generator=torch.Generator().manual_seed(seed),
        mask_id=1,
        vocabulary=2,
        rate=RATE,
    )
    tokens = sentence.tokens
    return [(tokens[a].start, tokens[b - 1].end) for _, a, b in masked.spans.tolist()]


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
