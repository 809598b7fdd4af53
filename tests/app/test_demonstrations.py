"""What the page's presets, first sentences, lessons and claims are meant to show, on the shipped
models. What does not hold any more needs another example: the row names it.

`python -m benchmarks.demonstrations` prints the same measurements.
"""

from itertools import combinations
from pathlib import Path

import pytest

import core_models.model
from app.claims.bench import Bench
from app.claims.card import UNJUDGED, VERDICTS
from app.claims.desk import CLAIMS
from app.claims.desk import measure as judge
from app.labs.budget.lab import PRESETS
from app.labs.meaning import answers as meaning
from app.labs.meaning.corpus import Corpus
from app.serving.demonstrations import DEMONSTRATIONS, Demonstration
from app.serving.languages import READERS
from app.serving.session import Session
from app.serving.statements import Contexts, Neighbours, Smaller
from benchmarks.demonstrations import main, measure
from core_models.prediction.meaning import is_chinese

MODELS = Path(__file__).resolve().parents[2] / "assets" / "models"
APP = Path(__file__).resolve().parents[2] / "app"
PLANTED = ("Accuses", "Trusts")
"""Whose text has a word in it that the visitor puts there."""


@pytest.fixture(scope="module")
def session():
    """With all shipped models; the other tests of the page have one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_models.model, "SHIPPED", MODELS)
        session = Session(threads=1)
        yield session
        session.close()


def name_of(each: Demonstration) -> str:
    return f"{each.lab}: {each.name[:30]}, {type(each.shows).__name__}, {each.model or 'sizes'}"


@pytest.mark.parametrize("each", DEMONSTRATIONS, ids=name_of)
def test_a_demonstration_holds(each):
    found = measure(each)
    assert found.holds, found.said


def sources(lab: str) -> str:
    """Everything that says what a lab offers."""
    folders = {"tour": [APP / "page" / "tour.js"], "pairs": [APP / "serving" / "examples.py"]}
    found = folders.get(lab) or [
        *(APP / "labs" / lab).glob("*.py"),
        *(APP / "labs" / lab).glob("*.js"),
    ]
    shared = (APP / "serving" / "examples.py").read_text("utf-8")
    return shared + "".join(path.read_text("utf-8") for path in found)


@pytest.mark.parametrize("each", DEMONSTRATIONS, ids=name_of)
def test_it_is_what_the_page_offers(each):
    said = sources(each.lab).replace("\\u2019", "\u2019")
    shows = each.shows
    if isinstance(shows, Smaller):
        names = {n for offered in PRESETS.values() for n in offered}
        assert {shows.size, shows.than} <= names
    elif isinstance(shows, Neighbours):
        assert shows.first in said
        assert shows.next in said
    elif not isinstance(shows, Contexts) and type(shows).__name__ not in PLANTED:
        assert shows.text in said


@pytest.mark.parametrize("way", ["centred", "raw"])
@pytest.mark.parametrize("name", meaning.EXAMPLES)
def test_sentences_of_one_sense_are_nearer_than_any_others(session, name, way):
    """By the model that a page in the word's language opens with."""
    example = meaning.EXAMPLES[name]
    model = session.model(READERS["zh" if is_chinese(name) else "en"])
    words = meaning.read_words(name, example.text)
    table = meaning.compare(Corpus(session, most=400), model, words).cosines[way][-1]
    pairs = list(combinations(range(len(example.senses)), 2))
    same = [table[a][b] for a, b in pairs if example.senses[a] == example.senses[b]]
    others = [table[a][b] for a, b in pairs if example.senses[a] != example.senses[b]]
    assert min(same) > max(others), "choose other sentences in app/labs/meaning/answers.py"


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_judged(session, name):
    """Only of order there is no verdict: the shipped ALBERT is at chance, and the card says so."""
    found = judge(CLAIMS[name], Bench(session, READERS["en"], 0))
    if name == "sop-order" and found.verdict == UNJUDGED:
        assert "held-out questions" in found.doubt
    else:
        assert found.verdict in VERDICTS


def test_the_command_prints_a_line_for_each_and_what_fails(monkeypatch, capsys):
    assert main(["--lab", "budget"]) == 0
    assert capsys.readouterr().out.count("ok   budget: ") == len(PRESETS)
    broken = Smaller("bert-base-uncased", "albert-base", 2)
    rows = [Demonstration("budget", "Upside down", "", broken)]
    monkeypatch.setattr("benchmarks.demonstrations.DEMONSTRATIONS", rows)
    assert main([]) == 1
    assert capsys.readouterr().out.startswith("FAIL budget: Upside down [] Smaller: 109,482,240")
