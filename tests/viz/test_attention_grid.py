"""Maps of numbers: pictures that open, codes that are close, colours that mean their sign."""

import csv
import io
from xml.etree import ElementTree

import numpy as np
import pytest

from viz import from_bytes
from viz.attention_grid import LARGEST_FLOATS, Grid, colour, grids_csv, grids_svg, shrink

SVG = "{http://www.w3.org/2000/svg}"


def grid(values, **settings):
    values = np.asarray(values, dtype=float)
    rows, columns = (
        [f"{name}{n}" for n in range(size)] for name, size in zip("rc", values.shape, strict=True)
    )
    return Grid(title="A map", values=values, rows=rows, columns=columns, **settings)


def cells(text):
    root = ElementTree.fromstring(text)
    return [rect.get("fill") for rect in root.iter(f"{SVG}rect")][1:-1]


def test_colours_run_both_ways_from_zero():
    assert colour(0, 1, signed=True) == colour(0, 1, signed=False) == "#faf8f4"
    assert colour(1, 1, signed=True) == colour(9, 1, signed=True) == "#0a3f45"
    assert colour(-1, 1, signed=True) == "#6f2c03"
    assert colour(0.25, 1, signed=False) == colour(0.5, 1, signed=True)


def test_a_picture_has_a_cell_for_every_number_and_escapes_words():
    text = grids_svg(
        [Grid(title="<b>", values=np.eye(2), rows=["<i>", "&"], columns=["a", "b" * 50])],
        title="x < y",
    )
    assert len(cells(text)) == 4
    words = "".join(ElementTree.fromstring(text).itertext())
    assert "<i>" in words
    assert "x < y" in words
    assert "b" * 50 not in words


def test_what_is_not_there_is_not_drawn():
    assert len(cells(grids_svg([grid([[1, np.nan], [0, 2]])], title="t"))) == 3


def test_large_maps_shrink_and_keep_the_strongest_of_either_sign():
    values = np.zeros((200, 3))
    values[7, 1], values[150, 2] = 5.0, -4.0
    small = shrink(grid(values, signed=True), 50)
    assert small.values.shape == (50, 3)
    assert (small.values.max(), small.values.min()) == (5.0, -4.0)
    assert "200 x 3" in small.title
    assert shrink(grid(np.eye(3))).values.shape == (3, 3)


def test_numbers_for_the_browser():
    values = np.array([[0.1, np.nan], [-2.0, 0.5]])
    sent = grid(values, signed=True).to_json()
    assert (sent["kind"], sent["top"]) == ("float32", 2.0)
    np.testing.assert_allclose(
        from_bytes(sent["data"], "<f4").reshape(2, 2), values.astype(np.float32)
    )
    side = int(LARGEST_FLOATS**0.5) + 1
    large = np.random.default_rng(0).random((side, side)) * 7
    sent = grid(large).to_json()
    codes = from_bytes(sent["data"], "u1").reshape(side, side)
    assert sent["kind"] == "byte"
    np.testing.assert_allclose(codes / 255 * sent["top"], large, atol=sent["top"] / 500)


def test_csv_has_every_map_under_its_title():
    text = grids_csv([grid([[1, 2]]), grid([[3], [np.nan]])])
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[:3] == [["A map"], ["from / to", "c0", "c1"], ["r0", "1", "2"]]
    assert rows[4:] == [["A map"], ["from / to", "c0"], ["r0", "3"], ["r1", "0"]]


def test_labels_that_do_not_fit():
    with pytest.raises(ValueError, match="labels"):
        Grid(title="", values=np.eye(2), rows=["a"], columns=["a", "b"])
