"""The Budget lab without a browser: counts, claims, own sizes, times, bad input."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import core_models as cm
from app.labs.budget import answers as budget
from app.labs.budget import lab as tab
from app.labs.budget import published as budget_claims
from app.labs.budget import tables
from app.labs.budget import timing as budget_time
from app.labs.budget.known import MODEL
from core_models import InputError
from core_models.counting.counts import count
from core_models.training.settings import ASSETS
from viz.svg import Wording

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

HERE = SimpleNamespace(loadable=str)
"""Of a session: code loads an installed model by its name."""
BERT = {"vocabulary": 30522, "embedding": 768, "sharing": "none"}


def question(sizes=(), own=None, **more):
    values = {f"own.{name}": value for name, value in {**OWN, **(own or {})}.items()}
    asked = {"sizes": list(sizes), "length": 64, "shares": False, "costs": None}
    return {**asked, "own": own is not None, **values, **more}


def described(sizes=(), own=None, length=64):
    """Rows of what is chosen."""
    configs = tab.chosen_configs(question(sizes, own))
    return [budget.describe(name, config, length) for name, config in configs.items()]


def shown(**asked):
    """What the lab shows: the sentence, the bars, the costs, the narrow tables and the code."""
    return tab.show(HERE, question(**asked))


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
    row = described([name])[0]
    assert sum(row["parts"].values()) == cm.count(name).pretraining == row["pretraining"]


def test_parts_of_bert_base_are_those_of_the_closed_forms():
    parts = described(["bert-base-uncased"])[0]["parts"]
    assert parts["pieces"] == 30522 * 768
    assert parts["attention"] == 12 * (4 * 768**2 + 4 * 768)
    assert parts["feed_forward"] == 12 * (8 * 768**2 + 5 * 768)
    assert parts["norms"] == 25 * 2 * 768
    assert parts["projection"] == parts["relative"] == parts["other"] == 0


def test_relative_terms_hold_tables_and_what_every_block_has_for_them():
    # DeBERTa v1: a table of 1024 rows, and per block a key and a query projection of positions,
    # the first without bias. XLNet: per block r [D, D], three biases and two segment vectors.
    deberta = described(["deberta-base"])[0]["parts"]["relative"]
    assert deberta == 1024 * 768 + 12 * (2 * 768**2 + 768)
    xlnet = described(["xlnet-base-cased"])[0]["parts"]["relative"]
    assert xlnet == 12 * (768**2 + 5 * 768)


def test_sums_bytes_and_operations_are_those_of_the_core():
    row = described(["albert-base"])[0]
    found = cm.count("albert-base")
    assert (row["base"], row["pretraining"]) == (11_683_584, 11_813_810)
    assert row["bytes_float32"] == 4 * 11_813_810 == 2 * row["bytes_bfloat16"]
    assert row["per_token"] == found.flops(64).per_token


def test_narrow_tables_save_what_the_published_arithmetic_says():
    factors = described(["albert-base", "bert-base-uncased"])
    albert, bert = (row["factorisation"] for row in factors)
    assert (albert["full"], albert["narrow"]) == (23_040_000, 3_938_304)
    assert bert["full"] == bert["narrow"] == 23_440_896
    even = albert["break_even"]
    assert 30000 * even + even * 768 == pytest.approx(30000 * 768)


def test_twelve_times_fewer_parameters_cost_the_same_operations():
    sizes = ["bert-base-uncased", "albert-base"]
    bert, albert = described(sizes)
    assert bert["pretraining"] / albert["pretraining"] > 9
    assert albert["per_token"] == pytest.approx(bert["per_token"], rel=0.01)
    assert (
        "albert-base has 9.3 times fewer parameters than bert-base-uncased" in shown(sizes=sizes)[0]
    )
    assert "has 1.0108 times fewer" in shown(sizes=["bert-base-uncased", "bert-base-cased"])[0]


def test_measured_times_enter_the_sentence_and_nonsense_does_not():
    sizes = ["bert-base-uncased", "albert-base"]
    times = {"bert-base-uncased": {"fastest": 200}, "albert-base": {"fastest": 190}}
    known = tab.costs(described(sizes), 64, times)
    said, _, again, *_ = shown(sizes=sizes, costs=known)
    assert "95 % of the time" in said
    assert [row[-1] for row in again["rows"]] == [[200, "200 ms"], [190, "190 ms"]]
    # Of another length they are forgotten.
    assert "of the time" not in shown(sizes=sizes, costs=known, length=65)[0]
    for odd in ("x", {"times": 3, "length": 64}, {"times": {"albert-base": "x"}, "length": 64}):
        assert "time." not in shown(sizes=sizes, costs=odd)[0]


def test_a_small_share_is_not_none():
    sizes = ["bert-2x128", "eurobert-2.1b"]
    times = {name: {"fastest": spent} for name, spent in zip(sizes, (1.5, 2000), strict=True)}
    said, _, again, *_ = shown(sizes=sizes, costs=tab.costs(described(sizes), 64, times))
    assert "costs it 0.023 % of the operations and, measured here, 0.075 % of the time" in said
    assert [row[-1][1] for row in again["rows"]] == ["1.5 ms", "2,000 ms"]
    assert [budget.hundredths(share) for share in (0.953, 1.2, 0.04)] == ["95", "120", "4"]


def test_times_of_an_own_size_belong_to_its_values():
    times = {budget.OWN: {"fastest": 5.0}}
    own = {**OWN, "sharing": "all"}
    known = tab.costs(described(own=OWN), 64, times, own)
    assert shown(own=OWN, costs=known)[2]["times"] == times
    assert shown(own={**OWN, "inner": 1024}, costs=known)[2]["times"] == {}


def test_an_own_size_is_counted_like_the_config_it_means():
    own = described(own=OWN)[0]
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
    own = {**OWN, "sharing": "groups", "groups": 3}
    code = shown(sizes=["albert-base"], own=own)[4]
    scope: dict = {"print": lambda *values: printed.append(values)}
    printed: list = []
    exec(code, scope)
    assert [name for name, *_ in printed] == ["albert-base", budget.OWN]
    for (_, values, per_token), row in zip(printed, described(["albert-base"], own), strict=True):
        assert values["pretraining"] == row["pretraining"]
        assert per_token == row["per_token"]


def test_a_preset_has_published_sizes():
    assert "9.3 times fewer" in shown(sizes=tab.PRESETS["BERT against ALBERT"])[0]
    for names in tab.PRESETS.values():
        assert set(names) <= set(cm.sizes())


def test_an_own_size_begins_with_the_values_of_a_published_one():
    assert [*tab.start("albert-base").values()] == [30000, 128, 768, 12, 12, 3072, "all", 1]
    for name in cm.sizes():
        budget.read_own({"base": name, **tab.start(name)})


def test_the_bars_and_their_table_hold_every_part():
    _, chart, *_ = shown(sizes=["bert-base-uncased", "albert-base"])
    table = {row[0]: row[1:] for row in chart.layout.meta["rows"]}
    rows = described(["bert-base-uncased", "albert-base"])
    assert table["Feed-forward"] == [row["parts"]["feed_forward"] for row in rows]
    assert table["With pretraining heads"] == [row["pretraining"] for row in rows]
    by_name = {trace.name: list(trace.x) for trace in chart.data if trace.name}
    assert by_name["Pieces"] == table["Pieces"]
    shares = shown(sizes=["bert-base-uncased", "albert-base"], shares=True)[1]
    for n in range(2):
        assert sum(trace.x[n] for trace in shares.data) == pytest.approx(100)


# --- claims ---------------------------------------------------------------------------------------


def test_exact_figures_of_the_claims():
    exact = {row["claim"]: row["exact"] for row in budget_claims.table()}
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


def test_the_table_of_claims_says_how_far_off_they_are():
    rows = {row[0]: row for row in tables.published_figures()["rows"]}
    row = rows["Multilingual BERT has 110 million, too"]
    assert row[2:5] == [[110, "110"], [pytest.approx(177.85344), "177.9"], "38 % lower"]
    row = rows["Byte-level BPE gives RoBERTa a smaller vocabulary than BERT's 30,522"]
    assert [shown for _, shown in row[2:4]] == ["30,522 pieces", "50,265 pieces"]
    row = rows["V × 128 + 128 × 768 is 5.85 times smaller than V × 768"]
    assert [shown for _, shown in row[2:4]] == ["5.85 ×", "5.85 ×"]
    assert tables.difference(0.01) == "equal"
    assert tables.difference(3.14) == "3.1 % higher"


# --- times ----------------------------------------------------------------------------------------


def measured(**asked):
    """The last column of the costs after each answer."""
    return [[row[-1] for row in c["rows"]] for (c,) in tab.measure(question(**asked))]


def test_small_sizes_are_measured_one_after_the_other():
    first, second = measured(sizes=["bert-2x128", "bert-tiny"], length=8)
    assert first[1] is None
    assert second[0] == first[0]
    assert second[1][0] > 0
    assert second[1][1].endswith(" ms")


def test_what_does_not_fit_is_refused_with_a_reason(monkeypatch):
    assert "GiB" in measured(sizes=["deberta-v2-xlarge"])[0][0]
    assert "fewer tokens" in measured(sizes=["albert-xxlarge"], length=512)[0][0]
    monkeypatch.setattr(budget_time, "free_bytes", lambda: 1 << 20)
    assert "GiB" in measured(sizes=["bert-2x128"], length=8)[0][0]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"sizes": ["gpt-2"]}, "gpt-2"),
        ({"sizes": list(cm.sizes())[:9]}, "at most 8"),
        ({"length": 0}, "length"),
        ({"length": 513}, "512"),
        ({"length": None}, "length"),
        ({"own": {"heads": 7}}, "own.heads is 7; it must divide"),
        ({"own": {"vocabulary": 10**9}}, "300000"),
        ({"own": {"width": 768.5}}, "width"),
        ({"own": {"sharing": "some"}}, "sharing"),
        ({"own": {"sharing": "groups", "groups": 13}}, "groups"),
        ({"own": {"base": "none"}}, "none"),
    ],
)
def test_bad_questions_get_a_sentence(asked, word):
    with pytest.raises(InputError, match=word):
        shown(**asked)
    with pytest.raises(InputError, match="list"):
        tab.show(HERE, {**question(), "sizes": "bert"})


def test_nothing_chosen_is_no_error():
    said, chart, costs, narrow, code = shown()
    assert "Choose a model" in said
    assert (chart, costs, narrow, code) == (None, None, None, "")
    assert measured() == []


# --- installed models beside published sizes ------------------------------------------------------


def beside(name="bert-base-uncased", **more):
    """A published size, and an installed model of that name with other values."""
    found = cm.inspect(ASSETS / "models" / "bert-mini")
    return shown(sizes=[name, MODEL + name], known={MODEL + name: found}, **more)


def test_an_installed_model_stands_beside_the_published_size_of_its_name():
    said, chart, costs, *_, code = beside()
    names = ["bert-base-uncased", "bert-base-uncased (installed)"]
    assert list(chart.data[0].y) == names
    assert [row[0] for row in costs["rows"]] == names
    assert f"{names[1]} has 20.5 times fewer parameters than {names[0]}" in said
    assert "cm.load('bert-base-uncased').config" in code


def test_the_sentence_behind_a_count_and_reasons_are_translated(monkeypatch):
    assert isinstance(beside()[0].values[-1], Wording)
    said = shown(sizes=["bert-base-uncased"], own=OWN)[0]
    assert [name for name in said.values if isinstance(name, Wording)] == ["own size"]
    same = shown(sizes=["bert-base-uncased", "bert-base-uncased"], own={**OWN, **BERT})[0]
    assert isinstance(same, Wording)
    table = tab.costs(described(["bert-tiny"]), 64, {"bert-tiny": {"error": "It is too large."}})
    assert table["messages"] == [len(table["columns"]) - 1]


@pytest.mark.parametrize(
    ("size", "said"),
    [(1_073_700_000, "1.00 GiB"), (1 << 30, "1.00 GiB"), (1_072_000_000, "1022 MiB")],
)
def test_bytes_go_over_to_the_next_unit_where_they_round_to_it(size, said):
    assert budget.mebibytes(size) == said
