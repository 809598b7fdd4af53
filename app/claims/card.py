"""What a card of the Claims tab is made of: a statement, a measurement, and a rule that judges it.

A verdict is never written down. Each rule is a function of measured numbers that can come out
either way, and its text says the same as the function. No Gradio in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from app.claims.bench import Bench

Verdict = Literal["right", "wrong", "half", "depends"]
UNJUDGED = "none"
"""In place of a verdict, where the model that was asked cannot answer at all."""
VERDICTS: tuple[str, ...] = get_args(Verdict)
Values = Mapping[str, float]
ARTICLES = 5
"""The articles that the project teaches from, numbered from 1; the page lists them by title."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """One measured number."""

    key: str
    """Name for rules and files."""
    label: str
    """Name for people."""
    value: float
    unit: str = ""
    """"%", "million", "ms", "times" or nothing. Numbers of one unit share a scale of bars."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How numbers become a verdict."""

    text: str
    judge: Callable[[Values], Verdict]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A popular statement and how it is tested here."""

    name: str
    """Lower-case words and digits joined by "-"."""
    family: str
    """Title of the family, for the filter."""
    statement: str
    articles: tuple[int, ...] = ()
    """Articles that say so, 1 to `ARTICLES`; none = heard elsewhere."""
    said: str = ""
    """Who else says so."""
    source: str
    """Where the truth can be read."""
    how: str
    """What the button does."""
    measure: "Callable[[Bench], Sequence[Number]]"
    rule: Rule
    doubt: "Callable[[Bench, Values], str] | None" = None
    """Why the numbers judge nothing, ``""`` where they do; None = they always do."""
    why: str
    """What explains the numbers; it holds whatever the verdict is."""
    code: str
    """Python that measures again."""
    head: str | None = None
    """A head that an installed model must have; None = nothing must be installed."""
    drawn: bool = True
    """Whether another seed may give other numbers."""


def at_most(key: str, right: float, half: float, text: str) -> Rule:
    """Right up to one bound, half right up to another, else wrong."""

    def judge(values: Values) -> Verdict:
        value = values[key]
        return "right" if value <= right else "half" if value <= half else "wrong"

    return Rule(text=text, judge=judge)


def at_least(key: str, right: float, half: float, text: str) -> Rule:
    """Right from one bound on, half right from another on, else wrong."""

    def judge(values: Values) -> Verdict:
        value = values[key]
        return "right" if value >= right else "half" if value >= half else "wrong"

    return Rule(text=text, judge=judge)


def near(pairs: Mapping[str, float], *, right: float = 1, half: float = 3) -> Rule:
    """Printed figures against counted ones; the worst of them decides.

    Args:
        pairs: key of a counted number -> what is said.
        right: largest difference in percent of the count that passes as right.
        half: and as half right.
    """

    def judge(values: Values) -> Verdict:
        worst = max(abs(100 * (said / values[key] - 1)) for key, said in pairs.items())
        return "right" if worst <= right else "half" if worst <= half else "wrong"

    return Rule(
        text=f"Right if what is said differs from the count by up to {right:g} %, half right up to "
        f"{half:g} %, else wrong.",
        judge=judge,
    )
