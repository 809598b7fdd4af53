"""Metrics against values worked out by hand."""

import math

import pytest

from core_models.tasks import metrics


def test_accuracy_and_macro_f1_by_hand() -> None:
    true, said = ["a", "a", "a", "b", "b", "c"], ["a", "a", "b", "b", "a", "a"]
    found = metrics.classification(true, said)
    assert found["accuracy"] == pytest.approx(3 / 6)
    # a: precision 2/4, recall 2/3, F1 4/7; b: 1/2 and 1/2; c: never said, 0.
    assert found["macro_f1"] == pytest.approx((4 / 7 + 1 / 2 + 0) / 3)
    scores = metrics.per_label(true, said, ["a", "b", "c"])
    assert scores["a"].precision == pytest.approx(2 / 4)
    assert scores["a"].recall == pytest.approx(2 / 3)
    assert (scores["c"].f1, scores["c"].support) == (0.0, 1)
    assert metrics.confusion(true, said, ["a", "b", "c"]) == [[2, 1, 0], [1, 1, 0], [1, 0, 0]]


def test_correlations_by_hand() -> None:
    found = metrics.correlation([1, 2, 3], [1, 3, 2])
    assert found == {"pearson": pytest.approx(0.5), "spearman": pytest.approx(0.5)}
    found = metrics.correlation([1, 2, 3, 4], [1, 2, 3, 100])
    assert found["spearman"] == pytest.approx(1.0)
    # Means 2.5 and 26.5; covariance sum 148.5 + ..., worked out: 149 / sqrt(5 * 7205).
    assert found["pearson"] == pytest.approx(149 / math.sqrt(5 * 7205))
    assert metrics.correlation([1, 2, 3], [2, 2, 2]) == {"pearson": 0.0, "spearman": 0.0}


def test_entities_count_as_a_whole() -> None:
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
    said = [["B-PER", "O", "O", "B-LOC"], ["O", "I-PER"]]
    # Wrong end of the first; the place is right; an I- that continues nothing is a name.
    found = metrics.entity_scores(true, said)
    assert found["entity_precision"] == pytest.approx(2 / 3)
    assert found["entity_recall"] == pytest.approx(2 / 3)
    assert found["entity_f1"] == pytest.approx(2 / 3)
    types = metrics.per_entity(true, said)
    assert types["LOC"].f1 == 1.0
    assert types["PER"].f1 == pytest.approx(1 / 2)
    assert types["PER"].support == 2


def test_no_entity_at_all_is_no_error() -> None:
    assert metrics.entity_scores([["O"]], [["O"]])["entity_f1"] == 0.0
    assert metrics.per_entity([["O"]], [["O"]]) == {}


def test_calibration_by_hand() -> None:
    found = metrics.calibration([0.95, 0.95, 0.55, 1.0], [True, False, True, True], bins=10)
    low, high = found.bins
    assert (low.probability, low.accuracy, low.count) == (pytest.approx(0.55), 1.0, 1)
    assert (high.probability, high.count) == (pytest.approx(2.9 / 3), 3)
    assert high.accuracy == pytest.approx(2 / 3)
    assert found.error == pytest.approx((1 * 0.45 + 3 * (2.9 / 3 - 2 / 3)) / 4)
    assert metrics.calibration([0.0], [False]).bins[0].count == 1


@pytest.mark.parametrize(
    ("said", "truths", "exact", "f1"),
    [
        ("The Eiffel Tower!", ["eiffel tower"], 1, 1),
        ("the tower of Paris", ["Eiffel Tower"], 0, 2 * 1 / (3 + 2)),
        ("Oslo", ["Bergen", "Oslo"], 1, 1),
        ("", [], 1, 1),
        ("Oslo", [], 0, 0),
        ("", ["Oslo"], 0, 0),
        ("\u5317\u4eac\u5e02", ["\u5317\u4eac"], 0, 2 * 2 / (3 + 2)),
        ("\u5317\u4eac\u3002", ["\u5317\u4eac"], 1, 1),
        ("1929\u5e74", ["1929\u5e7410\u6708"], 0, 2 * 2 / (2 + 4)),
        ("caf\u00e9", ["Caf\u00e9"], 1, 1),
    ],
)
def test_answers_by_hand(said: str, truths: list[str], exact: float, f1: float) -> None:
    assert metrics.exact_match(said, truths) == exact
    assert metrics.answer_f1(said, truths) == pytest.approx(f1)


def test_truths_of_which_nothing_is_left_do_not_count() -> None:
    """As in SQuAD's script: "the" is no answer once articles are dropped."""
    assert (metrics.exact_match("", ["the", "cat"]), metrics.answer_f1("", ["the", "cat"])) == (
        0.0,
        0.0,
    )
    assert (metrics.exact_match("cat", ["the", "cat"]), metrics.exact_match("", ["the", "--"])) == (
        1.0,
        1.0,
    )


def test_answer_metrics_tell_the_unanswerable_apart() -> None:
    found = metrics.answers(["Oslo", "", "x"], [["Oslo"], [], []])
    assert found["exact_match"] == pytest.approx(2 / 3)
    assert found["answerable_f1"] == 1.0
    assert found["no_answer_accuracy"] == 0.5
    assert "answerable_f1" not in metrics.answers(["a"], [["a"]])


def test_the_best_threshold_by_hand() -> None:
    margins = [-5.0, -1.0, 2.0, 3.0]
    values = [1.0, 0.0, 0.8, 0.0]
    answerable = [True, False, True, False]
    # Never: 2. To -5: 3. To -1: 2. To 2: 2.8. To 3: 1.8.
    assert metrics.best_threshold(margins, values, answerable) == (-5.0, 3 / 4)
    assert metrics.best_threshold(margins, [1, 0, 1.5, 0], answerable) == (2.0, 3.5 / 4)
    never = metrics.best_threshold([1.0, 2.0], [0.0, 0.0], [False, True])
    assert never == (-math.inf, 1 / 2)


def test_equal_margins_cannot_be_parted() -> None:
    # Taking only the first of two equal margins would earn 2; no threshold can do that.
    threshold, value = metrics.best_threshold([0.0, 0.0], [1.0, 0.0], [True, False])
    assert (threshold, value) == (-math.inf, 1 / 2)
