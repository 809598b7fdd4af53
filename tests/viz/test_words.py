import numpy as np
import pytest

import viz

LABELS = ["[CLS]", "the", "capital", "of", "[SEP]"]
SPECIAL = [True, False, False, False, True]


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (1.0, "100 %"),
        (0.9996, "100 %"),
        (0.9994, "99.9 %"),
        (0.995, "99.5 %"),
        (0.41, "41 %"),
        (0.0321, "3.2 %"),
        (0.0004, "0.04 %"),
        (1e-6, "under 0.01 %"),
        (0.0, "0 %"),
        (float("nan"), "–"),
    ],
)
def test_percent(weight, words):
    assert viz.percent(weight).replace("\N{NO-BREAK SPACE}", " ") == words


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("offset", "words"), [(0, "at itself"), (-1, "one token back"), (1, "one token ahead")]
)
def test_patterns_are_named(offset, words):
    weights = np.full((5, 5), 0.02) + 0.9 * np.eye(5, k=offset)
    assert words in viz.summary(weights, LABELS, SPECIAL)


def test_a_token_that_gets_most():
    weights = np.full((5, 5), 0.1)
    weights[:, 4] = 0.6
    text = plain(viz.summary(weights, LABELS, SPECIAL))
    assert text.startswith("Most of the attention rests on “[SEP]” (60 % of the attention).")
    assert viz.favourite(weights) == (4, pytest.approx(0.6))


def test_no_pattern():
    text = viz.summary(np.full((5, 5), 0.2), LABELS, SPECIAL)
    assert text.startswith("No single pattern")


def test_hiding_names_what_went_to_the_hidden_tokens():
    weights = np.full((5, 5), 0.05)
    weights[:, 4] = 0.8
    weights[2, 3:] = 0.2, 0.65
    text = plain(viz.summary(weights, LABELS, SPECIAL, hide=True))
    assert "“capital” looks at “of”, 20 %" in text
    # 9 visible weights sum to 0.6, so of 3 rows 80 % is elsewhere.
    assert text.endswith("80 % of their attention goes to the hidden tokens.")


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_rows_that_are_not_all_of_an_attention_tell_nothing_of_the_rest(factor):
    weights = np.full((5, 5), 0.05 * factor)
    weights[:, 3] = 0.8 * factor
    text = plain(viz.summary(weights, LABELS, SPECIAL, hide=True))
    assert "hidden tokens" not in text
    text = plain(viz.summary(weights, LABELS, SPECIAL))
    assert "“of” (80 % of what the shown tokens give each other)." in text


def test_filtered_links_say_what_they_carry_and_never_that_attention_is_spread():
    weights = np.full((5, 5), 0.2)
    part = np.where(np.eye(5, k=2) > 0, weights, 0)
    text = plain(viz.summary(part, LABELS, SPECIAL, of=weights))
    assert text.startswith("These links carry 12 % of the attention. Strongest link: “[CLS]”")
    # The rows of a maximum are no shares.
    text = viz.summary(2 * part, LABELS, SPECIAL, of=2 * weights)
    assert text.startswith("Strongest link")


def test_short_and_empty_sentences():
    assert "Strongest link" in viz.summary(np.array([[1.0]]), ["x"], [False])
    assert "special" in viz.summary(np.eye(2), ["[CLS]", "[SEP]"], [True, True], hide=True)


def test_shares_of_nothing():
    assert set(viz.shares(np.zeros((3, 3))).values()) == {0.0}
