"""The Terms lab without a browser: what it sends against the core, bad input, files."""

import asyncio
import json
from xml.etree import ElementTree

import gradio as gr
import numpy as np
import pytest
import torch

import core_models as cm
from app.labs.terms import answers as terms
from app.labs.terms import lab as tab
from app.labs.terms import scene
from app.labs.terms import tables as terms_tables
from app.serving.session import Session
from core_models import InputError
from core_models.network.terms.buckets import rows_of
from core_models.prediction import fill, terms_view
from tests.app.terms_models import save_tiny_models
from viz.terms import TermMap, colour, maps_svg

TEXT = "The capital of France is Paris."
TITLE = "{http://www.w3.org/2000/svg}title"


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


QUESTION = {**tab.PLAIN, "reader": "", "row": 0}
SHOWN = ("reader", "layer", "head", "scope", "stream", "first", "gap", "maps", "notes", "row")
SHOWN += ("numbers", "said", "prediction", "decoded", "decoder", "distances_chart", "edges")
SHOWN += ("query_piece", "key_piece", "turned", "turned_said", "turned_row", "waves")
SHOWN += ("about", "code")


def asked(text=TEXT, model="deberta-tiny", marks=(), **values):
    return {**QUESTION, "sentence": {"text": text, "model": model, "marks": list(marks)}, **values}


def ask(session, **values):
    """What the core found, and what the page gets of it."""
    question = asked(**values)
    looked = asyncio.run(scene.look(session, question))
    shown = asyncio.run(tab.show(session, question))
    assert len(shown) == tab.SHOWN
    found = {"looked": looked, **looked.found}
    return {**found, "shown": dict(zip(SHOWN, shown, strict=True))}


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
    answer = ask(session, model=model, reader=model, layer=1, head=1)
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
    assert len(json.dumps(answer["shown"]["maps"])) < 100_000


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
    assert answer["shown"]["decoded"] == "", "it predicts no masked words from anywhere"


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
    plain = ask(session, model="bert-mini", reader="bert-mini", stream="query")
    assert "one product" in plain["shown"]["notes"]
    assert (plain["stream"], plain["off"], plain["decoder"]) == ("content", [], None)
    assert "deberta-tiny" in plain["looked"].offered
    assert plain["shown"]["said"].endswith("what the model would put there.")


def test_another_model_takes_the_place_of_the_bars_with_what_is_hidden(session):
    marks = mark(session, "bert-mini")
    answer = ask(session, model="bert-mini", marks=marks, reader="deberta-tiny")
    assert (answer["looked"].reader, answer["looked"].bar) == ("deberta-tiny", "bert-mini")
    assert "in place of bert-mini" in answer["shown"]["notes"]
    hidden = [answer["tokens"][position]["own"] for position in answer["gaps"]]
    assert "".join(hidden).strip() == "Paris"
    assert "hidden here, too" not in answer["shown"]["notes"]


def test_what_is_replaced_or_kept_is_said_to_be_hidden_here(session):
    (hidden,) = mark(session, "deberta-tiny")
    kept = [hidden | {"case": "kept"}]
    answer = ask(session, model="deberta-tiny", marks=kept)
    assert answer["gaps"] == [hidden["position"]]
    assert "hidden here, too" in answer["shown"]["notes"]


def test_a_model_with_terms_is_opened_where_there_is_nothing_to_take_apart(session):
    usual = ask(session, model="bert-mini")
    assert usual["looked"].reader == usual["looked"].offered[0]
    assert (usual["shown"]["reader"].value, usual["shown"]["reader"].choices[0][1]) == ("", "")
    assert usual["shown"]["reader"].choices[0][0] == usual["looked"].reader
    assert "bert-mini has one product" in usual["shown"]["notes"]
    assert "in place of bert-mini" in usual["shown"]["notes"]
    chosen = ask(session, model="bert-mini", reader="bert-mini")
    assert chosen["looked"].reader == "bert-mini"
    assert ask(session, model="modernbert-tiny")["looked"].reader == "modernbert-tiny"
    # A choice that was made beside another model of the page holds no longer.
    moved = ask(session, model="deberta-v2-tiny", reader="bert-mini")
    assert moved["looked"].reader == "deberta-v2-tiny"


