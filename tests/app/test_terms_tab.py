"""The Terms tab without a browser: what it sends against the core, bad input, files."""

import asyncio
import csv
import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import core_models as cm
from app.labs.terms import answers as terms
from app.labs.terms import lab as tab
from app.labs.terms import tables as terms_tables
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import fill, terms_view
from core_models.terms.buckets import rows_of
from tests.app.terms_models import save_tiny_models
from viz.terms import TermMap, colour, maps_svg

TEXT = "The capital of France is Paris."


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with-terms")
    save_tiny_models(folder)
    patch = pytest.MonkeyPatch()
    patch.setenv("CLOZE_MODELS", str(folder))
    session = Session()
    yield session
    session.close()
    patch.undo()


def ask(session, **values):
    return asyncio.run(tab.show(session, {"rev": 7, "text": TEXT, **values}))


def mark(session, model, word="Paris"):
    tokens = session.sentence(TEXT, model).tokens
    start = TEXT.index(word)
    place = next(t.position for t in tokens if not t.special and t.end > start)
    return [{"position": place, "case": "mask"}]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("deberta-tiny", ["content", "c2p", "p2c"]),
        ("deberta-v2-tiny", ["content", "c2p", "p2c"]),
        ("deberta-v3-tiny", ["content", "c2p", "p2c"]),
        ("xlnet-tiny", ["content", "position", "segment"]),
        ("bert-mini", ["content"]),
    ],
)
def test_maps_are_those_of_the_core_and_add_up(session, model, names):
    answer = ask(session, model=model, layer=1, head=1)
    assert answer["error"] is None
    assert answer["names"] == names
    assert answer["residue"] == 0.0
    loaded = session.model(model)
    (encoding,) = loaded.encode([TEXT])
    view = terms_view.look(loaded, encoding, step=1, head=1).view
    columns = len(answer["columns"])
    sent = [terms.decoded(text, columns) for text in answer["terms"]]
    for numbers, term in zip(sent, view.terms, strict=True):
        assert np.array_equal(numbers, term.numpy())
    scores = terms.decoded(answer["scores"], columns)
    seen = ~np.isnan(scores)
    total = sent[0].copy()
    for numbers in sent[1:]:
        total = total + numbers
    assert np.array_equal(total[seen], scores[seen])
    assert np.array_equal(
        terms.decoded(answer["probabilities"], columns), view.probabilities.numpy()
    )
    assert len(json.dumps(answer)) < 100_000


@pytest.mark.parametrize("model", ["deberta-tiny", "deberta-v3-tiny-generator", "xlnet-tiny"])
def test_predictions_before_and_after_a_switch(session, model):
    marks = mark(session, model)
    gap = marks[0]["position"]
    off = ["c2p", "position"]
    answer = ask(session, model=model, marks=marks, off=off, scope="model")
    assert answer["gap"] == gap
    found = {row["piece"]: row for row in answer["prediction"]["rows"]}
    loaded = session.model(model)
    usual = fill(loaded, TEXT, masks=[gap]).predictions[0]
    for candidate in usual.candidates:
        row = found[candidate.piece]
        assert row["chances"][0] == pytest.approx(candidate.probability, abs=1e-5)
        assert row["ranks"][0] == candidate.rank
    edits = terms_view.switched_off(loaded.config, answer["off"], "model")
    changed = max(abs(r["chances"][0] - r["chances"][1]) for r in found.values())
    assert changed > 1e-4
    # The same by hand: what is before and what is now differ by the edits alone.
    seen = terms.fit(loaded, _setting(gap, loaded)).seen
    by_hand = terms_view.look(loaded, seen, [gap], edits=edits)
    logs = terms_view.distribution(loaded, by_hand.answers)[0]
    for row in found.values():
        assert row["chances"][1] == pytest.approx(float(logs[row["id"]].exp()), abs=1e-5)


def _setting(gap, model):
    (encoding,) = model.encode([TEXT])
    return terms.read_setting({"text": TEXT}, [encoding.offsets[gap]])


