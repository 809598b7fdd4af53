"""Long words beside an axis: cut there, so that a phone has room, and whole beside the pointer."""

import json
import re

import numpy as np
import pytest

from viz import attention_parts, budget, forge, gaps, permutation, results, spans, terms, turns, why
from viz.figure import LIGHT, MOST_LETTERS, payload, tick
from viz.maps import label

WORD = "Donaudampfschifffahrtsgesellschaftskapitänswitwe"
GAP = forge.Gap(
    position=1,
    text=WORD,
    drawn=WORD,
    choices=[forge.Choice(text=WORD, probability=0.5, drawn=True, true=True)],
)
CHARTS = {
    "why": lambda: why.attributions([why.Attributed(text=WORD, read=WORD)], {"a": [1.0]}, title=""),
    "generated": lambda: forge.generated([GAP]),
    "losses": lambda: forge.losses([WORD], [(0, 1.0)], [1.0]),
    "fillings": lambda: gaps.fillings(
        [gaps.Filled(way="one", words=WORD, apart=-1, chained=-1)], title=""
    ),
    "spelled": lambda: gaps.spelled(
        [gaps.Spelled(word=WORD, pieces=["a"], steps=[-1.0], own=True)], title=""
    ),
    "answers": lambda: gaps.answers([gaps.Answer(word=WORD, log=-1.0)], title=""),
    "each_word": lambda: gaps.each_word([WORD], {"m": [-1.0]}, ["2"]),
    "sight": lambda: gaps.sight([WORD], [[True]], gap=0, read=0, said=""),
    "chances": lambda: permutation.chances(
        [permutation.Target(piece=WORD, position=1, chances={"a": 0.5})],
        own=["a"],
        others=[],
        bits={},
        title="",
    ),
    "confusion": lambda: results.confusion([WORD], [[1]]),
    "where": lambda: results.answers([WORD], [1.0], [1.0]),
    "heads": lambda: spans.heads(
        [spans.Place(word=WORD, seen="x", given=[spans.Given(probability=1, rank=1, loss=0)])],
        ["a"],
        title="",
    ),
    "terms": lambda: terms.chances([terms.Chance(text=WORD, chances=[0.5])], ["a"], title=""),
    "turns": lambda: turns.score_by_piece([WORD], [0.1], [0.2], [True], first=0, key=0, title=""),
    "budget": lambda: budget.bars({WORD: {"pieces": 1}}, {"pieces": "A"}),
    "ways": lambda: attention_parts.ways(["a"], np.ones((1, 1)), [WORD], title="", flow=False),
    "off": lambda: attention_parts.chances(
        [attention_parts.Chance(word=WORD, before=0.5, after=0.5, own=False)], some_off=False
    ),
    "products": lambda: attention_parts.products(np.ones((1, 2)), [1.0], [WORD], title=""),
}


def beside(found: dict) -> list[str]:
    """What stands at the axes: their own texts, or the categories of what is drawn."""
    axes = [axis for name, axis in found["layout"].items() if re.match("[xy]axis", name)]
    given = [text for axis in axes for text in axis.get("ticktext", ())]
    places = [place for trace in found["data"] for way in "xy" for place in trace.get(way, ())]
    return [*given, *(place for place in places if isinstance(place, str))]


@pytest.mark.parametrize("name", CHARTS)
def test_a_long_word_is_cut_beside_its_axis_and_whole_elsewhere(name):
    figure = CHARTS[name]()
    found = payload(figure)
    cut = [re.sub("<.*?>|\N{ZERO WIDTH SPACE}", "", text) for text in beside(found)]
    assert "Donau" in str(cut)
    assert WORD not in str(cut)
    assert max(map(len, cut)) <= MOST_LETTERS + 8, cut
    hover = [[trace.get(key) for key in ("customdata", "hovertext")] for trace in found["data"]]
    assert WORD in str(hover)
    assert WORD in str(figure.layout.meta["rows"]) + str(figure.layout.meta["columns"])


def test_short_words_stay_and_wide_letters_count_more():
    assert tick("<b> 5 %{x}") == "&lt;b&gt; 5 %&#123;x}"
    assert tick("n" * MOST_LETTERS) == "n" * MOST_LETTERS
    assert tick("n" * 30).endswith("…")
    assert len(tick("字" * 30)) < len(tick("n" * 30))
    assert len(label("字" * 30)) < len(label("n" * 30)), "it would run into the title of a map"


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_the_same_look_outside_the_page(name):
    look = json.loads(CHARTS[name]().to_json())["layout"]["template"]["layout"]
    assert look["paper_bgcolor"] == LIGHT["paper"]
