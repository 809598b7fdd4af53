"""What the papers claim, beside what came out here.

Each claim says that one thing is better than another. Its verdict is computed from the figures that
lie beside the models, by the rule in :data:`RULE`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from zoo.entries import Entry, spread, unlearnt

RULE = """The verdict follows from the difference of our two figures alone. It **reproduces** if the
difference has the claimed sign and is larger than two standard errors; it is the **opposite** if it
is that far on the other side; else there is **no clear difference**. The standard error of
fine-tuned scores comes from the spread over seeds (tasks with at least two seeds of both), that of
a share, or of a mean of shares, from its number of cases; where that number is not kept, two points
stand for two standard errors. Every model was pretrained once, so that another pretraining seed may
decide otherwise. Two models that did not begin alike, or did not read as much of the same text
(their notes in the first section), are **trained unequally**: that may be what made the
difference."""
_SMALLEST = 0.02
"""Stands for two standard errors where they are not known."""


class Difference(NamedTuple):
    """Two figures in 0..1, and how surely they differ."""

    left: float
    right: float
    margin: float
    """Two standard errors of the difference."""
    over: str
    """What the figures are, for people."""
    alike: bool = True
    """Whether both models were trained alike: begun with the same, on as much of the same text."""


Figures = Mapping[str, Entry]
Measure = Callable[[Figures], Difference | str]
"""A string says why there is no figure."""


@dataclass(frozen=True)
class Claim:
    """Something that a paper found."""

    text: str
    source: str
    published: str
    """The paper's figures, the better one first."""
    measure: Measure


@dataclass(frozen=True)
class Outcome:
    """A claim beside our figures."""

    claim: Claim
    ours: str
    verdict: str


def outcomes(figures: Figures) -> list[Outcome]:
    """Every claim with its verdict."""
    return [_outcome(claim, figures) for claim in CLAIMS]


def _outcome(claim: Claim, figures: Figures) -> Outcome:
    found = claim.measure(figures)
    if isinstance(found, str):
        return Outcome(claim, f"\u2013 ({found})", "not measured")
    ours = f"{100 * found.left:.1f} and {100 * found.right:.1f} ({found.over})"
    return Outcome(claim, ours, verdict(found) + ("" if found.alike else ", trained unequally"))


def verdict(found: Difference) -> str:
    """The rule of :data:`RULE`."""
    difference = found.left - found.right
    if abs(difference) <= found.margin:
        return "no clear difference"
    return "reproduces" if difference > 0 else "opposite"


def tuned(left: str, right: str, *, tasks: tuple[str, ...] = ()) -> Measure:
    """Mean fine-tuned score of two models over the tasks that both have."""
    return lambda figures: _tuned(figures, (left, "pretrained"), (right, "pretrained"), tasks)


def pretraining(model: str) -> Measure:
    """The same for one model with and without its pretraining."""
    return lambda figures: _tuned(figures, (model, "pretrained"), (model, "fresh"), ())


def _tuned(
    figures: Figures, left: tuple[str, str], right: tuple[str, str], tasks: tuple[str, ...]
) -> Difference | str:
    absent = _absent(figures, left[0], right[0])
    if absent:
        return absent
    sums, variance, count = [0.0, 0.0], 0.0, 0
    asked = tasks or tuple(figures[left[0]].tasks)
    told = [task for task in asked if not unlearnt(figures.values(), task)]
    if asked and not told:
        return f"no model does better on {' or '.join(asked)} than the commonest answer"
    for task in told:
        found = [spread(figures[name].values(task, kind)) for name, kind in (left, right)]
        both = [one for one in found if one is not None and one.seeds > 1]
        if len(both) < 2:
            continue
        count += 1
        for side, one in enumerate(both):
            sums[side] += one.mean
            variance += one.variance_of_mean
    if not count:
        what = f" on {' or '.join(tasks)}" if tasks else ""
        return f"no scores of both{what} with two seeds"
    return Difference(
        sums[0] / count,
        sums[1] / count,
        2 * math.sqrt(variance) / count,
        f"mean of {count} task{'s' if count > 1 else ''}",
        _alike(figures, left[0], right[0]),
    )


def shares(left: tuple[str, ...], right: tuple[str, ...], over: str) -> Measure:
    """Two shares of ``evaluation.json``: model, keys of the share; ``cases`` beside it if known."""

    def measure(figures: Figures) -> Difference | str:
        absent = _absent(figures, left[0], right[0])
        if absent:
            return absent
        found = [_share(figures[path[0]], path[1:]) for path in (left, right)]
        values = [value for value, _ in found if value is not None]
        if len(values) < 2:
            lacking = left if found[0][0] is None else right
            return f"{lacking[0]} has no such figure"
        variances = [variance for _, variance in found if variance is not None]
        margin = 2 * math.sqrt(sum(variances)) if len(variances) == 2 else _SMALLEST
        alike = _alike(figures, left[0], right[0])
        return Difference(values[0], values[1], margin, over, alike)

    return measure


_CASES = {"minimal_pairs": "pairs", "words": "words", "text_pairs": "pairs"}
_SECOND = {"next_sentence": "random", "sentence_order": "swapped"}
"""What a head about two texts has to tell from those that follow each other."""


