"""Masks epoch by epoch, and documents cut, as figures."""

import pytest

from viz.timeline import Input, Run, Visit, cuts, masks


def visit(draw, *marks):
    return Visit(draw=draw, marks=marks, seen=["x"] * len(marks))


def draw(visits, pieces=("a", "北", "c" * 40)):
    return masks(visits, pieces, title="t", asked=[1] * 3, contexts=[1] * 3)


def test_a_mask_that_comes_again_is_pale():
    figure = draw([visit(0, "M", "", ""), visit(1, "", "R", "K2"), visit(0, "M", "", "")])
    fresh, again = (trace for trace in figure.data if trace.type == "heatmap")
    assert fresh.opacity > again.opacity
    assert list(map(list, fresh.z)) == [[1, 0, 0], [0, 2, 3], [None] * 3]
    assert list(map(list, again.z)) == [[None] * 3, [None] * 3, [1, 0, 0]]
    assert list(fresh.text[1]) == ["", "R", "K2"]
    assert figure.layout.yaxis.ticktext == ("1", "2", "3 = 1")


def test_headings_are_turned_but_for_characters_that_would_lie():
    figure = draw([visit(0, "M", "", "")])
    angles = [(note.text[:1], note.textangle) for note in figure.layout.annotations]
    assert angles == [("a", -90), ("北", 0), ("c", -90)]
    assert figure.layout.annotations[2].text == "c" * 10 + "…"


def test_every_epoch_needs_a_mark_for_every_piece():
    for bad in ([visit(0, "M")], []):
        with pytest.raises(ValueError, match="one mark per piece"):
            draw(bad)


def test_blocks_of_an_example_stand_side_by_side():
    runs = [Run(document=0, pieces=5, text="<b>"), Run(document=2, pieces=3, text="d", second=True)]
    figure = cuts([Input(said="9 random", runs=runs)], length=12, title="t")
    first, second = figure.data
    assert (first.base, second.base, first.x, second.x) == ((0,), (5,), (5,), (3,))
    assert first.customdata == ([5, "&lt;b&gt;"],)
    assert second.customdata == ([3, "d"],)
    assert first.hovertemplate == second.hovertemplate
    assert "pieces: %{customdata[0]}<br>%{customdata[1]}" in first.hovertemplate
    assert "%{x}" not in first.hovertemplate
    assert figure.layout.yaxis.ticktext == ("9 random",)
    assert figure.layout.yaxis.range == (1.5, 0.5)  # its own range is wider with some bars


def test_the_table_of_an_example_says_all_that_its_bar_does():
    runs = [Run(document=0, pieces=5, text="a"), Run(document=2, pieces=3, text="d", second=True)]
    figure = cuts([Input(said="9 random", runs=runs)], length=12, title="t")
    assert figure.layout.meta["rows"] == [
        [1, 1, 1, 0, 5, "a", "9 random"],
        [1, 3, 2, 5, 3, "d", "9 random"],
    ]
    assert "without special" in figure.layout.xaxis.title.text
