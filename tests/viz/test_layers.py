"""Ranks of words in a gap, layer by layer."""

from viz.figure import colour
from viz.layers import Line, ranks


def test_every_word_has_a_colour_of_its_own():
    kinds = ("own", "second", "rival", "rival", "rival", "rival", "rival")
    lines = [
        Line(word=f"w{n}", kind=kind, ranks=[9, 3], probabilities=[0.1, 0.2])
        for n, kind in enumerate(kinds)
    ]
    figure = ranks(lines, ["input", "1"], ["a", "b"], vocabulary=8000, title="A gap")
    used = [trace.line.color for trace in figure.data]
    assert len(set(used)) == len(kinds)
    assert used[0] == colour("hidden")
