"""Charts of rotary positions: what is marked, what is shaded, the tables beside them."""

import pytest

from viz.figure import colour
from viz.turns import score_by_distance, score_by_piece

SCORES = [0.5, -1.0, 2.0, 3.5, 0.0]


def test_the_true_distance_is_marked_and_a_window_shaded():
    figure = score_by_distance(SCORES, reach=2, distance=1, window=1, title="t")
    line, mark = figure.data
    assert (line.x0, line.dx, list(line.y)) == (-2, 1, SCORES)
    assert (list(mark.x), list(mark.y)) == ([1], [3.5])
    box = next(shape for shape in figure.layout.shapes if shape.type == "rect")
    assert (box.x0, box.x1) == (-1.5, 1.5)
    assert [row[:2] for row in figure.layout.meta["rows"]] == [
        [at, score] for at, score in zip(range(-2, 3), SCORES, strict=True)
    ]
    seen = [row[2] for row in figure.layout.meta["rows"]]
    assert seen == ["not seen", "seen", "seen", "seen", "not seen"]
    assert "it is 3.5 at distance 1" in figure.layout.meta["alt"]


def test_a_global_layer_has_no_window_and_a_wide_one_ends_with_the_chart():
    figure = score_by_distance(SCORES, reach=2, distance=0, window=None, title="t")
    assert [shape.type for shape in figure.layout.shapes] == ["line"]
    assert {len(row) for row in figure.layout.meta["rows"]} == {2}
    wide = score_by_distance(SCORES, reach=2, distance=0, window=64, title="t")
    box = next(shape for shape in wide.layout.shapes if shape.type == "rect")
    assert (box.x0, box.x1) == (-2.5, 2.5)


@pytest.mark.parametrize(("seen", "rings"), [([True, True, False], 1), ([True] * 3, 0)])
def test_pieces_before_and_after_with_rings_for_what_is_not_seen(seen, rings):
    given = (["<b>", "a", "a"], [1.0, 2.0, 3.0], [0.5, 2.5, 4.0], seen)
    figure = score_by_piece(*given, first=7, key=8, title="t")
    bars, before, after, *unseen = figure.data
    assert list(bars.y) == [1.0, 0.5, None, 2.0, 2.5, None, 3.0, 4.0, None]
    assert list(before.y) == [1.0, 2.0, 3.0]
    assert list(after.x) == ["&lt;b&gt;", "a", "a\N{ZERO WIDTH SPACE}"][: 3 - rings]
    assert figure.layout.xaxis.type == "category"
    assert list(after.marker.color)[:2] == [colour("model"), colour("hidden")]
    assert [list(each.y) for each in unseen] == [[4.0]] * rings
    assert figure.layout.meta["rows"][0] == ["7 <b>", 1.0, 0.5, "seen"]
    assert figure.layout.meta["rows"][2][3] == ("not seen" if rings else "seen")