def _share(entry: Entry, path: tuple[str, ...]) -> tuple[float | None, float | None]:
    """A figure and the variance of its error; None where there is none, or no number of cases."""
    value: object = entry.figures
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, float):
        return None, None
    part: Mapping[str, Any] = entry.figures.get(path[0], {})
    cases = part.get(_CASES.get(path[0], ""))
    if not cases:
        return value, None
    return value, _variance(part, path[0], value, cases)


def _variance(part: Mapping[str, Any], name: str, value: float, cases: int) -> float:
    """Of a share, or of a mean of shares, each of a group of the cases."""
    shares, each = [value], float(cases)
    if name == "minimal_pairs" and "phenomena" in part:
        shares = list(part["phenomena"].values())
        each = cases / len(shares)
    elif name == "text_pairs" and "followed" in part:  # so many pairs of either kind
        shares = [part["followed"], part[_SECOND[part["head"]]]]
    return sum(share * (1 - share) for share in shares) / each / len(shares) ** 2


def unmeasured(reason: str) -> Measure:
    """No model of the set tells."""
    return lambda figures: reason


def _alike(figures: Figures, *names: str) -> bool:
    """Whether the same note stands on the training of all: what they began with and read."""
    return len({figures[name].training.get("note") for name in names}) == 1


def _absent(figures: Figures, *names: str) -> str:
    lacking = [name for name in dict.fromkeys(names) if name not in figures]
    if not lacking:
        return ""
    return f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not in the set"


CLAIMS = (
    Claim(
        "Pretraining beats training from random weights",
        "arXiv 2212.14034",
        "GLUE 78.6 and 45.5",
        pretraining("bert-mini"),
    ),
    Claim(
        "A model that sees both sides beats one that sees the left (here: tags of words)",
        "arXiv 1810.04805, table 5",
        "MNLI 83.9 and 82.1 (both without next sentence)",
        tuned("roberta-mini", "causal-mini"),
    ),
    Claim(
        "Masked models tell acceptable sentences better than causal ones",
        "BabyLM 2023, baselines of its evaluation (10 million words; no arXiv id)",
        "BLiMP 69.5 (RoBERTa) and 62.6 (OPT)",
        shares(
            ("roberta-mini", "minimal_pairs", "accuracy"),
            ("causal-mini", "minimal_pairs", "accuracy"),
            "minimal pairs",
        ),
    ),
    Claim(
        "Next sentence prediction helps (here the vocabulary differs, too)",
        "arXiv 1810.04805, table 5",
        "MNLI 84.4 and 83.9",
        tuned("bert-mini", "roberta-mini"),
    ),
    Claim(
        "It does not: whole documents without it are better",
        "arXiv 1907.11692, table 2",
        "MNLI 84.7 and 84.0",
        tuned("roberta-mini", "bert-mini"),
    ),
    Claim(
        "Sentence order is harder to tell than next sentence",
        "arXiv 1909.11942, table 5",
        "90.5 (next sentence) and 86.5 (order), each by the model trained for it",
        shares(
            ("bert-mini", "text_pairs", "accuracy"),
            ("albert-mini", "text_pairs", "accuracy"),
            "held-out pairs",
        ),
    ),
    Claim(
        "Sharing all layers costs quality (here against BERT)",
        "arXiv 1909.11942, table 4",
        "mean of five tasks 81.6 and 80.1 (E = 128)",
        tuned("bert-mini", "albert-mini"),
    ),
    Claim(
        "Spans and their boundary help to answer questions",
        "arXiv 1907.10529; arXiv 1810.04805",
        "SQuAD 1.1 F1 92.4 (SpanBERT base) and 88.5 (BERT base)",
        tuned("spanbert-mini", "bert-mini", tasks=("qa", "questions")),
    ),
    Claim(
        "Permutations with two streams beat masked tokens",
        "arXiv 1906.08237; arXiv 1810.04805",
        "MNLI 86.8 (XLNet base) and 84.4 (BERT base)",
        tuned("xlnet-mini", "bert-mini"),
    ),
    Claim(
        "Replaced tokens teach a small model more than masked ones",
        "arXiv 2003.10555, table 1",
        "GLUE 79.9 (ELECTRA-Small) and 75.1 (BERT-Small)",
        tuned("electra-mini", "bert-mini"),
    ),
    Claim(
        "Disentangled attention with a mask decoder beats RoBERTa",
        "arXiv 2006.03654, ablation",
        "MNLI 86.3 and 84.9",
        tuned("deberta-mini", "roberta-mini"),
    ),
    Claim(
        "Replaced tokens with disentangled sharing beat masked tokens in DeBERTa",
        "arXiv 2111.09543, ablation",
        "MNLI 89.3 and 86.3",
        tuned("deberta-v3-mini", "deberta-mini"),
    ),
    Claim(
        "Hiding whole Chinese words beats hiding characters",
        "arXiv 1906.08101",
        "CMRC 2018 F1 85.6 and 84.5",
        unmeasured("the set has no twin that hides single characters"),
    ),
)
