import pytest

import viz


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "-", "  @"])
def test_formulas_are_guarded(text):
    assert viz.guard_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["capital", "", "1-2", "a=b", "'", "[MASK]", "##ing"])
def test_words_stay_as_they_are(text):
    assert viz.guard_cell(text) == text
