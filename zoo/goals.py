"""What the set was to reach, and how far it is from there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, kw_only=True)
class Goal:
    """At least so much of one figure, for some models."""

    title: str
    path: tuple[str, ...]
    """Where the figure stands in ``evaluation.json``."""
    least: float
    models: tuple[str, ...]
    unit: str = "share"
    """``share``, ``auc``, ``count`` or ``millions``."""
    above: Mapping[str, float] | None = None
    """By model, what ``least`` is above; None = nothing."""


GOALS = (
    Goal(
        title="hidden words right, default",
        path=("words", "accuracy"),
        least=0.33,
        models=("bert-mini",),
    ),
    Goal(
        title="hidden words right, masked models",
        path=("words", "accuracy"),
        least=0.30,
        models=MASKED,
    ),
    Goal(
        title="minimal pairs right, more than on 24 November 2026",
        path=("minimal_pairs", "accuracy"),
        least=0.10,
        models=tuple(BEFORE),
        above=BEFORE,
    ),
    Goal(
        title="sentence order told right",
        path=("text_pairs", "accuracy"),
        least=0.65,
        models=("albert-mini", "macbert-mini-chinese"),
    ),
    Goal(
        title="next sentence told right",
        path=("text_pairs", "accuracy"),
        least=0.85,
        models=("bert-mini", "bert-mini-chinese"),
    ),
    Goal(
        title="AUC of forgeries",
        path=("forgeries", "auc"),
        least=0.85,
        models=DETECTIVES,
        unit="auc",
    ),
    Goal(
        title="capitals that a generator knows",
        path=("capitals", "first"),
        least=40,
        models=tuple(f"{name}{GENERATOR}" for name in DETECTIVES),
        unit="count",
    ),
    Goal(
        title="million tokens read, default",
        path=("run", "tokens"),
        least=150e6,
        models=("bert-mini",),
        unit="millions",
    ),
    Goal(
        title="million tokens read, English",
        path=("run", "tokens"),
        least=50e6,
        models=(*MASKED, "xlnet-mini", "causal-mini", *DETECTIVES),
        unit="millions",
    ),
    Goal(
        title="million tokens read, Chinese",
        path=("run", "tokens"),
        least=40e6,
        models=CHINESE,
        unit="millions",
    ),
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
    return float(value) - (goal.above[name] if goal.above else 0.0)


def _said(value: float, goal: Goal) -> str:
    if goal.unit == "share":
        return f"{100 * value:.1f}" if goal.above else f"{100 * value:.1f} %"
    if goal.unit == "auc":
        return f"{value:.3f}"
    return f"{value:.0f}" if goal.unit == "count" else f"{value / 1e6:.1f}"
