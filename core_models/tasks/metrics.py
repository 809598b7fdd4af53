"""How good predictions are: the measures of each task's field."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from seqeval import metrics as entities
from sklearn import metrics as scores

from core_models.tasks.words import words

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LabelScores:
    """One label against all others."""

    precision: float
    recall: float
    f1: float
    support: int
    """Rows, or entities, that have it."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Predictions of about the same probability."""

    probability: float
    """Their mean probability."""
    accuracy: float
    count: int


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Whether of the predictions made with probability p a share of p is right."""

    bins: tuple[Bin, ...]
    """Those that hold a prediction, from low to high."""
    error: float
    """Expected calibration error, in 0..1 (arXiv 1706.04599, section 2)."""


def classification(true: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro-F1 over the labels that occur in either."""
    return {
        "accuracy": float(np.mean([a == b for a, b in zip(true, predicted, strict=True)])),
        "macro_f1": float(scores.f1_score(true, predicted, average="macro", zero_division=0)),
    }


def several_labels(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, float]:
    """Micro- and macro-F1 over all labels, and the share of rows with just the right ones.

    A label that no row has and none was given counts 0 in the macro-F1, as in scikit-learn.
    """
    given, found = (_indicators(rows, labels) for rows in (true, predicted))
    return {
        "micro_f1": float(scores.f1_score(given, found, average="micro", zero_division=0)),
        "macro_f1": float(scores.f1_score(given, found, average="macro", zero_division=0)),
        "exact_match": float((given == found).all(1).mean()),
    }


def per_label_of_several(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, LabelScores]:
    """Precision, recall and F1 of each label; 0 where it was never given."""
    return {
        label: per_label(
            [label if label in row else "" for row in true],
            [label if label in row else "" for row in predicted],
            [label],
        )[label]
        for label in labels
    }


def _indicators(rows: Sequence[Sequence[str]], labels: Sequence[str]) -> NDArray[np.int64]:
    return np.array([[int(label in row) for label in labels] for row in rows])


def per_label(
    true: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, LabelScores]:
    """Precision, recall and F1 of each label; 0 where nothing was predicted."""
    precision, recall, f1, support = scores.precision_recall_fscore_support(
        true, predicted, labels=list(labels), zero_division=0
    )
    return {
        label: LabelScores(
            precision=float(precision[i]),
            recall=float(recall[i]),
            f1=float(f1[i]),
            support=int(support[i]),
        )
        for i, label in enumerate(labels)
    }


