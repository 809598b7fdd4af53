"""The Budget tab without a browser: counts, claims, own sizes, times, files, bad input."""

import asyncio
import csv
import io
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import core_models as cm
from app.labs.budget import answers as budget
from app.labs.budget import lab as tab
from app.labs.budget import published as budget_claims
from app.labs.budget import timing as budget_time
from app.parts.views import answered
from core_models.counts import count

OWN = {
    "base": "bert-base-uncased",
    "vocabulary": 30000,
    "embedding": 128,
    "width": 768,
    "layers": 12,
    "heads": 12,
    "inner": 3072,
    "sharing": "all",
    "groups": 1,
}


def ask(answer=tab.show, **question):
    return asyncio.run(answered(answer, {"rev": 7, "length": 64, "sizes": [], **question}))


@pytest.mark.parametrize(
    "name",
    [
        "bert-base-uncased",
        "albert-xlarge",
        "electra-small-discriminator",
        "electra-base-generator",
        "xlnet-base-cased",
        "deberta-base",
        "deberta-v2-xlarge",
        "deberta-v3-base",
        "spanbert-base-cased",
    ],
)
def test_the_parts_add_up_to_the_model_with_its_heads(name):
    row = ask(sizes=[name])["rows"][0]
    assert sum(row["parts"].values()) == cm.count(name).pretraining == row["pretraining"]


def test_parts_of_bert_base_are_those_of_the_closed_forms():
    parts = ask(sizes=["bert-base-uncased"])["rows"][0]["parts"]
    assert parts["pieces"] == 30522 * 768
    assert parts["attention"] == 12 * (4 * 768**2 + 4 * 768)
    assert parts["feed_forward"] == 12 * (8 * 768**2 + 5 * 768)
    assert parts["norms"] == 25 * 2 * 768
    assert parts["projection"] == parts["relative"] == parts["other"] == 0


def test_relative_terms_hold_tables_and_what_every_block_has_for_them():
    # DeBERTa v1: a table of 1024 rows, and per block a key and a query projection of positions,
    # the first without bias. XLNet: per block r [D, D], three biases and two segment vectors.
    deberta = ask(sizes=["deberta-base"])["rows"][0]["parts"]["relative"]
    assert deberta == 1024 * 768 + 12 * (2 * 768**2 + 768)
    xlnet = ask(sizes=["xlnet-base-cased"])["rows"][0]["parts"]["relative"]
    assert xlnet == 12 * (768**2 + 5 * 768)


def test_sums_bytes_and_operations_are_those_of_the_core():
    row = ask(sizes=["albert-base"], length=64)["rows"][0]
    found = cm.count("albert-base")
    assert (row["base"], row["pretraining"]) == (11_683_584, 11_813_810)
    assert row["bytes_float32"] == 4 * 11_813_810 == 2 * row["bytes_bfloat16"]
    assert row["per_token"] == found.flops(64).per_token


def test_narrow_tables_save_what_the_published_arithmetic_says():
    factors = ask(sizes=["albert-base", "bert-base-uncased"])["rows"]
    albert, bert = (row["factorisation"] for row in factors)
    assert (albert["full"], albert["narrow"], albert["bias"]) == (23_040_000, 3_938_304, 768)
    assert albert["ratio"] == pytest.approx(5.850, abs=5e-4)
    assert bert["full"] == bert["narrow"] == 23_440_896
    even = albert["break_even"]
    assert 30000 * even + even * 768 == pytest.approx(30000 * 768)


def test_twelve_times_fewer_parameters_cost_the_same_operations():
    answer = ask(sizes=["bert-base-uncased", "albert-base"])
    bert, albert = answer["rows"]
    assert bert["pretraining"] / albert["pretraining"] > 9
    assert albert["per_token"] == pytest.approx(bert["per_token"], rel=0.01)
    assert "albert-base has 9.3 times fewer parameters than bert-base-uncased" in answer["summary"]


def test_measured_times_enter_the_sentence_and_nonsense_does_not():
    sizes = ["bert-base-uncased", "albert-base"]
    times = {"bert-base-uncased": 200, "albert-base": 190}
    assert "95\N{NO-BREAK SPACE}% of the time" in ask(sizes=sizes, times=times)["summary"]
    assert "time." not in ask(sizes=sizes, times={"albert-base": "x", "bert": -1})["summary"]


def test_an_own_size_is_counted_like_the_config_it_means():
    own = ask(own=OWN)["rows"][0]
    base = cm.size("bert-base-uncased")
    same = replace(
        base,
        embeddings=replace(base.embeddings, vocabulary=30000, width=128),
        schedule=(0,) * 12,
    )
    assert own["pretraining"] == count(same).pretraining
    assert own["name"] == budget.OWN
    assert (own["blocks"], own["layers"]) == (1, 12)


@pytest.mark.parametrize(
    ("layers", "groups", "expected"),
    [(4, 1, (0, 0, 0, 0)), (4, 2, (0, 0, 1, 1)), (4, 4, (0, 1, 2, 3)), (5, 2, (0, 0, 0, 1, 1))],
)
def test_neighbouring_layers_share_a_block(layers, groups, expected):
    assert budget.schedule(layers, groups) == expected


