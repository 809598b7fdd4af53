"""Baselines by hand and on the shipped sets."""

import pytest

from core_models.tasks import sets
from core_models.tasks.baselines import baselines
from core_models.tasks.rows import Answer, Row
from core_models.tasks.sets import TaskSet, from_rows


def values(task: TaskSet) -> dict[str, dict[str, float]]:
    return {b.name: b.metrics for b in baselines(task)}


@pytest.mark.parametrize(
    ("name", "method", "metric", "expected"),
    [
        ("sentiment", "bag_of_words", "accuracy", 0.88),
        ("topic", "bag_of_words", "accuracy", 0.88),
        ("topic", "weighted_words", "accuracy", 0.93),
        ("sentiment-hard", "bag_of_words", "accuracy", 0.59),
        ("sentiment-zh", "bag_of_words", "accuracy", 0.65),
        ("nli", "bag_of_words", "accuracy", 0.41),
        ("similarity", "overlap", "pearson", 0.41),
    ],
)
def test_the_primers_own_table_is_met(name: str, method: str, metric: str, expected: float) -> None:
    # Words are cut a little differently there; a few rows more or less are expected.
    assert values(sets.load(name))[method][metric] == pytest.approx(expected, abs=0.04)


def test_majorities_by_hand() -> None:
    rows = [Row(text=f"t{i}", label="a" if i < 3 else "b") for i in range(4)]
    dev = [Row(text="x", label="a"), Row(text="y", label="b")]
    assert values(from_rows("x", "classify", rows, dev))["majority"]["accuracy"] == 0.5
    assert values(sets.load("similarity"))["majority"] == {"pearson": 0.0, "spearman": 0.0}


def test_the_mark_of_a_score_of_one_text_is_called_what_it_is() -> None:
    rows = [Row(text="x" * n, score=float(n)) for n in range(1, 5)]
    length = baselines(from_rows("x", "regress", rows, rows))[1]
    assert length.title == "length of the text"
    assert length.metrics["pearson"] == pytest.approx(1.0)


def test_words_keep_their_commonest_tag() -> None:
    train = [
        Row(tokens=("Ann", "ran"), tags=("B-PER", "O")),
        Row(tokens=("Ann", "may", "run"), tags=("B-PER", "O", "O")),
        Row(tokens=("Ann", "Lake"), tags=("B-LOC", "I-LOC")),
    ]
    dev = [
        Row(tokens=("Ann", "Lee"), tags=("B-PER", "I-PER")),
        Row(tokens=("Ann",), tags=("B-PER",)),
    ]
    found = values(from_rows("x", "tag", train, dev))
    assert found["tag_of_word"]["entity_f1"] == pytest.approx(0.5)  # "Lee" is unknown: O
    assert found["tag_of_word"]["accuracy"] == pytest.approx(2 / 3)
    assert found["majority"]["entity_f1"] == 0.0


def test_the_nearest_sentence_answers() -> None:
    context = "It rained in Oslo. Ann ran home in 3.5 hours! \u96e8\u3002"
    asked = Row(text=context, pair="When was Ann home?", answers=(Answer("Ann ran home", 19),))
    found = values(from_rows("x", "answer", [asked, asked], [asked]))
    # Said: "Ann ran home in 3.5 hours!", of which 3 of 6 words are the answer.
    assert found["nearest_sentence"]["f1"] == pytest.approx(2 * 3 / (6 + 3))
    assert found["majority"] == {"exact_match": 0.0, "f1": 0.0}


def test_every_shipped_set_has_baselines() -> None:
    for name in sets.shipped():
        found = values(sets.load(name))
        assert "majority" in found
        assert len(found) >= 2