def confusion(
    true: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> list[list[int]]:
    """Rows by true label (row of the matrix) and predicted label (column)."""
    found: list[list[int]] = scores.confusion_matrix(true, predicted, labels=list(labels)).tolist()
    return found


def correlation(true: Sequence[float], predicted: Sequence[float]) -> dict[str, float]:
    """Pearson and Spearman; 0 where either side is constant, for it then says nothing."""
    if len(true) < 2 or np.ptp(true) == 0 or np.ptp(predicted) == 0:
        return {"pearson": 0.0, "spearman": 0.0}
    return {
        "pearson": float(stats.pearsonr(true, predicted).statistic),
        "spearman": float(stats.spearmanr(true, predicted).statistic),
    }


def entity_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Micro-averaged precision, recall and F1 of whole entities, read as ``conlleval`` does."""
    given, found = [list(tags) for tags in true], [list(tags) for tags in predicted]
    return {
        "entity_f1": float(entities.f1_score(given, found, zero_division=0)),
        "entity_precision": float(entities.precision_score(given, found, zero_division=0)),
        "entity_recall": float(entities.recall_score(given, found, zero_division=0)),
    }


def per_entity(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, LabelScores]:
    """Scores of each type of entity."""
    given, found = [list(tags) for tags in true], [list(tags) for tags in predicted]
    if not any(tag != "O" for tags in (*given, *found) for tag in tags):
        return {}
    report = entities.classification_report(given, found, output_dict=True, zero_division=0)
    return {
        name: LabelScores(
            precision=float(values["precision"]),
            recall=float(values["recall"]),
            f1=float(values["f1-score"]),
            support=int(values["support"]),
        )
        for name, values in report.items()
        if not name.endswith(" avg")
    }


def calibration(
    probabilities: Sequence[float], correct: Sequence[bool], bins: int = 10
) -> Calibration:
    """Bins of equal width over the probability of the predicted label."""
    values, right = np.asarray(probabilities, dtype=float), np.asarray(correct, dtype=float)
    place = np.minimum((values * bins).astype(int), bins - 1)
    found = [
        Bin(
            probability=float(values[place == i].mean()),
            accuracy=float(right[place == i].mean()),
            count=int((place == i).sum()),
        )
        for i in range(bins)
        if (place == i).any()
    ]
    gaps = sum(b.count * abs(b.probability - b.accuracy) for b in found)
    return Calibration(bins=tuple(found), error=gaps / max(len(values), 1))


# -- answers --------------------------------------------------------------------------------------


def exact_match(prediction: str, truths: Sequence[str]) -> float:
    """1 where the prediction is one of the truths, articles, case and punctuation aside.

    Without truths only the empty prediction is right (SQuAD 2.0, arXiv 1806.03822).
    """
    return float(units(prediction) in _wanted(truths))


def answer_f1(prediction: str, truths: Sequence[str]) -> float:
    """Overlap of words, best over the truths; with an empty side 1 if both are, else 0."""
    return max(_overlap(units(prediction), wanted) for wanted in _wanted(truths))


def _wanted(truths: Sequence[str]) -> list[list[str]]:
    """Units of the truths of which anything is left; of none only "no answer" (SQuAD's script)."""
    return [found for truth in truths if (found := units(truth))] or [[]]


def units(text: str) -> list[str]:
    """What answers are compared by: words without articles, and single Chinese characters.

    Words as in SQuAD's official script. For Chinese text CMRC 2018's script also splits into
    characters, but scores their longest common run instead of their overlap.
    """
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    bare = re.sub(r"\b(a|an|the)\b", " ", bare)
    return [
        unit for part in bare.split() for unit in (_pieces(part) if not part.isascii() else [part])
    ]


def _pieces(part: str) -> list[str]:
    """Chinese characters apart and without Chinese punctuation; other writing as it is."""
    found = [word.text for word in words(part)]
    chinese = any(len(word) == 1 and "\u3400" <= word <= "\u9fff" for word in found)
    return [word for word in found if any(c.isalnum() for c in word)] if chinese else [part]


def _overlap(found: list[str], true: list[str]) -> float:
    if not found or not true:
        return float(found == true)
    shared = sum((Counter(found) & Counter(true)).values())
    return 2 * shared / (len(found) + len(true))


def best_threshold(
    margins: Sequence[float], values: Sequence[float], answerable: Sequence[bool]
) -> tuple[float, float]:
    """From which margin on "no answer" should be said, as SQuAD 2.0's script finds it.

    Args:
        margins: score of no answer minus score of the best answer, per question.
        values: what the best answer earns (exact match or F1) where one is given.
        answerable: whether the question has an answer.

    Returns:
        (threshold, mean value with it): an answer is given where the margin is at most the
        threshold. Minus infinity = never answer.
    """
    order = np.argsort(np.asarray(margins), kind="stable")
    total = float(sum(not known for known in answerable))  # with no answer at all
    best, threshold = total, -np.inf
    for place, index in enumerate(order):
        total += values[index] if answerable[index] else -1.0
        following = order[place + 1] if place + 1 < len(order) else None
        tied = following is not None and margins[following] == margins[index]
        if total > best and not tied:
            best, threshold = total, float(margins[index])
    return threshold, best / max(len(order), 1)


def answers(predictions: Sequence[str], truths: Sequence[Sequence[str]]) -> dict[str, float]:
    """Exact match and F1 in 0..1, over all questions and over those with an answer."""
    exact = _each(exact_match, predictions, truths)
    f1 = _each(answer_f1, predictions, truths)
    known = np.array([bool(t) for t in truths])
    found = {"exact_match": float(exact.mean()), "f1": float(f1.mean())}
    if known.any() and not known.all():
        found |= {"answerable_f1": float(f1[known].mean())}
        found |= {"no_answer_accuracy": float(exact[~known].mean())}
    return found


def _each(
    measure: Callable[[str, Sequence[str]], float],
    predictions: Sequence[str],
    truths: Sequence[Sequence[str]],
) -> Values:
    return np.array([measure(p, t) for p, t in zip(predictions, truths, strict=True)])
