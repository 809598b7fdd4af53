"""The Meaning lab without a browser: paths and cosines against the core, the index, bad input."""

import asyncio
from itertools import combinations
from threading import Event

import gradio as gr
import pytest
import torch

import core_models as cm
from app.labs.meaning import answers as lab
from app.labs.meaning import lab as tab
from app.labs.meaning import said
from app.labs.meaning.corpus import Corpus
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import meaning
from tests.core.tiny_models import tiny
from tests.waiting import PATIENCE, until
from viz.figure import payload

MODEL = "bert-mini"
SENTENCES = [
    "She sat on the bank of the river.",
    "He put the money into the Bank.",
    "A bird sings.",
    "The bank gave them a loan.",
]
QUESTION = {
    "model": {"model": MODEL},
    "word": "bank",
    "sentences": "\n".join(SENTENCES),
    "layer": 3,
    "way": "centred",
    "example": None,
    "which": 0,
    "others": False,
}
SHOWN = ("example", "word", "sentences", "layer", "said", "paths", "alike", "likeness")
SHOWN += ("pieces", "missing", "code")
NEAR = ("which", "chart", "said", "clock")


@pytest.fixture(scope="module")
def session():
    session = Session()
    yield session
    session.close()


@pytest.fixture(scope="module")
def corpus(session):
    return Corpus(session, most=400)


def ask(session, corpus, **values):
    found = asyncio.run(tab.show(session, corpus, {**QUESTION, **values}))
    return dict(zip(SHOWN, found, strict=True))


def near(session, corpus, **values):
    """Ask until the index is there, as the page does; what was said meanwhile."""
    answer, said = {}, []

    def there():
        found = asyncio.run(tab.show_near(session, corpus, {**QUESTION, **values}))
        answer.update(zip(NEAR, found, strict=True))
        if answer["clock"].active:
            said.append(answer["said"])
        return not answer["clock"].active

    assert until(there)
    return answer, said


def rows(figure):
    return figure.layout.meta["rows"]


def vectors(session):
    model = session.model(MODEL)
    texts = [SENTENCES[n] for n in (0, 1, 3)]
    encodings = model.encode(texts)
    places = [
        (row, meaning.pieces_at(encoding, *meaning.find_word(text, "bank")))
        for row, (text, encoding) in enumerate(zip(texts, encodings, strict=True))
    ]
    return meaning.word_vectors(model, encodings, places)


def test_paths_and_cosines_are_those_of_the_core(session, corpus):
    found = vectors(session)
    background = corpus.background(session.model(MODEL), "english")
    for way, points in (("raw", found), ("centred", found - background.means)):
        answer = ask(session, corpus, way=way)
        projection = meaning.fit_projection(points.flatten(0, 1))
        shown = torch.tensor([row[2:] for row in rows(answer["paths"])])
        assert [row[0] for row in rows(answer["paths"])] == [1] * 6 + [2] * 6 + [4] * 6
        assert torch.allclose(shown, projection(points).flatten(0, 1).float(), atol=1e-3)
        share = f"{100 * projection.shares[0]:.0f}\N{NO-BREAK SPACE}%"
        assert answer["paths"].layout.xaxis.title.text.startswith(share)
        # Every path begins at one point.
        assert all(row == pytest.approx(shown[0], abs=1e-3) for row in shown[::6])
    names = [f"After layer {n}" for n in (2, 1, 3, 4)]
    assert [row[0] for row in rows(answer["alike"])] == [
        name for name in (names[0], "Static embedding", "Input", *names[1:]) for _ in range(3)
    ]
    for layer, first in ((3, 0), (0, 3), (5, 15)):
        at, mean = found[:, layer], background.means[layer]
        for n, (a, b) in enumerate(combinations(range(3), 2)):
            _, _, raw, centred = rows(answer["alike"])[first + n]
            assert raw == pytest.approx(float(meaning.cosines(at, at)[a, b]), abs=1e-3)
            assert centred == pytest.approx(float(meaning.cosines(at, at, mean)[a, b]), abs=1e-3)
    assert answer["alike"].data[0].z[0][1] == rows(answer["alike"])[0][3]


def test_subtracting_the_mean_takes_the_cone_away(session, corpus):
    raw = [row[2] for row in rows(ask(session, corpus, way="raw")["likeness"])]
    centred = [row[2] for row in rows(ask(session, corpus)["likeness"])]
    assert max(map(abs, centred)) < 0.02 < raw[-1]


def test_an_example_follows_the_language_of_the_model():
    bank = {"word": "bank", "sentences": lab.EXAMPLES["bank"].text}
    assert tab.chosen(bank, "en") == "bank"
    assert tab.chosen(bank, "zh") == "花"
    assert tab.chosen({**bank, "sentences": "A bank."}, "zh") is None


