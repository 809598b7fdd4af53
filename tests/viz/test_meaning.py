"""Charts of a word's way through the layers: what is drawn, what is refused."""

import pytest

from viz.meaning import Neighbour, Path, alike, likeness, neighbours, paths

LISTED = [("a", 0.9, False), ("b", 0.8, True), ("c", 0.7, False), ("d", 0.6, False)]
LISTED += [("e", 0.5, True)]
PATH = Path(number=2, sentence="<a> & b", points=[(0.0, 0.0), (1.0, 2.0), (3.0, 1.0)])


def test_the_way_to_the_marked_layer_is_drawn_full():
    whole, way, mark = paths([PATH], layer=1, shares=(0.6, 0.2), word="b").data
    assert (list(whole.x), list(way.x), list(mark.x)) == ([0, 1, 3], [0, 1], [1])
    assert mark.name == "2 · &lt;a&gt; &amp; b"
    assert whole.line.dash == "dot"


def test_nearly_all_differences_are_not_all():
    layout = paths([PATH], layer=1, shares=(0.9962, 0.0038)).layout
    told = [
        axis.title.text.replace("\N{NO-BREAK SPACE}", " ") for axis in (layout.xaxis, layout.yaxis)
    ]
    assert told == ["99.6 % of all differences", "0.4 % of all differences"]


def test_paths_without_such_a_layer_are_refused():
    with pytest.raises(ValueError, match="no layer 3"):
        paths([PATH], layer=3, shares=(1.0, 0.0))
    with pytest.raises(ValueError, match="nothing to draw"):
        paths([], layer=0, shares=(1.0, 0.0))


def test_the_square_shows_a_layer_and_its_table_all():
    raw = [[[1, 0.9], [0.9, 1]], [[1, 0.8], [0.8, 1]]]
    centred = [[[1, 0.3], [0.3, 1]], [[1, 0.2], [0.2, 1]]]
    figure = alike([1, 3], raw, centred, layer=1, way="raw")
    assert [list(row) for row in figure.data[0].z] == [[None, 0.8], [0.8, None]]
    assert figure.layout.meta["rows"] == [
        ["Input", "1 · 3", 0.8, 0.2],
        ["Static embedding", "1 · 3", 0.9, 0.3],
    ]


def test_likeness_is_a_mean_over_pairs():
    table = [[1, 0.2, 0.4], [0.2, 1, 0.6], [0.4, 0.6, 1]]
    rows = likeness([table], [0.1], layer=0).layout.meta["rows"]
    assert rows == [["Static embedding", pytest.approx(0.4), 0.1]]


def test_bars_of_neighbours_keep_their_width_wherever_their_kind_stands():
    words = [Neighbour(before="", word=w, after="", cosine=c, same=s) for w, c, s in LISTED]
    figure = neighbours(words)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert [list(bar.y) for bar in bars] == [[1, 3, 4], [2, 5]]
    assert {bar.width for bar in bars} == {0.85}  # by itself Plotly gives the second 3 ranks each
    assert figure.layout.yaxis.range == (5.5, 0.5)  # and the axis room for that


def test_neighbours_stand_in_their_sentences():
    near = Neighbour(before="x" * 40 + " y ", word="<b>", after=" z", cosine=0.5, same=True)
    figure = neighbours([near])
    assert figure.data[-1].text[0] == " …y <b>&lt;b&gt;</b> z"
    assert figure.layout.meta["rows"] == [[1, "<b>", 0.5, "x" * 40 + " y <b> z"]]
    with pytest.raises(ValueError, match="nothing to draw"):
        neighbours([])
