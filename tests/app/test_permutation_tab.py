"""The Permutation tab without a browser: masks against the orderings, chances against the model."""

import asyncio
import csv
import io
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import core_models as cm
from app.labs.permutation import answers as permutation
from app.labs.permutation import lab as tab
from app.serving.session import Session
from core_models import InputError
from core_models.orderings import paper, released
from core_models.tokenizer.files import Specials, Template
from tests.core.tiny_models import narrow
from viz.permutation import Mask, masks_svg
from viz.svg import PAPER

PRIMER = Path(__file__).resolve().parents[2] / "assets" / "primer" / "english-world.txt"
TEXT = "The capital of France is Paris."
MEMORY = "France lies in Europe ."
NAME = "xlnet-tiny"


def tiny() -> cm.Model:
    """Two streams with random weights, special pieces behind the text."""
    tokenizer = cm.Tokenizer.train(
        PRIMER.read_text(encoding="utf-8").splitlines()[:120],
        vocabulary=300,
        kind="unigram",
        template=Template.trailing(Specials(pad="<pad>", unknown="<unk>")),
    )
    config = cm.size("xlnet-base-cased").with_vocabulary(
        tokenizer.vocabulary, pad_id=tokenizer.pad_id
    )
    config = narrow(config, width=16, inner=24, layers=3, initial_std=0.3)
    return cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tiny().save(folder / NAME)
    return folder


@pytest.fixture
def with_xlnet(folder, monkeypatch):
    monkeypatch.setenv("CLOZE_MODELS", str(folder))
    session = Session()
    yield session
    session.close()


