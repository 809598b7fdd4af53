"""Baselines learn from the training rows alone."""

from core_models.tasks.baselines import baselines
from core_models.tasks.rows import Row
from core_models.tasks.sets import from_rows


def test_the_majority_is_that_of_the_training_rows() -> None:
    train = [Row(text=f"text {n}", label=label, number=n) for n, label in enumerate("aab", 1)]
    dev = [Row(text=f"other {n}", label=label, number=n) for n, label in enumerate("bba", 1)]
    found = {
        each.name: each.metrics for each in baselines(from_rows("mine", "classify", train, dev))
    }
    assert found["majority"]["accuracy"] == 1 / 3


def test_an_unknown_word_gets_the_commonest_tag() -> None:
    """Which is “N” here, and not the “O” of names; “runs” is known as “V”."""
    train = [
        Row(tokens=("dog", "runs"), tags=("N", "V"), number=1),
        Row(tokens=("dog", "cat", "of"), tags=("N", "N", "O"), number=2),
    ]
    dev = [Row(tokens=("bird", "runs", "of"), tags=("N", "V", "O"), number=1)]
    found = {each.name: each.metrics for each in baselines(from_rows("mine", "tag", train, dev))}
    assert found["tag_of_word"]["accuracy"] == 1.0
    assert found["majority"]["accuracy"] == 1 / 3
