"""The chart of the ladder holds every figure, marks the chosen rung, and says what is missing."""

import json
from dataclasses import replace

import pytest

from viz.figure import LIGHT
from viz.ladder import Reached, climb

ROWS = [
    Reached(title="BERT", value=10.0, shown="10.0", again=11.0),
    Reached(title="Rotary", value=14.0, shown="14.0"),
    Reached(title="Local", value=None),
]


def test_a_line_from_rung_to_rung():
    figure = climb(ROWS, chosen=1, figure="Right, %")
    line, again, labels = figure.data
    assert list(line.x) == [10.0, 14.0, None]
    sizes = line.marker.size
    assert sizes[1] > sizes[0] == sizes[2]
    assert (list(again.x), list(again.y)) == ([11.0], [0])
    assert [text.strip() for text in labels.text] == ["10.0", "14.0", "not measured"]
    assert list(labels.x) == [10.0, 14.0, 10.0]
    assert [side.split()[1] for side in labels.textposition] == ["left", "right", "right"]
    assert figure.layout.meta["rows"] == [
        ["BERT", 10.0, 11.0],
        ["Rotary", 14.0, None],
        ["Local", "not measured", None],
    ]
    assert "Rotary 14.0" in figure.layout.meta["alt"]


def test_a_figure_left_of_the_lowest_value_has_room_beside_the_names():
    reached = Reached(title="BERT", value=10.0, shown="10.0", again=11.0)
    highest = Reached(title="Rotary", value=14.0, shown="14.0", again=13.0)
    left, _ = climb([reached, highest], chosen=0, figure="Right, %").layout.xaxis.range
    right = climb([replace(reached, again=9.9), highest], chosen=0, figure="Right, %")
    other, _ = right.layout.xaxis.range
    assert 10.0 - left > 2 * (9.9 - other)


def test_nothing_is_measured_yet():
    figure = climb([Reached(title="BERT", value=None)], chosen=0, figure="Right, %")
    assert figure.layout.meta["rows"] == [["BERT", "not measured", None]]
    with pytest.raises(ValueError, match="no rung"):
        climb([], chosen=0, figure="Right, %")


def test_it_has_the_look_of_all_charts():
    look = json.loads(climb(ROWS, chosen=1, figure="f").to_json())["layout"]["template"]["layout"]
    assert look["paper_bgcolor"] == LIGHT["paper"]
