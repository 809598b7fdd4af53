"""What a fine-tuned model says about rows: labels, scores, entities and answers."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.tasks.bio import begins, is_bio, type_of
from core_models.tasks.encode import Coder, Feature, content
from core_models.tasks.objectives import TaskObjective, without_padding
from core_models.tasks.rows import Row
from core_models.tasks.words import join, words

_LONGEST_ANSWER = 30
"""Pieces (released ``run_squad.py``)."""
_CANDIDATES = 20
"""Starts and ends that are combined (released ``run_squad.py``)."""


@dataclass(frozen=True, kw_only=True)
class Entity:
    """A named stretch."""

    type: str
    start: int
    """First character in the text of the prediction."""
    end: int
    """One after the last character."""
    text: str
    probability: float
    """Mean probability of its tags."""


@dataclass(frozen=True, kw_only=True)
class AnswerCandidate:
    """A stretch of the context that may be the answer."""

    text: str
    start: int
    end: int
    score: float
    """Logit of its first plus logit of its last piece."""
    probability: float
    """Among the candidates and "no answer"."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Start and end probability of each piece of the context, in the window of the best answer."""

    places: tuple[tuple[int, int], ...]
    """Characters of each piece."""
    starts: tuple[float, ...]
    ends: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What was said about a row; which fields are filled follows from the kind."""

    label: str | None = None
    labels: tuple[str, ...] = ()
    """Of several that may hold, those whose probability reaches the coder's threshold."""
    probabilities: dict[str, float] | None = None
    """Of every label."""
    score: float | None = None
    """In the scale of the set."""
    text: str = ""
    """Tagging: the text that the entities point into."""
    tags: tuple[str, ...] = ()
    """One for each word."""
    tag_probabilities: tuple[float, ...] = ()
    entities: tuple[Entity, ...] = ()
    answers: tuple[AnswerCandidate, ...] = ()
    """Best first."""
    null_score: float = 0.0
    """Logit of "no answer": the lowest over the windows, as each window that lacks the answer
    says "no answer"."""
    curve: Curve | None = None

    @property
    def margin(self) -> float:
        """Score of no answer minus that of the best answer."""
        return self.null_score - self.answers[0].score if self.answers else math.inf

    def answer(self, threshold: float = 0.0) -> str:
        """The best answer, or "" where the margin is above the threshold."""
        return self.answers[0].text if self.answers and self.margin <= threshold else ""


@torch.no_grad()
def predict(
    objective: TaskObjective, coder: Coder, rows: Sequence[Row], *, batch_size: int = 32
) -> list[Prediction]:
    """Predictions for rows, in their order; labels of the rows are not looked at.

    Model and objective must be in evaluation mode.
    """
    features = coder.features(rows)
    order = sorted(range(len(features)), key=lambda i: features[i].length)
    logits: list[Tensor] = [torch.empty(0)] * len(features)
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        some = [features[i] for i in chosen]
        batch = coder.batch(some)
        answer = objective.answer(coder.model.encoder, batch)
        if coder.kind == "answer":
            answer = without_padding(answer, batch)
        for index, values in zip(chosen, _rows(answer, coder, some, batch), strict=True):
            logits[index] = values.cpu()
    by_row: list[list[tuple[Feature, Tensor]]] = [[] for _ in rows]
    for feature, values in zip(features, logits, strict=True):
        by_row[feature.row].append((feature, values))
    return [_decoded(coder, row, parts) for row, parts in zip(rows, by_row, strict=True)]


def text_row(kind: str, text: str, pair: str | None = None) -> Row:
    """A row without labels from what somebody typed; for answers ``pair`` is the question."""
    if kind == "tag":
        return Row(text=text, tokens=tuple(word.text for word in words(text)))
    return Row(text=text, pair=pair)


def entities_of(
    tags: Sequence[str],
    probabilities: Sequence[float],
    places: Sequence[tuple[int, int]],
    text: str,
) -> tuple[Entity, ...]:
    """Stretches of tags in BIO, read as ``conlleval`` does: an I- that continues nothing begins.

    Args:
        tags: per word.
        probabilities: of these tags.
        places: characters of each word in ``text``.
        text: what the entities point into.
    """
    found: list[list[int]] = []
    before = "O"
    for index, tag in enumerate(tags):
        if begins(before, tag):
            found.append([index])
        elif tag != "O":
            found[-1].append(index)
        before = tag
    return tuple(
        Entity(
            type=type_of(tags[part[0]]),
            start=places[part[0]][0],
            end=places[part[-1]][1],
            text=text[places[part[0]][0] : places[part[-1]][1]],
            probability=sum(probabilities[i] for i in part) / len(part),
        )
        for part in found
    )


