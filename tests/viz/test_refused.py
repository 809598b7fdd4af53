"""What no picture can be made of: refused with what was given and needed, or drawn as empty."""

import math
import re

import numpy as np
import pytest

import viz
from viz import (
    attention_parts,
    bars,
    budget,
    claims,
    distances,
    forge,
    gaps,
    layers,
    maps,
    meaning,
    pairs,
    permutation,
    results,
    spans,
    terms,
    timeline,
    training,
    turns,
    visibility,
    why,
)
from viz.figure import payload

NONE = np.zeros((0, 0))
ONE = np.ones((1, 1))
MAPS = np.full((1, 1, 2, 2), 0.5)
NOT_A_NUMBER = float("nan")
CHANCE = attention_parts.Chance(word="a", before=0.5, after=0.5, own=False)
PLACE = spans.Place(word="a", seen="a", given=[None])
ROLE = {"title": "t", "mark": "m", "used": False}
PATHS = [meaning.Path(number=n, sentence="a", points=[(0.0, 0.0)] * n) for n in (1, 2)]
GAP = forge.Gap(position=0, text="a", drawn="a", choices=[])
TWO = [[[1.0, 0.5], [0.5, 1.0]]]
KINDS = {"name": "Loss", "title": "t", "kinds": ("a", "b")}


def masked(marks, asked=(1,)):
    pieces = ["a"] * len(marks)
    visits = [timeline.Visit(draw=0, marks=marks, seen=pieces)]
    return timeline.masks(visits, pieces, title="", asked=asked, contexts=[1] * len(marks))


