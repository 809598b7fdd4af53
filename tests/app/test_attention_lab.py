"""The modes of the Attention tab without a browser: their numbers are those of the core."""

import asyncio

import numpy as np
import pytest

import viz
from app.labs.attention import lab as attention
from app.labs.attention.scene import Scene, filtered, parts, read_scene
from core_models import ablation, attention_flow
from core_models.prediction.passes import seen_with
from tests.app.attention_lab import HIDDEN, SECOND, TEXT, ask, grid, maps, traced
from tests.core.tiny_models import WORDS


def test_combined_heads_are_those_chosen(lab):
    answer = ask(lab, "combined", picks=[[0, 1], [2, 0]], how="max")
    assert answer["grids"] == []  # drawn from the numbers, so not sent twice
    expected = attention_flow.combine(maps(lab), [(0, 1), (2, 0)], "max")
    np.testing.assert_allclose(grid(answer), expected, atol=1e-6)
    head = viz.from_bytes(answer["numbers"]["data"], "<f4").reshape(expected.shape)
    np.testing.assert_allclose(head, expected, atol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        {"picks": []},
        {"picks": [[9, 0]]},
        {"picks": "all"},
        {"picks": [[0]]},
        {"picks": [[0, 1.5]]},
        {"picks": [[0, 0]], "how": "sum"},
        {"picks": [[0, 0]], "part": "up"},
        {"picks": [[0, 0]], "second": 3},
        {"picks": [[0, 0]], "second": "x" * 2000},
    ],
)
def test_questions_that_make_no_sense(lab, values):
    assert ask(lab, "combined", **values)["error"]


@pytest.mark.parametrize("model", ["t-bert", "t-xlnet"])
@pytest.mark.parametrize("part", ["ab", "ba", "within"])
def test_a_pair_is_read_as_a_pair_and_filtered(lab, part, model):
    answer = ask(lab, "combined", model, picks=[[1, 1]], second=SECOND, part=part)
    weights = maps(lab, model=model, second=SECOND)[1, 1]
    sides = np.array([token["part"] for token in answer["tokens"]], dtype=object)
    allowed = {
        "ab": np.outer(sides == 0, sides == 1),
        "ba": np.outer(sides == 1, sides == 0),
        "within": np.outer(sides == 0, sides == 0) | np.outer(sides == 1, sides == 1),
    }[part]
    np.testing.assert_allclose(grid(answer), np.where(allowed, weights, 0), atol=1e-6)
    assert [t["label"] for t in answer["tokens"] if t["part"] == 1] == SECOND.split()
    assert [t["label"] for t in answer["tokens"] if t["part"] == 0] == TEXT.split()


def test_the_sides_of_a_pair_do_not_need_segments():
    special = [True, False, True, True, False, False, True]
    assert parts(special, paired=True) == [None, 0, None, None, 1, 1, None]
    assert parts(special, paired=False) == [None, 0, None, None, 0, 0, None]
    tokens = [{"part": 0}, {"part": 1}]
    np.testing.assert_array_equal(filtered(np.ones((2, 2)), tokens, "ba"), [[0, 0], [1, 0]])


def test_the_main_answer_of_a_pair_tells_its_segments(lab):
    data = {"rev": 1, "text": TEXT, "model": "t-bert", "second": SECOND, "whole": True}
    answer = asyncio.run(attention.show(lab, data))
    (encoding,) = lab.session.model("t-bert").encode([(TEXT, SECOND)])
    assert answer["segments"] == {"ids": encoding.segment_ids, "use": "table"}
    assert set(encoding.segment_ids) == {0, 1}
    assert answer["second"] == SECOND
    assert isinstance(read_scene(data), Scene)
    alone = asyncio.run(attention.show(lab, {**data, "second": " "}))
    assert "segments" not in alone
    data["model"] = "t-xlnet"
    assert asyncio.run(attention.show(lab, data))["segments"]["use"] == "scores"


