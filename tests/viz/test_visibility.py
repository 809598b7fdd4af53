"""Grids of what tokens may see: every cell has one colour, and a table says the same."""

import numpy as np
import pytest

from viz.figure import colour, payload
from viz.visibility import MOST_DRAWN, ranges, seen_map, step

WORDS = ["<b>", "a", "a", "c"]
CAUSAL = np.tril(np.ones((4, 4), dtype=bool))
NONE = {"title": "Causal", "mark": "nobody", "used": False}


def cells(figure):
    """By colour, which cells have it."""
    return {trace.colorscale[0][1]: np.array(trace.z, dtype=float) == 1 for trace in figure.data}


def test_seen_and_unseen_cells_share_the_grid():
    figure = seen_map(CAUSAL, WORDS, **NONE)
    found = cells(figure)
    np.testing.assert_array_equal(found[colour("heat_3")], CAUSAL)
    np.testing.assert_array_equal(found[colour("heat_0")], ~CAUSAL)
    assert list(figure.data[0].y) == ["&lt;b&gt;", "a", "a\N{ZERO WIDTH SPACE}", "c"]
    assert np.array(figure.data[0].customdata)[:, 3].tolist() == [0, 1, 2, 3]
    assert figure.layout.meta["rows"] == [
        [0, "<b>", "0"],
        [1, "a", "0\N{EN DASH}1"],
        [2, "a", "0\N{EN DASH}2"],
        [3, "c", "0\N{EN DASH}3"],
    ]
    assert "Causal (nobody): the 4 tokens see 10 of 16 pairs." in figure.layout.meta["alt"]
    whole = seen_map(np.ones((4, 4), dtype=bool), WORDS, **NONE)
    assert list(cells(whole)) == [colour("heat_3")]


def test_what_one_stream_alone_sees_has_a_colour_of_its_own():
    itself = np.eye(4, dtype=bool)
    figure = seen_map(CAUSAL, WORDS, **NONE, queries=CAUSAL & ~itself)
    found = cells(figure)
    np.testing.assert_array_equal(found[colour("heat_2")], itself)
    np.testing.assert_array_equal(found[colour("heat_3")], CAUSAL & ~itself)
    assert sum(each.astype(int) for each in found.values()).tolist() == [[1] * 4] * 4
    assert figure.layout.meta["rows"][0][2:] == ["0", ""]
    assert figure.layout.meta["rows"][3][2:] == ["0\N{EN DASH}3", "0\N{EN DASH}2"]


def test_a_way_that_is_used_and_a_row_have_frames():
    (frame,) = seen_map(CAUSAL, WORDS, **NONE).layout.shapes
    assert (frame.line.color, frame.line.width) == (colour("line"), 1)
    used = seen_map(CAUSAL, WORDS, title="Causal", mark="all", used=True, row=2).layout
    frame, row = used.shapes
    assert (frame.line.color, frame.line.width) == (colour("model"), 3)
    assert (row.y0, row.y1, row.x0, row.x1) == (1.5, 2.5, -0.5, 3.5)
    assert (used.title.text, used.title.subtitle.text) == ("Causal", "all")


def test_of_a_long_text_every_nth_token_is_drawn_and_all_are_told():
    length = 2 * MOST_DRAWN + 5
    seen = np.tril(np.ones((length, length), dtype=bool))
    figure = seen_map(seen, [f"t{n}" for n in range(length)], **NONE, row=4)
    assert (step(length), step(MOST_DRAWN), step(0)) == (3, 1, 1)
    assert len(figure.data[0].y) == len(range(0, length, 3)) <= MOST_DRAWN
    assert len(figure.layout.shapes) == 1  # the row is not among those that are drawn
    assert len(figure.layout.meta["rows"]) == length
    np.testing.assert_array_equal(cells(figure)[colour("heat_3")], seen[::3, ::3])
    assert np.array(figure.data[0].customdata)[:, 0].tolist() == [*range(0, length, 3)]
    json = str(payload(figure)["words"])
    assert "sees" in json
    assert "t3" not in json


def test_ranges_of_positions():
    assert ranges([0, 2, 3, 4, 6]) == "0, 2\N{EN DASH}4, 6"
    assert ranges([]) == ""


def test_tokens_may_be_left_out():
    figure = seen_map(CAUSAL, WORDS, **NONE, row=2, keep=[0, 2, 3])
    keep = np.ix_([0, 2, 3], [0, 2, 3])
    np.testing.assert_array_equal(cells(figure)[colour("heat_3")], CAUSAL[keep])
    assert np.array(figure.data[0].customdata)[:, 0].tolist() == [0, 2, 3]
    assert figure.layout.meta["rows"][1] == [2, "a", "0, 2"]
    assert figure.layout.shapes[1].y0 == 0.5  # row 2 stands second
    assert "the 3 tokens see 6 of 9 pairs" in figure.layout.meta["alt"]
    assert len(seen_map(CAUSAL, WORDS, **NONE, row=1, keep=[0, 2]).layout.shapes) == 1


def test_masks_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="tokens 3"):
        seen_map(CAUSAL, WORDS[:3], **NONE)
    with pytest.raises(ValueError, match="tokens 4"):
        seen_map(CAUSAL, WORDS, **NONE, queries=CAUSAL[:3])