def test_a_model_of_another_language_is_not_opened(session, monkeypatch):
    cards = {name: session.card(name) for name in ("bert-mini", *scene.readers(session))}
    cards["bert-mini"] = cards["bert-mini"] | {"language": "zh"}
    monkeypatch.setattr(session, "card", cards.__getitem__)
    answer = ask(session, model="bert-mini")
    assert answer["looked"].reader == "bert-mini"
    assert "in place of" not in answer["shown"]["notes"]


def test_an_example_opens_a_model_with_terms(session):
    answer = ask(session, model="bert-mini", reader="bert-mini", off=["p2c", "segment"])
    assert answer["looked"].reader == answer["looked"].offered[0]
    assert answer["off"]


def test_distances_and_curves(session):
    answer = ask(session, model="deberta-tiny", layer=1, head=1, off=[], reach=16)
    loaded = session.model("deberta-tiny")
    (encoding,) = loaded.encode([TEXT])
    view = terms_view.look(loaded, encoding, step=1, head=1).view
    for distance, pairs, *means in answer["distances"]:
        diagonals = [term.diagonal(-int(distance)) for term in view.terms]
        assert pairs == len(diagonals[0])
        assert means == pytest.approx([float(d.mean()) for d in diagonals], abs=1e-5)
    meta = answer["shown"]["distances_chart"].layout.meta
    rows = {row[0]: row[1:] for row in meta["rows"]}
    assert list(rows) == list(range(-16, 17))
    run = terms_view.look(loaded, encoding, step=1, head=1)
    curves = terms_view.bias_curves(loaded, run, range(-16, 17), step=1, head=1)
    for distance, pairs, *means in answer["distances"]:
        table = [curve[int(distance) + 16] for curve in curves.values()]
        assert rows[distance] == pytest.approx([pairs, *means, *table], abs=1e-6)
    assert rows[16][:4] == [0, None, None, None]
    off = ask(session, model="deberta-tiny", off=["c2p"])["shown"]["distances_chart"].layout.meta
    assert off["columns"][-1] == "position to content, from the table"
    assert len(off["columns"]) == 6
    assert ask(session, model="xlnet-tiny")["curves"] is None


def rows_for(session, size="", distance=0):
    return tab.show_rows(session, {"size": size, "distance": distance})


def test_models_without_a_table_are_not_offered_for_one(session):
    offered = [name for _, name in rows_for(session)[0].choices]
    assert "deberta-tiny" in offered
    assert "xlnet-tiny" not in offered


def test_tables_of_published_sizes_need_no_model(session):
    for name in terms_tables.published():
        _, chart, said, formula = rows_for(session, name, 200)
        rows = rows_of(cm.size(name).attention.terms, torch.arange(-1024, 1025)).tolist()
        assert list(chart.data[1].y) == rows
        assert chart.layout.meta["left_out"] == 0
        assert f"Distance 200 reads row {rows[1224]}" in said
        assert formula
    sizes, chart, said, _ = rows_for(session)
    assert chart.layout.title.text == sizes.choices[0][0] == "deberta-base"
    assert said.startswith("1,024 rows. Each distance from −511 to 510")
    assert "as every distance from −1024 to −512 does" in rows_for(session, distance=-5000)[2]
    for size, distance in ((["x"], 0), ("", "x")):
        with pytest.raises(InputError, match=r"no size|distance is"):
            rows_for(session, size, distance)
    assert rows_for(session, "deberta-tiny")[1].data


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"text": "   "}, "no text yet"),
        ({"text": "x" * 20_001}, "20,001 characters"),
        ({"layer": -1}, "layer is -1"),
        ({"head": True}, "head is True"),
        ({"scope": "world"}, "scope is 'world'"),
        ({"scope": [1]}, "scope is"),
        ({"reach": 17}, "reach is '17'"),
        ({"reach": {}}, "reach is"),
        ({"model": "nothing"}, "no model “nothing”"),
        ({"marks": [{"position": -4}]}, "position is -4"),
    ],
)
def test_what_makes_no_sense_is_said(session, values, said):
    with pytest.raises(InputError, match=said):
        ask(session, **values)


