"""Predictions at the edges: padded piece tables, full inputs, a convolution at the end."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import core_models as cm
from core_models.prediction import (
    detect,
    embed,
    fill,
    fill_jointly,
    fill_many,
    forge,
    judge_pairs,
    lens,
    score,
    score_filling,
    score_words,
    unmask,
)
from core_models.prediction.targets import Target, TargetFunction
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import new, tiny

TEXT = "The river was very [MASK] in the morning and the [MASK] were quiet."


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> cm.Model:
    """Its head gives nearly everything to the rows that stand for no piece."""
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary + 8)
    made = cm.Model.new(config, tokenizer, generator=torch.Generator().manual_seed(3)).eval()
    with torch.no_grad():
        made.heads["masked_token"].decoder.bias[tokenizer.vocabulary :] = 9.0
    return made


def test_rows_without_a_piece_keep_their_share_and_are_never_offered(model: cm.Model) -> None:
    found = fill(model, TEXT, top_k=100).predictions
    batch = model.batch([TEXT])
    with torch.inference_mode():
        logs = model.heads["masked_token"](model.encoder(batch).hidden[0]).log_softmax(-1)
    for prediction in found:
        row = logs[prediction.position]
        best = row[: model.tokenizer.vocabulary].topk(100)
        assert [c.id for c in prediction.candidates] == best.indices.tolist()
        shares = [c.probability for c in prediction.candidates]
        assert shares == pytest.approx(best.values.exp().tolist(), rel=1e-4)
        assert sum(shares) < 0.5
        assert prediction.entropy == pytest.approx(float(-(row.exp() * row).sum()), rel=1e-4)
    assert score(model, ["The river"])[0].total < -10


def test_they_are_neither_put_into_gaps_nor_drawn(model: cm.Model) -> None:
    tokenizer = model.tokenizer
    barred = {*tokenizer.special_ids, tokenizer.mask_id, tokenizer.unknown_id}
    model = model.clone()
    with torch.no_grad():
        model.heads["masked_token"].decoder.bias[list(barred)] = 9.0
    for way in ("independent", "most_confident", "beam"):
        for filling in fill_jointly(model, TEXT, way=way):
            assert all(choice.id < tokenizer.vocabulary for choice in filling.choices)
            assert not barred & {choice.id for choice in filling.choices}
    drawn = forge(model, TEXT, [2, 3, 4], random=torch.Generator().manual_seed(1)).samples
    assert all(sample.id < tokenizer.vocabulary for sample in drawn)


def test_a_side_of_the_padding_that_files_name_changes_no_answer(
    model: cm.Model, tmp_path: Path
) -> None:
    model.save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"padding_side": "left"}))
    saved = cm.load(tmp_path)
    texts = ["The river.", "The river was very cold in the morning."]
    wanted = [embed(model, text, pooling="token").tolist() for text in texts]
    for found, known in zip(embed(saved, texts, pooling="token").tolist(), wanted, strict=True):
        assert found == pytest.approx(known, abs=1e-5)
    totals = [score(model, text)[0].total for text in texts]
    assert [each.total for each in score(saved, texts)] == pytest.approx(totals, abs=1e-3)
    judge = saved.with_head("classify", ["a", "b"], generator=torch.Generator().manual_seed(1))
    alone = torch.cat([judge(text).logits["classify"] for text in texts])
    assert torch.allclose(judge(texts).logits["classify"], alone, atol=1e-5)


def test_a_word_may_fill_the_model_to_its_last_place(tokenizer: Tokenizer) -> None:
    word = next(w for w in ("unbelievably", "encyclopedia", "xylophone") if tokenizer.pieces_of(w))
    pieces = len(tokenizer.pieces_of(word))
    assert pieces > 1
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary)
    length = len(tokenizer.encode(TEXT))
    for room, fits in ((length + pieces - 1, True), (length + pieces - 2, False)):
        tables = replace(config.embeddings, positions=room)
        made = cm.Model.new(replace(config, embeddings=tables), tokenizer).eval()
        (found,) = score_words(made, TEXT, [word], gap=[2])
        assert (found.note is None) == fits


def test_the_lens_ends_with_the_prediction_behind_a_convolution() -> None:
    model = new(tiny("deberta-v2-xlarge", layers=1, mask_decoder=None)).eval()
    text = "red fox [MASK] small dog"
    place = model.encode([text])[0].ids.index(model.tokenizer.mask_id)
    (wanted,) = fill(model, text, top_k=3).predictions
    last = lens(model, text, place, top_k=3).layers[-1].prediction
    assert [c.id for c in last.candidates] == [c.id for c in wanted.candidates]
    assert last.entropy == pytest.approx(wanted.entropy, rel=1e-5)


@pytest.mark.parametrize("name", ["electra-base", "deberta-v3-base"])
def test_a_judged_token_is_the_one_that_the_whole_pass_judges(name: str) -> None:
    """Version 3 looks at the first token beside it, so that must be computed, too."""
    model = new(tiny(name)).eval()
    text = "red fox sees small dog"
    encoding = model.encode([text])[0]
    with torch.inference_mode():
        logits = model.heads["replaced_token"](model.encoder(model.batch([text])).hidden)[0]
    for place in (1, 3):
        target = Target(kind="replaced", position=place, answer=1, scale="probability")
        found = TargetFunction(model, encoding, target).value
        assert found == pytest.approx(float(logits[place].sigmoid()), rel=1e-4)
    verdicts = detect(model, text, replaced={1: encoding.ids[1], 2: encoding.ids[1]}).verdicts
    assert [verdict.replaced for verdict in verdicts[1:3]] == [False, True]  # one is what it was


def test_a_broken_model_is_not_sure_of_its_answer(model: cm.Model) -> None:
    broken = model.clone()
    with torch.no_grad():
        broken.encoder.blocks[0].feed_forward.up.weight[0, 0] = math.nan
    prediction = fill(broken, TEXT).predictions[0]
    assert math.isnan(prediction.entropy)
    assert math.isnan(prediction.candidates[0].probability)


def test_an_array_of_positions_is_refused_in_words(model: cm.Model) -> None:

    with pytest.raises(cm.InputError, match="must be a whole number"):
        fill(model, TEXT, masks=numpy.array([1, 2]))


@pytest.mark.parametrize(
    ("ask", "given", "options"),
    [
        (forge, (TEXT, "1"), {"random": torch.Generator()}),
        (forge, (TEXT, 3), {"random": torch.Generator()}),
        (forge, (TEXT, ["1", 2]), {"random": torch.Generator()}),
        (forge, (TEXT, [1.0]), {"random": torch.Generator()}),
        (forge, (TEXT, [1]), {"random": torch.Generator(), "temperature": "1"}),
        (detect, (TEXT,), {"replaced": [1]}),
        (detect, (TEXT,), {"replaced": {"1": 5}}),
        (detect, (TEXT,), {"replaced": {1: 5.0}}),
        (score_filling, (TEXT, [5, 6]), {}),
        (score_filling, (TEXT, {5: "the"}), {}),
        (score_filling, (TEXT, {5: 6}), {"order": 5}),
        (score_filling, (TEXT, {5: 6}), {"order": ["5"]}),
        (score_filling, (TEXT, {5: 6}), {"hidden": 1}),
        (score_filling, (7, {5: 6}), {}),
        (fill_jointly, (TEXT,), {"masks": "12"}),
        (score_words, (TEXT, [5]), {"gap": [5]}),
        (score_words, (TEXT, ["cold"]), {"gap": "5"}),
        (score_words, (TEXT, ["cold"]), {"gap": [5.0]}),
        (unmask, (TEXT,), {"masks": "12"}),
        (unmask, (TEXT,), {"masks": 3}),
        (unmask, (TEXT,), {"masks": [3.0]}),
        (unmask, (TEXT,), {"temperature": "0"}),
        (unmask, (TEXT,), {"remask": None}),
        (unmask, (None,), {}),
        (fill, (TEXT,), {"watch": 5}),
        (fill, (TEXT,), {"replaced": [5]}),
        (lens, (TEXT, 5), {"masks": 3}),
        (score, (5,), {}),
        (score, (TEXT,), {"batch_size": 2.0}),
        (embed, ([("a", "b", "c")],), {}),
    ],
)
def test_values_of_another_type_are_refused_in_words(
    model: cm.Model, ask: Any, given: Any, options: Any
) -> None:
    judge = new(tiny("electra-small")).eval() if ask is detect else model
    with pytest.raises(cm.InputError, match=r"list|number|holds|outside|piece|order|string|temper"):
        ask(judge, *given, **options)


@pytest.mark.parametrize("pairs", [None, True, "ab", [None], [("a",)], [("a", "b", "c")], ["ab"]])
def test_what_is_no_pair_is_refused(model: cm.Model, pairs: object) -> None:
    with pytest.raises(cm.InputError, match=r"pairs must be a list|must be two texts"):
        judge_pairs(model, pairs)  # type: ignore[arg-type]
    assert judge_pairs(model, [["a.", "b."]])[0].second == "b."  # type: ignore[list-item]


def test_requests_and_places_of_another_kind_are_refused(model: cm.Model) -> None:
    for requests in (None, [TEXT], TEXT):
        with pytest.raises(cm.InputError, match="requests must"):
            fill_many(model, requests)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="A position is"):
        lens(model, TEXT, numpy.array([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="not a single number"):
        fill(model, TEXT, masks=torch.tensor(3))  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="replaced must"):
        fill(model, TEXT, replaced=numpy.array([1, 2]))  # type: ignore[arg-type]
