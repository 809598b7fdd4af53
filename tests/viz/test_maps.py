"""Attention as charts: true numbers, safe words, scales that say what they are."""

import numpy as np
import pytest

import viz
from viz.attention_parts import Chance, chances, products, ways
from viz.maps import MOST_LINKS, MOST_SIDE, Map, draw


def grid(values, **settings):
    values = np.asarray(values, dtype=float)
    rows, columns = (
        [f"{name}{n}" for n in range(size)] for name, size in zip("rc", values.shape, strict=True)
    )
    return Map(title="A map", values=values, rows=rows, columns=columns, **settings)


def test_a_head_is_drawn_in_percent_with_its_words_escaped():
    words = ["<b>", "a", "a"]
    figure = viz.attention_map(np.eye(3), words)
    (heatmap,) = figure.data
    np.testing.assert_array_equal(np.array(heatmap.z), 100 * np.eye(3))
    assert list(heatmap.y) == ["&lt;b&gt;", "a", "a\N{ZERO WIDTH SPACE}"]
    assert list(heatmap.text[0]) == ["100", "", ""]
    assert figure.layout.meta["rows"][0] == ["<b>", 1, 0, 0]
    assert figure.layout.yaxis.scaleanchor == "x"
    for broken in (np.full((3, 3), 2.0), np.full((3, 3), np.nan)):
        with pytest.raises(ValueError, match="between 0 and 1"):
            viz.attention_map(broken, words)


def test_colours_are_a_square_root_or_run_both_ways_from_zero():
    (shares,) = draw(grid([[0.25, 1.0]], share=True)).data
    assert [stop for stop, _ in shares.colorscale] == [0, 1 / 16, 1 / 4, 9 / 16, 1]
    (signed,) = draw(grid([[1, np.nan], [-2, 0.5]], signed=True)).data
    assert (signed.zmin, signed.zmax) == (-2, 2)
    assert list(signed.text[0]) == ["1.00", ""]
    assert signed.text[1][0] == "\N{MINUS SIGN}2.00"


def test_nearly_all_is_not_printed_as_all():
    (shares,) = draw(grid([[0.996, 0.9996], [0.994, 0.004]], share=True)).data
    assert [list(row) for row in shares.text] == [["99.6", "100"], ["99", ""]]


def test_a_head_says_which_one_it_is():
    note = "Rows look at columns; numbers are percent."
    figure = viz.attention_map(np.eye(2), ["a", "b"], title="Layer 3, <head> 2")
    assert figure.layout.xaxis.title.text == f"Layer 3, &lt;head&gt; 2. {note}"
    assert figure.layout.meta["alt"] == "Layer 3, <head> 2"
    unnamed = viz.attention_map(np.eye(2), ["a", "b"])
    assert unnamed.layout.xaxis.title.text == unnamed.layout.meta["alt"] == note


def test_the_table_of_a_large_map_lists_what_is_there_and_what_is_against():
    values = np.full((100, 100), np.nan)
    values[3, 4], values[5, 6], values[7, 8] = 0.5, -2.0, 0.0
    names = [f"t{n}" for n in range(100)]
    found = Map(title="A map", values=values, rows=names, columns=names, signed=True)
    assert draw(found).layout.meta["rows"] == [
        ["t5 (5)", "t6 (6)", -2.0],
        ["t3 (3)", "t4 (4)", 0.5],
        ["t7 (7)", "t8 (8)", 0.0],
    ]


def test_large_maps_keep_their_strongest_links():
    side = MOST_SIDE + 44
    weights = np.zeros((side, side), dtype=np.float32)
    weights[7, 299] = 0.5
    figure = viz.attention_map(weights, [f"t{n}" for n in range(side)])
    drawn = np.array(figure.data[0].z)
    assert drawn.shape == (MOST_SIDE, MOST_SIDE)
    assert drawn.max() == 50
    assert figure.data[0].text is None
    assert figure.layout.meta["rows"][0] == ["t7 (7)", "t299 (299)", 0.5]
    assert len(figure.layout.meta["rows"]) == MOST_LINKS


def test_labels_that_do_not_fit():
    with pytest.raises(ValueError, match="labels"):
        Map(title="", values=np.eye(2), rows=["a"], columns=["a", "b"])


def test_the_flow_is_marks_on_an_axis_of_its_own():
    shares = np.array([[0.1, 0.9], [0.2, 0.8], [0.8, 1.0]])
    figure = ways(["one", "two", "flow"], shares, ["a", "b"], title="t", flow=True)
    assert [trace.type for trace in figure.data] == ["bar", "bar", "scatter"]
    low, high = figure.layout.yaxis3.range
    assert 70 < low < 80
    assert 100 < high < 110
    assert figure.layout.meta["rows"][0] == ["a", 0.1, 0.2, 0.8]
    assert {
        each.type for each in ways(["one"], shares[:1], ["a", "b"], title="t", flow=False).data
    } == {"bar"}


def test_chances_have_a_second_bar_when_heads_are_off():
    found = [Chance(word="<i>", before=0.5, after=0.25, own=True)]
    assert len(chances(found, some_off=False).data) == 1
    figure = chances(found, some_off=True)
    assert [list(bar.x) for bar in figure.data] == [[50], [25]]
    assert list(figure.data[0].y) == ["<b>&lt;i&gt;</b>"]
    assert figure.layout.meta["rows"] == [["<i>", 0.5, 0.25]]
    with pytest.raises(ValueError, match="nothing to draw"):
        chances([], some_off=False)


def test_products_stand_beside_their_shares():
    figure = products(np.array([[1.0, -3.0]]), [0.4], ["k"], title="t")
    strips, bars = figure.data
    assert (strips.zmin, strips.zmax) == (-3, 3)
    assert list(bars.x) == [40]
    assert figure.layout.meta["columns"] == ["key", "softmax", "1", "2"]
    assert figure.layout.meta["rows"] == [["k", 0.4, 1.0, -3.0]]


def test_no_cell_of_a_map_reads_as_zero():
    (large,) = draw(grid([[-0.4, 0.4, 0.5], [-0.5, 0.6, 12]], signed=True)).data
    assert [list(row) for row in large.text] == [["", "", ""], ["", "1", "12"]]
    (small,) = draw(grid([[-0.004, 0.006], [9.0, 0.05]], signed=True)).data
    assert [list(row) for row in small.text] == [["", ""], ["9.00", "0.05"]]
    (shares,) = draw(grid([[0.005, 0.006, 0.2]], share=True)).data
    assert list(shares.text[0]) == ["", "1", "20"]
