"""The colours of the parts of a model."""

from viz.budget import COLOURS
from viz.figure import DARK, LIGHT


def test_the_dark_swaps_no_colour_of_a_part():
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert not {*COLOURS.values()} & {*LIGHT.values(), *DARK.values()}
