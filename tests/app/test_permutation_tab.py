"""The Permutation tab without a browser: masks against the orderings, chances against the model."""

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import core_models as cm
from app.labs.permutation import answers as permutation
from app.labs.permutation import chances
from app.labs.permutation import lab as tab
from app.labs.permutation import said as say
from app.labs.permutation.grid import grid
from app.page.sentence import describe
from app.serving.session import Session
from core_models import InputError
from core_models.masking.orderings import paper, released
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


def question(text=TEXT, model=NAME, **values):
    """What the page asks with."""
    given = {"order": [], "seed": 1, "variant": "paper", "k": 6, "leak": False, "memory": ""}
    sentence = {"text": text, "model": model}
    return {"sentence": sentence, **given, "layer": 0, "head": 0, **values}


def ask(session, **values):
    """What the grids show, and beside it the setting and the pieces."""
    asked = tab.read(session, question(**values))
    before = 0 if asked.before is None else asked.before.plain[-1] + 1
    shown = grid(asked.sentence, asked.setting, before)
    special = [token.position for token in asked.sentence.tokens if token.special]
    return {**shown, "special": special, "asked": asked}


def judge(session, layer=0, head=0, **values):
    asked = tab.read(session, question(**values))
    work = (asked.model, asked.sentence, asked.setting)
    with torch.inference_mode():
        seen = chances.attention(*work, layer, head)
        return {**chances.judge(*work), "attention": seen}


def shown(session, **values):
    """What the page gets, by what shows it."""
    names = ("grid", "notes", "layer", "head", "bits", "chances", "guesses", "query", "content")
    found = asyncio.run(tab.show(session, question(**values)))
    return dict(zip((*names, "code"), found, strict=True))


def bits(rows):
    return torch.tensor([[flag == "1" for flag in row["seen"]] for row in rows])


def full(answer):
    return torch.tensor([answer["special"] + answer["order"]])


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
    special[:, answer["special"]] = True
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
    assert bits(answer["query"])[2].nonzero().flatten().tolist() == sorted(
        [first, second, *answer["special"]]
    )
    assert answer["remembered"] == 0


def test_orders_by_name_fit_every_text_and_others_only_their_own(with_xlnet):
    plain = ask(with_xlnet, order=["left"])["order"]
    assert plain == sorted(plain)
    assert ask(with_xlnet, order=["right"])["order"] == plain[::-1]
    named = ask(with_xlnet, order=["last"])
    pieces = [named["pieces"][n] for n in named["order"]]
    assert (pieces[0], any(map(str.isalnum, pieces[-1]))) == (".", True)
    drawn = ask(with_xlnet)["order"]
    for order in ([0, 0, 1], "012", [True], [[1]], ["first"], [0.5], {"left": 1}):
        found = ask(with_xlnet, order=order)
        assert found["order"] == drawn, order
        assert not found["asked"].setting.fits, order
        assert "another is drawn" in shown(with_xlnet, order=order)["notes"]
    own = shown(with_xlnet, order=plain)["grid"]
    assert (own["order"], own["own"], own["by"]) == (plain, True, {NAME: "en"})
    assert not shown(with_xlnet, order=["left"])["grid"]["own"]


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
    asked = masks["asked"]
    orders = {"own": asked.setting.order}
    orders |= permutation.other_orders(asked.sentence, asked.setting)
    assert found["orders"] == list(orders)
    for name, order in orders.items():
        every = direct(with_xlnet, torch.tensor([[*masks["special"], *order]]), len(order))
        wanted = dict(zip(order, every.tolist(), strict=True))
        said = {row["position"]: row["chances"][name] for row in found["rows"]}
        assert said == pytest.approx({n: wanted[n] for n in masks["targets"]}, rel=1e-4)
        assert found["whole"][name] == pytest.approx(-float(every.log2().sum()), rel=1e-4)
    own = direct(with_xlnet, full(masks), len(masks["targets"]))
    assert [row["chances"]["own"] for row in found["rows"]] == pytest.approx(own.tolist(), rel=1e-4)
    assert found["bits"]["own"] == pytest.approx(-float(own.log2().sum()), rel=1e-4)


@pytest.mark.parametrize(
    ("least", "words"), [(6.38, "none of the other"), (6.3, "order here needs 6.3")]
)
def test_an_order_is_cheaper_only_where_its_figure_is(least, words):
    found = {"own": 6.41, "left": least}
    assert words in say.bits({"whole": found, "bits": found})


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
    said = [row["chances"]["own"] for row in found["rows"]]
    assert said == pytest.approx(wanted.tolist(), rel=1e-4)
    assert masks["remembered"] == plain
    without = direct(with_xlnet, full(masks), len(masks["targets"]))
    forgotten = [row["forgotten"] for row in found["rows"]]
    assert forgotten == pytest.approx(without.tolist(), rel=1e-4)
    assert forgotten != pytest.approx(said, rel=1e-3)
    assert found["bits"]["forgotten"] == pytest.approx(-float(without.log2().sum()), rel=1e-4)
    assert all(row["forgotten"] is None for row in judge(with_xlnet)["rows"])
    seen = found["attention"]
    length = plain + len(masks["pieces"])
    assert len(seen["remembered"]) == plain
    assert {len(row) for row in seen["content"] + seen["query"]} == {length}


