"""What a model makes of a text whose words are hidden but for a few. No Gradio in it."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import core_models as cm
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import SentenceToken, sentence_tokens
from core_models import InputError
from core_models.prediction import Unmasking
from core_models.prediction.unmasking import ORDERS
from viz.svg import Wording

MOST_PIECES = 48
"""Pieces of a text that are used; the rest is left out."""
MOST_STEPS = 24
MOST_AGAIN = 0.5
ORDER_NAMES = {
    "surest": Wording("Surest first"),
    "random": Wording("At random"),
    "left_to_right": Wording("Left to right"),
}


class Example(NamedTuple):
    """A sentence, the words that stay, and how the others come out."""

    text: str
    stays: str
    steps: int = 8
    order: str = "surest"


EXAMPLES = {
    "A word stays": Example("The capital of France is Paris.", "capital"),
    "All at once": Example("The capital of France is Paris.", "capital", steps=1),
    "Beginning and end": Example("Madrid is the capital of Spain.", "Madrid Spain", 4),
    "Out of nothing": Example("She looked at him for a moment, and then she smiled.", "", 13),
}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A text in pieces, as far as it is used."""

    text: str
    tokens: tuple[SentenceToken, ...]
    words: tuple[tuple[int, ...], ...]
    """Positions of each word; at least one."""
    cut: bool
    """Whether the text was longer."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the visitor chose."""

    order: str
    steps: int
    seed: int
    drawn: bool
    """Whether pieces are drawn; else the most probable one is taken."""
    again: float
    """Share of the pieces put in so far that go back to [MASK] before each step."""
    stays: tuple[int, ...]
    """Numbers of the words that stay."""


def cut(model: cm.Model, text: str) -> Cut:
    """A text in the pieces of a model; InputError where nothing but special pieces is left."""
    (encoding,) = model.encode([clean_text(text)])
    real = [n for n, special in enumerate(encoding.special) if not special]
    if not real:
        raise InputError("This text has no word to hide. Type a few words.")
    short = encoding.truncated or len(real) > MOST_PIECES
    if len(real) > MOST_PIECES:  # so that no word of it is cut
        last = encoding.words[real[MOST_PIECES]]
        kept = [n for n in real[:MOST_PIECES] if encoding.words[n] != last] or real[:MOST_PIECES]
        text = encoding.text[: encoding.offsets[kept[-1]][1]]
        (encoding,) = model.encode([text])
        real = [n for n, special in enumerate(encoding.special) if not special]
    groups = groupby(real, key=lambda n: encoding.words[n])
    return Cut(
        text=encoding.text,
        tokens=sentence_tokens(encoding, model.tokenizer),
        words=tuple(tuple(group) for _, group in groups),
        cut=short,
    )


def sign(text: str) -> int:
    """A number that goes before the words that stay, which belong to one text and no other."""
    return zlib.crc32(text.encode("utf-8", "replace"))


def gap(sentence: Cut, word: int) -> bool:
    """Whether a word is a gap that the text itself has, which cannot stay."""
    return any(sentence.tokens[n].masked for n in sentence.words[word])


def usual(sentence: Cut) -> list[int]:
    """What stays where the visitor chose nothing: the longest word, or two signs in the middle.

    Of a single word nothing: it would leave none to hide.
    """
    if len(sentence.words) == 1:
        return []
    sizes = [
        0 if gap(sentence, number) else sum(len(sentence.tokens[n].text) for n in word)
        for number, word in enumerate(sentence.words)
    ]
    if max(sizes) == 1:
        middle = (len(sizes) - 1) // 2
        return [max(0, middle - 1), middle]
    return [sizes.index(max(sizes))]


