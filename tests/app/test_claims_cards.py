"""What the cards of the Claims lab say of their measurements is what these do."""

from app.claims.bench import missing
from app.claims.desk import CLAIMS
from app.claims.roberta import FREQUENT, RARE


def test_each_chinese_character_is_counted_once():
    assert (len(set(FREQUENT)), len(FREQUENT)) == (23, 23)
    assert (len(set(RARE)), len(RARE)) == (20, 20)
    how = CLAIMS["roberta-chinese-character"].how
    assert "23 frequent and 20 rare" in how


def test_chunks_that_are_left_out_are_told():
    assert "without chunks of one sentence" in CLAIMS["sop-label"].how


def test_states_are_judged_together_and_not_one_by_one():
    assert "if the states move by no more than 0.1 %" in CLAIMS["rotary-distance"].rule.text


def test_no_advice_that_cannot_help():
    """Models of the Train tab are none of those that are asked."""
    assert "Train" not in missing("sentence_order")
