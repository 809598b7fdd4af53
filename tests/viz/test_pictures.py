"""Bars, boxes and rows as files."""

import csv
import io
from xml.etree import ElementTree

import pytest

from viz.budget import Bar, bars_svg, short_number
from viz.records import records_csv
from viz.svg import text_width
from viz.tokenizers import WIDTH, Line, Piece, pieces_svg

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}
NAMES = {"tables": "Tables", "blocks": "Blocks", "head": "Head"}
BARS = [
    Bar(label="large <1>", parts={"tables": 10, "blocks": 30}),
    Bar(label="small", parts={"tables": 10, "blocks": 0, "head": 10}),
]


def rectangles(root):
    return [
        rect
        for rect in root.findall("svg:rect", NAMESPACE)
        if rect.find("svg:title", NAMESPACE) is not None
    ]


def widths(**options):
    root = ElementTree.fromstring(bars_svg(BARS, NAMES, title="Sizes", **options))
    return [float(rect.get("width")) for rect in rectangles(root)]


def test_bars_are_to_one_scale():
    tables, blocks, small_tables, head = widths()
    assert blocks == pytest.approx(3 * tables, abs=0.02)
    assert small_tables == pytest.approx(tables, abs=0.02)
    assert head == pytest.approx(tables, abs=0.02)


def test_shares_draw_every_bar_to_full_length():
    tables, blocks, small_tables, head = widths(shares=True)
    assert tables + blocks == pytest.approx(small_tables + head, abs=0.03)


def test_labels_are_escaped_and_empty_parts_left_out():
    root = ElementTree.fromstring(bars_svg(BARS, NAMES, title="Sizes"))
    assert "large <1>" in "".join(root.itertext())
    assert len(rectangles(root)) == 4


def test_a_part_without_a_name_is_refused():
    with pytest.raises(ValueError, match="extra"):
        bars_svg([Bar(label="x", parts={"extra": 1})], NAMES, title="Sizes")
    with pytest.raises(ValueError, match="no bar"):
        bars_svg([], NAMES, title="Sizes")


@pytest.mark.parametrize(
    ("value", "text"),
    [(109_482_240, "109.5 M"), (1_564_549_632, "1.56 G"), (1536, "1.5 k"), (12, "12"), (0, "0")],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


def test_boxes_stay_inside_the_picture_and_keep_their_order():
    pieces = [Piece(text="word", number=n, word=n // 2) for n in range(60)]
    root = ElementTree.fromstring(pieces_svg([Line(title="A", pieces=pieces)], title="Cuts"))
    boxes = root.findall("svg:rect", NAMESPACE)[1:]
    assert len(boxes) == 60
    places = [(float(box.get("y")), float(box.get("x"))) for box in boxes]
    assert places == sorted(places)
    ends = [float(box.get("x")) + float(box.get("width")) for box in boxes]
    assert max(ends) <= WIDTH
    assert max(y for y, _ in places) + 40 <= float(root.get("height"))


def test_pieces_of_a_word_stand_closer_than_words():
    pieces = [Piece(text="a", number=1, word=word) for word in (0, 0, 1)]
    root = ElementTree.fromstring(pieces_svg([Line(title="A", pieces=pieces)], title="Cuts"))
    left = [float(box.get("x")) for box in root.findall("svg:rect", NAMESPACE)[1:]]
    assert left[2] - left[1] > left[1] - left[0]


def test_east_asian_characters_are_wider():
    assert text_width("北京") > text_width("ab")
    with pytest.raises(ValueError, match="nothing"):
        pieces_svg([], title="Cuts")


def test_rows_as_csv_are_read_back_and_run_nothing():
    text = records_csv(["name", "n"], [["=1+1", 3], ['a "b", c', None], [" @x", 0.5]])
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == [["name", "n"], ["'=1+1", "3"], ['a "b", c', ""], ["' @x", "0.5"]]
    with pytest.raises(ValueError, match="2 cells"):
        records_csv(["name"], [["a", 1]])
