"""Charts of gaps: bits of fillings and pieces, answers, surprise, who looks at whom."""

import math

import pytest

from viz import gaps, permutation
from viz.gaps import Answer, Filled, Spelled, bits, chance
from viz.svg import Wording

HALF, TINY = math.log(0.5), -20.0


def test_chances_are_readable_however_small():
    assert [chance(log) for log in (0.0, HALF, math.log(3e-4), TINY, None)] == [
        "100\xa0%",
        "50\xa0%",
        "0.03\xa0%",
        "2.1 × 10⁻⁹",
        "–",
    ]
    assert bits(HALF) == pytest.approx(1)


def test_fillings_have_a_bar_for_both_ways_of_counting():
    filled = Filled(way="Beam", words="<b> … c", apart=HALF, chained=2 * HALF)
    figure = gaps.fillings([filled], title="t")
    assert [bar.x for bar in figure.data] == [(pytest.approx(1),), (pytest.approx(2),)]
    assert "&lt;b&gt;" in figure.layout.yaxis.ticktext[0]
    assert figure.layout.meta["rows"] == [
        ["Beam", "<b> … c", pytest.approx(0.5), pytest.approx(0.25), HALF, 2 * HALF]
    ]


def test_pieces_add_up_to_their_word():
    words = [
        Spelled(word="one", pieces=["one"], steps=[HALF], own=True),
        Spelled(word="two<", pieces=["two", "<"], steps=[HALF, 3 * HALF], own=False),
    ]
    figure = gaps.spelled(words, title="t")
    first, second = figure.data
    assert first.x == (pytest.approx(1), pytest.approx(1))
    assert second.x == (None, pytest.approx(3))
    assert figure.layout.yaxis.ticktext == ("<b>one</b>", "two&lt;")
    assert [row[5] for row in figure.layout.meta["rows"]] == [HALF, 4 * HALF, 4 * HALF]


def test_answers_mark_the_word_of_the_text():
    figure = gaps.answers(
        [Answer(word="a", log=HALF), Answer(word="a", log=TINY, own=True)], title="m"
    )
    (bars,) = figure.data
    assert bars.x == (pytest.approx(50), pytest.approx(100 * math.exp(TINY)))
    assert len(set(bars.marker.color)) == len(set(figure.layout.yaxis.ticktext)) == 2


def test_words_surprise_models_and_a_missing_one_is_no_point():
    figure = gaps.each_word(["a", "<"], {"m": [HALF, None], "n": [0.0, 0.0]}, ["2.00", "1.00"])
    assert figure.data[0].y == (pytest.approx(1), None)
    assert figure.layout.meta["rows"] == [
        ["a", pytest.approx(0.5), 1.0],
        ["<", None, 1.0],
        ["Pseudo-perplexity", "2.00", "1.00"],
    ]


def test_every_cell_of_a_grid_is_seen_or_not():
    seen = [[True, False], [True, True]]
    figure = gaps.sight(["<b>", "c"], seen, gap=1, read=0, said="s")
    looks, blind = figure.data
    assert [list(row) for row in looks.z] == [[1, None], [1, 1]]
    assert [list(row) for row in blind.z] == [[None, 1], [None, None]]
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "<b>c</b>")
    assert [shape.y0 for shape in figure.layout.shapes] == [-0.5]
    assert not gaps.sight(["a"], [[True]], gap=0, read=None, said="s").layout.shapes


def test_orders_are_bars_and_marks_with_their_bits():
    target = permutation.Target(position=3, piece="<b>", chances={"own": 0.5, "left": 0.25})
    figure = permutation.chances(
        [target], own=["own"], others=["left"], bits={"Bits": {"own": 1.0}}, title="t"
    )
    bars, marks = figure.data
    assert (bars.y, marks.y) == ((50,), (25,))
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;<br>3",)
    assert figure.layout.meta["rows"] == [["<b>", 3, 0.5, 0.25], ["Bits", None, 1.0, None]]


def test_nothing_is_not_drawn():
    for draw in (gaps.fillings, gaps.spelled, gaps.answers):
        with pytest.raises(ValueError, match="nothing"):
            draw([], title="t")
    with pytest.raises(ValueError, match="nothing"):
        gaps.each_word([], {}, [])
    with pytest.raises(ValueError, match="nothing"):
        permutation.chances([], own=[], others=[], bits={}, title="t")


def test_small_chances_have_one_digit_before_the_point():
    assert chance(math.log(9.99e-6)) == "1.0 × 10⁻⁵"
    assert chance(math.log(9.94e-7)) == "9.9 × 10⁻⁷"
    assert chance(-math.inf) == "0\xa0%"


def test_names_of_models_are_no_markup_in_a_legend():
    figure = gaps.each_word(["a"], {"<b>m</b>": [HALF]}, ["2.00"])
    assert figure.data[0].name == "&lt;b&gt;m&lt;/b&gt;"
    assert figure.layout.meta["columns"][1] == "<b>m</b>"


def test_a_model_may_be_called_anything():
    figure = gaps.answers([Answer(word="a", log=HALF)], title="<b>m</b> &")
    assert figure.layout.title.text == "&lt;b&gt;m&lt;/b&gt; &amp;"
    assert figure.layout.meta["alt"].startswith("<b>m</b> &:")
    ours = Wording("Model<br>{0}", 1)
    assert gaps.answers([Answer(word="a", log=HALF)], title=ours).layout.title.text == ours
