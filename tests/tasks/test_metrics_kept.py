"""Measures by hand where a near miss would look alike: ties, articles, types of entities."""

import pytest

from core_models.tasks import metrics


def test_equal_scores_share_their_rank() -> None:
    """Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: sums of products of what is left of the means.

    Covariance 4.5, squares 4.5 and 5: 4.5 / sqrt(22.5). Ranks by place would give 1.
    """
    found = metrics.correlation([1.0, 2.0, 2.0, 9.0], [10.0, 20.0, 30.0, 40.0])
    assert found["spearman"] == pytest.approx(4.5 / 22.5**0.5)
    assert found["pearson"] == pytest.approx(120 / (41 * 500) ** 0.5)


@pytest.mark.parametrize("article", ["a", "an", "the", "The", "An"])
def test_no_article_decides_about_an_answer(article: str) -> None:
    assert metrics.exact_match(f"{article} old house", ["old house."]) == 1.0
    assert metrics.answer_f1(f"{article} house", ["house"]) == 1.0
    # Only whole words are articles.
    assert metrics.exact_match(f"{article}x house", ["house"]) == 0.0


def test_types_of_entities_are_those_of_the_text_alone() -> None:
    """One person found, one place missed, one place made up: no averages among the types."""
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"]]
    said = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "O"]]
    found = metrics.per_entity(true, said)
    assert set(found) == {"PER", "LOC"}
    assert (found["PER"].f1, found["LOC"].f1) == (1.0, 0.0)
    assert (found["PER"].support, found["LOC"].support) == (1, 1)
    assert metrics.entity_scores(true, said) == pytest.approx(
        {"entity_f1": 0.5, "entity_precision": 0.5, "entity_recall": 0.5}
    )