def test_what_no_control_shows_counts_as_none_where_it_does_not_fit(session):
    for values in ({"off": "c2p"}, {"off": [3, {}]}, {"gap": "x"}, {"first": -4}, {"row": 99}):
        answer = ask(session, **values)
        assert (answer["off"], answer["gap"], answer["first"]) == ([], None, 0)


def test_odd_sentences_and_huge_numbers_are_answered(session):
    one = ask(session, model="deberta-tiny", text="a", layer=1000, head=1000, first=10**6)
    assert (one["layer"], one["head"]) == (1, 1)
    assert (one["shown"]["layer"].value, one["shown"]["head"].value) == (1, 1)
    long = ask(session, model="deberta-tiny", text="word " * 900, reach=640, first=10**6)
    assert long["truncated"]
    whole = session.model("deberta-tiny").tokenizer.encode("word " * 900, max_length=99_999)
    assert long["whole"] == len(whole.ids) > 900
    assert one["whole"] == len(one["tokens"])
    assert long["columns"][-1] == 511
    assert len(long["columns"]) == terms.MOST_SHOWN
    assert len(json.dumps(long["shown"]["maps"])) < 300_000
    assert "reads 512 of its" in long["shown"]["notes"]
    assert long["shown"]["notes"].endswith(". The maps show pieces 472 to 511 of 512.")
    masks = ask(session, model="deberta-tiny", text="[MASK] " * 9, off=["content"], gap=4)
    assert masks["gap"] == 4
    assert masks["shown"]["gap"].visible is True
    assert ask(session, model="xlnet-tiny", text="[MASK] [MASK]")["shown"]["maps"]["terms"]


def test_the_row_and_the_drawing_hold_what_is_shown(session):
    marks = mark(session, "xlnet-tiny")
    answer = ask(session, model="xlnet-tiny", marks=marks, row=2)
    rows = answer["shown"]["numbers"]["rows"]
    assert len(rows) == len(answer["columns"])
    for _, distance, *values in rows:
        assert isinstance(distance, int)
        assert values[3] is None or values[3] == pytest.approx(sum(values[:3]), abs=1e-5)
    (svg,) = asyncio.run(tab.save(session, asked(model="xlnet-tiny", marks=marks)))
    plain = len(list(ElementTree.fromstring(svg).iter(TITLE)))
    question = asked(model="xlnet-tiny", marks=marks, off=["position"])
    (svg,) = asyncio.run(tab.save(session, question))
    titles = [each.text for each in ElementTree.fromstring(svg).iter(TITLE)]
    cells = len(rows) ** 2
    assert len(titles) == plain + cells, "a map more, of what the switch has changed"
    looked = asyncio.run(scene.look(session, question)).found
    now, old = (terms.decoded(looked[name], len(rows)) for name in ("probabilities", "before"))
    changes = [float(title.rpartition(": ")[2]) for title in titles[-cells:]]
    assert changes == pytest.approx((now - old).flatten().tolist(), abs=1e-4)


def test_charts_hold_the_predictions(session):
    marks = mark(session, "deberta-tiny")
    answer = ask(session, marks=marks, off=["p2c"], scope="model")
    for name, chart in (("prediction", "prediction"), ("decoder", "decoder")):
        meta = answer["shown"][chart].layout.meta
        for row, wanted in zip(meta["rows"], answer[name]["rows"], strict=True):
            assert row[1::2] == wanted["chances"]
            assert row[2::2] == wanted["ranks"]
    judged = ask(session, model="deberta-v3-tiny")["shown"]["prediction"].layout.meta["rows"]
    assert judged
    assert asyncio.run(tab.show(session, asked() | {"sentence": None})) == [gr.skip()] * len(SHOWN)


def test_the_code_runs_and_gives_the_numbers(session, capsys):
    marks = mark(session, "deberta-tiny")
    answer = ask(session, model="deberta-tiny", marks=marks, off=["p2c"], stream="mask_decoder")
    space = {}
    exec(answer["shown"]["code"], space)
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
