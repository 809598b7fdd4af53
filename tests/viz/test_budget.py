"""The colours of the parts of a model."""

import pytest

from viz.budget import COLOURS, bars
from viz.figure import DARK, LIGHT


def test_the_dark_swaps_no_colour_of_a_part():
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert not {*COLOURS.values()} & {*LIGHT.values(), *DARK.values()}


def test_a_part_without_a_colour_is_named():
    with pytest.raises(ValueError, match="no part is called 'encoder'; there are pieces, "):
        bars({"a": {"encoder": 3}}, {"encoder": "Encoder"})
