"""Two texts as figures: verdicts, the 2 x 2, cosines."""

import pytest

from viz.pairs import Cell, Verdict, alike, square, verdicts


def test_a_bar_is_cut_where_yes_ends():
    said = [Verdict(head="h", model="<m>", labels=("next", "random"), chance=0.75)]
    figure = verdicts(said, texts=("<a>", "b"))
    yes, no = figure.data
    assert (yes.x, no.x) == ((75,), (25,))
    assert figure.layout.annotations[0].text == "h (&lt;m&gt;)"
    assert figure.layout.meta["rows"][1] == ["h", "<m>", "random", 0.25, "<a>", "b"]
    for bad in ([], [Verdict(head="h", model="m", labels=("a", "b"), chance=2)]):
        with pytest.raises(ValueError, match="within 0 to 1"):
            verdicts(bad, texts=("a", "b"))


def test_the_cells_of_a_square_stand_row_by_row():
    cells = [Cell(chance=n / 4, texts=("<a>", str(n)), taught=n < 2) for n in range(4)]
    figure = square(cells, title="t")
    (heat,) = figure.data
    assert [list(row) for row in heat.z] == [[0, 0.25], [0.5, 0.75]]
    assert heat.customdata[1][0] == "&lt;a&gt; → 2"
    assert [row[3] for row in figure.layout.meta["rows"]] == [
        "in its training",
        "in its training",
        "never in its training",
        "never in its training",
    ]
    with pytest.raises(ValueError, match="four chances"):
        square(cells[:3], title="t")


def test_cosines_stand_beside_those_of_another_topic():
    figure = alike({"c": (0.9, -0.2)}, this="these", other="another")
    assert figure.layout.meta["alt"] == "Cosines of one way to compare two texts"
    assert [bar.x for bar in figure.data] == [(0.9,), (-0.2,)]
    assert figure.layout.xaxis.range == (-0.2, 1)
