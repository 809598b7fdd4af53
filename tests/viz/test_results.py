"""Charts of what a fine-tuned model reached hold its numbers, and read nobody's text as markup."""

import numpy as np
import pytest

from viz.attention_parts import Chance, chances, products
from viz.pairs import alike
from viz.results import answers, confusion, reached


def test_bars_show_the_model_beside_what_can_be_had_without_it():
    rows = [("this model", 0.75), ("the commonest label", 0.5)]
    figure = reached(rows, name="Accuracy", share=True)
    assert list(figure.data[0].x) == [75, 50]
    assert list(figure.data[0].text) == ["75.0 %", "50.0 %"]
    assert figure.layout.meta["rows"] == [list(row) for row in rows]
    plain = reached([("this model", -0.25)], name="Pearson", share=False)
    assert list(plain.data[0].text) == ["-0.250"]
    assert plain.layout.xaxis.range == (-0.25, 1)


def test_a_bar_without_length_has_its_number_beside_it():
    """Plotly writes nothing within one, and "auto" never stands beside it."""
    (drawn,) = reached([("a", 0.5), ("b", 0.0), ("c", -0.0)], name="F1", share=True).data
    assert list(drawn.text)[1] == "0.0 %"
    assert list(drawn.textposition) == ["auto", "outside", "outside"]
    (drawn, _) = alike({"a": (0.0, 0.5), "b": (0.5, 0.0)}, this="t", other="o").data
    assert list(drawn.textposition) == ["outside", "auto"]
    (drawn,) = chances([Chance(word="w", before=0, after=0, own=False)], some_off=False).data
    assert list(drawn.textposition) == ["outside"]
    (_, drawn) = products(np.ones((2, 1)), [1.0, 0.0], ["a", "b"], title="t").data
    assert list(drawn.textposition) == ["auto", "outside"]


def test_confusions_are_shares_of_what_is_right():
    figure = confusion(["<b>good</b>", "bad"], [[3, 1], [0, 0]])
    assert [list(row) for row in figure.data[0].z] == [[75, 25], [0, 0]]
    assert figure.data[0].x[0] == "&lt;b&gt;good&lt;/b&gt;"
    assert figure.layout.meta["rows"] == [["<b>good</b>", 3, 1], ["bad", 0, 0]]


def test_an_answer_begins_and_ends_at_pieces():
    figure = answers(["a", "a"], [0.25, 0.75], [0.5, 0.5])
    assert [list(trace.y) for trace in figure.data] == [[25, 75], [50, 50]]
    assert len(set(figure.data[0].x)) == 2  # two pieces, though they read the same
    with pytest.raises(ValueError, match="one for each piece"):
        answers(["a"], [0.1, 0.2], [0.3])