@pytest.fixture
def without(monkeypatch):
    """The page's service where no model has two streams."""
    monkeypatch.delenv("CLOZE_MODELS", raising=False)
    session = Session()
    infos = [info for info in session.models() if permutation.HEAD not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    yield session
    session.close()


def question(**values):
    return {"rev": 3, "text": TEXT, "model": NAME, **values}


def ask(session, **values):
    answer = tab.show(session, question(**values))
    assert answer["error"] is None
    return answer


def judge(session, **values):
    answer = asyncio.run(tab.judge(session, question(**values)))
    assert answer["error"] is None
    return answer


def bits(rows):
    return torch.tensor([[flag == "1" for flag in row["seen"]] for row in rows])


def full(answer):
    special = [p["position"] for p in answer["pieces"] if p["special"]]
    return torch.tensor([special + answer["order"]])


@pytest.mark.parametrize("k", [1, 2, 6])
def test_the_papers_masks_are_those_of_the_orderings(with_xlnet, k):
    answer = ask(with_xlnet, k=k, seed=8)
    plain = len(answer["order"])
    seen = paper(full(answer), torch.tensor([max(1, round(plain / k))]))
    assert torch.equal(bits(answer["content"]), seen.visibility[0])
    assert torch.equal(bits(answer["query"]), seen.target_visibility[0])
    assert (
        answer["targets"] == seen.targets[0].tolist() == answer["order"][-len(answer["targets"]) :]
    )


def test_the_released_masks_are_those_of_the_orderings(with_xlnet):
    answer = ask(with_xlnet, variant="released", k=3, seed=5)
    length = len(answer["pieces"])
    chosen, special = torch.zeros(2, 1, length, dtype=torch.bool)
    chosen[:, answer["targets"]] = True
    special[:, [p["position"] for p in answer["pieces"] if p["special"]]] = True
    seen = released(chosen, special, full(answer).argsort(1), reuse=0)
    assert torch.equal(bits(answer["content"]), seen.visibility[0])
    assert torch.equal(bits(answer["query"]), seen.target_visibility[0])
    # What is not predicted is seen by every query.
    known = [n for n in answer["order"] if n not in answer["targets"]]
    assert bits(answer["query"])[:, known].all()


def test_a_dragged_order_shows_each_query_what_came_before(with_xlnet):
    order = ask(with_xlnet)["order"]
    first, second, last = sorted(order)[:3]
    rest = [n for n in sorted(order) if n not in (first, second, last)]
    answer = ask(with_xlnet, order=[first, second, last, *rest], k=1)
    special = [p["position"] for p in answer["pieces"] if p["special"]]
    assert bits(answer["query"])[2].nonzero().flatten().tolist() == sorted(
        [first, second, *special]
    )
    assert answer["remembered"] == 0


def test_seeds_replay_and_differ(with_xlnet):
    assert ask(with_xlnet, seed=3)["order"] == ask(with_xlnet, seed=3)["order"]
    assert len({tuple(ask(with_xlnet, seed=n)["order"]) for n in range(6)}) > 3


def direct(session, order, counts, *, leak=False, memory=()):
    """Probabilities of the targets by calls of the core alone."""
    model = session.model(NAME)
    seen = paper(order, torch.tensor([counts]))
    visible = seen.target_visibility
    if leak:
        visible = visible | torch.nn.functional.one_hot(seen.targets, order.shape[1]).bool()
    batch = replace(
        model.batch([TEXT]),
        visibility=seen.visibility,
        targets=seen.targets,
        target_visibility=visible,
        memory=memory,
    )
    with torch.inference_mode():
        logits = model.heads["permutation"](model.encoder(batch).streams["query"])
    return logits.softmax(-1).gather(-1, seen.labels(batch.input_ids)[..., None]).flatten()


def test_chances_are_those_of_the_model(with_xlnet):
    masks, found = ask(with_xlnet, k=2), judge(with_xlnet, k=2)
    assert [row["position"] for row in found["rows"]] == masks["targets"]
    special = full(masks)[0, : -len(masks["order"])].tolist()
    for entry in found["orders"]:
        order = torch.tensor([[*special, *entry["order"]]])
        every = direct(with_xlnet, order, len(masks["order"]))
        wanted = dict(zip(entry["order"], every.tolist(), strict=True))
        shown = {row["position"]: row["chances"][entry["name"]] for row in found["rows"]}
        assert shown == pytest.approx({n: wanted[n] for n in masks["targets"]}, rel=1e-4)
        assert found["whole"][entry["name"]] == pytest.approx(-float(every.log2().sum()), rel=1e-4)
    own = direct(with_xlnet, full(masks), len(masks["targets"]))
    assert [row["chances"]["own"] for row in found["rows"]] == pytest.approx(own.tolist(), rel=1e-4)
    assert found["bits"]["own"] == pytest.approx(-float(own.log2().sum()), rel=1e-4)


def test_a_leak_is_marked_and_changes_what_is_said(with_xlnet):
    masks, found = ask(with_xlnet, k=2, leak=True), judge(with_xlnet, k=2, leak=True)
    for n, target in enumerate(masks["targets"]):
        assert masks["query"][n]["seen"][target] == "1"
    wrong = direct(with_xlnet, full(masks), len(masks["targets"]), leak=True)
    assert [row["leak"] for row in found["rows"]] == pytest.approx(wrong.tolist(), rel=1e-4)
    honest = [row["chances"]["own"] for row in found["rows"]]
    assert any(not math.isclose(a, b, rel_tol=1e-3) for a, b in zip(honest, wrong, strict=True))
    assert all(row["leak"] is None for row in judge(with_xlnet, k=2)["rows"])


def test_a_memory_is_read_by_both_streams(with_xlnet):
    masks, found = ask(with_xlnet, memory=MEMORY), judge(with_xlnet, memory=MEMORY)
    model = with_xlnet.model(NAME)
    encoding = model.tokenizer.encode(MEMORY)
    plain = encoding.special.index(True)  # special pieces come last
    with torch.inference_mode():
        batch = replace(model.batch([MEMORY]), remember=plain, reuse=plain)
        memory = model.encoder(batch).memory
    wanted = direct(with_xlnet, full(masks), len(masks["targets"]), memory=memory)
    shown = [row["chances"]["own"] for row in found["rows"]]
    assert shown == pytest.approx(wanted.tolist(), rel=1e-4)
    assert masks["remembered"] == plain
    without = direct(with_xlnet, full(masks), len(masks["targets"]))
    forgotten = [row["forgotten"] for row in found["rows"]]
    assert forgotten == pytest.approx(without.tolist(), rel=1e-4)
    assert forgotten != pytest.approx(shown, rel=1e-3)
    assert found["bits"]["forgotten"] == pytest.approx(-float(without.log2().sum()), rel=1e-4)
    assert all(row["forgotten"] is None for row in judge(with_xlnet)["rows"])
    seen = found["attention"]
    length = plain + len(masks["pieces"])
    assert len(seen["remembered"]) == plain
    assert {len(row) for row in seen["content"] + seen["query"]} == {length}


def test_attention_respects_the_masks_and_is_the_traces(with_xlnet):
    masks, found = ask(with_xlnet, k=2), judge(with_xlnet, k=2, layer=2, head=1)
    model, seen = with_xlnet.model(NAME), found["attention"]
    ordering = paper(full(masks), torch.tensor([len(masks["targets"])]))
    trace = cm.Trace(["probabilities"])
    batch = replace(
        model.batch([TEXT]),
        visibility=ordering.visibility,
        targets=ordering.targets,
        target_visibility=ordering.target_visibility,
    )
    with torch.inference_mode():
        model.encoder(batch, trace)
    for stream, rows in (("content", seen["content"]), ("query", seen["query"])):
        wanted = trace.get("probabilities", 2, stream)[0, 1]
        torch.testing.assert_close(torch.tensor(rows), wanted, atol=2e-5, rtol=0)
    assert not (torch.tensor(seen["query"])[~bits(masks["query"])] > 0).any()


def test_without_two_streams_masks_work_and_chances_say_why_not(without):
    answer = tab.show(without, question(model="bert-mini"))
    assert answer["error"] is None
    assert answer["reader"] is None
    assert answer["vocabulary"] == "bert-mini"
    assert answer["pieces"][0]["special"]
    judged = asyncio.run(tab.judge(without, question(model="bert-mini")))
    assert "No model with two streams is installed" in judged["error"]
    file = asyncio.run(tab.export(without, question(model="bert-mini", what="csv")))
    assert file["error"] is None


def test_another_model_answers_for_one_with_one_stream(with_xlnet):
    answer = tab.show(with_xlnet, question(model="bert-mini"))
    assert answer["reader"] in {i.name for i in with_xlnet.models() if "permutation" in i.heads}
    assert answer["vocabulary"] == answer["reader"]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"order": [0, 0, 1]}, "each position of the text once"),
        ({"order": "012"}, "list of positions"),
        ({"order": [True]}, "whole number"),
        ({"k": 0}, "whole number from 1 to 12"),
        ({"k": 10**9}, "whole number from 1 to 12"),
        ({"seed": -1}, "seed is -1"),
        ({"variant": "own"}, "paper or released"),
        ({"variant": ["paper"]}, "paper or released"),
        ({"memory": " "}, "no text yet"),
        ({"text": ""}, "no text yet"),
    ],
)
def test_bad_input_is_explained(with_xlnet, values, match):
    answer = tab.show(with_xlnet, question(**values))
    assert match in answer["error"]
    assert answer["rev"] == 3
    assert match in asyncio.run(tab.judge(with_xlnet, question(**values)))["error"]


