"""Pictures of a span: bars, numbers, texts of any kind."""

import pytest

from viz.spans import Given, Place, heads

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
    assert figure.layout.meta["alt"] == "Probability of one hidden word by each head."
    assert sum(figure.layout.xaxis.range) == 0, "a single place stands in the middle"
    pale, now, *_ = figure.data
    assert (pale.name, pale.y, now.name, now.y) == ("own, [MASK]", (25,), "own, now", (50,))
    assert pale.marker.opacity < now.marker.opacity
    assert pale.marker.color == now.marker.color
    assert figure.layout.meta["rows"] == [[0, "a", "x", 0.5, 1, 0.7, 0.25, *[None] * 4, 0.7]]
    with pytest.raises(ValueError, match="nothing"):
        heads([], NAMES, title="t")