@pytest.mark.parametrize("model", ["t-bert", "t-albert", "t-xlnet"])
def test_rollout_and_flow(lab, model):
    answer = ask(lab, "rollout", model)
    loaded, encoding, trace = traced(lab, model)
    found = trace.stack("probabilities")[:, 0].numpy()
    position = encoding.ids.index(loaded.tokenizer.cls_id)
    assert answer["position"] == position
    ways = grid(answer)
    np.testing.assert_allclose(ways[0], found[-1].mean(0)[position], atol=1e-6)
    np.testing.assert_allclose(ways[1], attention_flow.rollout(found)[-1, position], atol=1e-6)
    np.testing.assert_allclose(ways[2], attention_flow.flow(found, position), atol=1e-6)
    np.testing.assert_allclose(
        grid(answer, 1), attention_flow.rollout(found)[:, position], atol=1e-6
    )
    two = ask(lab, "rollout", model, position=2, layers=2)
    np.testing.assert_allclose(grid(two)[1], attention_flow.rollout(found[:2])[-1, 2], atol=1e-6)


def test_a_longer_text_has_rollout_and_no_flow(lab):
    answer = ask(lab, "rollout", text=f"{WORDS} and {TEXT}")
    assert len(answer["tokens"]) > 16
    assert (answer["flow"], answer["most"]) == (False, 16)
    assert len(grid(answer)) == 2
    for values in ({"position": 99}, {"position": -1}, {"layers": 0}, {"layers": 4}):
        assert ask(lab, "rollout", **values)["error"]


@pytest.mark.parametrize("head", [1, None])
@pytest.mark.parametrize("model", ["t-bert", "t-albert"])
def test_norms(lab, head, model):
    answer = ask(lab, "norms", model, layer=2, head=head)
    loaded, _, trace = traced(lab, model, ("probabilities", "v"))
    block = loaded.encoder.blocks[loaded.config.schedule[2]]
    moved = attention_flow.moved_values(
        trace["v", 2][0].numpy(), block.attention.output.weight.detach().numpy()
    )
    weights = trace["probabilities", 2][0].numpy()
    if head is None:
        expected = attention_flow.layer_norms(weights, moved)
    else:
        expected = attention_flow.head_norms(weights, moved)[head]
    np.testing.assert_allclose(grid(answer, 1), expected, rtol=1e-3, atol=1e-5)
    special = [token["special"] for token in answer["tokens"]]
    share = expected[:, special].sum() / expected.sum()
    assert answer["shares"]["norms"] == pytest.approx(share, rel=1e-3)
    assert ask(lab, "norms", layer=3)["error"]
    assert ask(lab, "norms", layer=0, head=2)["error"]


@pytest.mark.parametrize("model", ["t-bert", "t-albert", "t-deberta", "t-xlnet"])
def test_heads_off_and_the_prediction(lab, model):
    loaded, encoding, _ = traced(lab, model)
    position = encoding.pieces.index(next(p for p in encoding.pieces if p.endswith("small")))
    hidden = seen_with(encoding, {position: loaded.tokenizer.mask_id})
    marks = [{"position": position, "case": "mask"}]
    answer = ask(lab, "off", model, off=[[1, 0]], marks=marks)
    piece = encoding.ids[position]
    assert (answer["gap"], answer["target"]["id"]) == (position, piece)
    rows = ablation.spread(loaded.config, [(1, 0)])
    both = ablation.without_heads(loaded, hidden, position, [(), rows])
    assert answer["target"]["before"] == pytest.approx(float(both[0, piece]), abs=1e-5)
    assert answer["target"]["after"] == pytest.approx(float(both[1, piece]), abs=1e-5)
    assert len(answer["hit"]) == (3 if model == "t-albert" else 1)
    for row in answer["rows"]:
        assert row["after"] == pytest.approx(float(both[1, row["id"]].exp()), abs=1e-6)
    sweep = ablation.damage(loaded, hidden, position, piece)
    for layer in range(3):
        row = ask(lab, "damage", model, layer=layer, marks=marks)["row"]
        np.testing.assert_allclose(row, sweep[layer], atol=1e-5)
    if model == "t-albert":
        alone = ask(lab, "off", model, off=[[1, 0]], marks=marks, shared=False)
        assert alone["hit"] == [[1, 0]]
        assert alone["target"]["after"] != pytest.approx(answer["target"]["after"], abs=1e-6)