def _rows(answer: Tensor, coder: Coder, features: Sequence[Feature], batch: Batch) -> list[Tensor]:
    """One tensor per feature, without its padding."""
    if coder.kind not in ("tag", "answer"):
        return list(answer)
    _, length = batch.shape
    return [
        values[coder.shift(feature, length) :][: len(feature.encoding)]
        for values, feature in zip(answer, features, strict=True)
    ]


def _decoded(coder: Coder, row: Row, parts: Sequence[tuple[Feature, Tensor]]) -> Prediction:
    if coder.kind == "tag":
        return _tagged(coder, row, parts)
    if coder.kind == "answer":
        return _answered(coder, row, parts)
    values = parts[0][1]
    if coder.kind == "regress":
        low, high = coder.scale
        return Prediction(score=low + (high - low) * float(values))
    if coder.kind == "multilabel":
        named = dict(zip(coder.labels, values.sigmoid().tolist(), strict=True))
        held = tuple(label for label, p in named.items() if p >= coder.threshold)
        return Prediction(labels=held, probabilities=named)
    probabilities = values.softmax(-1).tolist()
    named = dict(zip(coder.labels, probabilities, strict=True))
    return Prediction(label=coder.labels[int(values.argmax())], probabilities=named)


def _tagged(coder: Coder, row: Row, parts: Sequence[tuple[Feature, Tensor]]) -> Prediction:
    """A word without a piece gets the first label, ``O`` where there are entities."""
    tags = [coder.labels[0]] * len(row.tokens)
    sure = [0.0] * len(row.tokens)
    for feature, logits in parts:
        best, which = logits.softmax(-1).max(-1)
        for place, word in enumerate(feature.words):
            if word >= 0:
                tags[word], sure[word] = coder.labels[int(which[place])], float(best[place])
    text, places = _words_in(row)
    bio = all(is_bio(label) for label in coder.labels)
    return Prediction(
        text=text,
        tags=tuple(tags),
        tag_probabilities=tuple(sure),
        entities=entities_of(tags, sure, places, text) if bio else (),
    )


def _words_in(row: Row) -> tuple[str, list[tuple[int, int]]]:
    """The text of a row and the characters of each word in it."""
    if row.text:
        return row.text, [(word.start, word.end) for word in words(row.text)]
    return join(row.tokens)


def _answered(coder: Coder, row: Row, parts: Sequence[tuple[Feature, Tensor]]) -> Prediction:
    best: dict[tuple[int, int], tuple[float, int]] = {}
    null = math.inf
    for number, (feature, logits) in enumerate(parts):
        cls = coder.cls_place(feature.encoding)
        null = min(null, float(logits[cls].sum()))
        for score, start, end in _spans(feature, logits):
            first, _ = content(feature.encoding, start, row.text)
            _, last = content(feature.encoding, end, row.text)
            last = _with_marks(row.text, last)
            if first < last and score > best.get((first, last), (-math.inf, 0))[0]:
                best[first, last] = (score, number)
    ranked = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:_CANDIDATES]
    scores = torch.tensor([score for _, (score, _) in ranked] + [null])
    shares = scores.softmax(0).tolist()
    candidates = tuple(
        AnswerCandidate(text=row.text[a:b], start=a, end=b, score=score, probability=share)
        for ((a, b), (score, _)), share in zip(ranked, shares, strict=False)
    )
    window = parts[ranked[0][1][1] if ranked else 0]
    return Prediction(answers=candidates, null_score=null, curve=_curve(*window, row.text))


def _with_marks(text: str, end: int) -> int:
    """The end of a stretch with the marks that belong to its last letter.

    A tokenizer that drops accents has no piece for an accent, or for a vowel sign of Indian
    scripts, that is a character of its own.
    """
    while end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end += 1
    return end


def _spans(feature: Feature, logits: Tensor) -> list[tuple[float, int, int]]:
    """Stretches of the best starts and ends in a window: (score, first piece, last piece)."""
    first, last = feature.context
    inside = logits[first:last]
    count = min(_CANDIDATES, last - first)
    starts, ends = (inside[:, side].topk(count).indices.tolist() for side in (0, 1))
    values: list[list[float]] = inside.tolist()
    return [
        (values[a][0] + values[b][1], first + a, first + b)
        for a in starts
        for b in ends
        if a <= b < a + _LONGEST_ANSWER
    ]


def _curve(feature: Feature, logits: Tensor, text: str) -> Curve:
    first, last = feature.context
    shares = logits.softmax(0)[first:last]
    return Curve(
        places=tuple(content(feature.encoding, i, text) for i in range(first, last)),
        starts=tuple(shares[:, 0].tolist()),
        ends=tuple(shares[:, 1].tolist()),
    )
