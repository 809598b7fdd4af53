"""Pictures of a span and of the 2 x 2 of pairs: bars, numbers, texts of any kind."""

from xml.etree import ElementTree

import pytest

from viz import pairs
from viz.pairs import Square, squares_svg
from viz.spans import Given, Place, heads

SVG = "{http://www.w3.org/2000/svg}"
PLACES = [
    Place(word="<b>", seen="[MASK]", given=[Given(probability=0.5, rank=1, loss=0.7), None]),
    Place(word="c", seen="[MASK]", given=[None, Given(probability=1e-7, rank=9, loss=16.0)]),
]
NAMES = ("own", "edges")


def test_each_head_has_a_bar_at_every_place_that_it_is_asked_for():
    figure = heads(PLACES, NAMES, title="t")
    assert [(bar.name, bar.y) for bar in figure.data] == [
        ("own", (50, None)),
        ("edges", (None, pytest.approx(1e-5))),
    ]
    assert [text.split("<br>")[1] for text in figure.layout.xaxis.ticktext] == ["&lt;b&gt;", "c"]
    assert figure.layout.meta["rows"] == [
        [0, "<b>", "[MASK]", 0.5, 1, 0.7, None, None, None, 0.7],
        [1, "c", "[MASK]", None, None, None, 1e-7, 9, 16.0, 16.0],
    ]


def test_what_stood_there_before_has_a_paler_bar():
    given = Given(probability=0.5, rank=1, loss=0.7, masked=0.25)
    figure = heads([Place(word="a", seen="x", given=[given, None])], NAMES, title="t")
    pale, now, *_ = figure.data
    assert (pale.name, pale.y, now.name, now.y) == ("own, [MASK]", (25,), "own, now", (50,))
    assert pale.marker.opacity < now.marker.opacity
    assert pale.marker.color == now.marker.color
    assert figure.layout.meta["rows"] == [[0, "a", "x", 0.5, 1, 0.7, 0.25, *[None] * 4, 0.7]]
    with pytest.raises(ValueError, match="nothing"):
        heads([], NAMES, title="t")


def test_the_cells_of_a_square_stand_row_by_row():
    square = Square(title="<x>", chances=[0.1, 0.6, 0.25, 1.0])
    svg = squares_svg(
        [square, square], rows=("r", "s"), columns=("c", "d"), title="t", notes=["n" * 200]
    )
    drawn = ElementTree.fromstring(svg)
    bars = [r for r in drawn.iter(f"{SVG}rect") if r.get("fill") in (pairs.QUIET, pairs.LOUD)]
    assert [float(bar.get("width")) / pairs.BAR for bar in bars] == [0.1, 0.6, 0.25, 1.0] * 2
    assert [bar.get("fill") == pairs.QUIET for bar in bars[:4]] == [False, True, False, True]
    left, right = float(bars[0].get("x")), float(bars[1].get("x"))
    assert right - left == pairs.CELL
    assert float(bars[2].get("y")) > float(bars[0].get("y"))
    with pytest.raises(ValueError, match="nothing"):
        squares_svg([], rows=("r", "s"), columns=("c", "d"), title="t")
    with pytest.raises(ValueError, match="four probabilities"):
        squares_svg(
            [Square(title="x", chances=[0.5, 2, 0, 0])],
            rows=("r", "s"),
            columns=("c", "d"),
            title="t",
        )