def test_without_a_gap_or_a_predicting_head_it_says_so(lab):
    assert ask(lab, "off")["gap"] is None
    assert "hidden" in ask(lab, "damage", layer=0)["error"]
    assert "judges tokens" in ask(lab, "off", "t-judge", marks=HIDDEN)["error"]
    assert ask(lab, "off", off=[[7, 0]], marks=HIDDEN)["error"]
    gap = ask(lab, "off", text="red fox sees [MASK] dog")
    assert gap["target"]["own"] is False
    assert gap["target"]["ranks"][0] == 1


@pytest.mark.parametrize("model", ["t-bert", "t-deberta", "t-xlnet"])
def test_products_add_up_to_the_score(lab, model):
    answer = ask(lab, "products", model, layer=1, head=1, query=3)
    _, _, trace = traced(lab, model, ("q", "k", "scores", "probabilities"))
    products = trace["q", 1][0, 1, 3] * trace["k", 1][0, 1]
    np.testing.assert_allclose(grid(answer), products.numpy()[answer["keys"]], atol=1e-5)
    for key, row in zip(answer["keys"], answer["rows"], strict=True):
        assert row["scaled"] == pytest.approx(answer["scale"] * row["sum"], abs=1e-5)
        terms = [row[name] for name in answer["names"] if name not in ("sum", "score", "share")]
        assert sum(terms) == pytest.approx(row["score"], abs=1e-4)
        assert row["score"] == pytest.approx(float(trace["scores", 1][0, 1, 3, key]), abs=1e-5)
        assert row["share"] == pytest.approx(
            float(trace["probabilities", 1][0, 1, 3, key]), abs=1e-6
        )
    names = {"t-bert": [], "t-deberta": ["c2p", "p2c"], "t-xlnet": ["bias", "position", "segment"]}
    assert sorted(answer["names"][2:-2]) == names[model]
    assert ask(lab, "products", model, layer=0, head=0, query=99)["error"]
    assert ask(lab, "products", model, layer=0)["error"]


def test_two_models_with_the_hidden_word_carried_over(lab):
    answer = ask(lab, "compare", other="t-xlnet", what="rollout", marks=HIDDEN)
    first, second = answer["sides"]
    assert (first["model"], second["model"]) == ("t-bert", "t-xlnet")
    assert [t["label"] for t in first["tokens"] if t["masked"]] == ["[MASK]"]
    places = [t["position"] for t in second["tokens"] if t["masked"]]
    assert len(places) == 1
    found = maps(lab, model="t-xlnet", masks=places)
    np.testing.assert_allclose(grid(answer, 1), attention_flow.rollout(found)[-1], atol=1e-6)
    heads = ask(lab, "compare", other="t-albert", what="head", places=[[2, 1], [0, 0]])
    np.testing.assert_allclose(grid(heads), maps(lab)[2, 1], atol=1e-6)
    np.testing.assert_allclose(grid(heads, 1), maps(lab, model="t-albert")[0, 0], atol=1e-6)
    for values in ({"other": "nothing"}, {"what": "all"}, {"places": [1]}, {"places": [[0], 1]}):
        assert ask(lab, "compare", **values)["error"]


def test_equal_questions_run_the_model_once(lab, monkeypatch):
    runs = []
    inside = ablation.without_heads
    monkeypatch.setattr(ablation, "without_heads", lambda *a: runs.append(1) or inside(*a))
    for _ in range(3):
        ask(lab, "damage", "t-albert", layer=0, marks=HIDDEN, text="red dog sees small fox")
    once = len(runs)
    assert once
    ask(lab, "damage", "t-albert", layer=2, marks=HIDDEN, text="red dog sees small fox")
    assert len(runs) == once  # the same weights, so the same answer
    ask(lab, "damage", "t-bert", layer=2, marks=HIDDEN, text="red dog sees small fox")
    assert len(runs) > once