@pytest.mark.parametrize("text", ["a", "word " * 600, "<mask> <mask>"])
@pytest.mark.parametrize("variant", permutation.VARIANTS)
def test_short_long_and_hidden_texts_work(with_xlnet, text, variant):
    answer = ask(with_xlnet, text=text, variant=variant, k=12)
    assert 1 <= len(answer["targets"]) <= len(answer["order"])
    assert len(answer["pieces"]) <= permutation.MOST_PIECES
    assert answer["truncated"] is (len(text) > 100)
    found = judge(with_xlnet, text=text, variant=variant, k=12, layer=999)
    assert found["attention"]["layer"] == 2
    assert len(found["rows"]) == len(answer["targets"])


def test_files_hold_what_is_shown(with_xlnet):
    values = question(k=2, leak=True, text="=1 <b> & Paris")
    file = asyncio.run(tab.export(with_xlnet, values | {"what": "csv"}))
    rows = list(csv.DictReader(io.StringIO(file["text"])))
    found = asyncio.run(tab.judge(with_xlnet, values))["rows"]
    assert [float(row["probability_own"]) for row in rows] == [r["chances"]["own"] for r in found]
    assert [float(row["probability_leak"]) for row in rows] == [row["leak"] for row in found]
    svg = asyncio.run(tab.export(with_xlnet, values | {"what": "svg"}))["text"]
    ElementTree.fromstring(svg)
    for what in (None, "exe", ["svg"]):
        with pytest.raises(InputError, match="must be svg or csv"):
            asyncio.run(tab.export(with_xlnet, values | {"what": what}))


@pytest.mark.parametrize("variant", permutation.VARIANTS)
def test_the_shown_code_recomputes_the_answer(with_xlnet, variant, capsys):
    values = {"variant": variant, "k": 2, "memory": "It is old ."}
    exec(ask(with_xlnet, **values)["code"], {})
    last = judge(with_xlnet, **values)["rows"][0]["chances"]["own"]
    printed = capsys.readouterr().out
    assert f"{last:.4e}"[:6] in printed or f"{last:.4f}" in printed


def test_the_picture_has_a_ring_at_the_place_of_each_row():
    mask = Mask(title="<both>", rows=[1, 0], seen=[[True, True], [False, True]])
    svg = masks_svg([mask], ["a", "<b>"], title="t", note="what it means")
    texts = [node.text for node in ElementTree.fromstring(svg).iter()]
    assert "what it means" in texts
    rings = [line for line in svg.splitlines() if "<circle" in line]
    assert [PAPER in ring for ring in rings] == [True, False], "seen and not seen"
    with pytest.raises(ValueError, match="one cell per piece"):
        masks_svg([mask], ["a"], title="t")
