"""The Spans tab without a browser: numbers against core_models, what is hidden, bad input."""

import asyncio
import csv
import io
import math
from functools import partial
from xml.etree import ElementTree

import pytest
import torch

import core_models as cm
from app.labs.spans import answers as spans
from app.labs.spans import lab as tab
from app.parts.views import answered
from app.serving.session import Session
from core_models import span_masking
from core_models.prediction import fill_spans, shift
from core_models.prediction.spans import loss_of
from tests.core.tiny_models import narrow

TEXT = "The capital of France is the city of Paris ."
NAME = "spanbert-tiny"


def tiny(tokenizer: cm.Tokenizer) -> cm.Model:
    """A random SpanBERT over a vocabulary."""
    config = cm.size("spanbert-base").with_vocabulary(tokenizer.vocabulary)
    config = narrow(config, width=16, inner=24, initial_std=0.4)
    return cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("span-models")
    lines = [TEXT, "Bees make honey and carry it home to the hive ."] * 4
    tiny(cm.Tokenizer.train(lines, vocabulary=150)).save(folder / NAME)
    return folder


@pytest.fixture
def session(folder, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(folder))
    session = Session()
    yield session
    session.close()


@pytest.fixture
def without(monkeypatch):
    """The page's service where no model has both heads."""
    monkeypatch.delenv("CLOZE_MODELS", raising=False)
    session = Session()
    infos = [info for info in session.models() if "span_boundary" not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    yield session
    session.close()


def ask(session, answer=tab.show, **values):
    question = {"rev": 6, "text": TEXT, "model": NAME, **values}
    return asyncio.run(answered(partial(answer, session), question))


def hide(session, *words, model=NAME):
    """Marks on words of the text."""
    tokens = session.sentence(TEXT, model).tokens
    return [{"position": t.position, "case": "mask"} for t in tokens if t.text in words]


@pytest.mark.parametrize("inside", spans.INSIDE)
def test_every_number_is_that_of_the_core_calls(session, inside):
    marks = hide(session, "France", "is")
    answer = ask(session, marks=marks, inside=inside, roll=3)
    span = answer["spans"][0]["start"], answer["spans"][0]["stop"]
    model = session.model(NAME)
    extra = {}
    if inside == "kept":
        extra = {"kept": True}
    elif inside == "random":
        ids = spans.strangers(model.tokenizer, span[1] - span[0], 3)
        extra = {"replaced": dict(zip(range(*span), ids, strict=True))}
    (told,) = fill_spans(model, TEXT, [span], **extra)
    (base,) = fill_spans(model, TEXT, [span])
    shown = answer["told"]["pieces"]
    assert [piece["position"] for piece in shown] == list(range(*span))
    for piece, wanted, masked in zip(shown, told.pieces, base.pieces, strict=True):
        for head in ("masked_token", "span_boundary"):
            said, core = piece[head], getattr(wanted, head)
            assert said["original"]["probability"] == core.original.probability
            assert said["loss"] == loss_of(core)
            assert [c["id"] for c in said["candidates"]] == [c.id for c in core.candidates]
            if inside != "mask":
                before = getattr(masked, head).original.probability
                assert piece["base"][head] == pytest.approx(before)
        assert piece["loss"] == pytest.approx(
            piece["masked_token"]["loss"] + piece["span_boundary"]["loss"]
        )
    losses = answer["told"]["losses"]
    for head in ("masked_token", "span_boundary"):
        mean = sum(piece[head]["loss"] for piece in shown) / len(shown)
        assert losses[head] == {"count": len(shown), "mean": pytest.approx(mean)}
    assert losses["total"] == pytest.approx(
        losses["masked_token"]["mean"] + losses["span_boundary"]["mean"]
    )
    if inside == "mask":
        assert answer["told"]["moved"] is None
    else:
        moved = shift(model, TEXT, span, **extra)
        assert answer["told"]["moved"] == {
            "before": moved.before,
            "after": moved.after,
            "inside": moved.inside,
        }


def test_each_run_is_a_span_and_the_other_runs_stay_hidden(session):
    marks = hide(session, "capital", "France", "is", "Paris")
    answer = ask(session, marks=marks, run=1)
    model = session.model(NAME)
    found = [(span["start"], span["stop"]) for span in answer["spans"]]
    assert len(found) == 3
    assert answer["run"] == 1
    others = [p for s in (found[0], found[2]) for p in range(*s)]
    (told,) = fill_spans(model, TEXT, [found[1]], masks=others)
    chance = told.pieces[0].span_boundary.original.probability
    shown = answer["told"]["pieces"][0]["span_boundary"]["original"]["probability"]
    assert shown == chance
    assert ask(session, marks=marks, run=9)["run"] == 2


def test_without_marks_words_from_the_middle_are_taken(session):
    answer = ask(session)
    assert answer["usual"]
    (span,) = answer["spans"]
    words = [t["text"] for t in answer["tokens"][span["start"] : span["stop"]]]
    assert span["words"] == 3
    assert "".join(words) == "Franceisthe"
    assert sum(answer["law"]["now"]) == 0


def test_a_span_at_the_edge_has_no_boundary_answer(session):
    answer = ask(session, marks=hide(session, "The", "capital"))
    assert answer["spans"][0]["edge"]
    assert all(piece["span_boundary"] is None for piece in answer["told"]["pieces"])
    assert answer["told"]["losses"]["span_boundary"] == {"count": 0, "mean": None}
    assert ask(session, text="Paris")["spans"][0]["edge"]


def test_hidden_words_of_another_vocabulary_are_found_by_their_letters(session):
    marks = hide(session, "France", model="bert-mini")
    answer = ask(session, model="bert-mini", marks=marks)
    assert answer["reader"] == NAME
    (span,) = answer["spans"]
    tokens = answer["tokens"][span["start"] : span["stop"]]
    assert (tokens[0]["start"], tokens[-1]["end"]) == (15, 21)


def test_a_cut_word_is_told(session):
    tokenizer = session.model(NAME).tokenizer
    words = [a + b for a in ("home", "hive", "city") for b in ("it", "of", "is")]
    pieces = {word: tokenizer.pieces_of(word) for word in words}
    long = next(w for w, p in pieces.items() if len(p) > 1 and tokenizer.unknown_id not in p)
    whole, cut = (
        ask(session, text=f"The {long} carry", marks=[{"position": n} for n in places])["spans"][0]
        for places in (range(2, 2 + len(pieces[long])), [2])
    )
    assert (whole["whole"], whole["words"]) == (True, 1)
    assert (cut["whole"], cut["words"]) == (False, 1)


def test_the_law_is_that_of_the_masking(session):
    law = ask(session, marks=hide(session, "France", "is"))["law"]
    assert law["law"] == list(span_masking.geometric())
    assert law["mean"] == pytest.approx(3.797, abs=1e-3)
    raw = [0.2 * 0.8**n for n in range(10)]
    assert law["law"] == pytest.approx([share / sum(raw) for share in raw])
    assert law["now"] == [0, 1] + [0] * 8
    *bars, marks = law["figure"]["data"]
    assert bars[0]["y"] == pytest.approx([100 * share for share in law["law"]])
    assert bars[1]["y"] == pytest.approx([100 * n / sum(law["drawn"]) for n in law["drawn"]])
    assert marks["x"] == ["2"]
    # 15 % of ten words are two, so no draw is longer.
    assert sum(law["drawn"][:2]) == sum(law["drawn"]) >= law["draws"]
    long = ask(session, text=" ".join(["bees make honey"] * 60))["law"]
    mean = sum(n * count for n, count in enumerate(long["drawn"], 1)) / sum(long["drawn"])
    assert 3 < mean < 5.5  # merged neighbours are longer, cut ones shorter


def test_a_draw_hides_fifteen_percent_in_runs_of_words(session):
    text = " ".join(["bees make honey and carry it home"] * 6)
    found = tab.draw(session, {"rev": 2, "text": text, "model": NAME, "seed": 4})["spans"]
    assert found == tab.draw(session, {"rev": 3, "text": text, "model": NAME, "seed": 4})["spans"]
    sentence = spans.cut(session.model(NAME), text)
    hidden = spans.hidden_runs(sentence, [tuple(span) for span in found])
    pieces = sum(stop - start for start, stop in hidden)
    assert pieces == math.ceil(0.15 * sum(map(len, sentence.words)))
    assert "seed" in tab.draw(session, {"text": text, "model": NAME, "seed": -1})["error"]


def test_strangers_are_words_and_follow_the_seed(session):
    tokenizer = session.model(NAME).tokenizer
    found = spans.strangers(tokenizer, 4, 1)
    assert found == spans.strangers(tokenizer, 4, 1) != spans.strangers(tokenizer, 4, 2)
    assert all(tokenizer.display(index).isalpha() for index in found)


def test_without_the_heads_the_geometry_is_there(without):
    answer = ask(without, model="bert-mini")
    assert (answer["error"], answer["reader"], answer["told"]) == (None, None, None)
    assert answer["spans"][0]["words"] == 3
    assert answer["code"] == ""
    svg = ask(without, tab.export, model="bert-mini", what="svg")["text"]
    assert svg.count("<circle") == answer["spans"][0]["stop"] - answer["spans"][0]["start"]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"text": ""}, "no text"),
        ({"inside": "all"}, "mask, random or kept"),
        ({"inside": ["mask"]}, "mask, random or kept"),
        ({"run": -1}, "run is -1"),
        ({"roll": True}, "roll"),
        ({"marks": 3}, "marks"),
        ({"model": "../etc"}, "no model"),
    ],
)
def test_bad_questions_get_a_sentence_and_their_revision(session, values, word):
    answer = ask(session, **values)
    assert answer["rev"] == 6
    assert word in answer["error"]