def read_setting(question: Mapping[str, Any], sentence: Cut) -> Setting:
    """The setting in an event of the page; InputError for anything that does not fit."""
    order = question.get("order")
    if order not in ORDERS:
        raise InputError(f"order is {str(order)[:40]!r}; it must be one of {', '.join(ORDERS)}.")
    again = question.get("again")
    if isinstance(again, bool) or not isinstance(again, int | float) or not 0 <= again <= 1:
        raise InputError(f"The share that goes back is {str(again)[:40]!r}; it must be 0 to 0.5.")
    chosen = question.get("stays")
    listed: list[Any] = usual(sentence)
    if isinstance(chosen, list) and chosen and chosen[0] == sign(sentence.text):
        listed = chosen[1:]
    stays = {n for n in listed[:MOST_PIECES] if type(n) is int and 0 <= n < len(sentence.words)}
    stays = {n for n in stays if not gap(sentence, n)}
    return Setting(
        order=order,
        steps=whole_number(question.get("steps"), "steps", 1, MOST_STEPS),
        seed=whole_number(question.get("seed"), "seed", 0, MOST_SEED),
        drawn=question.get("drawn") is True,
        again=min(float(again), MOST_AGAIN),
        stays=tuple(sorted(stays)),
    )


def hidden(sentence: Cut, setting: Setting) -> list[int]:
    """Positions that are hidden at the start; InputError where every word stays."""
    found = [p for n, w in enumerate(sentence.words) if n not in setting.stays for p in w]
    if not found:
        raise InputError("Every word stays, so nothing is hidden. Let one of them go.")
    return found


def passes(sentence: Cut, setting: Setting) -> int:
    """Steps that are made: where nothing goes back, more than hidden pieces would be empty."""
    most = setting.steps if setting.again else len(hidden(sentence, setting))
    return min(setting.steps, most)


def write(model: cm.Model, sentence: Cut, setting: Setting) -> Unmasking:
    """Every step; runs the model."""
    return cm.unmask(
        model,
        sentence.text,
        masks=hidden(sentence, setting),
        steps=passes(sentence, setting),
        order=setting.order,
        seed=setting.seed,
        temperature=1.0 if setting.drawn else 0.0,
        remask=setting.again,
    )


def rows(model: cm.Model, sentence: Cut, found: Unmasking) -> list[list[dict[str, Any]]]:
    """What stands at each place of the text before the first step and after each one.

    A cell has its ``text``, and as ``kind`` given, hidden, again (went back in this step), new or
    old; new and old ones have the probability that they were put in with, as ``chance``.
    """
    words, places = model.tokenizer, set(found.hidden)
    shown = [token.position for token in sentence.tokens if not token.special]
    chances: dict[int, float] = {}
    states = [(found.start, frozenset[int](), frozenset[int]())]
    for step in found.steps:
        new = frozenset(each.position for each in step.revealed)
        states.append((step.ids, new, frozenset(step.hidden_again)))
    made = []
    for number, (ids, new, again) in enumerate(states):
        if number:
            chances |= {
                each.position: each.probability for each in found.steps[number - 1].revealed
            }
        line = []
        for place in shown:
            empty = ids[place] == words.mask_id
            kind = "given" if place not in places else "hidden" if empty else "old"
            kind = "again" if empty and place in again else "new" if place in new else kind
            cell: dict[str, Any] = {
                "text": "" if empty else words.display(ids[place]),
                "kind": kind,
            }
            if kind in ("new", "old"):
                cell["chance"] = chances[place]
            line.append(cell)
        made.append(line)
    return made


def code_lines(model: str, sentence: Cut, setting: Setting) -> str:
    """Python that writes the same text."""
    options = f"steps={passes(sentence, setting)}, order={setting.order!r}, seed={setting.seed}"
    if setting.drawn:
        options += ", temperature=1.0"
    if setting.again:
        options += f", remask={setting.again}"
    return "\n".join(
        [
            "import core_models as cm",
            "",
            f"model = cm.load({model!r})",
            f"text = {sentence.text!r}",
            f"hidden = {hidden(sentence, setting)}",
            f"found = cm.unmask(model, text, masks=hidden, {options})",
            "for step in found.steps:",
            "    print([(each.display, round(each.probability, 3)) for each in step.revealed])",
            "print(found.text)",
        ]
    )
