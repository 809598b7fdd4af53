"""Pictures of a span and of the 2 x 2 of pairs: geometry, bars, texts of any kind."""

import re
from xml.etree import ElementTree

import pytest

from viz import pairs, spans
from viz.pairs import Square, squares_svg
from viz.spans import SpanColumn, span_svg

SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = [
    SpanColumn(text="a", boundary=True),
    SpanColumn(text="<b>", seen="[MASK]", place=0, own=0.5, told=0.25),
    SpanColumn(text="c\x07", seen="[MASK]", place=1, own=None, told=1.0),
    SpanColumn(text="d", boundary=True),
    SpanColumn(text="e"),
]


def test_lines_lead_from_both_boundaries_to_each_place():
    drawn = ElementTree.fromstring(span_svg(COLUMNS, title="t & u"))
    circles = [float(c.get("cx")) for c in drawn.iter(f"{SVG}circle")]
    ends = [re.findall(r"[\d.]+", path.get("d")) for path in drawn.iter(f"{SVG}path")]
    assert len(circles) == 2
    assert len(ends) == 4
    assert sorted({float(end[2]) for end in ends}) == pytest.approx(sorted(circles))
    boxes = [r for r in drawn.iter(f"{SVG}rect") if r.get("stroke") == spans.EDGE]
    middles = [float(box.get("x")) + float(box.get("width")) / 2 for box in boxes]
    assert sorted({float(end[0]) for end in ends}) == pytest.approx(sorted(middles), abs=0.1)
    assert drawn.get("width") == drawn.get("viewBox").split()[2]


def test_bars_are_as_tall_as_their_probability():
    drawn = ElementTree.fromstring(span_svg(COLUMNS, title="t"))
    bars = [r for r in drawn.iter(f"{SVG}rect") if r.get("width") == str(spans.BAR)]
    filled = [float(b.get("height")) / spans.TALL for b in bars if b.get("fill") != spans.TRACK]
    assert filled == [0.5, 0.25, 1.0]
    texts = [node.text for node in drawn.iter(f"{SVG}text")]
    assert "<b>" in texts
    assert "0" in texts


@pytest.mark.parametrize(
    "columns",
    [[], [SpanColumn(text="a")], [SpanColumn(text="a", seen="b", place=0, own=1.2)]],
)
def test_what_is_no_span_is_refused(columns):
    with pytest.raises(ValueError, match=r"span|within"):
        span_svg(columns, title="t")


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
