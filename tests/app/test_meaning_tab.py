"""The Meaning tab without a browser: paths and cosines against the core, the index, bad input."""

import asyncio
import json
import time

import pytest
import torch

from app.labs.meaning import answers as lab
from app.labs.meaning import lab as tab
from app.labs.meaning.corpus import Corpus
from app.serving.session import Session
from core_models import meaning
from viz.meaning import Neighbour, Path, neighbours, paths

MODEL = "bert-mini"
SENTENCES = [
    "She sat on the bank of the river.",
    "He put the money into the Bank.",
    "A bird sings.",
    "The bank gave them a loan.",
]
QUESTION = {"rev": 5, "model": MODEL, "word": "bank", "sentences": SENTENCES, "layer": 3}


@pytest.fixture(scope="module")
def session():
    session = Session()
    yield session
    session.close()


@pytest.fixture(scope="module")
def corpus(session):
    return Corpus(session, most=400)


def ask(session, corpus, **values):
    return asyncio.run(tab.show(session, corpus, {**QUESTION, **values}))


def near(session, corpus, **values):
    """Ask until the index is there, as the page does."""
    end = time.monotonic() + 60
    seen = []
    while True:
        answer = asyncio.run(tab.near(session, corpus, {**QUESTION, **values}))
        if answer["kind"] != "building":
            return answer, seen
        seen.append(answer["progress"])
        assert time.monotonic() < end
        time.sleep(0.02)


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
    answer = ask(session, corpus)
    assert answer["error"] is None
    assert [used["number"] for used in answer["used"]] == [0, 1, 3]
    assert answer["steps"] == session.model(MODEL).config.steps
    found = vectors(session)
    background = corpus.background(session.model(MODEL), "english")
    for way, points in (("raw", found), ("centred", found - background.means)):
        projection = meaning.fit_projection(points.flatten(0, 1))
        for sent, own in zip(answer["ways"][way]["points"], projection(points), strict=True):
            assert torch.allclose(torch.tensor(sent), own, atol=1e-3)
    for layer in range(answer["steps"] + 2):
        at = found[:, layer]
        raw = torch.tensor(answer["cosines"]["raw"][layer], dtype=torch.float64)
        assert torch.allclose(raw, meaning.cosines(at, at), atol=1e-4)
        centred = torch.tensor(answer["cosines"]["centred"][layer], dtype=torch.float64)
        mean = background.means[layer]
        assert torch.allclose(centred, meaning.cosines(at, at, mean), atol=1e-4)
    # Every path begins at one point; and the control takes the cone away.
    for way in ("raw", "centred"):
        starts = [points[0] for points in answer["ways"][way]["points"]]
        assert all(start == pytest.approx(starts[0], abs=1e-3) for start in starts)
    assert max(map(abs, answer["background"]["centred"])) < 0.02 < answer["background"]["raw"][-1]
    assert len(json.dumps(answer)) < 50_000


def test_neighbours_come_from_an_index_built_once(session, corpus):
    answer, progress = near(session, corpus, which=0)
    assert progress == sorted(progress)
    assert answer["error"] is None
    cosines = [each["cosine"] for each in answer["near"]]
    assert cosines == sorted(cosines, reverse=True)
    for each in answer["near"]:
        assert each["sentence"][each["start"] : each["end"]].lower() == each["word"]
    assert near(session, corpus)[1] == []  # nothing is built again
    model = session.model(MODEL)
    index = corpus.building(model, "english").index
    assert len(index.occurrences) <= 400
    # The first neighbour by hand, over the index and the word's own sentences.
    same = corpus.same_word(model, "bank", "english")
    assert answer["same"] == len(same.occurrences)
    mean = corpus.background(model, "english").means[3]
    keep = [n for n, each in enumerate(index.occurrences) if each.word != "bank"]
    every = torch.cat([index.vectors[keep, 3].float(), same.vectors[:, 3]])
    best = meaning.nearest(vectors(session)[0, 3], every, 1, mean)[0]
    assert answer["near"][0]["cosine"] == pytest.approx(best[1], abs=1e-3)
    others, _ = near(session, corpus, others=True)
    assert not any(each["same"] for each in others["near"])
    assert others["same"] == 0


def test_another_corpus_with_the_same_seed_is_the_same(session, corpus):
    other = Corpus(session, most=400)
    model = session.model(MODEL)
    assert torch.equal(
        other.background(model, "english").means, corpus.background(model, "english").means
    )


def test_a_word_of_several_pieces_is_their_mean(session, corpus):
    texts = ["The crocodilian sleeps.", "A crocodilian swims."]
    answer = ask(session, corpus, word="crocodilian", sentences=texts)
    pieces = answer["used"][0]["pieces"]
    assert len(pieces) > 1
    assert "".join(pieces).replace("#", "") == "crocodilian"