def test_a_choice_that_is_made_is_left_alone(session, corpus):
    text = lab.EXAMPLES["bank"].text
    answer = ask(session, corpus, sentences=text, example="bank")
    assert (answer["word"], answer["sentences"]) == (gr.skip(), gr.skip())
    assert "value" not in answer["example"].constructor_args
    own = ask(session, corpus, example="bank")["example"]
    assert "value" not in own.constructor_args, "what is no example the page itself has seen"
    # The word of an example comes before its sentences; a visitor's word does not wait for any.
    assert ask(session, corpus, word="light", sentences=text, example="light")["said"] == gr.skip()
    with pytest.raises(InputError, match="“light” stands in 0"):
        ask(session, corpus, word="light", sentences=text, example="bank")


def test_neighbours_come_from_an_index_built_once(session, corpus):
    answer, _ = near(session, corpus)
    found = rows(answer["chart"])
    assert [row[2] for row in found] == sorted((row[2] for row in found), reverse=True)
    assert all(row[1] in row[3] for row in found)
    assert near(session, corpus)[1] == []  # nothing is built again
    model = session.model(MODEL)
    index = corpus.building(model, "english").index
    assert len(index.occurrences) <= 400
    # The first neighbour by hand, over the index and the word's own sentences.
    same = corpus.same_word(model, "bank", "english")
    assert answer["said"].endswith(f"; {len(same.occurrences)} of them are the same word.")
    mean = corpus.background(model, "english").means[3]
    keep = [n for n, each in enumerate(index.occurrences) if each.word != "bank"]
    every = torch.cat([index.vectors[keep, 3].float(), same.vectors[:, 3]])
    best = meaning.nearest(vectors(session)[0, 3], every, 1, mean)[0]
    assert found[0][2] == pytest.approx(best[1], abs=1e-3)
    others, _ = near(session, corpus, others=True)
    assert not any(row[1].lower() == "bank" for row in rows(others["chart"]))
    assert others["said"].endswith("; 0 of them are the same word.")


def test_another_corpus_with_the_same_seed_is_the_same(session, corpus):
    other = Corpus(session, most=400)
    model = session.model(MODEL)
    assert torch.equal(
        other.background(model, "english").means, corpus.background(model, "english").means
    )


def test_a_word_of_several_pieces_is_their_mean(session, corpus):
    texts = "The crocodilian sleeps.\n\nA crocodilian swims.\nNo animal."
    answer = ask(session, corpus, word="crocodilian", sentences=texts)
    pieces = answer["pieces"].removeprefix("The word is cut into ").split(";")[0]
    assert pieces.replace(" · ", "").replace("#", "") == "crocodilian"
    assert answer["missing"] == "Without the word, and left out: sentence 3."


class Slow:
    """A session that computes one piece of an index and goes on when a test says so."""

    def __init__(self, session):
        self.session, self.begun, self.go = session, Event(), Event()
        self.number = session.number

    async def compute(self, *work):
        found = await self.session.compute(*work)
        self.begun.set()
        assert self.go.wait(PATIENCE)
        return found


def test_a_question_is_not_blocked_while_the_index_grows(session):
    slow = Slow(session)
    fresh = Corpus(slow, most=400)
    *_, said, clock = asyncio.run(tab.show_near(session, fresh, QUESTION))
    assert "reads the words of the Primer, once" in said
    assert clock.active
    building = fresh.building(session.model(MODEL), "english")
    try:
        assert slow.begun.wait(PATIENCE)
        assert asyncio.run(session.compute(lambda: 1)) == 1
        assert building.index is None
        assert fresh.building(session.model(MODEL), "english") is building
    finally:
        slow.go.set()
    assert until(lambda: building.index)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"word": " "}, "no word yet"),
        ({"word": None}, "no word yet"),
        ({"word": "x" * 41}, "41 characters"),
        ({"sentences": None}, "at least two sentences"),
        ({"sentences": "bank\n" * 9}, "9 sentences"),
        ({"sentences": f"{'bank ' * 80}\nbank"}, "399 characters"),
        ({"sentences": "The bank.\n \n"}, "at least two sentences"),
        ({"sentences": "The bank.\nThe embankment."}, "stands in 1 of the sentences"),
        ({"word": "花", "sentences": "花开了。\n他花了钱。"}, "not in the vocabulary"),
        ({"model": {"model": "nothing"}}, "no model “nothing”"),
        ({"model": {}}, "No model is chosen"),
        ({"layer": "x"}, "layer is"),
        ({"layer": -1}, "layer is"),
    ],
)
def test_what_makes_no_sense_is_said(session, corpus, values, said):
    with pytest.raises(InputError, match=said):
        ask(session, corpus, **values)
    near(session, corpus)  # the index is there
    if "花" not in values.values():  # looked up in the Chinese one
        with pytest.raises(InputError, match=said):
            near(session, corpus, **values)