WRONG = {
    "overview": (lambda: viz.overview(NONE, []), "weights are 0 x 0"),
    "overview of no token": (
        lambda: viz.overview(np.zeros((1, 1, 0, 0)), []),
        "weights are 1 x 1 x 0 x 0",
    ),
    "clearest": (lambda: viz.clearest_head(MAPS, [False] * 3), "3 tokens"),
    "staring": (lambda: viz.staring_head(MAPS, [True]), "1 tokens"),
    "staring of none": (
        lambda: viz.staring_head(MAPS[:0], [True] * 2),
        "weights are 0 x 1 x 2 x 2",
    ),
    "head": (lambda: viz.head_weights(MAPS[0], 0, 0), "weights are 1 x 2 x 2"),
    "head of none": (lambda: viz.head_weights(MAPS[:0], None, None), "weights are 0 x"),
    "strongest": (lambda: viz.strongest(ONE, 1, keep=[1]), "keep"),
    "favourite": (lambda: viz.favourite(NONE), "at least one token"),
    "summary": (lambda: viz.summary(ONE, ["a", "b"], [False] * 2), "1 x 1.*2 labels"),
    "summary of flags": (lambda: viz.summary(ONE, ["a"], []), "0 flags"),
    "map": (lambda: viz.attention_map(ONE, []), "labels"),
    "seen": (
        lambda: visibility.seen_map(ONE > 0, ["a"], **ROLE, keep=[1]),
        "keep is 1; it must lie between 0 and 0",
    ),
    "no way": (lambda: attention_parts.ways([], ONE, ["a"], title="", flow=True), "one way"),
    "ways": (
        lambda: attention_parts.ways(["a"], ONE, ["a", "b"], title="", flow=True),
        r"shares are \(1, 1\)",
    ),
    "no token": (
        lambda: attention_parts.ways(["a"], np.ones((1, 0)), [], title="", flow=True),
        "one token",
    ),
    "products": (
        lambda: attention_parts.products(ONE, [1.0], ["a", "b"], title=""),
        "shares has 1 values",
    ),
    "products of keys": (
        lambda: attention_parts.products(ONE, [1.0, 1.0], ["a", "b"], title=""),
        r"values are \(1, 1\)",
    ),
    "bars": (lambda: bars.bars_svg([], title=""), "nothing to draw"),
    "budget": (lambda: budget.bars({"a": {"b": 1}}, {"b": "B"}), "no part is called"),
    "term": (lambda: distances.worth({}, {"x": "X"}, reach=1, title=""), "term is 'x'"),
    "curve": (
        lambda: distances.worth({}, {}, reach=1, curves={"c2p": [1, 2, 3]}, title=""),
        "term is 'c2p'",
    ),
    "curves": (
        lambda: distances.worth({}, {"c2p": "C"}, reach=1, curves={"c2p": [1.0]}, title=""),
        "c2p has 1 values; give one for each distance, 3 in all",
    ),
    "means": (
        lambda: distances.worth({0: (1, [])}, {"c2p": "C"}, reach=1, title=""),
        "means at 0 has 0 values",
    ),
    "table rows": (
        lambda: distances.table_rows([1], reach=1, count=2, exact=(0, 0), title=""),
        "rows has 1 values",
    ),
    "losses": (lambda: forge.losses(["a"], [], []), "discriminator has 0 values"),
    "losses of a generator": (
        lambda: forge.losses(["a"], [(1, 0.5)], [0.5]),
        "position is 1; it must lie between 0 and 0",
    ),
    "spelled": (
        lambda: gaps.spelled(
            [gaps.Spelled(word="w", pieces=["a"], steps=[-1, -1], own=False)], title=""
        ),
        "w has 2 values; give one for each piece, 1 in all",
    ),
    "each word": (lambda: gaps.each_word(["a"], {"m": [-1, -1]}, ["1"]), "m has 2 values"),
    "perplexity": (lambda: gaps.each_word(["a"], {"m": [-1]}, []), "perplexity has 0 values"),
    "sight": (
        lambda: gaps.sight(["a", "b"], [[True]], gap=0, read=0, said=""),
        "seen has 1 values; give one for each word, 2 in all",
    ),
    "sight of a word": (
        lambda: gaps.sight(["a", "b"], [[True]] * 2, gap=0, read=0, said=""),
        "row 0 of seen has 1 values",
    ),
    "kind": (
        lambda: layers.ranks(
            [layers.Line(word="w", kind="x", ranks=[], probabilities=[])],
            *([], []),
            vocabulary=1,
            title="",
        ),
        "kind is 'x'; it must be one of own, best, rival, second",
    ),
    "best words": (
        lambda: layers.ranks([], ["a"], [], vocabulary=1, title=""),
        "best has 0 values; give one for each layer",
    ),
    "vocabulary": (lambda: layers.ranks([], [], [], vocabulary=0, title=""), "vocabulary is 0"),
    "paths": (lambda: meaning.paths(PATHS, layer=0, shares=(1, 0)), "path 2 has 2 values"),
    "alike": (lambda: meaning.alike([1], TWO, [], layer=0, way="raw"), "centred has 0 values"),
    "alike at no layer": (
        lambda: meaning.alike([1, 2], TWO, TWO, layer=1, way="raw"),
        "layer is 1; it must lie between 0 and 0",
    ),
    "alike of other sentences": (
        lambda: meaning.alike([1, 2, 3], TWO, TWO, layer=0, way="raw"),
        "a layer has 2 values; give one for each sentence, 3 in all",
    ),
    "likeness": (lambda: meaning.likeness([], [], layer=0), "at least one layer"),
    "likeness of one": (
        lambda: meaning.likeness([[[1.0]]], [0.5], layer=0),
        "at least one pair of sentences",
    ),
    "different words": (lambda: meaning.likeness(TWO, [], layer=0), "random has 0 values"),
    "no cosine": (lambda: pairs.alike({}, this="a", other="b"), "at least one way"),
    "masks": (
        lambda: permutation.masks_svg([permutation.Mask(title="", rows=[], seen=[])], [], title=""),
        "at least one piece",
    ),
    "rows of masks": (
        lambda: permutation.masks_svg(
            [permutation.Mask(title="m", rows=[], seen=[[True]])], ["a"], title=""
        ),
        "seen has 1 values; give one for each row, 0 in all",
    ),
    "a row of masks": (
        lambda: permutation.masks_svg(
            [permutation.Mask(title="m", rows=[1], seen=[[True]])], ["a"], title=""
        ),
        "row is 1; it must lie between 0 and 0",
    ),
    "orders": (
        lambda: permutation.chances(
            [permutation.Target(position=1, piece="p", chances={"a": 1})],
            own=["b"],
            others=[],
            bits={},
            title="",
        ),
        "order is 'b'; it must be one of a",
    ),
    "reached": (lambda: results.reached([], name="n", share=True), "at least one method"),
    "confusion": (lambda: results.confusion(["a"], []), "counts has 0 values"),
    "confusion of a row": (lambda: results.confusion(["a"], [[1, 2]]), "row 0 of counts has 2"),
    "answers": (lambda: results.answers(["a"], [0.1, 0.2], [0.3]), "starts has 2 values"),
    "heads": (lambda: spans.heads([PLACE], ["a", "b"], title=""), "a has 1 values; .* each head"),
    "many heads": (
        lambda: spans.heads([spans.Place(word="a", seen="", given=[None] * 3)], "abc", title=""),
        "3 heads",
    ),
    "lengths": (lambda: spans.lengths({}, last="9+"), "at least one law"),
    "hidden": (lambda: spans.lengths({"a": [1.0]}, last="1+", hidden=[1, 2]), "hidden has 2"),
    "means of lengths": (
        lambda: spans.lengths({"a": [1.0]}, last="1+", means={}),
        "name is 'a'",
    ),
    "conditions": (
        lambda: terms.chances([terms.Chance(text="w", chances=[])], ["a"], title=""),
        "w has 0 values; give one for each condition, 1 in all",
    ),
    "many conditions": (
        lambda: terms.chances([terms.Chance(text="w", chances=[0.1] * 4)], "abcd", title=""),
        "4 conditions",
    ),
    "ranks": (
        lambda: terms.chances(
            [terms.Chance(text=t, chances=[0.1], ranks=r) for t, r in (("v", [1]), ("w", []))],
            ["a"],
            title="",
        ),
        "ranks of w has 0 values",
    ),
    "no piece": (lambda: masked([]), "at least one piece"),
    "asked": (lambda: masked(["M"], asked=[]), "asked has 0 values"),
    "mark": (lambda: masked(["X"]), "mark is 'X'; it must be one of M, R, K, S"),
    "no masking": (lambda: timeline.growth({}), "at least one masking"),
    "no epoch": (lambda: timeline.growth({"a": []}), "at least one epoch"),
    "epochs": (lambda: timeline.growth({"a": [1], "b": []}), "b has 0 values"),
    "axis": (lambda: training.curves([], key="loss", by="x", **KINDS), "by is 'x'; .* step"),
    "axis of several": (lambda: training.several({"loss": []}, {"loss": "L"}, by="x"), "by is"),
    "no figure": (lambda: training.several({}, {}, by="step"), "at least one figure"),
    "name": (lambda: training.several({"loss": []}, {}, by="step"), "figure is 'loss'"),
    "no bin": (lambda: training.calibration([], error=0.1), "at least one bin"),
    "distance": (
        lambda: turns.score_by_distance([1.0], reach=0, distance=1, window=None, title=""),
        "distance is 1; it must lie between 0 and 0",
    ),
    "scores": (
        lambda: turns.score_by_distance([], reach=1, distance=0, window=None, title=""),
        "scores has 0 values; give one for each distance, 3 in all",
    ),
    "pieces": (
        lambda: turns.score_by_piece(["a"], [1.0], [1.0], [], first=0, key=0, title=""),
        "seen has 0 values",
    ),
    "methods": (
        lambda: why.attributions([why.Attributed(text="a", read="a")], {}, title=""),
        "at least one method",
    ),
    "judge": (
        lambda: pairs.scores({"j": []}, ["a"], examples=1, title=""),
        "j has 0 values; give one for each case, 1 in all",
    ),
}
DRAWN = {
    "no token of a map": lambda: viz.attention_map(NONE, []),
    "empty curves": lambda: training.curves([], key="loss", by="step", **KINDS),
    "no snapshot": lambda: training.followed([], title="t"),
    "no size": lambda: budget.bars({}, {}),
    "no document": lambda: timeline.cuts([], length=9, title="t"),
    "no label": lambda: results.confusion([], []),
    "no piece of an answer": lambda: results.answers([], [], []),
    "no token": lambda: forge.losses([], [], []),
    "nothing measured": lambda: claims.measured([], statement="s"),
    "no choice": lambda: forge.generated([GAP]),
    "no case": lambda: pairs.scores({}, [], examples=0, title="t"),
    "no position": lambda: visibility.seen_map(ONE > 0, ["a"], **ROLE, keep=[]),
    "nothing of a map": lambda: maps.draw(
        maps.Map(title="t", values=NOT_A_NUMBER * ONE, rows=["a"], columns=["b"])
    ),
    "an endless number": lambda: maps.draw(
        maps.Map(title="t", values=math.inf * ONE, rows=["a"], columns=["b"])
    ),
    "a measured nothing": lambda: claims.measured(
        [claims.Measured(label="a", value=value, unit=unit) for value, unit in VALUES],
        statement="s",
    ),
    "an answer of no chance": lambda: gaps.answers(
        [gaps.Answer(word="a", log=NOT_A_NUMBER)], title="t"
    ),
    "an answer of too much": lambda: gaps.answers([gaps.Answer(word="a", log=1000.0)], title="t"),
    "fillings": lambda: gaps.fillings(
        [gaps.Filled(way="a", words="b", apart=1000.0, chained=NOT_A_NUMBER)], title="t"
    ),
    "a run that diverged": lambda: training.curves(
        [training.Curve(name="a", number=0, points=[(0, NOT_A_NUMBER), (1, math.inf)])],
        key="loss",
        by="seconds",
        **KINDS,
    ),
    "a model that reached nothing": lambda: results.reached(
        [("a", NOT_A_NUMBER)], name="n", share=True
    ),
}
VALUES = [(NOT_A_NUMBER, ""), (NOT_A_NUMBER, "%"), (math.inf, "ms"), (2.0, "ms")]


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_told(name):
    ask, told = WRONG[name]
    with pytest.raises(ValueError, match=told) as caught:
        ask()
    frame = caught.traceback[-1]
    assert frame.path.parent.name == "viz", "an error of ours, not one of a library"
    assert re.search("raise ValueError", str(frame.statement))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("error")
def test_what_is_not_there_is_drawn_as_nothing(name):
    figure = DRAWN[name]()
    payload(figure)
    figure.to_json()


def test_what_is_no_number_is_a_dash():
    assert claims.readable(NOT_A_NUMBER, "") == gaps.chance(NOT_A_NUMBER) == "\N{EN DASH}"
    assert claims.shares([claims.Measured(label="", value=v, unit=u) for v, u in VALUES]) == [
        0.0,
        0.0,
        0.0,
        1.0,
    ]
