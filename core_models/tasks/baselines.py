"""What can be had without a model of language: marks for a model to beat."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from core_models.tasks.report import Said, measure
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet
from core_models.tasks.words import words

_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*")
"""Between sentences."""
_BETWEEN = " \u241e "
"""Stands between the texts of a pair."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A method and what it reaches on the development rows."""

    name: str
    title: str
    metrics: dict[str, float]


Method = Callable[[TaskSet], list[Said]]


def baselines(task: TaskSet) -> list[Baseline]:
    """Every baseline of the set's kind, learnt from its training rows."""
    paired = any(row.pair for row in task.dev)
    methods = _METHODS[task.kind if paired or task.kind != "regress" else "regress_alone"]
    return [
        Baseline(name=name, title=title, metrics=measure(task, task.dev, method(task)))
        for name, title, method in methods
    ]


def _majority(task: TaskSet) -> list[Said]:
    common = Counter(str(row.label) for row in task.train).most_common(1)[0][0]
    return [common] * len(task.dev)


def _words(task: TaskSet) -> list[Said]:
    return _linear(task, CountVectorizer(**_grams(task)))


def _weighted_words(task: TaskSet) -> list[Said]:
    return _linear(task, TfidfVectorizer(sublinear_tf=True, **_grams(task)))


def _grams(task: TaskSet) -> dict[str, object]:
    """Words; for Chinese, and for texts without a word (emoji), characters and pairs of them."""
    if task.chinese or not any(re.search(r"\w", _whole(row)) for row in task.train):
        return {"analyzer": "char", "ngram_range": (1, 2)}
    return {"token_pattern": r"(?u)\b\w+\b"}


def _linear(task: TaskSet, counter: CountVectorizer) -> list[Said]:
    model = make_pipeline(counter, LogisticRegression(max_iter=1000))
    model.fit([_whole(row) for row in task.train], [str(row.label) for row in task.train])
    return [str(label) for label in model.predict([_whole(row) for row in task.dev])]


def _whole(row: Row) -> str:
    return row.text if row.pair is None else f"{row.text}{_BETWEEN}{row.pair}"


def _commonest_alone(task: TaskSet) -> list[Said]:
    common = Counter(label for row in task.train for label in row.labels).most_common(1)[0][0]
    return [(common,)] * len(task.dev)


def _words_each(task: TaskSet) -> list[Said]:
    return _each_label(task, CountVectorizer(**_grams(task)))


def _weighted_words_each(task: TaskSet) -> list[Said]:
    return _each_label(task, TfidfVectorizer(sublinear_tf=True, **_grams(task)))


def _each_label(task: TaskSet, counter: CountVectorizer) -> list[Said]:
    """One logistic regression for each label, over the same counts."""
    train = counter.fit_transform([_whole(row) for row in task.train])
    dev = counter.transform([_whole(row) for row in task.dev])
    found: list[list[str]] = [[] for _ in task.dev]
    for label in task.labels:
        wanted = [label in row.labels for row in task.train]
        if len(set(wanted)) == 1:  # nothing to be told apart
            holds = [wanted[0]] * len(task.dev)
        else:
            holds = LogisticRegression(max_iter=1000).fit(train, wanted).predict(dev).tolist()
        for row, true in zip(found, holds, strict=True):
            row += [label] if true else []
    return [tuple(row) for row in found]


def _mean_score(task: TaskSet) -> list[Said]:
    mean = float(np.mean([row.score for row in task.train if row.score is not None]))
    return [mean] * len(task.dev)


def _overlap(task: TaskSet) -> list[Said]:
    """Shared words over all words (Jaccard)."""
    return [_shared(row.text, row.pair or "") for row in task.dev]


def _length(task: TaskSet) -> list[Said]:
    return [float(len(row.text)) for row in task.dev]


def _shared(first: str, second: str) -> float:
    a, b = (_content(text) for text in (first, second))
    return len(a & b) / max(len(a | b), 1)


def _content(text: str) -> set[str]:
    return {word.text.lower() for word in words(text) if any(c.isalnum() for c in word.text)}


def _all_outside(task: TaskSet) -> list[Said]:
    common = Counter(tag for row in task.train for tag in row.tags).most_common(1)[0][0]
    return [(common,) * len(row.tokens) for row in task.dev]


def _tag_of_word(task: TaskSet) -> list[Said]:
    """The tag that a word has most often; unknown words get the commonest tag."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    everywhere: Counter[str] = Counter()
    for row in task.train:
        everywhere.update(row.tags)
        for token, tag in zip(row.tokens, row.tags, strict=True):
            seen[token][tag] += 1
    common = everywhere.most_common(1)[0][0]
    table = {token: counts.most_common(1)[0][0] for token, counts in seen.items()}
    return [tuple(table.get(token, common) for token in row.tokens) for row in task.dev]


def _never(task: TaskSet) -> list[Said]:
    return [""] * len(task.dev)


def _nearest_sentence(task: TaskSet) -> list[Said]:
    """The sentence of the context that shares most words with the question."""
    found: list[Said] = []
    for row in task.dev:
        wanted = _content(row.pair or "")
        found.append(max(_END.split(row.text), key=lambda s: len(_content(s) & wanted)))
    return found


_LABEL: Sequence[tuple[str, str, Method]] = (
    ("majority", "always the commonest label", _majority),
    ("bag_of_words", "bag of words", _words),
    ("weighted_words", "bag of words with tf-idf weights", _weighted_words),
)
_METHODS: dict[str, Sequence[tuple[str, str, Method]]] = {
    "multilabel": (
        ("majority", "always the commonest label", _commonest_alone),
        ("bag_of_words", "bag of words", _words_each),
        ("weighted_words", "bag of words with tf-idf weights", _weighted_words_each),
    ),
    "classify": _LABEL,
    "pair": _LABEL,
    "regress": (
        ("majority", "always the mean score", _mean_score),
        ("overlap", "shared words", _overlap),
    ),
    "regress_alone": (
        ("majority", "always the mean score", _mean_score),
        ("length", "length of the text", _length),
    ),
    "tag": (
        ("majority", "always the commonest tag", _all_outside),
        ("tag_of_word", "commonest tag of each word", _tag_of_word),
    ),
    "answer": (
        ("majority", "never an answer", _never),
        ("nearest_sentence", "sentence with most words of the question", _nearest_sentence),
    ),
}