def test_a_word_that_stands_twice_is_said_to_count_once(session, corpus):
    key = "The word stands more than once, and its first place counts: sentence {0}."
    twice = ["The bank, the BANK and the bank of banks.", *SENTENCES[:2], "Bank by bank."]
    told = ask(session, corpus, sentences="\n".join(twice))["missing"]
    assert (told.key, told.values) == (key, ("1, 4",))
    assert said.stands_again("花花世界。", "花")
    assert ask(session, corpus, sentences="\n".join(SENTENCES[:2]))["missing"] == ""


def test_nothing_is_asked_before_the_lab_is_seen(session, corpus):
    answer = ask(session, corpus, model=None)
    assert list(answer.values()) == [gr.skip()] * len(SHOWN)
    found = asyncio.run(tab.show_near(session, corpus, {**QUESTION, "model": None}))
    assert found == [gr.skip()] * len(NEAR)


def test_odd_choices_are_bounded(session, corpus):
    assert ask(session, corpus, layer=lab.LAST)["said"].startswith("After layer 4")
    answer, _ = near(session, corpus, which=2, layer=lab.LAST)  # a sentence without the word
    assert answer["which"].constructor_args["value"] == 0
    assert answer["said"].startswith("After layer 4")


def test_texts_of_visitors_are_no_markup(session, corpus):
    texts = "A <b>bank</b> & co.\nThe bank."
    answer = ask(session, corpus, sentences=texts)
    names = [trace["name"] for trace in payload(answer["paths"])["data"] if trace.get("name")]
    assert names[0] == "1 · A &lt;b&gt;bank&lt;/b&gt; &amp; co."


def test_the_code_recomputes_the_paths(session, corpus, capsys):
    for way in ("raw", "centred"):
        answer = ask(session, corpus, way=way)
        found = {}
        exec(answer["code"], found)
        printed = found["projection"](found["vectors"]).flatten(0, 1)
        shown = torch.tensor([row[2:] for row in rows(answer["paths"])])
        assert torch.allclose(shown, printed, atol=1e-3)
        last = found["vectors"][:, -1]
        (cosine,) = [
            row[2 if way == "raw" else 3]
            for row in rows(answer["alike"])
            if row[:2] == ["After layer 4", "1 · 2"]
        ]
        assert cosine == pytest.approx(float(meaning.cosines(last, last)[0, 1]), abs=1e-3)
    out = capsys.readouterr().out
    assert out.splitlines()[-3].startswith("5 ")


def cased(monkeypatch, session):
    """A model to which a word at the beginning of a text is another piece than elsewhere."""
    texts = ["The bank was closed.", "The bank was old."] * 4
    tokenizer = cm.Tokenizer.train(texts, kind="byte_bpe", vocabulary=300)
    model = cm.Model.new(
        tiny("roberta-base").with_vocabulary(tokenizer.vocabulary, pad_id=tokenizer.pad_id),
        tokenizer,
        generator=torch.Generator().manual_seed(1),
    ).eval()
    monkeypatch.setattr(session, "model", lambda name: model)
    return model


def test_a_word_of_two_static_vectors_is_not_called_one(session, corpus, monkeypatch):
    cased(monkeypatch, session)
    two = ask(session, corpus, layer=0, sentences="Bank of it.\nThe bank was closed.")
    assert two["said"].startswith("Static embedding: their cosine is ")
    assert two["pieces"].startswith("In sentence 1 the word is cut into B")
    one = ask(session, corpus, layer=0, sentences="The bank was old.\nThe bank was closed.")
    assert one["said"] == "Static embedding: one vector for all of them."


def test_a_word_beyond_what_the_model_reads_is_not_called_missing(session, corpus):
    far = f"{'a ' * 140}bank."
    texts = ["The bank of the river.", far, "A bank gave him money.", "No such word."]
    missing = ask(session, corpus, sentences="\n".join(texts))["missing"]
    assert missing == (
        "Without the word, and left out: sentence 4. "
        "The word stands beyond what this model reads, and is left out: sentence 2."
    )
    with pytest.raises(InputError, match="beyond what bert-mini reads"):
        ask(session, corpus, sentences="\n".join(texts[:2]))


def test_one_word_of_the_primer_that_is_the_same_is_told_as_one(session, corpus, monkeypatch):
    near(session, corpus)
    found = lab.neighbours

    def one(*values):
        return {**found(*values), "same": 1}

    monkeypatch.setattr(lab, "neighbours", one)
    answer, _ = near(session, corpus)
    assert answer["said"].endswith("1 of them is the same word.")
