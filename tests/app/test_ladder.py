"""The Ladder lab: what it shows of the measured rungs, and what it says where none are measured."""

import json

import pytest

from app.labs.ladder import answers as ladder
from app.labs.ladder.lab import NAMES, show
from core_models import InputError
from core_models.ladder import rungs


def row(accuracy: float, **other: float) -> dict[str, float]:
    common = {"perplexity": 300.0, "minimal_pairs": 0.5, "tokens_per_second": 4000, "tokens": 9e5}
    return {**common, "accuracy": accuracy, **other}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A ladder of which three rungs are measured, the first one twice."""
    found = {
        "minutes": 4.0,
        "rungs": {
            "bert": row(0.10),
            "no-pairs": row(0.15, perplexity=305.0, tokens_per_second=4500),
            "hidden-30": row(0.145),
        },
        "again": {"bert": row(0.12, perplexity=320.0)},
    }
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(found))
    monkeypatch.setattr(ladder, "MEASURED", path)


def told(rung: str, measure: str = "right") -> str:
    return show({"rung": rung, "measure": measure})[3]


def test_a_gain_is_held_against_chance(measured):
    assert told("no-pairs") == (
        "Pieces right, %: from 10.0 to 15.0. "
        "It helped here, by more than two seeds of one rung differ (2.0)."
    )
    assert "no more than chance" in told("hidden-30")
    assert "no more than chance" in told("no-pairs", "perplexity")
    assert told("no-pairs", "speed") == "Tokens per second: from 4,000 to 4,500."
    assert told("bert") == ""


def test_what_is_not_measured_is_said(measured):
    chart, _, _, said, _, _, everything, _ = show({"rung": "rotary", "measure": "right"})
    assert said == "This rung is not measured yet."
    rows = chart.layout.meta["rows"]
    assert rows[0] == ["0. BERT", pytest.approx(10), pytest.approx(12)]
    assert rows[6][1] == "not measured"
    assert len(everything["rows"]) == len(rungs()) + 1


def test_a_rung_is_explained_by_the_difference_of_configs(measured):
    title, why, changes = (show({"rung": "geglu", "measure": "pairs"})[n] for n in (1, 2, 4))
    assert title == "5. Gated feed-forward (GeGLU)"
    assert why.endswith("(arXiv 2002.05202)")
    assert [line[0] for line in changes["rows"]] == ["feed_forward.width", "feed_forward.gated"]
    rate = show({"rung": "schedule", "measure": "right"})[4]["rows"]
    assert [line[0] for line in rate] == ["learning rate"]
    assert show({"rung": "bert", "measure": "right"})[4] is None


@pytest.mark.parametrize("wrong", [{"rung": "x"}, {"rung": None}, {"measure": []}])
def test_what_a_link_may_not_say_is_refused(wrong):
    with pytest.raises(InputError, match="must be one of"):
        show({"rung": NAMES[0], "measure": "right", **wrong})


def test_the_shipped_file_is_read():
    found = ladder.reached()
    assert set(found["rungs"]) | set(found["again"]) <= set(NAMES)
    for row in (*found["rungs"].values(), *found["again"].values()):
        assert 0 < row["accuracy"] < 1
        assert row["minutes"] == found["minutes"]


def test_what_the_document_says_of_the_shipped_figures_holds():
    found = ladder.reached()
    right = {rung.name: ladder.value(found, rung, "right") for rung in rungs()}
    assert right["bert"] + 1 < right["no-pairs"] < right["hidden-30"] - 1
    assert abs(right["norms-before"] - right["hidden-30"]) < 1
    assert right["geglu"] < right["norms-before"] - 1
    assert right["rotary"] > right["geglu"] + 5