@pytest.mark.parametrize("text", ["a", "word " * 2000, "[MASK] " * 20, "[MASK] is [MASK] now"])
def test_short_long_and_hidden_texts_work(session, text):
    answer = ask(session, text=text)
    assert answer["error"] is None
    assert answer["told"]["pieces"]
    marks = [{"position": n} for n in range(1, min(511, len(answer["tokens"]) - 1))]
    all_ = ask(session, text=text, marks=marks, inside="random")
    assert all_["error"] is None
    assert len(all_["told"]["pieces"]) <= spans.MOST_PIECES


def test_a_reader_can_be_chosen_and_strange_ones_are_ignored(session):
    for reader in (NAME, "../etc", 4, None, ["x"]):
        assert ask(session, reader=reader)["reader"] == NAME


def test_the_code_shown_recomputes_the_losses(session):
    marks = hide(session, "capital", "is", "the")
    for inside in spans.INSIDE:
        answer = ask(session, marks=marks, inside=inside, run=1)
        printed: list = []
        exec(answer["code"], {"print": lambda *values, to=printed: to.append(values)})
        wanted = [
            (p["place"], p["masked_token"]["loss"], p["span_boundary"]["loss"])
            for p in answer["told"]["pieces"]
        ]
        for found, expected in zip(printed, wanted, strict=True):
            assert found == pytest.approx(expected)


def test_files_hold_what_is_shown(session):
    values = {"text": "=a <b> & Paris is old .", "marks": [{"position": 3}, {"position": 4}]}
    shown = ask(session, **values)["told"]["pieces"]
    file = ask(session, tab.export, what="csv", **values)
    rows = list(csv.DictReader(io.StringIO(file["text"])))
    assert [float(row["loss_sum"]) for row in rows] == pytest.approx([p["loss"] for p in shown])
    assert [int(row["rank_span_boundary"]) for row in rows] == [
        piece["span_boundary"]["original"]["rank"] for piece in shown
    ]
    svg = ask(session, tab.export, what="svg", **values)["text"]
    ElementTree.fromstring(svg)
    for what in (None, "exe", ["svg"]):
        assert "svg or csv" in ask(session, tab.export, what=what, **values)["error"]
