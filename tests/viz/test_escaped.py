"""Texts of visitors in charts: no markup wherever they are drawn, and as they are in the table."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

import viz
from app.runs.reports.charts import followed
from viz import (
    attention_parts,
    budget,
    claims,
    distances,
    forge,
    gaps,
    ladder,
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
from viz.figure import finish, payload
from viz.svg import Wording

TEXT = "<b>x</b> & y"
ESCAPED = "&lt;b&gt;x&lt;/b&gt; &amp; y"
OURS = Wording("ours {0}", TEXT)
NUMBERS = np.ones((1, 1))
GIVEN = spans.Given(probability=0.5, rank=1, loss=0.7, masked=0.2)
CHOICE = forge.Choice(text=TEXT, probability=0.5, drawn=True, true=True)
CURVE = training.Curve(name=TEXT, number=0, points=[(0, 1.0), (1, 2.0)])
OTHER = training.Curve(name=TEXT, number=1, points=[(0, 1.0)], held_out=True)
JUDGED = pairs.Verdict(head=TEXT, model=TEXT, labels=(TEXT, TEXT), chance=0.5)
RUN = timeline.Run(document=0, pieces=5, text=TEXT)
VISIT = timeline.Visit(draw=0, marks=[f"M{TEXT}"], seen=[TEXT])
DRAW = {
    "maps.attention_map": lambda text: maps.attention_map(NUMBERS, [text], title=text),
    "maps.draw": lambda text: maps.draw(
        maps.Map(title=text, values=NUMBERS, rows=[text], columns=["a"]), note=text
    ),
    "attention_parts.ways": lambda text: attention_parts.ways(
        [text], NUMBERS, [text], title=text, flow=False
    ),
    "attention_parts.chances": lambda text: attention_parts.chances(
        [attention_parts.Chance(word=text, before=0.5, after=0.4, own=True)], some_off=True
    ),
    "attention_parts.products": lambda text: attention_parts.products(
        NUMBERS, [1.0], [text], title=text
    ),
    "budget.bars": lambda text: budget.bars({text: {"head": 1}}, {"head": text}, total=text),
    "claims.measured": lambda text: claims.measured(
        [claims.Measured(label=text, value=1, unit=text)], statement=text
    ),
    "distances.worth": lambda text: distances.worth(
        {0: (1, [0.5])}, {"c2p": text}, reach=0, curves={"c2p": [0.5]}, title=text
    ),
    "distances.table_rows": lambda text: distances.table_rows(
        [0], reach=0, count=1, exact=(0, 0), title=text
    ),
    "forge.generated": lambda text: forge.generated(
        [forge.Gap(position=1, text=text, drawn=text, choices=[CHOICE])]
    ),
    "forge.losses": lambda text: forge.losses([text], [(0, 1.0)], [1.0]),
    "gaps.fillings": lambda text: gaps.fillings(
        [gaps.Filled(way=text, words=text, apart=-1.0, chained=-1.0)], title=text
    ),
    "gaps.spelled": lambda text: gaps.spelled(
        [gaps.Spelled(word=text, pieces=[text], steps=[-1.0], own=True)], title=text
    ),
    "gaps.answers": lambda text: gaps.answers([gaps.Answer(word=text, log=-1.0)], title=text),
    "gaps.each_word": lambda text: gaps.each_word([text], {text: [-1.0]}, ["2"]),
    "gaps.sight": lambda text: gaps.sight([text], [[True]], gap=0, read=0, said=text),
    "ladder.climb": lambda text: ladder.climb(
        [ladder.Reached(title=text, value=1.0, shown=text)], chosen=0, figure=text
    ),
    "layers.ranks": lambda text: layers.ranks(
        [layers.Line(word=text, kind="own", ranks=[1], probabilities=[0.5])],
        *([text], [text]),
        vocabulary=9,
        title=text,
    ),
    "meaning.paths": lambda text: meaning.paths(
        [meaning.Path(number=1, sentence=text, points=[(0.0, 1.0)])],
        layer=0,
        shares=(0.5, 0.5),
        word=text,
    ),
    "meaning.neighbours": lambda text: meaning.neighbours(
        [meaning.Neighbour(before=text, word=text, after=text, cosine=0.5, same=True)]
    ),
    "pairs.verdicts": lambda text: pairs.verdicts([JUDGED], texts=(text, text)),
    "pairs.square": lambda text: pairs.square(
        [pairs.Cell(chance=0.5, texts=(text, text), taught=True)] * 4, title=text
    ),
    "pairs.alike": lambda text: pairs.alike({text: (0.5, 0.2)}, this=text, other=text),
    "pairs.scores": lambda text: pairs.scores(
        {text: [pairs.Count(of_all=1, said=text, right=text)]}, [text], examples=2, title=text
    ),
    "permutation.chances": lambda text: permutation.chances(
        [permutation.Target(position=1, piece=text, chances={text: 0.5, "a": 0.1})],
        own=[text],
        others=["a"],
        bits={text: {text: 1.0}},
        title=text,
    ),
    "results.reached": lambda text: results.reached([(text, 0.5)], name=text, share=True),
    "results.confusion": lambda text: results.confusion([text], [[1]]),
    "results.answers": lambda text: results.answers([text], [0.5], [0.5]),
    "spans.heads": lambda text: spans.heads(
        [spans.Place(word=text, seen=text, given=[GIVEN])], [text], title=text
    ),
    "spans.lengths": lambda text: spans.lengths({text: [1.0]}, last=text, title=text, hidden=[2]),
    "terms.chances": lambda text: terms.chances(
        [terms.Chance(text=text, chances=[0.5], ranks=[1], own=True)], [text], title=text
    ),
    "timeline.masks": lambda text: timeline.masks(
        [VISIT], [text], title=text, asked=[1], contexts=[1]
    ),
    "timeline.growth": lambda text: timeline.growth({text: [1.0]}),
    "timeline.cuts": lambda text: timeline.cuts(
        [timeline.Input(said=text, runs=[RUN])], length=9, title=text
    ),
    "training.curves": lambda text: training.curves(
        [CURVE, OTHER],
        [training.Baseline(name=text, value=1.0)],
        key="loss",
        name=text,
        by="step",
        title=text,
        kinds=(text, text),
    ),
    "training.several": lambda text: training.several({"loss": [CURVE]}, {"loss": text}, by="step"),
    "training.followed": lambda text: training.followed([(1, 0.5)], title=text),
    "turns.score_by_distance": lambda text: turns.score_by_distance(
        [0.5], reach=0, distance=0, window=None, title=text
    ),
    "turns.score_by_piece": lambda text: turns.score_by_piece(
        [text], [0.5], [0.4], [True], first=0, key=0, title=text
    ),
    "visibility.seen_map": lambda text: visibility.seen_map(
        np.ones((1, 1), dtype=bool), [text], title=text, mark=text, used=True
    ),
    "why.attributions": lambda text: why.attributions(
        [why.Attributed(text=text, read=text)], {text: [1.0]}, title=text
    ),
}
"""Every figure, with the text wherever one may stand."""
TITLE_ALONE = {"distances.table_rows", "turns.score_by_distance"}
NO_TEXTS = {
    "budget.narrow_tables",
    "meaning.alike",
    "meaning.likeness",
    "training.calibration",
    "figure.finish",
}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


def test_every_figure_is_among_them():
    found = set()
    for module in pkgutil.iter_modules(viz.__path__):
        held = vars(importlib.import_module(f"viz.{module.name}"))
        for name, each in held.items():
            made = getattr(each, "__annotations__", {}).get("return") == "go.Figure"
            if made and not name.startswith("_") and each.__module__ == f"viz.{module.name}":
                found.add(f"{module.name}.{name}")
    assert found == DRAW.keys() | NO_TEXTS


@pytest.mark.parametrize("text", [TEXT, OURS], ids=["visitor", "wording"])
@pytest.mark.parametrize("name", DRAW)
def test_a_text_is_no_markup_where_it_is_drawn_and_whole_in_the_table(name, text):
    figure = DRAW[name](text)
    found = payload(figure)
    meta = found["layout"].pop("meta")
    drawn = [*strings(found["data"]), *strings(found["layout"])]
    assert any(ESCAPED in each for each in drawn)
    shown = [each for each in drawn if each not in _unseen(found)]
    assert not [each for each in shown if TEXT in each], "it is markup there"
    assert not [each for each in shown if "&amp;lt;" in each or "&amp;amp;" in each], "twice"
    told = [*strings(meta["rows"]), *strings(meta["columns"]), meta["alt"]]
    assert name in TITLE_ALONE or any(TEXT in each for each in told)
    assert not [each for each in told if "&lt;" in each]
    assert "&amp;lt;" not in json.dumps(found["words"])


def _unseen(found: dict[str, Any]) -> set[str]:
    """What only tells one state of a chart from another."""
    return {found["layout"]["uirevision"]}


@pytest.mark.parametrize("figure", [go.Figure, viz.figure.Chart])
def test_names_are_escaped_whoever_has_made_the_figure(figure):
    drawn = figure(go.Bar(x=[1], y=[1], name=TEXT))
    finish(drawn, "", alt="", columns=[], rows=[])
    assert drawn.data[0].name == ESCAPED


def test_a_word_that_the_page_follows_is_escaped_once():
    layout = followed({"word": TEXT, "points": [[1, 0.5]]})["figure"]["layout"]
    assert layout["title"]["text"] == f"How likely “{ESCAPED}” is in the first gap"
    assert layout["meta"]["alt"].startswith(f"How likely “{TEXT}” is in the first gap")