def test_the_code_of_the_page_gives_its_numbers():
    answer = ask(sizes=["albert-base"], own={**OWN, "sharing": "groups", "groups": 3})
    scope: dict = {"print": lambda *values: printed.append(values)}
    printed: list = []
    exec(answer["code"], scope)
    assert [name for name, *_ in printed] == ["albert-base", budget.OWN]
    for (_, values, per_token), row in zip(printed, answer["rows"], strict=True):
        assert values["pretraining"] == row["pretraining"]
        assert per_token == row["per_token"]


def test_every_published_size_is_offered_once_with_its_values():
    offered = [size for family in ask(whole=True)["catalogue"] for size in family["sizes"]]
    assert sorted(size["name"] for size in offered) == sorted(cm.sizes())
    albert = next(size for size in offered if size["name"] == "albert-base")
    assert (albert["sharing"], albert["embedding"], albert["layers"]) == ("all", 128, 12)


# --- claims ---------------------------------------------------------------------------------------


def test_exact_figures_of_the_claims():
    exact = {row["claim"]: row["exact"] for row in ask(tab.claims)["claims"]}
    expected = {
        "BERT base has 110 million parameters": 109.48224,
        "Multilingual BERT has 110 million, too": 177.85344,
        "ALBERT xxlarge has 235 million (233 in the text)": 222.595584,
        "ELECTRA base has 220 million when its two networks are added": 119.386427,
        "ELECTRA large has 660 million when its two networks are added": 354.655291,
        "DeBERTa v2 xlarge has a backbone of 710 million": 687.831552,
        "DeBERTa v3 base has a backbone of 86 million": 85.450752,
        "RBT3 has 38 million": 38.4768,
    }
    for claim, value in expected.items():
        assert exact[claim] == pytest.approx(value, abs=1e-9)
    assert exact["The embeddings are more than half of BERT base"] == pytest.approx(21.77, abs=0.01)


def test_every_claim_has_a_source_and_a_reason():
    for claim in budget_claims.CLAIMS:
        assert claim.source
        assert claim.reason.endswith(".")
        assert claim.counts


def test_a_claim_said_to_agree_does():
    agreeing = [row for row in budget_claims.table() if row["reason"] in ("Agrees.", "Rounded.")]
    assert len(agreeing) >= 2
    assert all(abs(row["difference"]) < 0.5 for row in agreeing)


# --- times ----------------------------------------------------------------------------------------


def test_a_small_size_is_measured():
    answer = ask(tab.measure, sizes=["bert-2x128"], length=8)
    assert answer["error"] is None
    assert answer["name"] == "bert-2x128"
    assert 0 < answer["fastest"] <= answer["milliseconds"] <= answer["slowest"]
    assert answer["runs"] >= 5


def test_what_does_not_fit_is_refused_with_a_reason(monkeypatch):
    assert "GiB" in ask(tab.measure, sizes=["deberta-v2-xlarge"])["error"]
    assert "fewer tokens" in ask(tab.measure, sizes=["albert-xxlarge"], length=512)["error"]
    monkeypatch.setattr(budget_time, "free_bytes", lambda: 1 << 20)
    assert "GiB" in ask(tab.measure, sizes=["bert-2x128"], length=8)["error"]


# --- files ----------------------------------------------------------------------------------------


def test_the_csv_holds_every_number_of_the_page():
    sizes = ["bert-base-uncased", "albert-base"]
    file = ask(tab.export, sizes=sizes, what="csv")
    rows = list(csv.DictReader(io.StringIO(file["text"])))
    assert [row["name"] for row in rows] == sizes
    assert int(rows[1]["pretraining"]) == 11_813_810
    assert int(rows[0]["feed_forward"]) == 56_669_184


def test_the_svg_opens_and_names_every_model():
    file = ask(tab.export, sizes=["bert-base-uncased", "albert-base"], what="svg")
    root = ElementTree.fromstring(file["text"])
    text = "".join(root.itertext())
    assert "albert-base" in text
    assert "Feed-forward: 4,722,432" in text


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ({"sizes": ["gpt-2"]}, "gpt-2"),
        ({"sizes": "bert"}, "list"),
        ({"sizes": list(cm.sizes())[:9]}, "at most 8"),
        ({"length": 0}, "length"),
        ({"length": 513}, "512"),
        ({"length": None}, "length"),
        ({"own": 3}, "object"),
        ({"own": {**OWN, "heads": 7}}, "7 heads do not divide"),
        ({"own": {**OWN, "vocabulary": 10**9}}, "300000"),
        ({"own": {**OWN, "width": 768.5}}, "width"),
        ({"own": {**OWN, "sharing": "some"}}, "sharing"),
        ({"own": {**OWN, "sharing": "groups", "groups": 13}}, "groups"),
        ({"own": {**OWN, "base": "none"}}, "none"),
    ],
)
def test_bad_questions_get_a_sentence_and_their_revision(question, word):
    answer = ask(**question)
    assert answer["rev"] == 7
    assert word in answer["error"]


def test_nothing_chosen_is_no_error_but_no_file_either():
    assert ask()["rows"] == []
    assert "No size" in ask(tab.export, what="csv")["error"]
    assert "No size" in ask(tab.measure)["error"]
    assert "svg or csv" in ask(tab.export, sizes=["albert-base"], what="exe")["error"]