def test_what_of_the_sentence_before_is_not_read_is_told(with_xlnet):
    found = shown(with_xlnet, memory="The 龘 is red. " + "word " * 40)
    assert "its first 30 pieces are remembered" in found["notes"]
    assert "has no piece for “龘”" in found["notes"]
    assert "remembered" not in shown(with_xlnet, memory=MEMORY)["notes"]


def test_blanks_are_no_sentence_before(with_xlnet):
    assert shown(with_xlnet, memory="  ")["code"] == shown(with_xlnet)["code"]


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


def test_without_two_streams_masks_work_and_training_is_explained(without):
    found = shown(without, model="bert-mini")
    assert found["grid"]["by"] == {"bert-mini": "en"}
    assert found["grid"]["pieces"][0] == "[CLS]"
    assert "zoo build xlnet-mini" in found["bits"]
    assert (found["chances"], found["query"]) == (None, None)
    (svg,) = tab.draw(without, question(model="bert-mini"))
    ElementTree.fromstring(svg)


def test_another_model_answers_for_one_with_one_stream(with_xlnet):
    found = shown(with_xlnet, model="bert-mini")
    able = {info.name for info in with_xlnet.models() if "permutation" in info.heads}
    assert set(found["grid"]["by"]) <= able
    assert "bert-mini has one stream only" in found["notes"]


def test_what_the_model_has_no_piece_for_is_told(with_xlnet):
    said = "xlnet-tiny has no piece for “龘” and reads <unk> instead."
    assert said in shown(with_xlnet, text="The 龘 is red.")["notes"]
    assert describe(with_xlnet.sentence("The 龘 is red.", NAME))["notes"] == [said]
    assert "has no piece" not in shown(with_xlnet)["notes"]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"k": 0}, "whole number from 1 to 12"),
        ({"k": 10**9}, "whole number from 1 to 12"),
        ({"seed": -1}, "seed is -1"),
        ({"variant": "own"}, "paper or released"),
        ({"variant": ["paper"]}, "paper or released"),
        ({"layer": -1}, "layer is -1"),
        ({"memory": 3}, "no text yet"),
        ({"text": ""}, "no text yet"),
    ],
)
def test_bad_input_is_explained(with_xlnet, values, match):
    with pytest.raises(InputError, match=match):
        asyncio.run(tab.show(with_xlnet, question(**values)))


@pytest.mark.parametrize("text", ["a", "word " * 600, "<mask> <mask>"])
@pytest.mark.parametrize("variant", permutation.VARIANTS)
def test_short_long_and_hidden_texts_work(with_xlnet, text, variant):
    answer = ask(with_xlnet, text=text, variant=variant, k=12)
    assert 1 <= len(answer["targets"]) <= len(answer["order"])
    assert len(answer["pieces"]) <= permutation.MOST_PIECES
    found = shown(with_xlnet, text=text, variant=variant, k=12, layer=999)
    assert ("its first 30 pieces" in found["notes"]) is (len(text) > 100)
    assert found["layer"].value == 2
    rows = found["chances"].layout.meta["rows"]
    assert len(rows) == len(answer["targets"]) + (2 if variant == "paper" else 1)


def test_figures_and_the_drawing_hold_what_is_said(with_xlnet):
    values = {"k": 2, "leak": True, "text": "=1 <b> & Paris"}
    said, found = shown(with_xlnet, **values), judge(with_xlnet, **values)
    rows = said["chances"].layout.meta["rows"]
    assert [row[2] for row in rows[:-2]] == [r["chances"]["own"] for r in found["rows"]]
    assert [row[3] for row in rows[:-2]] == [row["leak"] for row in found["rows"]]
    assert rows[-1][2] == pytest.approx(found["whole"]["own"], abs=0.01)
    assert "<b>" not in str(said["chances"].layout.xaxis.ticktext)
    assert said["chances"].layout.meta["alt"] == "Probability of each framed piece under 6 orders."
    best = [row[3] for row in said["guesses"]["rows"] if row[2] == 1]
    assert best == [row["guesses"][0]["text"] for row in found["rows"]]
    (svg,) = tab.draw(with_xlnet, question(**values))
    ElementTree.fromstring(svg)


@pytest.mark.parametrize("variant", permutation.VARIANTS)
def test_the_shown_code_recomputes_the_answer(with_xlnet, variant, capsys):
    values = {"variant": variant, "k": 2, "memory": "It is old ."}
    exec(shown(with_xlnet, **values)["code"], {})
    last = judge(with_xlnet, **values)["rows"][0]["chances"]["own"]
    printed = capsys.readouterr().out
    assert f"{last:.4e}"[:6] in printed or f"{last:.4f}" in printed


@pytest.mark.parametrize("variant", permutation.VARIANTS)
def test_the_shown_code_has_the_leak(with_xlnet, variant, capsys):
    values = {"variant": variant, "k": 2, "leak": True}
    names: dict[str, object] = {}
    exec(shown(with_xlnet, **values)["code"], names)
    masks = ask(with_xlnet, **values)
    assert torch.equal(names["seen"].target_visibility[0], bits(masks["query"]))
    last = judge(with_xlnet, **values)["rows"][0]["leak"]
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
