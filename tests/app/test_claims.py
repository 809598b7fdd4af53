"""Claims: rules that can come out either way, and measured numbers against the core."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import core_models as cm
from app.claims import desk as claims
from app.claims.bench import Bench, answering, interleaved
from app.claims.card import ARTICLES, VERDICTS, near
from app.claims.desk import CLAIMS, measure
from app.labs.claims import answers
from app.labs.pairs import answers as pairs
from app.serving.locales import catalogue
from app.serving.session import Session
from core_models import InputError
from core_models.counting.counts import joint
from core_models.prediction import judge_pair
from core_models.prediction.meaning import is_chinese
from tests.app.language_keys import expression
from viz.svg import Wording

MODEL = "bert-mini"
MODELS = Path(__file__).resolve().parents[2] / "assets" / "models"
# For each card, numbers that give two verdicts; the first is not what is measured.
BOTH_WAYS = {
    "bert-always-mask": ({"asked": 15, "mask": 100}, "right", {"asked": 30, "mask": 80}, "wrong"),
    "bert-loss-where-replaced": ({"kept": 0.5}, "right", {"kept": 10}, "wrong"),
    "bert-half-embeddings": ({"base": 51}, "right", {"base": 22}, "wrong"),
    "bert-relative-positions": (
        {"terms_bert": 1, "moved_bert": 0},
        "right",
        {"terms_bert": 0, "moved_bert": 40},
        "wrong",
    ),
    "bert-two-passes": ({"both": 0}, "right", {"both": 90}, "wrong"),
    "bert-answer-from-cls": ({"others": 100}, "right", {"others": 0}, "wrong"),
    "nsp-order": ({"next": 90, "swapped": 20}, "right", {"next": 70, "swapped": 70}, "wrong"),
    "nsp-topic": ({"same": 50, "other": 45}, "wrong", {"same": 60, "other": 5}, "right"),
    "sop-order": ({"next": 60, "swapped": 55}, "wrong", {"next": 90, "swapped": 70}, "half"),
    "roberta-smaller-vocabulary": ({"ratio": 0.9}, "right", {"ratio": 1.6}, "wrong"),
    "roberta-double-vocabulary": ({"ratio": 1.95}, "right", {"ratio": 1.8}, "half"),
    "roberta-340": ({"roberta": 339}, "right", {"roberta": 348}, "half"),
    "roberta-never-unknown": (
        {"byte_bpe": 1, "wordpiece": 3},
        "wrong",
        {"byte_bpe": 0, "wordpiece": 0},
        "half",
    ),
    "roberta-chinese-character": ({"two": 95}, "right", {"two": 5}, "wrong"),
    "roberta-ten-copies": (
        {"roberta": 10, "copies": 10},
        "right",
        {"roberta": 40, "copies": 10},
        "wrong",
    ),
    "bert-four-masks": ({"each": 10}, "right", {"each": 4}, "wrong"),
    "dynamic-always-new": (
        {"long": 40, "middle": 40, "short": 40},
        "right",
        {"long": 39, "middle": 30, "short": 9},
        "wrong",
    ),
    "albert-faster": ({"faster": 8, "fewer": 9}, "right", {"faster": 1, "fewer": 9}, "wrong"),
    "albert-slower": ({"faster": 0.8, "noise": 1}, "right", {"faster": 0.8, "noise": 2}, "depends"),
    "albert-sixth": ({"ratio": 4}, "wrong", {"ratio": 5.85}, "right"),
    "albert-xxlarge-235": ({"xxlarge": 234}, "right", {"xxlarge": 222}, "wrong"),
    "albert-four-sizes": (
        {"base": 12, "large": 18, "xlarge": 60, "xxlarge": 220},
        "right",
        {"base": 12, "large": 18, "xlarge": 80, "xxlarge": 220},
        "wrong",
    ),
    "albert-first-layer": ({"step1": 100}, "right", {"step1": 25}, "wrong"),
    "sop-label": ({"ones": 100}, "right", {"ones": 0}, "wrong"),
    "ngram-three": (
        {"n1": 0, "n2": 0, "n3": 100},
        "right",
        {"n1": 30, "n2": 30, "n3": 40},
        "half",
    ),
    "spanbert-order": (
        {"masked_token": 9, "sentence_order": 9},
        "right",
        {"masked_token": 9, "sentence_order": 0},
        "wrong",
    ),
    "spanbert-geometric": (
        {"mean": 4.9, "bare": 5, "longest": 23},
        "right",
        {"mean": 3.8, "bare": 5, "longest": 10},
        "wrong",
    ),
    "spanbert-one-draw": ({"span": 30}, "wrong", {"span": 0}, "right"),
    "xlnet-shuffles": ({"input": 90, "cells": 0}, "right", {"input": 0, "cells": 50}, "wrong"),
    "xlnet-one-mask": ({"differ": 0}, "right", {"differ": 100}, "wrong"),
    "xlnet-last-sixth": ({"tail": 100}, "right", {"tail": 17}, "wrong"),
    "xlnet-cannot-peek": (
        {"query": 20, "content": 20},
        "wrong",
        {"query": 0, "content": 9},
        "right",
    ),
    "xlnet-longer": ({"rows": 512, "read": 512}, "wrong", {"rows": 0, "read": 600}, "right"),
    "electra-all-tokens": ({"discriminator": 15}, "wrong", {"discriminator": 100}, "right"),
    "electra-adversarial": (
        {"discriminator": 3, "generator": 1},
        "right",
        {"discriminator": 0, "generator": 1},
        "wrong",
    ),
    "electra-all-samples-fake": ({"hits_fake": 100}, "right", {"hits_fake": 0}, "wrong"),
    "electra-twice": (
        {"small": 28, "base": 219, "large": 655},
        "right",
        {"small": 23, "base": 119, "large": 355},
        "wrong",
    ),
    "electra-fifteen": ({"chosen": 15}, "right", {"chosen": 10}, "wrong"),
    "deberta-four-terms": ({"terms": 4, "rest": 0}, "right", {"terms": 3, "rest": 0}, "wrong"),
    "deberta-two-softmaxes": ({"one": 50, "two": 0}, "right", {"one": 0, "two": 70}, "wrong"),
    "deberta-no-absolute": (
        {"encoder": 0, "decoder": 0},
        "right",
        {"encoder": 5, "decoder": 5},
        "wrong",
    ),
    "deberta-deeper-decoder": ({"share": 200}, "right", {"share": 5}, "wrong"),
    "deberta-sentence-order": (
        {"segments": 2, "order": 1},
        "right",
        {"segments": 0, "order": 0},
        "wrong",
    ),
    "distilbert-forty": ({"fewer": 39.4}, "right", {"fewer": 50}, "wrong"),
    "mmbert-small-work": ({"ratio": 1.1}, "right", {"ratio": 2.6}, "wrong"),
    "modernbert-sees-64": ({"whole": 0}, "right", {"whole": 2}, "wrong"),
    "rotary-distance": ({"modern": 5, "bert": 40}, "wrong", {"modern": 0, "bert": 40}, "right"),
    "modernbert-no-biases": (
        {"encoder": 0, "scores": 0},
        "right",
        {"encoder": 0, "scores": 50368},
        "half",
    ),
    "eurobert-210": ({"file": 211}, "right", {"file": 310}, "wrong"),
    "groups-thrice": ({"ratio": 3}, "right", {"ratio": 1.4}, "wrong"),
    "deberta-v3-86": ({"all": 86, "rest": 50}, "right", {"all": 184, "rest": 85.5}, "half"),
}


@pytest.fixture(scope="module")
def session():
    session = Session(threads=1)
    yield session
    session.close()


def numbers(session, name: str, seed: int = 0) -> dict[str, float]:
    found = measure(CLAIMS[name], Bench(session, MODEL, seed))
    return {number.key: number.value for number in found.numbers}


# --- cards ----------------------------------------------------------------------------------------


def test_every_rule_comes_out_either_way():
    assert BOTH_WAYS.keys() == CLAIMS.keys()
    for name, (first, one, second, other) in BOTH_WAYS.items():
        judge = CLAIMS[name].rule.judge
        assert (judge(first), judge(second)) == (one, other), name
        assert one != other
        assert {one, other} <= set(VERDICTS)


def test_claims_are_complete():
    found = list(CLAIMS.values())
    assert len(found) >= 16
    assert {claim.family for claim in found} == set(claims.FAMILIES)
    for claim in found:
        assert all((claim.statement, claim.source, claim.how, claim.rule.text, claim.why))
        assert all(1 <= number <= ARTICLES for number in claim.articles)
        compile(claim.code, claim.name, "exec")
    assert len({claim.statement for claim in found}) == len(found)


def test_every_text_of_a_claim_is_chinese_too():
    """Exact keys; patterns stand for the values in the others."""
    known = catalogue("zh")
    for claim in CLAIMS.values():
        assert {claim.statement, claim.how, claim.why} <= set(known), claim.name


def test_each_card_measures_and_its_keys_fit_its_rule(session):
    fast = [
        c
        for c in CLAIMS.values()
        if c.head is None and "pass" not in c.how and "times" not in c.how
    ]
    for claim in [c for c in fast if not c.name.startswith("albert-s")]:
        found = measure(claim, Bench(session, MODEL, 3))
        assert found.verdict in VERDICTS
        keys = [number.key for number in found.numbers]
        assert len(set(keys)) == len(keys)
        assert all(isinstance(n.label, Wording) for n in found.numbers)


# --- numbers against the core ---------------------------------------------------------------------


def test_counts_are_those_of_the_core(session):
    assert numbers(session, "roberta-340")["roberta"] == cm.count("roberta-large").base / 1e6
    twice = numbers(session, "electra-twice")
    sizes = cm.size("electra-base-generator"), cm.size("electra-base-discriminator")
    assert twice["base"] == joint(*sizes).total / 1e6 == 119.386427
    bert = cm.count("bert-base-uncased")
    share = numbers(session, "bert-half-embeddings")["base"]
    assert share == pytest.approx(100 * 23_837_184 / bert.base)
    assert numbers(session, "distilbert-forty")["fewer"] == pytest.approx(39.385, abs=1e-3)
    assert numbers(session, "eurobert-210")["file"] == 310.266624
    assert numbers(session, "modernbert-no-biases")["encoder"] == 0
    groups = numbers(session, "groups-thrice")
    assert (groups["ratio"], groups["scores"]) == (pytest.approx(1.375), 1)
    assert numbers(session, "albert-sixth")["ratio"] == pytest.approx(5.849, abs=1e-3)


def test_drawn_numbers_follow_the_recipe_and_the_seed(session):
    first, again, other = (numbers(session, "bert-always-mask", seed) for seed in (0, 0, 1))
    assert first == again != other
    assert first["mask"] + first["random"] + first["kept"] == pytest.approx(100)
    assert first["mask"] == pytest.approx(80, abs=3)
    assert first["asked"] == pytest.approx(15, abs=0.3)
    lengths = numbers(session, "spanbert-geometric")
    assert lengths["mean"] == pytest.approx(3.797, abs=0.15)
    assert lengths["longest"] <= 10
    grams = numbers(session, "ngram-three")
    assert grams["n1"] == pytest.approx(600 / 11, abs=3)


def test_mechanisms_show_in_small_models(session):
    assert numbers(session, "albert-first-layer")["gap"] < 1e-3
    blind = numbers(session, "xlnet-cannot-peek")
    assert blind["query"] == 0 < blind["content"]
    terms = numbers(session, "deberta-four-terms")
    assert terms["terms"] == 3
    assert terms["rest"] < 1e-3
    moves = numbers(session, "deberta-no-absolute")
    assert moves["encoder"] < 0.01 < moves["decoder"]
    assert numbers(session, "electra-adversarial")["discriminator"] == 0
    assert numbers(session, "electra-all-tokens")["discriminator"] == 100
    window = numbers(session, "modernbert-sees-64")
    assert window["one"] == 0 < window["two"]
    assert window["whole"] > 0.1
    moves = numbers(session, "rotary-distance")
    assert moves["modern"] < 0.01 < 1 < moves["bert"]
    assert numbers(session, "sop-label") == pytest.approx(
        {"ones": 0, "zeros": 100, "pairs": 125}, abs=40
    )


def test_a_recipe_with_masks_only_makes_the_claim_right(session, monkeypatch):
    """The verdict follows the measured recipe, not a note."""
    size = cm.size("bert-base-uncased")
    masks = replace(size, masking=replace(size.masking, split=(1.0, 0.0, 0.0)))
    monkeypatch.setattr("app.labs.timeline.answers._recipe", lambda kind: masks.masking)
    found = measure(CLAIMS["bert-always-mask"], Bench(session, MODEL, 0))
    assert found.verdict == "right"


def test_pairs_are_asked_of_an_installed_model(session):
    found = measure(CLAIMS["nsp-topic"], Bench(session, MODEL, 0))
    assert found.model == MODEL
    assert {n.key for n in found.numbers} == {"next", "swapped", "same", "other"}
    assert all(0 <= n.value <= 100 for n in found.numbers)
    names = {info.name for info in session.models() if "sentence_order" in info.heads}
    if not names:
        with pytest.raises(InputError, match="sentence_order"):
            measure(CLAIMS["sop-order"], Bench(session, MODEL, 0))
        desk = claims.Desk(session)
        assert answers.lacks(desk, CLAIMS["sop-order"])
        assert "folder of models" in answers.card(CLAIMS["sop-order"], None, None, True)["note"][1]


def test_a_judge_with_both_heads_answers_by_its_first_alone():
    """`judge_pair` asks the first head, so it says nothing of the order."""
    (info,) = Judges().models()
    both = replace(info, name="both", heads=("next_sentence", "sentence_order"))
    one, two = Judges(), Judges()
    one.models, two.models = lambda: [both], lambda: [both, info]
    assert answering(one, "both", "next_sentence") == "both"
    assert answering(one, "both", "sentence_order") is None
    assert answering(two, "both", "sentence_order") == "judge"
    assert answers.lacks(SimpleNamespace(session=one), CLAIMS["sop-order"])
    assert not answers.lacks(SimpleNamespace(session=one), CLAIMS["nsp-order"])


def test_a_chinese_judge_is_asked_about_chinese_sentences(session, monkeypatch):
    asked = []

    def judge(model, *pair):
        asked.append(pair)
        return judge_pair(model, *pair)

    monkeypatch.setattr("app.claims.pairs.judge_pair", judge)
    bench = Bench(session, MODEL, 0)
    chinese = cm.load(MODELS / "bert-mini-chinese")
    monkeypatch.setattr(bench, "with_head", lambda head: chinese)
    found = {n.key: n.value for n in CLAIMS["nsp-topic"].measure(bench)}
    assert all(is_chinese(text) for pair in asked for text in pair)
    assert min(found.values()) < 100  # of English ones it says "next" to every pair


def test_where_a_chinese_model_looks_is_measured_on_chinese_sentences(session, monkeypatch):
    bench = Bench(session, MODEL, 0)
    chinese = cm.load(MODELS / "bert-mini-chinese")
    monkeypatch.setattr(bench, "with_head", lambda head: chinese)
    read = []
    batch = cm.Model.batch
    monkeypatch.setattr(
        cm.Model,
        "batch",
        lambda self, texts, **more: read.extend(texts) or batch(self, texts, **more),
    )
    found = {n.key: n.value for n in CLAIMS["bert-two-passes"].measure(bench)}
    assert len(read) == 3
    assert [text for text in read if not is_chinese(text)] == []
    assert found["both"] > 50


def test_the_code_of_each_card_runs(monkeypatch, capsys):
    monkeypatch.setattr("core_models.model.SHIPPED", MODELS)
    printed = {}
    for claim in CLAIMS.values():
        if claim.name not in ("albert-faster", "albert-slower"):  # they take their time
            exec(claim.code, {})
            printed[claim.name] = capsys.readouterr().out
    assert all(printed.values())
    assert "'replaced_token': tensor(" in printed["electra-all-tokens"]
    assert printed["electra-adversarial"].splitlines()[-1] == "True"


class Judges:
    """An installed judge of pairs with known figures."""

    def __init__(self, text_pairs=None):
        self.figures = text_pairs

    def models(self):
        info = cm.ModelInfo(
            name="judge",
            family="albert",
            title="judge",
            description="",
            heads=("sentence_order",),
            parameters=1,
            folder=None,
        )
        return [info]

    def card(self, name):
        return {"text_pairs": self.figures}


@pytest.mark.parametrize(
    ("shares", "figures", "told"),
    [
        # The same answer to all 96 pairs, or to nearly all of them.
        ((0, 0, 0, 0), None, "judge says “swapped” to 96 of 96 pairs"),
        ((100, 100, 100, 100), None, "judge says “in order” to 96 of 96 pairs"),
        ((0, 25 / 3, 25 / 6, 25 / 6), None, "judge says “swapped” to 92 of 96 pairs"),
        # Both answers, but no better than a coin on held-out texts.
        ((75, 50, 25, 25), {"accuracy": 0.52, "pairs": 500}, "52.0 % right, no better than"),
        ((90, 75, 10, 10), {"accuracy": 0.8, "pairs": 500}, ""),
        ((90, 75, 10, 10), None, ""),
    ],
)
def test_a_judge_that_cannot_judge_gives_no_verdict(monkeypatch, shares, figures, told):
    numbers = [
        claims.Number(key=key, label=key, value=value, unit="%")
        for key, value in zip(pairs.KINDS, shares, strict=True)
    ]
    claim = replace(CLAIMS["sop-order"], measure=lambda bench: numbers)
    found = measure(claim, Bench(Judges(figures)))
    assert told in found.doubt
    assert bool(found.doubt) is bool(told)
    assert found.verdict == ("none" if told else "half")
    assert [number.value for number in found.numbers] == list(shares)
    # With the answer in its own language, too.
    assert not told or any(expression(text).fullmatch(found.doubt) for text in catalogue("zh"))


def test_times_are_taken_in_turns():
    order = []
    tasks = {name: lambda name=name: order.append(name) for name in ("a", "b", "c")}
    found = interleaved(Bench(None), tasks, rounds=4)
    assert set(found) == set(tasks)
    assert all(value >= 0 for value in found.values())
    assert order == [*"abc", *"cba", *"abc", *"cba", *"abc"]
    with pytest.raises(InputError, match="longer than 0 seconds"):
        interleaved(Bench(None, seconds=0), tasks)


def test_near_takes_the_worst():
    rule = near({"a": 10, "b": 20}, right=1, half=5)
    assert [rule.judge({"a": 10, "b": b}) for b in (20, 20.5, 40)] == ["right", "half", "wrong"]
    assert "1 %" in rule.text
    assert "5 %" in rule.text