def test_a_question_is_not_blocked_while_the_index_grows(session):
    fresh = Corpus(session)
    first = asyncio.run(tab.near(session, fresh, QUESTION))
    assert first["kind"] == "building"
    started = time.monotonic()
    assert asyncio.run(session.compute(lambda: 1)) == 1
    assert time.monotonic() - started < 2
    building = fresh.building(session.model(MODEL), "english")
    assert fresh.building(session.model(MODEL), "english") is building


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"word": " "}, "no word yet"),
        ({"word": 3}, "no word yet"),
        ({"word": "x" * 41}, "41 characters"),
        ({"sentences": "text"}, "sentences must be"),
        ({"sentences": [1, 2]}, "sentences must be"),
        ({"sentences": ["bank"] * 9}, "9 sentences"),
        ({"sentences": ["bank " * 80, "bank"]}, "400 characters"),
        ({"sentences": ["The bank.", " "]}, "at least two sentences"),
        ({"sentences": ["The bank.", "The embankment."]}, "stands in 1 of the sentences"),
        ({"word": "花", "sentences": ["花开了。", "他花了钱。"]}, "not in the vocabulary"),
        ({"model": "nothing"}, "no model “nothing”"),
        ({"model": None}, "No model is chosen"),
    ],
)
def test_what_makes_no_sense_is_said(session, corpus, values, said):
    assert said in ask(session, corpus, **values)["error"]
    answer = asyncio.run(tab.near(session, corpus, {**QUESTION, **values}))
    assert answer["kind"] == "building" or said in answer["error"]


def test_odd_numbers_are_refused_or_bounded(session, corpus):
    assert near(session, corpus, layer=10_000)[0]["layer"] == session.model(MODEL).config.steps + 1
    assert near(session, corpus, which=2)[0]["which"] == 0  # a sentence without the word
    assert "layer is" in near(session, corpus, layer="x")[0]["error"]


def test_pictures_hold_what_is_told(session, corpus):
    answer = ask(session, corpus)
    for way in ("raw", "centred"):
        layout = answer["figures"][way]["paths"]["layout"]
        points = [point for path in answer["ways"][way]["points"] for point in path]
        assert [row[2:] for row in layout["meta"]["rows"]] == points
        likeness = answer["figures"][way]["likeness"]
        means = []
        for table in answer["cosines"][way]:
            pairs = [table[a][b] for a in range(3) for b in range(3) if a != b]
            means.append(sum(pairs) / 6)
        assert likeness["data"][0]["y"] == pytest.approx(means)
        assert likeness["data"][1]["y"] == answer["background"][way]
    found = near(session, corpus)[0]
    bars = found["figure"]["layout"]["meta"]["rows"]
    assert [row[3] for row in bars] == [each["sentence"] for each in found["near"]]


def test_the_code_runs_and_gives_the_numbers(session, corpus, capsys):
    values = {"sentences": [SENTENCES[n] for n in (0, 1, 3)]}
    answer = ask(session, corpus, **values)
    space = {}
    exec(answer["code"], space)
    assert capsys.readouterr().out
    assert torch.allclose(space["vectors"], vectors(session), atol=1e-5)


def test_words_are_read():
    words = lab.read_words({"word": " bank ", "sentences": ["a bank", "", "the bank"]})
    assert (words.word, words.language) == ("bank", "english")
    assert lab.read_words({"word": "花", "sentences": ["花", "花"]}).language == "chinese"


def test_the_picture_refuses_what_it_cannot_draw():
    path = Path(number=1, sentence="<a> & b", points=[(0.0, 0.0), (1.0, 2.0)])
    figure = paths([path], layer=1, title="t", shares=(0.6, 0.2))
    assert figure.data[0].name == "1. &lt;a&gt; &amp; b"
    assert (figure.data[1].x, figure.data[1].y) == ((1.0,), (2.0,))
    assert figure.layout.xaxis.title.text == "60 % of the variance"
    with pytest.raises(ValueError, match="no layer 2"):
        paths([path], layer=2, title="t", shares=(1.0, 0.0))
    with pytest.raises(ValueError, match="nothing to draw"):
        paths([], layer=0, title="t", shares=(1.0, 0.0))
    with pytest.raises(ValueError, match="nothing to draw"):
        neighbours([], title="t")
    near = Neighbour(word="<b>", before="x" * 40, after=" y", cosine=0.5, same=False)
    (text,) = neighbours([near], title="t").data[1].text
    assert text == f" …{'x' * 28}<b>&lt;b&gt;</b> y"
