"""From what a head says to labels, entities and answers."""

import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import core_models as cm
from core_models.tasks import objectives
from core_models.tasks.decode import (
    AnswerCandidate,
    Prediction,
    entities_of,
    predict,
    text_row,
)
from core_models.tasks.encode import Coder, content
from core_models.tasks.objectives import TaskObjective
from core_models.tasks.report import measure, report, said
from core_models.tasks.rows import Answer, Row
from core_models.tasks.sets import TaskSet
from tests.tasks.conftest import first_rows


class Oracle(nn.Module):
    """Says what the labels of the batch say, with logits of 9 and 0."""

    def __init__(self, kind: str, labels: int) -> None:
        super().__init__()
        self.kind, self.labels = kind, labels

    def answer(self, encoder: Any, batch: cm.Batch, *_: Any) -> Tensor:
        if self.kind == "regress":
            assert batch.score_labels is not None
            return batch.score_labels
        if self.kind == "tag":
            assert batch.tag_labels is not None
            return 9.0 * nn.functional.one_hot(batch.tag_labels.clamp(min=0), self.labels)
        if self.kind == "answer":
            assert batch.answer_starts is not None
            assert batch.answer_ends is not None
            length = batch.shape[1]
            sides = (batch.answer_starts, batch.answer_ends)
            return 9.0 * torch.stack([nn.functional.one_hot(s, length) for s in sides], -1)
        assert batch.class_labels is not None
        return 9.0 * nn.functional.one_hot(batch.class_labels, self.labels)


def oracle(kind: str, labels: int = 0) -> TaskObjective:
    names = {"classify": "classify", "pair": "classify", "tag": "tag", "answer": "span"}
    return objectives.build(names.get(kind, "regress"), Oracle(kind, labels))


@pytest.mark.parametrize("name", ["topic", "nli", "similarity", "ner", "ner-zh", "qa"])
@pytest.mark.parametrize("max_length", [128, 40])
def test_the_truth_comes_back(model: cm.Model, name: str, max_length: int) -> None:
    """Encoded labels, said by an oracle, are decoded to the labels: nothing is lost or moved."""
    task = first_rows(name, 16, 16)
    coder = Coder.of(model, task, max_length=max_length, stride=8)
    predictions = predict(oracle(task.kind, len(task.labels)), coder, task.train, batch_size=5)
    if task.kind == "answer":
        for row, prediction in zip(task.train, predictions, strict=True):
            if not row.answers:
                assert prediction.answer() == ""
                continue
            # A piece may reach beyond the answer's end, never into another word of English.
            assert row.answers[0].text in prediction.answer()
            assert len(prediction.answer()) <= len(row.answers[0].text) + 3
        return
    values = measure(task, task.train, said(task, predictions))
    main = {"regress": "pearson", "tag": "entity_f1"}.get(task.kind, "accuracy")
    assert values[main] == pytest.approx(1.0)
    if task.kind == "regress":
        assert [p.score for p in predictions] == pytest.approx([row.score for row in task.train])
    if task.kind == "tag":
        for row, prediction in zip(task.train, predictions, strict=True):
            assert prediction.tags == row.tags
            for entity in prediction.entities:
                assert prediction.text[entity.start : entity.end] == entity.text


def test_probabilities_have_names_and_sum_to_one(bert: cm.Model) -> None:
    task = first_rows("topic")
    (prediction,) = predict(oracle("classify", 6), Coder.of(bert, task), task.train[:1])
    assert prediction.probabilities is not None
    assert list(prediction.probabilities) == list(task.labels)
    assert sum(prediction.probabilities.values()) == pytest.approx(1.0)
    share = math.exp(9) / (math.exp(9) + 5)
    assert prediction.probabilities[str(prediction.label)] == pytest.approx(share)


def test_entities_by_hand() -> None:
    tags = ["B-PER", "I-PER", "B-PER", "O", "I-LOC", "I-ORG"]
    text, places = (
        "Ann Lee Bo in Oslo Nato",
        [(0, 3), (4, 7), (8, 10), (11, 13), (14, 18), (19, 23)],
    )
    found = entities_of(tags, [1.0, 0.5, 1, 1, 1, 1], places, text)
    assert [(e.type, e.text) for e in found] == [
        ("PER", "Ann Lee"),
        ("PER", "Bo"),
        ("LOC", "Oslo"),
        ("ORG", "Nato"),
    ]
    assert found[0].probability == 0.75
    assert (found[0].start, found[0].end) == (0, 7)


def test_entities_of_a_typed_text_point_into_that_text(bert: cm.Model) -> None:
    row = text_row("tag", "Yesterday,  Dr Hall's   dog slept.")
    assert row.tokens == ("Yesterday", ",", "Dr", "Hall", "'s", "dog", "slept", ".")

    class Names(nn.Module):
        def answer(self, encoder: Any, batch: cm.Batch, *_: Any) -> Tensor:
            logits = torch.zeros(*batch.shape, 2)
            logits[..., 1] = 1.0
            return logits

    coder = Coder(model=bert, kind="tag", labels=("O", "B-X"))
    (prediction,) = predict(objectives.build("tag", Names()), coder, [row])
    assert [e.text for e in prediction.entities] == list(row.tokens)
    hall = prediction.entities[3]
    assert row.text[hall.start : hall.end] == "Hall"


