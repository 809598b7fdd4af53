"""What the set was to reach, and how far it is from there."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from zoo.cards import GENERATOR
from zoo.entries import Entry

BEFORE = {
    "bert-mini": 0.674,
    "electra-mini-generator": 0.635,
    "albert-mini": 0.672,
    "xlnet-mini": 0.658,
    "deberta-mini": 0.664,
    "roberta-mini": 0.658,
    "spanbert-mini": 0.644,
    "deberta-v2-mini": 0.667,
    "deberta-v3-mini-generator": 0.638,
    "causal-mini": 0.683,
}
"""Share of minimal pairs that the models of 24 November 2026 had right, from which one goal counts.
Models that came later have none."""
MASKED = (
    "albert-mini",
    "deberta-mini",
    "roberta-mini",
    "spanbert-mini",
    "deberta-v2-mini",
    "modernbert-mini",
    "diffusion-mini",
)
DETECTIVES = ("electra-mini", "deberta-v3-mini")
CHINESE = ("bert-mini-chinese", "macbert-mini-chinese")


class Goal(NamedTuple):
    """At least so much of one figure, for some models."""

    title: str
    path: tuple[str, str]
    """Where the figure stands in ``evaluation.json``."""
    least: float
    models: tuple[str, ...]
    unit: str = "share"
    """``share``, ``points`` (a share above what stands in ``BEFORE``), ``auc``, ``count`` or
    ``millions``."""


WORDS, PAIRS = ("words", "accuracy"), ("text_pairs", "accuracy")
READ = ("run", "tokens")
FORGERS = tuple(f"{name}{GENERATOR}" for name in DETECTIVES)
MORE = "minimal pairs right, more than on 24 November 2026"
ENGLISH = (*MASKED, "xlnet-mini", "causal-mini", *DETECTIVES)
GOALS = (
    Goal("hidden words right, default", WORDS, 0.33, ("bert-mini",)),
    Goal("hidden words right, masked models", WORDS, 0.30, MASKED),
    Goal(MORE, ("minimal_pairs", "accuracy"), 0.10, tuple(BEFORE), "points"),
    Goal("sentence order told right", PAIRS, 0.65, ("albert-mini", "macbert-mini-chinese")),
    Goal("next sentence told right", PAIRS, 0.85, ("bert-mini", "bert-mini-chinese")),
    Goal("AUC of forgeries", ("forgeries", "auc"), 0.85, DETECTIVES, "auc"),
    Goal("capitals that a generator knows", ("capitals", "first"), 40, FORGERS, "count"),
    Goal("million tokens read, default", READ, 150e6, ("bert-mini",), "millions"),
    Goal("million tokens read, English", READ, 50e6, ENGLISH, "millions"),
    Goal("million tokens read, Chinese", READ, 40e6, CHINESE, "millions"),
)


def rows(found: Mapping[str, Entry]) -> Iterable[list[str]]:
    """Of each goal its name, what was aimed at, who reached it, and what the others lack."""
    for goal in GOALS:
        reached, missed = [], []
        for name in goal.models:
            if (value := _figure(found, name, goal)) is None:
                missed.append((float("-inf"), f"{name} (not measured)"))
                continue
            shown = f"{name} {_said(value, goal)}"
            if value >= goal.least:
                reached.append((value, shown))
            else:
                lacking = _said(goal.least - value, goal).removesuffix(" %")
                missed.append((value, f"{shown} (lacks {lacking})"))
        yield [goal.title, _said(goal.least, goal), *(_joined(each) for each in (reached, missed))]


def _joined(said: list[tuple[float, str]]) -> str:
    """The best first."""
    return ", ".join(text for _, text in sorted(said, key=lambda each: -each[0])) or "\u2013"


def _figure(found: Mapping[str, Entry], name: str, goal: Goal) -> float | None:
    value: Any = found[name].figures if name in found else None
    for key in goal.path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        return None
    return float(value) - (BEFORE[name] if goal.unit == "points" else 0.0)


def _said(value: float, goal: Goal) -> str:
    return {
        "share": f"{100 * value:.1f} %",
        "points": f"{100 * value:.1f}",
        "auc": f"{value:.3f}",
        "count": f"{value:.0f}",
        "millions": f"{value / 1e6:.1f}",
    }[goal.unit]