def test_a_discriminator_judges_before_and_after(session):
    answer = ask(session, model="deberta-v3-tiny", off=["p2c"], scope="layer", layer=1)
    assert answer["prediction"] is None
    assert len(answer["verdicts"]) == len(answer["tokens"])
    loaded = session.model("deberta-v3-tiny")
    chances = [v.probability for v in cm.prediction.detect(loaded, TEXT).verdicts]
    assert [before for before, _ in answer["verdicts"]] == pytest.approx(chances, abs=1e-5)
    assert any(abs(before - after) > 1e-4 for before, after in answer["verdicts"])


def test_streams_are_those_of_the_family(session):
    marks = mark(session, "xlnet-tiny")
    answer = ask(session, model="xlnet-tiny", marks=marks, stream="query")
    assert answer["stream"] == "query"
    assert answer["rows"] == [marks[0]["position"]]
    gap = answer["columns"].index(marks[0]["position"])
    assert np.isnan(terms.decoded(answer["scores"], len(answer["columns"]))[0, gap])
    decoder = ask(
        session, model="deberta-tiny", marks=mark(session, "deberta-tiny"), stream="mask_decoder"
    )
    assert decoder["layers"] == 2
    assert decoder["stream"] == "mask_decoder"
    assert set(decoder["decoder"]["columns"]) == {"decoder", "no_positions", "no_decoder"}
    plain = ask(session, model="bert-mini", stream="mask_decoder", off=["content"])
    assert (plain["stream"], plain["off"], plain["decoder"]) == ("content", [], None)
    assert "deberta-tiny" in [name for name, _ in plain["offered"]]


def test_another_model_takes_the_place_of_the_bars_with_what_is_hidden(session):
    marks = mark(session, "bert-mini")
    answer = ask(session, model="bert-mini", marks=marks, reader="deberta-tiny")
    assert (answer["reader"], answer["bar"]) == ("deberta-tiny", "bert-mini")
    hidden = [answer["tokens"][position]["own"] for position in answer["gaps"]]
    assert "".join(hidden).strip() == "Paris"


def test_distances_and_curves(session):
    answer = ask(session, model="deberta-tiny", layer=1, head=1, off=[], reach=16)
    loaded = session.model("deberta-tiny")
    (encoding,) = loaded.encode([TEXT])
    view = terms_view.look(loaded, encoding, step=1, head=1).view
    for distance, pairs, *means in answer["distances"]:
        diagonals = [term.diagonal(-int(distance)) for term in view.terms]
        assert pairs == len(diagonals[0])
        assert means == pytest.approx([float(d.mean()) for d in diagonals], abs=1e-5)
    rows = {row[0]: row[1:] for row in answer["figure"]["layout"]["meta"]["rows"]}
    assert list(rows) == list(range(-16, 17))
    run = terms_view.look(loaded, encoding, step=1, head=1)
    c2p, p2c = terms_view.bias_curves(loaded, run, range(-16, 17), step=1, head=1)
    for distance, pairs, *means in answer["distances"]:
        table = [curve[int(distance) + 16] for curve in (c2p, p2c)]
        assert rows[distance] == pytest.approx([pairs, *means, *table], abs=1e-6)
    assert rows[16][:4] == [0, None, None, None]
    off = ask(session, model="deberta-tiny", off=["c2p"])["figure"]["layout"]["meta"]
    assert off["columns"][-1] == "position to content, from the table"
    assert len(off["columns"]) == 6
    assert ask(session, model="xlnet-tiny")["curves"] is None


def test_tables_of_published_sizes_need_no_model(session):
    for name in terms_tables.published():
        answer = asyncio.run(tab.distance_table(session, {"rev": 3, "size": name}))
        assert answer["error"] is None
        rows = rows_of(cm.size(name).attention.terms, torch.arange(-1024, 1025)).tolist()
        assert answer["rows"] == rows
        assert answer["figure"]["data"][1]["y"] == rows
        assert answer["figure"]["layout"]["meta"]["left_out"] == 0
    base = asyncio.run(tab.distance_table(session, {"rev": 3}))
    assert (base["size"], base["exact"], base["count"]) == ("deberta-base", [-511, 510], 1024)
    bad = asyncio.run(tab.distance_table(session, {"rev": 3, "size": ["x"]}))
    assert "no size" in bad["error"]
    assert asyncio.run(tab.distance_table(session, {"size": "deberta-tiny"}))["error"] is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"text": "   "}, "no text yet"),
        ({"text": "x" * 20_001}, "20,001 characters"),
        ({"layer": -1}, "layer is -1"),
        ({"head": True}, "head is True"),
        ({"scope": "world"}, "scope is 'world'"),
        ({"scope": [1]}, "scope is"),
        ({"off": "c2p"}, "off must be"),
        ({"off": [3]}, "off must be"),
        ({"reach": 17}, "reach is '17'"),
        ({"reach": {}}, "reach is"),
        ({"gap": "x"}, "gap is 'x'"),
        ({"model": "nothing"}, "no model “nothing”"),
        ({"marks": [{"position": -4}]}, "position is -4"),
    ],
)
def test_what_makes_no_sense_is_said(session, values, said):
    answer = ask(session, **{"model": "deberta-tiny", **values})
    assert answer["rev"] == 7
    assert said in answer["error"]


