"""The Attention tab without a browser: questions in, answers out."""

import asyncio
import csv
import io
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import core_models as cm
import viz
from app.labs.attention import lab as attention
from app.labs.attention.code import one_head
from app.parts.views import answered
from app.serving.ask import Ask, Mark
from app.serving.session import AttentionResult, SentenceToken, Session
from core_models import InputError

WORDS = ["[CLS]", "The", "capital", "of", "=cmd", "<b>", "[SEP]"]


def token(position, text):
    return SentenceToken(
        position=position,
        id=position,
        piece=text.lower(),
        text=text,
        start=0,
        end=0,
        word=None if text.startswith("[") else position,
        special=text.startswith("["),
        masked=False,
        unknown=False,
    )


class FakeSession:
    """Answers every ask with the same random weights and counts the asks."""

    def __init__(self, layers=2, heads=3):
        self.asks = []
        scores = np.random.default_rng(0).normal(size=(layers, heads, len(WORDS), len(WORDS)))
        weights = np.exp(scores * 2)
        self.probabilities = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)

    async def attention(self, ask):
        self.asks.append(ask)
        marked = {mark.position for mark in ask.marks}
        seen = ["[MASK]" if n in marked else word.lower() for n, word in enumerate(WORDS)]
        tokens = tuple(token(n, word) for n, word in enumerate(WORDS))
        return AttentionResult(tokens=tokens, seen=tuple(seen), probabilities=self.probabilities)


def question(**values):
    return {"rev": 7, "text": "a text", "model": "m", "marks": [], **values}


def show(session, **values):
    return asyncio.run(attention.show(session, question(**values)))


def export(session, **values):
    return asyncio.run(attention.export(session, question(**values)))


def numbers(answer):
    data = answer["head"]["numbers"]
    return viz.from_bytes(data["data"], "<f4").reshape(data["length"], data["length"])


def test_a_whole_answer_has_tokens_overview_and_one_head():
    session = FakeSession()
    answer = show(session, layer=1, head=2, whole=True)
    assert (answer["rev"], answer["error"], answer["model"]) == (7, None, "m")
    assert [entry["label"] for entry in answer["tokens"]] == WORDS
    assert answer["overview"]["layers"] == 2
    np.testing.assert_array_equal(numbers(answer), session.probabilities[1, 2])


def test_another_head_comes_without_the_overview():
    session = FakeSession()
    answer = show(session, layer=0, head=None)
    assert "overview" not in answer
    np.testing.assert_allclose(numbers(answer), session.probabilities[0].mean(0), rtol=1e-6)
    assert (answer["head"]["layer"], answer["head"]["head"]) == (0, None)


def test_auto_takes_the_clearest_head():
    session = FakeSession()
    special = [word.startswith("[") for word in WORDS]
    chosen = show(session, layer="auto", head="auto")["head"]
    expected = viz.clearest_head(session.probabilities, special)
    assert (chosen["layer"], chosen["head"]) == expected


def test_masked_positions_show_what_the_model_saw():
    answer = show(FakeSession(), whole=True, marks=[{"position": 2, "case": "mask"}])
    entry = answer["tokens"][2]
    assert (entry["label"], entry["masked"]) == ("[MASK]", True)
    assert entry["original"] == "capital"


@pytest.mark.parametrize(
    ("layer", "head"), [(2, 0), (0, 3), (-1, 0), ("1", 0), (True, 0), (0.5, 0), (None, 1), ([], 0)]
)
def test_places_that_do_not_exist_are_refused(layer, head):
    with pytest.raises(InputError):
        show(FakeSession(), layer=layer, head=head)


def test_a_refusal_is_told_to_the_page():
    answer = asyncio.run(
        answered(partial(attention.show, FakeSession()), question(layer=99, head=0))
    )
    assert answer["rev"] == 7
    assert "0 to 1" in answer["error"]


@pytest.mark.parametrize("text", ["", "   ", None, 3, "x" * 100_000])
def test_texts_that_cannot_be_read(text):
    answer = asyncio.run(answered(partial(attention.show, FakeSession()), question(text=text)))
    assert answer["error"]


def test_csv_has_the_numbers_shown():
    session = FakeSession()
    file = export(session, kind="csv", layer=1, head=0, hide=True)
    assert file["name"] == "attention-layer-2-head-1.csv"
    rows = list(csv.reader(io.StringIO(file["text"])))
    assert rows[0] == ["from / to", "The", "capital", "of", "'=cmd", "<b>"]
    again = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(again, session.probabilities[1, 0, 1:-1, 1:-1], rtol=1e-6)


def test_svg_is_the_head_on_the_page():
    file = export(FakeSession(), kind="svg", layer=0, head=1, position=2, side="from")
    root = ElementTree.fromstring(file["text"])
    assert "m, Layer 1, head 2" in "".join(root.itertext())
    assert (file["name"], file["type"]) == ("attention-layer-1-head-2.svg", "image/svg+xml")


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "exe"},
        {"kind": None},
        {"kind": "svg", "position": 99, "side": "to"},
        {"kind": "svg", "position": 0, "side": "from", "hide": True},
        {"kind": "svg", "position": 1, "side": "up"},
        {"kind": "svg", "position": "1", "side": "to"},
    ],
)
def test_files_that_cannot_be_made(values):
    with pytest.raises(InputError):
        export(FakeSession(), **values)


def test_choosing_a_head_asks_for_the_same_thing_again():
    """So that the session answers from its cache and the model does not run."""
    session = FakeSession()
    show(session, whole=True)
    show(session, layer=1, head=1, hide=True)
    export(session, kind="csv")
    assert len(set(session.asks)) == 1


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with one small random model called tiny."""
    folder = tmp_path_factory.mktemp("models")
    lines = ["The capital of France is Paris.", "Bees make honey , and the bees fly ."] * 4
    tokenizer = cm.Tokenizer.train(lines, vocabulary=120)
    config = cm.size("bert-mini").with_vocabulary(tokenizer.vocabulary)
    model = cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(0))
    model.save(folder / "tiny")
    return folder


@pytest.mark.parametrize(("layer", "head"), [(1, 2), (3, None), (None, None)])
def test_the_code_shown_recomputes_the_numbers(models, monkeypatch, layer, head):
    monkeypatch.setenv("CLOZE_MODELS", str(models))
    session = Session(cache_bytes=1 << 20)
    marks = [
        {"position": 2, "case": "mask"},
        {"position": 3, "case": "random", "piece": 9},
        {"position": 4, "case": "kept"},
    ]
    values = {"text": 'The capital of "Paris" isn\'t Paris .', "model": "tiny", "marks": marks}
    try:
        answer = show(session, layer=layer, head=head, **values)
    finally:
        session.close()
    names = {}
    exec(answer["head"]["code"], names)
    weights = names["weights"].detach().numpy()
    np.testing.assert_allclose(numbers(answer), weights, rtol=1e-5, atol=1e-7)


def test_the_code_names_every_mark():
    ask = Ask(text="x", model="m", marks=(Mark(position=1), Mark(position=4)))
    code = one_head(ask, 0, 0)
    assert "batch.input_ids[0, [1, 4]] = model.tokenizer.mask_id" in code
    assert "mask_id" not in one_head(replace(ask, marks=()), 0, 0)
