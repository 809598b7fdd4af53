"""The Attention lab without a browser: its numbers are those of the core."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import viz
from app.labs.attention import lab as attention
from app.labs.attention.answers import say_shares, whole_of
from app.labs.attention.prediction import nats
from app.labs.attention.products import _cell, _products
from app.labs.attention.scene import Scene, describe, filtered, parts, read, read_scene
from core_models import InputError
from core_models.prediction import ablation, attention_flow
from core_models.prediction.passes import seen_with
from tests.app.attention_lab import (
    HIDDEN,
    QUESTION,
    SECOND,
    TEXT,
    ask,
    cells,
    maps,
    numbers,
    traced,
)
from tests.core.tiny_models import WORDS, new, tiny


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (2, 1), (1, -1), (-1, -1)])
def test_a_head_is_shown_with_its_numbers(lab, layer, head):
    found = ask(lab, "heads", layer=layer, head=head)
    place = (None if layer < 0 else layer, None if head < 0 else head)
    expected = viz.head_weights(maps(lab), *place)
    np.testing.assert_allclose(numbers(found), expected, rtol=1e-6)
    np.testing.assert_allclose(cells(found["first"]), expected, rtol=1e-5)
    rows = found["first"].layout.meta["rows"]
    np.testing.assert_allclose([row[1:] for row in rows], expected, rtol=1e-4)
    assert found["chosen"] == {"cells": [f"{layer}.{head}"], "kind": "one"}


@pytest.mark.parametrize(("layer", "head"), [(-2, -2), (9, 0), (0, 9)])
def test_a_head_that_is_not_there_is_the_clearest(lab, layer, head):
    found = ask(lab, "heads", layer=layer, head=head)
    special = [True, *[False] * len(TEXT.split()), True]
    at = viz.clearest_head(maps(lab), special)
    assert (found["layer"]["value"], found["head"]["value"]) == at


def test_the_grid_is_sent_once_for_a_sentence_and_its_look(lab):
    first = ask(lab, "heads")
    shape = maps(lab).shape
    assert (first["grid"]["layers"], first["grid"]["heads"]) == shape[:2]
    assert [name for name, _ in first["layer"]["choices"]] == ["1", "2", "3", "⌀"]
    again = {"drawn": first["drawn"]}
    assert "grid" not in ask(lab, "norms", layer=1, head=1, **again)
    for other in ({"hide": True}, {"own": True}, {"marks": HIDDEN}, {"second": SECOND}):
        assert "grid" in ask(lab, "heads", **again, **other)


def test_what_is_right_already_is_not_sent_back(lab):
    names = ["layer", "token", "clock", "said"]
    scene = {"text": TEXT, "model": "t-bert", "marks": []}
    question = {**QUESTION, "scene": scene, "layer": 1, "head": 0}
    layer, token, clock, said = asyncio.run(attention.show(lab, names, question))
    assert "value" not in layer
    assert token == {"__type__": "update"}
    assert clock.active is False
    assert said.startswith("Layer 2 · Head 1: ")
    nobody = asyncio.run(attention.show(lab, names, {**question, "scene": None}))
    assert nobody == [{"__type__": "update"}] * 4


def test_special_tokens_are_left_out_and_nothing_is_normalised_anew(lab):
    found = ask(lab, "heads", layer=1, head=0, hide=True)
    np.testing.assert_allclose(numbers(found), maps(lab)[1, 0][1:-1, 1:-1], rtol=1e-6)
    assert [token["label"] for token in found["lines"]["tokens"]] == TEXT.split()
    assert found["grid"]["side"] == len(TEXT.split())


def test_a_hidden_word_shows_what_the_model_saw(lab):
    token = ask(lab, "heads", marks=HIDDEN)["lines"]["tokens"][4]
    assert (token["label"], token["masked"], token["original"]) == ("[MASK]", True, "small")


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "all"},
        {"second": 3},
        {"second": "x" * 2000},
        {"text": "  "},
        {"text": None},
        {"model": "nothing"},
    ],
)
def test_questions_that_cannot_be_read(lab, values):
    with pytest.raises(InputError):
        ask(lab, **{"mode": "heads", **values})


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("heads", {"layer": True}),
        ("heads", {"layer": "1"}),
        ("heads", {"layer": 0.5}),
        ("combined", {"picks": 3}),
        ("combined", {"how": "sum"}),
        ("combined", {"part": "up", "second": SECOND}),
        ("rollout", {"upto": "x"}),
        ("compare", {"what": "all"}),
        ("compare", {"other": "nothing"}),
    ],
)
def test_what_a_mode_cannot_read_is_said_beside_the_grid(lab, mode, values):
    found = ask(lab, mode, **values)
    assert found["said"]
    assert "first" not in found
    assert "grid" in found


def test_a_second_model_that_is_gone_leaves_others_to_choose(lab):
    found = ask(lab, "compare", other="run/gone")
    assert "no model “run/gone”" in found["said"]
    assert ("t-albert", "t-albert") in found["other"]["choices"]


def test_a_click_counts_for_the_mode_though_it_has_nothing_to_show(lab):
    found = ask(lab, "off", off="1.0 2.1")  # nothing is hidden
    assert found["chosen"] == {"cells": ["1.0", "2.1"], "own": ["1.0", "2.1"], "kind": "off"}
    assert ask(lab, "heads", layer="1")["chosen"] == {"cells": [], "kind": "one"}


# --- several heads, pairs -------------------------------------------------------------------------


def test_combined_heads_are_those_chosen(lab):
    found = ask(lab, "combined", picks="2.0 0.1 9.9 x", how="max")
    expected = attention_flow.combine(maps(lab), [(0, 1), (2, 0)], "max")
    np.testing.assert_allclose(numbers(found), expected, atol=1e-6)
    assert found["chosen"]["own"] == ["0.1", "2.0"]
    last = attention_flow.combine(maps(lab), [(2, 0), (2, 1)], "mean")
    np.testing.assert_allclose(numbers(ask(lab, "combined")), last, atol=1e-6)
    assert ask(lab, "combined", picks="none")["said"] == "Pick a head to begin."
    assert ask(lab, "combined", picks="2.0")["said"].startswith("Layer 3 · Head 1: ")
    # Of a larger model, or of a link: none of them is there.
    assert ask(lab, "combined", picks="9.9 x")["chosen"]["cells"] == ["2.0", "2.1"]
    assert len(ask(lab, "combined", picks="all")["chosen"]["cells"]) == 6


@pytest.mark.parametrize("model", ["t-bert", "t-xlnet"])
@pytest.mark.parametrize("part", ["ab", "ba", "within"])
def test_a_pair_is_read_as_a_pair_and_filtered(lab, part, model):
    found = ask(lab, "combined", model, picks="1.1", second=SECOND, part=part)
    weights = maps(lab, model=model, second=SECOND)[1, 1]
    _, encoding, _ = traced(lab, model, second=SECOND)
    sides = np.array(parts(encoding.special, encoding.offsets, paired=True), dtype=object)
    allowed = {
        "ab": np.outer(sides == 0, sides == 1),
        "ba": np.outer(sides == 1, sides == 0),
        "within": np.outer(sides == 0, sides == 0) | np.outer(sides == 1, sides == 1),
    }[part]
    np.testing.assert_allclose(numbers(found), np.where(allowed, weights, 0), atol=1e-6)
    carried = viz.percent(weights[allowed.astype(bool)].sum() / weights.sum())
    assert f"These links carry {carried} of the attention." in found["said"]
    assert "the attention is spread" not in found["said"]
    # What was filtered out did not go to the hidden tokens.
    hidden = ask(lab, "combined", model, picks="1.1", second=SECOND, part=part, hide=True)
    assert "hidden tokens" not in hidden["said"]
    # Without a second sentence there are no sides, whatever a link says.
    alone = ask(lab, "combined", model, picks="1.1", part=part)
    np.testing.assert_allclose(numbers(alone), maps(lab, model=model)[1, 1], atol=1e-6)
    assert (found["grid"]["paired"], alone["grid"]["paired"]) == (True, False)


def test_a_special_piece_that_is_typed_does_not_begin_the_second_sentence(lab):
    model, second = lab.session.model("t-bert"), "birds sing"
    first = read_scene({"text": "red [SEP] fox sees", "model": "t-bert", "second": second})
    look = read(model, first)
    shown = describe(look.tokens, look.seen, first)
    assert [(each["label"], each["part"]) for each in shown] == [
        ("[CLS]", None), ("red", 0), ("[SEP]", None), ("fox", 0), ("sees", 0), ("[SEP]", None),
        ("birds", 1), ("sing", 1), ("[SEP]", None),
    ]  # fmt: skip
    marks = [{"position": 4}]
    assert "said" in ask(lab, "heads", text=first.text, second=second, marks=marks)


@pytest.mark.parametrize("place", [0, 1])
def test_no_word_of_the_second_sentence_is_hidden_for_one_that_is_cut_off(lab, place):
    second = "birds sing " * 80
    longest = lab.session.model("t-bert").longest
    pair = read_scene({"text": "red fox " * longest, "model": "t-bert", "second": second})
    special = read(lab.session.model("t-bert"), pair).encoding.special
    marks = [{"position": special.index(True, 1) + place}]  # [SEP], and what follows it
    with pytest.raises(InputError, match="t-bert reads only the first"):
        ask(lab, "heads", text=pair.text, second=second, marks=marks)
    assert "said" in ask(lab, "heads", text=pair.text, marks=marks)


def test_the_sides_of_a_pair_do_not_need_segments():
    special = [True, False, True, True, False, False, True]
    offsets = [(0, 0) if each else (n, n + 1) for n, each in enumerate(special)]
    assert parts(special, offsets, paired=True) == [None, 0, None, None, 1, 1, None]
    assert parts(special, offsets, paired=False) == [None, 0, None, None, 0, 0, None]
    tokens = [{"part": 0}, {"part": 1}]
    np.testing.assert_array_equal(filtered(np.ones((2, 2)), tokens, "ba"), [[0, 0], [1, 0]])


def test_the_segments_of_a_pair_are_told(lab):
    told = ask(lab, "heads", second=SECOND)["segments"]
    assert told.endswith(f"0 \N{EN DASH} [CLS] {TEXT} [SEP]; 1 \N{EN DASH} {SECOND} [SEP]")
    assert "adds an embedding" in told
    assert "in every layer" in ask(lab, "heads", "t-xlnet", second=SECOND)["segments"]
    assert "segments" not in ask(lab, "heads", second=" ")
    assert isinstance(read_scene({"text": TEXT, "model": "m", "second": SECOND}), Scene)


# --- rollout, norms -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["t-bert", "t-albert", "t-xlnet"])
def test_rollout_and_flow(lab, model):
    found = ask(lab, "rollout", model)
    loaded, encoding, trace = traced(lab, model)
    weights = trace.stack("probabilities")[:, 0].numpy()
    position = encoding.ids.index(loaded.tokenizer.cls_id)
    attention_bars, rollout_bars, flow_marks = (
        np.array(each.y) / 100 for each in found["first"].data
    )
    np.testing.assert_allclose(attention_bars, weights[-1].mean(0)[position], atol=1e-6)
    rolled = attention_flow.rollout(weights)[:, position]
    np.testing.assert_allclose(rollout_bars, rolled[-1], atol=1e-6)
    np.testing.assert_allclose(flow_marks, attention_flow.flow(weights, position), atol=1e-6)
    np.testing.assert_allclose(cells(found["second_map"]), rolled, atol=1e-6)
    two = ask(lab, "rollout", model, token=2, upto=2)
    expected = attention_flow.rollout(weights[:2])[-1, 2]
    np.testing.assert_allclose(np.array(two["first"].data[1].y) / 100, expected, atol=1e-6)
    assert (two["token"]["value"], two["upto"]["value"]) == (2, 2)


def test_the_flow_has_an_axis_of_its_own_and_it_is_said(lab):
    found = ask(lab, "rollout")
    low, high = found["first"].layout.yaxis3.range
    shares = np.array(found["first"].data[2].y)
    assert 0 < low < shares.min() < shares.max() < high
    # What differs fills most of the room.
    assert shares.max() - shares.min() > 0.7 * (high - low) or high - low < 2
    assert viz.percent(shares.min() / 100) in found["note"]


def test_a_longer_text_has_rollout_and_no_flow(lab):
    found = ask(lab, "rollout", text=f"{WORDS} and {TEXT}")
    assert len(found["first"].data) == 2
    assert found["first"].layout.meta["alt"].startswith("Two ways to ask")
    assert "up to 16 tokens; this text has" in found["note"]
    for values in ({"token": 99}, {"upto": 0}, {"upto": 4}):
        assert ask(lab, "rollout", **values)["said"] == ask(lab, "rollout")["said"]


def test_the_token_that_holds_the_text_is_none_that_was_typed():
    names = [("[CLS]", 4, 9), ("fox", 10, 13), ("[SEP]", 0, 0), ("[CLS]", 0, 0)]  # as in XLNet
    tokens = [
        SimpleNamespace(position=n, piece=piece, start=start, end=end)
        for n, (piece, start, end) in enumerate(names)
    ]
    assert whole_of(SimpleNamespace(tokens=tokens)) == 3


def test_a_small_loss_is_not_none():
    said = [nats(change) for change in (0.0, 0.0049, -0.0003, 0.25, -1.5)]
    assert said == ["0.00", "under 0.01", "under 0.01", "0.25", "\u22121.50"]


@pytest.mark.parametrize("head", [1, -1])
@pytest.mark.parametrize("model", ["t-bert", "t-albert"])
def test_norms(lab, head, model):
    found = ask(lab, "norms", model, layer=2, head=head)
    loaded, _, trace = traced(lab, model, ("probabilities", "v"))
    block = loaded.encoder.blocks[loaded.config.schedule[2]]
    moved = attention_flow.moved_values(
        trace["v", 2][0].numpy(), block.attention.output.weight.detach().numpy()
    )
    weights = trace["probabilities", 2][0].numpy()
    if head < 0:
        expected = attention_flow.layer_norms(weights, moved)
    else:
        expected = attention_flow.head_norms(weights, moved)[head]
    np.testing.assert_allclose(cells(found["second_map"]), expected, rtol=1e-3, atol=1e-5)


def test_what_special_tokens_give_is_said_as_it_is():
    special, half = [True, False], np.array([[0.5, 0.5], [0.5, 0.5]])
    less = {"weights": half, "norms": np.array([[1.0, 9.0], [1.0, 9.0]])}
    more = {"weights": half, "norms": np.array([[9.0, 1.0], [9.0, 1.0]])}
    no_break = "\N{NO-BREAK SPACE}"
    said = say_shares(less, special).replace(no_break, " ")
    assert said.startswith("The special tokens get 50 % of the attention, but give only 10 %")
    said = say_shares(more, special).replace(no_break, " ")
    assert said.startswith("The special tokens get 50 % of the attention and give 90 % of all")


# --- heads switched off, q·k, two models ----------------------------------------------------------


def swept(lab, model="t-bert", **values):
    """Ask until a sweep is complete; the answers."""
    answers = [ask(lab, "off", model, sweep=True, **values)]
    while answers[-1].get("more"):
        off = answers[-1].get("off", {}).get("value", values.get("off", ""))
        answers.append(ask(lab, "off", model, sweep=True, **{**values, "off": off}))
    return answers


@pytest.mark.parametrize("model", ["t-bert", "t-albert", "t-deberta", "t-xlnet"])
def test_heads_off_and_the_prediction(lab, model):
    loaded, encoding, _ = traced(lab, model)
    position = encoding.pieces.index(next(p for p in encoding.pieces if p.endswith("small")))
    hidden = seen_with(encoding, {position: loaded.tokenizer.mask_id})
    marks = [{"position": position, "case": "mask"}]
    found = ask(lab, "off", model, off="1.0", marks=marks)
    piece = encoding.ids[position]
    rows = ablation.spread(loaded.config, [(1, 0)])
    both = ablation.without_heads(loaded, hidden, position, [(), rows]).exp()
    word = loaded.tokenizer.display(piece)
    shown = {row[0]: row[1:] for row in found["first"].layout.meta["rows"]}
    assert shown[word] == pytest.approx([float(row[piece]) for row in both], abs=1e-5)
    assert len(found["chosen"]["cells"]) == (3 if model == "t-albert" else 1)
    assert found["shared"]["visible"] is (model == "t-albert")
    damage = cells(swept(lab, model, marks=marks)[-1]["second_map"])
    sweep = ablation.damage(loaded, hidden, position, piece).numpy()
    np.testing.assert_allclose(damage, -sweep, atol=1e-5)
    if model == "t-albert":
        assert "3 heads of the stack are off at once" in found["switched"]
        alone = ask(lab, "off", model, off="1.0", marks=marks, shared=False)
        assert alone["chosen"]["cells"] == ["1.0"]


def test_a_sweep_shows_one_layer_more_each_time_and_knows_the_worst(lab):
    text = "red dog sees small bird"
    answers = swept(lab, text=text, marks=HIDDEN)
    filled = [int((~np.isnan(cells(each["second_map"]))).any(1).sum()) for each in answers]
    assert filled == [1, 2, 3]
    assert answers[0]["swept"] == "layer 1 of 3"
    assert len(swept(lab, text=text, marks=HIDDEN)) == 1  # all of it is kept
    damage = cells(answers[-1]["second_map"])
    layer, head = np.unravel_index(damage.argmax(), damage.shape)
    worst = ask(lab, "off", text=text, marks=HIDDEN, off="worst")
    assert worst["off"]["value"] == f"{layer}.{head}"


def test_equal_questions_run_the_model_once(lab, monkeypatch):
    runs = []
    inside = ablation.without_heads
    monkeypatch.setattr(ablation, "without_heads", lambda *a: runs.append(1) or inside(*a))
    text = "red dog sees small fox"
    swept(lab, "t-albert", text=text, marks=HIDDEN)
    once = len(runs)
    assert once
    # The layers share their weights, so one layer is the answer of all.
    assert len(swept(lab, "t-albert", text=text, marks=HIDDEN)) == 1
    assert len(runs) == once


def test_another_model_of_the_same_name_answers_anew(lab, monkeypatch):
    values = {"layer": 1, "head": 0, "text": "small fox sees red dog"}
    before = cells(ask(lab, "norms", **values)["second_map"])
    another = new(tiny("bert-base", layers=3), seed=2, heads=("masked_token",))
    place, held = lab.session.folder("t-bert"), lab.session._installed._models
    monkeypatch.setitem(held, place, held[place]._replace(model=another))
    assert not np.allclose(cells(ask(lab, "norms", **values)["second_map"]), before)


def test_without_a_gap_or_a_predicting_head_it_says_so(lab):
    assert ask(lab, "off")["said"].startswith("No word is hidden")
    assert "judges tokens" in ask(lab, "off", "t-judge", marks=HIDDEN)["said"]
    gap = ask(lab, "off", text="red fox sees [MASK] dog")
    assert "(the model\N{RIGHT SINGLE QUOTATION MARK}s first choice)" in gap["said"]
    assert "rank 1" in gap["said"]


def test_a_share_too_small_for_its_digits_is_told_in_the_language_of_the_page():
    value, said = _cell(0.00001, "share")
    assert (value, said.key, said.values) == (0.00001, "under {0}", ("0.01\N{NO-BREAK SPACE}%",))
    assert _cell(-1.5, "score") == [-1.5, "\N{MINUS SIGN}1.50"]


@pytest.mark.parametrize("model", ["t-bert", "t-deberta", "t-xlnet"])
def test_products_add_up_to_the_score(lab, model):
    found = ask(lab, "products", model, layer=1, head=1, query=3)
    loaded, _, trace = traced(lab, model, ("q", "k", "scores", "probabilities"))
    products = (trace["q", 1][0, 1, 3] * trace["k", 1][0, 1]).numpy()
    strips, bars = found["first"].data
    np.testing.assert_allclose(np.array(strips.z), products, atol=1e-5)
    shares = trace["probabilities", 1][0, 1, 3].numpy()
    np.testing.assert_allclose(np.array(bars.x) / 100, shares, atol=1e-6)
    scale = float(loaded.encoder.blocks[1].attention.terms.scale)
    _, *names = found["steps"]["columns"]
    for key, (_, *row) in enumerate(found["steps"]["rows"]):
        values = dict(zip(names, (value for value, _ in row), strict=True))
        assert values.pop("share") == pytest.approx(float(shares[key]), abs=1e-6)
        score = values.pop("score")
        assert score == pytest.approx(float(trace["scores", 1][0, 1, 3, key]), abs=1e-5)
        assert values["scaled"] == pytest.approx(scale * values.pop("sum"), abs=1e-5)
        assert sum(values.values()) == pytest.approx(score, abs=1e-4)
    terms = {"t-bert": [], "t-deberta": ["c2p", "p2c"], "t-xlnet": ["bias", "position", "segment"]}
    assert sorted(names[2:-2]) == terms[model]


def test_rounding_is_no_bias_of_the_queries():
    loaded = new(tiny("modernbert-base", layers=3))
    with torch.inference_mode():
        for weights in loaded.encoder.blocks.parameters():
            weights *= 30
        ask = read_scene({"text": TEXT * 4, "model": "large"})
        found = [_products(loaded, ask, 1, 0, query)["names"] for query in range(8)]
    assert found == [["sum", "scaled", "score", "share"]] * 8


def test_the_query_begins_with_the_gap_or_the_clearest_link(lab):
    marked = ask(lab, "products", layer=0, head=0, marks=HIDDEN)
    assert marked["said"].startswith("Layer 1 · Head 1: “[MASK]” looks most at")
    clearest = ask(lab, "products", query=-3)
    layer, head = clearest["at"]
    link = viz.strongest(maps(lab)[layer, head], 1, keep=[1, 2, 3, 4, 5])[0]
    assert clearest["query"]["value"] in (link.source, -1)


def test_two_models_with_the_hidden_word_carried_over(lab):
    found = ask(lab, "compare", other="t-xlnet", what="rollout", marks=HIDDEN)
    words = [row[0] for row in found["second_map"].layout.meta["rows"]]
    masks = [position for position, word in enumerate(words) if word == "[MASK]"]
    assert len(masks) == 1
    expected = attention_flow.rollout(maps(lab, model="t-xlnet", masks=masks))[-1]
    np.testing.assert_allclose(cells(found["second_map"]), expected, atol=1e-6)
    heads = ask(lab, "compare", other="t-albert", what="head", layer=2, head=1, place="0.0")
    np.testing.assert_allclose(cells(heads["first"]), maps(lab)[2, 1], atol=1e-6)
    np.testing.assert_allclose(
        cells(heads["second_map"]), maps(lab, model="t-albert")[0, 0], atol=1e-6
    )
    assert heads["place"]["visible"] is True