class Chosen(nn.Module):
    """Gives each window logits from a function of the piece's place in the context."""

    def __init__(self, logits: dict[str, tuple[float, float]], null: list[float]) -> None:
        super().__init__()
        self.logits, self.null = logits, null
        self.coder: Coder | None = None
        self.seen = 0

    def answer(self, encoder: Any, batch: cm.Batch, *_: Any) -> Tensor:
        assert self.coder is not None
        assert batch.input_ids is not None
        found = torch.full((*batch.shape, 2), -5.0)
        for row, ids in enumerate(batch.input_ids.tolist()):
            for column, index in enumerate(ids):
                piece = self.coder.tokenizer.display(index)
                if piece in self.logits:
                    found[row, column] = torch.tensor(self.logits[piece])
            found[row, self.coder.cls_column] = self.null[self.seen] / 2
            self.seen += 1
        return found


def answered(bert: cm.Model, null: list[float], **options: int) -> Any:
    row = Row(text="the people in may and city", pair="when", answers=(Answer("may", 14),))
    head = Chosen({"may": (4.0, 1.0), "city": (3.0, 5.0)}, null)
    head.coder = Coder(model=bert, kind="answer", **options)
    (found,) = predict(objectives.build("span", head), head.coder, [row])
    return found


def test_answers_are_ranked_by_start_plus_end(bert: cm.Model) -> None:
    found = answered(bert, [2.0])
    assert [(a.text, a.score) for a in found.answers[:3]] == [
        ("may and city", 9.0),
        ("city", 8.0),
        ("may", 5.0),
    ]
    assert found.null_score == 2.0
    assert found.margin == -7.0
    assert found.answer() == "may and city"
    assert found.answer(threshold=-8.0) == ""
    assert sum(a.probability for a in found.answers) < 1.0
    assert found.curve.places[3] == (14, 17)
    assert max(range(6), key=found.curve.starts.__getitem__) == 3
    assert max(range(6), key=found.curve.ends.__getitem__) == 5


def test_no_answer_wins_by_its_score(bert: cm.Model) -> None:
    assert answered(bert, [10.0]).answer() == ""
    assert Prediction().answer(threshold=math.inf) == ""  # there is none to give


def test_windows_compete_and_the_lowest_null_counts(bert: cm.Model) -> None:
    # Windows of 4 pieces, 3 apart: "the people in may", then "may and city".
    found = answered(bert, [20.0, 4.0], max_length=8, stride=3)
    assert found.null_score == 4.0
    assert found.answers[0].text == "may and city"


def test_reports_list_the_worst_first(bert: cm.Model) -> None:
    task = first_rows("topic", 8, 8)
    predictions = predict(oracle("classify", 6), Coder.of(bert, task), task.dev)
    perfect = report(task, task.dev, predictions)
    assert perfect.metrics["accuracy"] == 1.0
    assert perfect.mistakes == ()
    moved = [*predictions[1:], predictions[0]]
    found = report(task, task.dev, moved)
    wrong = [m.wrongness for m in found.mistakes]
    assert wrong == sorted(wrong, reverse=True)
    assert all(m.expected != m.said for m in found.mistakes)
    assert sum(map(sum, found.confusion)) == 8
    assert found.metrics["accuracy"] == pytest.approx(1 - len(found.mistakes) / 8)


def test_reports_of_answers_have_a_threshold(model: cm.Model) -> None:
    task = first_rows("qa", 8, 20)
    predictions = predict(oracle("answer"), Coder.of(model, task), task.dev)
    found = report(task, task.dev, predictions)
    assert found.threshold is not None
    assert found.metrics["best_f1"] >= found.metrics["f1"]


def test_a_report_whose_best_threshold_is_never_to_answer_is_json() -> None:
    """Each answer is wrong, so none is best; JSON has no infinity."""
    rows = (Row(text="a b", pair="?", answers=(Answer("a", 0),)), Row(text="a b", pair="?"))
    task = TaskSet(name="x", kind="answer", train=rows, dev=rows)
    wrong = AnswerCandidate(text="b", start=2, end=3, score=1.0, probability=0.9)
    found = report(task, rows, [Prediction(answers=(wrong,))] * 2)
    assert found.threshold == -math.inf
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["threshold"] is None


def test_content_leaves_blanks_out(model: cm.Model) -> None:
    text = "  Rain fell on  Oslo."
    encoding = model.tokenizer.encode(text)
    for place, special in enumerate(encoding.special):
        if not special:
            start, end = content(encoding, place, text)
            assert text[start:end] == text[start:end].strip()
