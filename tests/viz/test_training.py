"""Curves of runs: names of visitors are no markup, and the table has every run, as it is called."""

import json

from viz.figure import LIGHT, MOST_TABLE_ROWS
from viz.svg import Wording
from viz.training import MOST_POINTS, Baseline, Curve, curves, several

NAMES = ("A & B", "<b>c</b>")
SETTINGS = {"key": "loss", "name": "Loss", "by": "step", "title": "t", "kinds": ("line", "dots")}


def run(name, number, count=2, **more):
    return Curve(name=name, number=number, points=[(n, 1.0) for n in range(count)], **more)


def held(count):
    return [
        run(name, number, count, held_out=flag)
        for number, name in enumerate("abc")
        for flag in (False, True)
    ]


def test_names_of_runs_are_escaped_in_the_legend_and_whole_in_the_table():
    knows = Baseline(name=Wording("{0} ({1})", Wording("knows"), NAMES[1]), value=2.0)
    runs = [run(NAMES[0], 0), run(NAMES[1], 1, held_out=True)]
    figure = curves(runs, [knows], **SETTINGS)
    assert [trace.name for trace in figure.data] == [
        "A &amp; B",
        "&lt;b&gt;c&lt;/b&gt;, held out",
        "knows (&lt;b&gt;c&lt;/b&gt;): 2.00",
    ]
    assert figure.data[2].name.values[0].values[0].key == "knows"
    assert [row[0] for row in figure.layout.meta["rows"]] == [
        "knows (<b>c</b>)",
        *["A & B"] * 2,
        *["<b>c</b>, held out"] * 2,
    ]


def test_one_run_is_told_by_its_kinds():
    figure = curves([run("a", 0), run("a", 0, held_out=True)], **SETTINGS)
    assert [trace.name for trace in figure.data] == ["line", "dots"]
    assert [row[0] for row in figure.layout.meta["rows"]] == ["line", "line", "dots", "dots"]


def test_many_long_curves_are_all_in_the_table_and_what_is_not_is_counted():
    figure = curves(held(MOST_POINTS), [Baseline(name="b", value=1.0)], **SETTINGS)
    meta = figure.layout.meta
    names = [row[0] for row in meta["rows"]]
    assert {*names} == {f"{name}{end}" for name in "abc" for end in ("", ", held out")} | {"b"}
    assert len({names.count(name) for name in names if name != "b"}) == 1
    assert len(names) <= MOST_TABLE_ROWS
    assert len(names) - 1 + meta["left_out"] == sum(len(trace.x) for trace in figure.data[:-1])
    assert all(len(trace.x) == MOST_POINTS for trace in figure.data[:-1])


def test_short_curves_keep_their_points_beside_long_ones():
    runs = [*(run(name, n, MOST_POINTS) for n, name in enumerate("abc")), run("d", 3, 20)]
    names = [row[0] for row in curves(runs, **SETTINGS).layout.meta["rows"]]
    assert names.count("d") == 20


def test_a_table_that_has_room_leaves_nothing_out():
    found = [run("a", 0, MOST_POINTS + 1), run("b", 1, 2 * MOST_POINTS)]
    figure = curves(found, **SETTINGS)
    assert figure.layout.meta["left_out"] == 0
    assert len(figure.layout.meta["rows"]) == sum(len(trace.x) for trace in figure.data)


def test_small_charts_have_all_runs_in_the_table_and_the_look_of_all():
    figure = several(
        {"loss": held(MOST_POINTS), "f1": held(3)}, {"loss": "L", "f1": "F"}, by="step"
    )
    rows = figure.layout.meta["rows"]
    assert {row[0] for row in rows} == {"L", "F"}
    assert [row[0] for row in rows].count("F") == 18
    drawn = sum(len(trace.x) for trace in figure.data)
    assert len(rows) + figure.layout.meta["left_out"] == drawn
    look = json.loads(figure.to_json())["layout"]["template"]["layout"]
    assert look["paper_bgcolor"] == LIGHT["paper"]
    names = [(each.text, each.xref, each.yref) for each in figure.layout.annotations]
    assert names == [("L", "x domain", "y domain"), ("F", "x2 domain", "y2 domain")]
