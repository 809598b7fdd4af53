"""Bars and boxes as files."""

from xml.etree import ElementTree

import pytest

from viz.budget import bars, narrow_tables, short_number
from viz.svg import LETTER, text_width
from viz.tokenizers import WIDTH, Line, Piece, pieces_svg
from viz.verdicts import Judged, verdicts_svg

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}
NAMES = {"attention": "Attention", "pieces": "Pieces", "head": "Head"}
SIZES = {
    "large <1>": {"attention": 10, "pieces": 30, "head": 0},
    "small": {"attention": 10, "pieces": 0},
}


def test_bars_are_parameters_and_shares_are_percent():
    plain = {trace.name: list(trace.x) for trace in bars(SIZES, NAMES).data if trace.name}
    assert plain == {"Attention": [10, 10], "Pieces": [30, 0]}  # nobody has a head
    shares = {trace.name: list(trace.x) for trace in bars(SIZES, NAMES, shares=True).data}
    assert shares == {"Attention": [25, 100], "Pieces": [75, 0]}


def test_labels_are_no_markup_and_the_table_has_them_as_they_are():
    figure = bars(SIZES, NAMES)
    assert list(figure.data[0].y) == ["large &lt;1&gt;", "small"]
    assert figure.layout.meta["columns"] == ["Part", "large <1>", "small"]
    assert figure.layout.meta["rows"][-1] == ["Sum", 40, 10]


def test_a_small_part_is_not_none():
    figure = bars({"x": {"attention": 99_999, "pieces": 1}}, NAMES)
    told = [
        [text.replace("\N{NO-BREAK SPACE}", " ") for text in trace.customdata[0]]
        for trace in figure.data
        if trace.name
    ]
    assert sorted(told) == [["1", "under 0.01 %"], ["99,999", "100 %"]]


def test_a_part_without_a_name_is_refused():
    with pytest.raises(ValueError, match="extra"):
        bars({"x": {"extra": 1}}, NAMES)


def test_the_lines_of_narrow_tables_cross_where_they_cost_the_same():
    figure = narrow_tables(30000, 768, 128, full=23_040_000, narrow=3_938_304, break_even=748.8)
    wide, narrow, model = figure.data[:3]
    assert list(wide.y) == [23_040_000] * 2
    slope = narrow.y[1] / narrow.x[1]
    assert slope == pytest.approx(30768)
    assert slope * 748.83 == pytest.approx(23_040_000, rel=1e-4)
    assert (model.x[0], model.y[0]) == (128, 3_938_304)
    assert figure.layout.shapes[0].x0 == 748.8
    full = {"full": 23_440_896, "narrow": 23_440_896, "break_even": 749.1}
    (row,) = narrow_tables(30522, 768, 768, **full).layout.meta["rows"]
    assert row == [30522, 768, 768, 23_440_896, None, 749.1], "no second table, no E × H"


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


@pytest.mark.parametrize(
    ("value", "text"), [(999_960, "1.0 M"), (999_960_000, "1.00 G"), (999_940, "999.9 k")]
)
def test_short_numbers_go_over_to_the_next_unit(value, text):
    assert short_number(value) == text


def test_a_piece_wider_than_the_picture_is_drawn_whole():
    pieces = [Piece(text="x" * 150, number=7, word=0), Piece(text="y", number=8, word=1)]
    root = ElementTree.fromstring(pieces_svg([Line(title="A", pieces=pieces)], title="Cuts"))
    wide, narrow = root.findall("svg:rect", NAMESPACE)[1:]
    assert float(wide.get("x")) + float(wide.get("width")) <= float(root.get("width"))
    assert float(wide.get("y")) < float(narrow.get("y"))
    alone = ElementTree.fromstring(pieces_svg([Line(title="A", pieces=pieces[1:])], title="Cuts"))
    assert float(wide.get("y")) == float(alone.findall("svg:rect", NAMESPACE)[1].get("y"))


def test_a_judged_token_wider_than_the_picture_is_drawn_whole():
    drawn = verdicts_svg([Judged(text="x" * 150, chance=0.5)], title="t")
    assert float(ElementTree.fromstring(drawn).get("width")) > 150 * LETTER