def test_odd_sentences_and_huge_numbers_are_answered(session):
    one = ask(session, model="deberta-tiny", text="a", layer=1000, head=1000, first=10**6)
    assert (one["layer"], one["head"], one["error"]) == (1, 1, None)
    long = ask(session, model="deberta-tiny", text="word " * 900, reach=640, first=10**6)
    assert long["truncated"]
    whole = session.model("deberta-tiny").tokenizer.encode("word " * 900, max_length=99_999)
    assert long["whole"] == len(whole.ids) > 900
    assert one["whole"] == len(one["tokens"])
    assert long["columns"][-1] == 511
    assert len(long["columns"]) == terms.MOST_SHOWN
    assert len(json.dumps(long)) < 300_000
    masks = ask(session, model="deberta-tiny", text="[MASK] " * 9, off=["content"], gap=4)
    assert masks["gap"] == 4
    assert ask(session, model="xlnet-tiny", text="[MASK] [MASK]")["error"] is None


def test_files_hold_what_is_shown(session):
    question = {"rev": 1, "text": TEXT, "model": "xlnet-tiny", "marks": mark(session, "xlnet-tiny")}
    table = asyncio.run(tab.export(session, {**question, "what": "csv"}))
    rows = list(csv.DictReader(io.StringIO(table["text"])))
    answer = ask(session, model="xlnet-tiny", marks=question["marks"])
    assert len(rows) == len(answer["rows"]) * len(answer["columns"])
    for row in rows:
        total = sum(float(row[name]) for name in answer["names"])
        assert row["score"] == "" or float(row["score"]) == pytest.approx(total, abs=1e-5)
    picture = asyncio.run(tab.export(session, {**question, "what": "svg"}))
    ElementTree.fromstring(picture["text"])
    with pytest.raises(InputError, match="must be svg or csv"):
        asyncio.run(tab.export(session, {**question, "what": ["pdf"]}))


def test_the_code_runs_and_gives_the_numbers(session, capsys):
    marks = mark(session, "deberta-tiny")
    answer = ask(session, model="deberta-tiny", marks=marks, off=["p2c"], stream="mask_decoder")
    space = {}
    exec(answer["code"], space)
    assert "('content', 'c2p', 'p2c')" in capsys.readouterr().out
    columns = len(answer["columns"])
    assert np.allclose(
        terms.decoded(answer["scores"], columns), space["found"].view.scores.numpy(), atol=1e-5
    )


def test_colours_and_shapes_of_the_picture():
    assert colour(0.0, 2.0) == "#faf8f4"
    assert colour(2.0, 2.0) == "#0f5c63"
    assert colour(-9.0, 2.0) == "#c4500a"
    assert colour(float("nan"), 2.0) == "#d8d3c8"
    assert colour(0.25, 1.0, share=True) == colour(0.5, 1.0)
    one = TermMap(title="<b>", values=[[0.5, 1.0]], top=1.0)
    root = ElementTree.fromstring(maps_svg([one], rows=["<a>"], columns=["&", "b"], title="t"))
    assert "<b>" in [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    with pytest.raises(ValueError, match="one value per row"):
        maps_svg([one], rows=["a"], columns=["b"], title="t")
    with pytest.raises(ValueError, match="nothing to draw"):
        maps_svg([], rows=["a"], columns=["b"], title="t")
