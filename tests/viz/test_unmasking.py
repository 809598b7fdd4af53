"""A text out of [MASK]s as a drawing: every piece in its row, safe, translatable."""

import re
from xml.etree import ElementTree

import pytest

from viz.svg import Wording
from viz.unmasking import FILLS, Cell, steps_svg

ROWS = [
    [Cell(text="the", kind="given"), Cell(text="", kind="hidden"), Cell(text="", kind="hidden")],
    [
        Cell(text="the", kind="given"),
        Cell(text="<b>&", kind="new", chance=0.254),
        Cell(text="", kind="again"),
    ],
]


def texts(svg):
    found = (each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text"))
    return [(each.text or "").replace("\N{NO-BREAK SPACE}", " ") for each in found]


def test_every_step_is_a_row():
    svg = steps_svg(ROWS, title=Wording("{0}: the text, step by step", "m"))
    said = texts(svg)
    assert said[0] == "m: the text, step by step"
    assert said[2:] == ["0", "the", "·", "·", "1", "the", "<b>&", "25 %", "·"]
    assert [svg.count(f'fill="{tone}"') for tone in FILLS.values()] == [1, 1]
    assert svg.count("data-wording") == 3  # what is read out, the title, the note
    assert svg.count('font-weight="600"') == 2


def test_columns_are_as_wide_as_their_longest_piece():
    long = [[Cell(text="a" * 30, kind="old"), Cell(text="b", kind="old")]]
    (first, second) = (
        float(at) for at in re.findall(r'x="([0-9.]+)"', steps_svg(long, title=""))[-2:]
    )
    assert second - first > 100
    short = [[Cell(text="a", kind="old"), Cell(text="b", kind="old")]]
    (first, second) = (
        float(at) for at in re.findall(r'x="([0-9.]+)"', steps_svg(short, title=""))[-2:]
    )
    assert second - first < 40


def test_nearly_sure_is_not_sure_and_hardly_is_not_never():
    chances = (0.9962, 0.0042, 0.00001)
    row = [Cell(text="a", kind="new", chance=chance) for chance in chances]
    svg = steps_svg([row], title="")
    assert texts(svg)[4::2] == ["99.6 %", "0.4 %", "<0.01 %"]
    first, second, third = (float(at) for at in re.findall(r'<rect x="([0-9.]+)"', svg))
    assert third - second <= second - first + 0.1


@pytest.mark.parametrize("rows", [[], [[]], [ROWS[0], ROWS[1][:2]]])
def test_what_is_no_grid_is_refused(rows):
    with pytest.raises(ValueError, match="rows of one length"):
        steps_svg(rows, title="")
