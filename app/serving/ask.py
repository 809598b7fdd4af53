"""What a visitor asks, checked.

Everything here comes from a browser or a script and may be anything at all. A limit of a widget is
no limit of the endpoint behind it, so each value is checked here whatever the page sends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from core_models import InputError

MOST_CHARACTERS = 20_000
MOST_CANDIDATES = 50
MOST_WORDS = 16
MOST_WORD_CHARACTERS = 64
MOST_MARKS = 512
MOST_SEED = 2**31 - 1

Case = Literal["mask", "random", "kept"]
CASES: tuple[str, ...] = get_args(Case)


@dataclass(frozen=True, kw_only=True, order=True)
class Mark:
    """A position that the model has to predict.

    ``mask``: it sees [MASK] there. ``random``: it sees ``piece`` there. ``kept``: it sees the piece
    of the text, but has to predict it all the same.
    """

    position: int
    case: Case = "mask"
    piece: int | None = None


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A sentence with marks, for one model: the key under which an answer is cached."""

    text: str
    model: str
    marks: tuple[Mark, ...] = ()
    top_k: int = 5
    words: tuple[str, ...] = ()


def read_ask(payload: Mapping[str, Any]) -> Ask:
    """The ask in an event of the page: ``text``, ``model``, ``marks``, ``top_k``, ``words``."""
    return Ask(
        text=clean_text(payload.get("text")),
        model=clean_name(payload.get("model")),
        marks=clean_marks(payload.get("marks", ())),
        top_k=whole_number(payload.get("top_k", 5), "top_k", 1, MOST_CANDIDATES),
        words=clean_words(payload.get("words", ())),
    )


def read_revision(payload: Mapping[str, Any]) -> int:
    """The number that the page gave its question, so that it can tell old answers from new."""
    value = payload.get("rev")
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def clean_text(value: Any) -> str:
    """The text as given, with halves of surrogate pairs replaced; InputError for no or too much."""
    if not isinstance(value, str) or not value.strip():
        raise InputError("There is no text yet. Type a sentence or pick an example.")
    if len(value) > MOST_CHARACTERS:
        raise InputError(
            f"This text has {len(value):,} characters and the page takes up to "
            f"{MOST_CHARACTERS:,}. Use a shorter part of it."
        )
    return value.encode("utf-8", "replace").decode("utf-8")


def clean_name(value: Any) -> str:
    """A model name that is a short string; whether it exists is the session's matter."""
    if not isinstance(value, str) or not value:
        raise InputError("No model is chosen. Pick one from the list.")
    return value[:200]


def clean_words(value: Any) -> tuple[str, ...]:
    """Words whose probability is wanted, without empty ones and repetitions."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError("words must be a list of words.")
    if not all(isinstance(word, str) for word in value):
        raise InputError("words must be a list of words.")
    words = [word.strip() for word in value if word.strip()]
    if len(words) > MOST_WORDS:
        raise InputError(f"There are {len(words)} words to look up; at most {MOST_WORDS} go.")
    if long := next((word for word in words if len(word) > MOST_WORD_CHARACTERS), None):
        raise InputError(
            f"“{long[:20]}…” has {len(long):,} characters; a word may have {MOST_WORD_CHARACTERS}."
        )
    clean = (word.encode("utf-8", "replace").decode("utf-8") for word in words)
    return tuple(dict.fromkeys(clean))


def clean_marks(value: Any) -> tuple[Mark, ...]:
    """Marks sorted by position; the session checks that the positions exist in the text."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError("marks must be a list.")
    if len(value) > MOST_MARKS:
        raise InputError(f"There are {len(value):,} marks; at most {MOST_MARKS} positions go.")
    marks = tuple(sorted((_mark(entry) for entry in value), key=lambda mark: mark.position))
    if len({mark.position for mark in marks}) != len(marks):
        raise InputError("A position is marked twice.")
    return marks


def _mark(value: Any) -> Mark:
    if not isinstance(value, Mapping):
        raise InputError("A mark must have a position and a case.")
    case = value.get("case", "mask")
    if case not in CASES:
        shown = repr(case)[:40]
        raise InputError(f"The case of a mark is {shown}; it must be one of {', '.join(CASES)}.")
    position = whole_number(value.get("position"), "position", 0, 2**31)
    if case != "random":
        return Mark(position=position, case=case)
    piece = whole_number(value.get("piece"), "piece", 0, 2**31)
    return Mark(position=position, case="random", piece=piece)


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    """A whole number within bounds (2.0 counts, True does not)."""
    if value is None:  # a number box without a number
        raise InputError(f"{name} is empty; it must be a whole number from {least} to {most}.")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        shown = repr(value)[:40]
        raise InputError(f"{name} is {shown}; it must be a whole number from {least} to {most}.")
    return value


def clean_rate(value: Any) -> float:
    """A share of the tokens, above 0 and up to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        shown = repr(value)[:40]
        raise InputError(f"rate is {shown}; it must be above 0 and at most 1, such as 0.15.")
    return float(value)
