"""docs/models.md: cells, reasons for gaps, and verdicts, from files beside models."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from core_models.model import SHIPPED
from tests.core.tiny_models import new, tiny
from zoo import claims, goals, recipe, score_recipe
from zoo.__main__ import DOCUMENT, main
from zoo.claims import Claim, Difference
from zoo.entries import Entry, unlearnt
from zoo.report import report
from zoo.weights import fingerprint

RUN = {
    "texts": ["english"],
    "documents": 90,
    "text_tokens": 4_500_000,
    "vocabulary": 8000,
    "tokens": 6_000_000,
    "steps": 700,
    "seconds": 3600.0,
    "machine": "1 CPU thread",
    "commit": "0123abcd",
    "note": "It read less.",
    "held_out": {"masked_token_accuracy": 0.4321, "next_sentence_accuracy": 0.75},
}
TEXT_PAIRS = {
    "head": "next_sentence",
    "accuracy": 0.8,
    "followed": 0.95,
    "random": 0.65,
    "swapped": 0.05,
    "pairs": 500,
}
FIGURES = {
    "words": {"words": 50, "accuracy": 0.3, "perplexity": 87.65, "pieces_per_word": 1.25},
    "minimal_pairs": {"accuracy": 0.6789, "pairs": 600},
    "plain_sentences": {"asked": 60, "first": 7, "in_first_five": 12, "unsayable": 1},
    "text_pairs": TEXT_PAIRS,
    "run": RUN,
}


def entry(
    name: str,
    tasks: dict[str, Any] | None = None,
    figures: dict[str, Any] | None = None,
) -> Entry:
    return Entry(name, 10, figures or {}, tasks or {}, outdated=False, leftward=False)


def values(*pretrained: float, fresh: tuple[float, ...] = ()) -> dict[str, Any]:
    """A task of scores.json."""
    return {
        kind: {str(n + 1): v for n, v in enumerate(found)}
        for kind, found in (("pretrained", pretrained), ("fresh", fresh))
    }


def test_the_page_is_what_the_command_gives(tmp_path: Path) -> None:
    """Nothing is trained or measured for it."""
    assert main(["report", "--output", str(tmp_path / "models.md")]) == 0
    written = (tmp_path / "models.md").read_text(encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == written, (
        "docs/models.md is old; python -m zoo report writes it"
    )
    for path in SHIPPED.glob("*/config.json"):
        assert path.parent.name in written


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of three tiny models under names of the set."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("bert-mini", "electra-mini", "roberta-mini")):
        size = "electra-small-discriminator" if "electra" in name else "bert-mini"
        new(tiny(size), seed=seed).save(folder / name)
    (folder / "bert-mini" / "evaluation.json").write_text(json.dumps(FIGURES))
    caught = {
        "auc": 0.91234,
        "replaced": 0.1,
        "found": 0.5,
        "false_alarms": 0.02,
        "generator_hits": 0.3,
    }
    (folder / "electra-mini" / "evaluation.json").write_text(json.dumps({"forgeries": caught}))
    task = {
        "kind": "classify",
        "metric": "accuracy",
        "train_rows": 680,
        "dev_rows": 120,
        "baselines": {"majority": 0.5, "bag_of_words": 0.875},
        "pretrained": {"1": 0.8, "2": 0.82, "3": 0.84},
        "fresh": {"1": 0.7},
    }
    half = task | {"fresh": {}}
    scores = {
        "weights": fingerprint(folder / "bert-mini"),
        "tasks": {"sentiment": task, "topic": half},
    }
    (folder / "bert-mini" / "scores.json").write_text(json.dumps(scores))
    (folder / "roberta-mini" / "scores.json").write_text(json.dumps(scores))  # of other weights
    return report(folder)


@pytest.mark.parametrize(
    "line",
    [
        "| bert-mini | 30.0 % | 87.7 | 1.25 | 43.2 % | 67.9 % |",
        "| bert-mini | 60 | 7 | 12 | 1 |",
        "| bert-mini | next sentence | 80.0 % | 95.0 % | 65.0 % | 5.0 % |",
        "| electra-mini | 0.912 | 10.0 % | 50.0 % | 2.0 % | 30.0 % |",
        "| sentiment | sentiment of reviews, easy | accuracy | 680 | 120 |",
        "| bert-mini | 82.0 \u00b1 2.0 |" + " \u2013 | 82.0 \u00b1 2.0 |" + " \u2013 |" * 4,
        "| \u2026 from random weights | 70.0 (1) |" + " \u2013 |" * 6,
        "| *bag of words* | 87.5 | \u2013 | 87.5 |" + " \u2013 |" * 4,
        "- bert-mini (sentiment-hard, nli, similarity, ner, qa): not scored yet; "
        "`python -m zoo score bert-mini` does it.",
        "- bert-mini (topic): not from random weights; "
        "`python -m zoo score bert-mini --kinds fresh` does it.",
        "- bert-mini: it has no head for replaced tokens.",
        "- bert-mini: It read less.",
        "- electra-mini: it predicts no pieces, it judges them.",
        "- electra-mini: exported before these figures were kept; "
        "`python -m zoo build NAME` exports it again.",
        "- roberta-mini (all): the scores are of other weights; "
        "`python -m zoo score roberta-mini` does it.",
    ],
)
def test_cells_and_reasons(page: str, line: str) -> None:
    assert line in page.splitlines()


def test_the_training_of_a_model_is_told(page: str) -> None:
    row = next(line for line in page.splitlines() if line.startswith("| bert-mini | BERT"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:5] == ["1 CPU thread", "0123abcd", "english"]
    assert cells[6:] == ["4,500,000", "6,000,000", "60"]
    assert "Standard Ebooks" in page
    assert "roberta-mini | RoBERTa" in page  # without figures it has a row all the same


def test_rows_are_as_wide_as_their_header(page: str) -> None:
    for table in page.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1, rows


def test_a_folder_without_models_takes_no_page_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "models.md"
    page.write_text("figures", encoding="utf-8")
    missing = tmp_path / "nosuch"
    assert main(["report", "--models", str(missing), "--output", str(page)]) == 2
    assert f"{missing} holds no model" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "figures"


def test_a_folder_without_models(tmp_path: Path) -> None:
    assert "not measured" in report(tmp_path)


# -- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "margin", "said"),
    [
        (0.80, 0.70, 0.05, "reproduces"),
        (0.70, 0.80, 0.05, "opposite"),
        (0.80, 0.76, 0.05, "no clear difference"),
        (0.50, 0.50, 0.0, "no clear difference"),
    ],
)
def test_the_rule(left: float, right: float, margin: float, said: str) -> None:
    assert claims.verdict(Difference(left, right, margin, "")) == said


def test_tuned_scores_by_hand() -> None:
    """Only tasks count of which both have two seeds."""
    figures = {
        "a": entry("a", {"x": values(0.8, 0.9), "y": values(0.5, 0.7), "z": values(1.0)}),
        "b": entry("b", {"x": values(0.6, 0.6), "y": values(0.4, 0.4), "z": values(0.1, 0.2)}),
    }
    found = claims.tuned("a", "b")(figures)
    assert isinstance(found, Difference)
    assert found.left == pytest.approx((0.85 + 0.6) / 2)
    assert found.right == pytest.approx(0.5)
    # sample variances 0.005 and 0.02, each over two seeds; then the mean of two tasks
    assert found.margin == pytest.approx(2 * math.sqrt(0.005 / 2 + 0.02 / 2) / 2)
    assert found.over == "mean of 2 tasks"
    assert claims.tuned("a", "b", tasks=("z",))(figures) == "no scores of both on z with two seeds"
    assert claims.tuned("a", "c")(figures) == "c is not in the set"
    unscored = {**figures, "d": entry("d", {})}
    for names in (("a", "d"), ("d", "a")):
        assert claims.tuned(*names)(unscored) == "no scores of both with two seeds"
    own = {"a": entry("a", {"x": values(0.8, 0.8, fresh=(0.6, 0.6))})}
    assert claims.pretraining("a")(own) == Difference(0.8, 0.6, 0.0, "mean of 1 task")


def test_a_task_that_no_model_learns_counts_nowhere() -> None:
    def tasks(*scores: float) -> dict[str, Any]:
        beside = {"baselines": {"majority": 0.5}}
        return {"x": values(*scores) | beside, "y": values(0.6, 0.7) | beside}

    # 0.52 on the mean, with a standard error of 0.02: it may be chance.
    chance = {"a": entry("a", tasks(0.5, 0.54)), "b": entry("b", tasks(0.5, 0.5))}
    assert unlearnt(chance.values(), "x")
    assert not unlearnt(chance.values(), "y")
    assert not unlearnt(chance.values(), "never scored")
    found = claims.tuned("a", "b")(chance)
    assert isinstance(found, Difference)
    assert found.over == "mean of 1 task"
    said = claims.tuned("a", "b", tasks=("x",))(chance)
    assert said == "no model does better on x than the commonest answer"
    # One model that has learnt it is enough for all.
    learnt = {**chance, "c": entry("c", tasks(0.6, 0.61))}
    assert not unlearnt(learnt.values(), "x")
    found = claims.tuned("a", "b")(learnt)
    assert isinstance(found, Difference)
    assert found.over == "mean of 2 tasks"


def test_such_a_task_is_in_no_table_and_a_sentence_says_why(tmp_path: Path) -> None:
    new(tiny("bert-mini")).save(tmp_path / "bert-mini")
    task = {"metric": "f1", "train_rows": 160, "dev_rows": 80, "baselines": {"majority": 0.225}}
    told = task | {"pretrained": {"1": 0.225, "2": 0.225, "3": 0.225}}
    other = task | {"pretrained": {"1": 0.5, "2": 0.5, "3": 0.5}}
    scores = {
        "weights": fingerprint(tmp_path / "bert-mini"),
        "tasks": {"qa": told, "sentiment": other},
    }
    (tmp_path / "bert-mini" / "scores.json").write_text(json.dumps(scores))
    page = report(tmp_path)
    assert "\n`qa`, answers in a text: in no table and no mean. With 160 rows" in page
    assert "(f1 22.5\non 80 rows)" in page
    assert "| sentiment | sentiment-hard | topic | nli | similarity | ner |\n" in page
    assert "\n| qa |" not in page
    # A group of which nothing is learnt is its sentences alone.
    scores["tasks"] = dict.fromkeys(score_recipe.read().tasks, told)
    (tmp_path / "bert-mini" / "scores.json").write_text(json.dumps(scores))
    assert "| model | sentiment" not in report(tmp_path)


def test_shares_by_hand() -> None:
    figures = {
        "a": entry("a", figures={"minimal_pairs": {"accuracy": 0.7, "pairs": 600}, "run": RUN}),
        "b": entry("b", figures={"minimal_pairs": {"accuracy": 0.6, "pairs": 600}}),
    }
    pairs = [(name, "minimal_pairs", "accuracy") for name in "ab"]
    found = claims.shares(*pairs, "pairs")(figures)
    assert isinstance(found, Difference)
    assert found.margin == pytest.approx(2 * math.sqrt((0.7 * 0.3 + 0.6 * 0.4) / 600))
    assert claims.verdict(found) == "reproduces"
    # A mean of shares is surer than one share of as many cases.
    phenomena = {"x": 0.5, "y": 0.9}
    figures["a"].figures["minimal_pairs"]["phenomena"] = phenomena
    found = claims.shares(*pairs, "pairs")(figures)
    assert isinstance(found, Difference)
    each = (0.5 * 0.5 + 0.9 * 0.1) / 300 / 4
    assert found.margin == pytest.approx(2 * math.sqrt(each + 0.6 * 0.4 / 600))
    told = {"head": "sentence_order", "accuracy": 0.7, "followed": 0.8, "swapped": 0.6}
    both = {"a": entry("a", figures={"text_pairs": told | {"random": 0.1, "pairs": 500}})}
    path = ("a", "text_pairs", "accuracy")
    found = claims.shares(path, path, "")(both)
    assert isinstance(found, Difference)
    assert found.margin == pytest.approx(2 * math.sqrt(2 * (0.8 * 0.2 + 0.6 * 0.4) / 500 / 4))
    held = ("run", "held_out", "next_sentence_accuracy")
    known = claims.shares(("a", *held), ("a", *held), "")(figures)
    assert known == Difference(0.75, 0.75, 0.02, "")  # cases not kept: two points
    lacking = claims.shares(("a", *held), ("b", *held), "")(figures)
    assert lacking == "b has no such figure"


def test_every_claim_has_a_source_and_can_be_measured() -> None:
    """By models that have every figure; a claim names an arXiv id or says that there is none."""
    tasks = {task: values(0.6, 0.7, fresh=(0.4, 0.4)) for task in ("x", "qa", "questions")}
    whole = {
        name: entry(name, tasks, FIGURES)
        for name in (
            "bert-mini",
            "roberta-mini",
            "albert-mini",
            "spanbert-mini",
            "xlnet-mini",
            "electra-mini",
            "deberta-mini",
            "deberta-v3-mini",
            "causal-mini",
        )
    }
    found = claims.outcomes(whole)
    assert len(found) == len(claims.CLAIMS)
    for outcome in found:
        assert "arXiv" in outcome.claim.source
        assert any(mark.isdigit() for mark in outcome.claim.published)
    unmeasured = [o.claim.text for o in found if o.verdict == "not measured"]
    assert unmeasured == ["Hiding whole Chinese words beats hiding characters"]
    assert {o.verdict for o in claims.outcomes({})} == {"not measured"}
    claim = Claim("x", "y", "z", lambda _: Difference(0.5, 0.25, 0.1, "cases"))
    assert claims._outcome(claim, {}).ours == "50.0 and 25.0 (cases)"


def test_a_verdict_says_when_the_two_were_not_trained_alike() -> None:
    """In any claim but those of one model; what is told is where the notes of a training differ."""
    tasks = {"x": values(0.6, 0.7, fresh=(0.4, 0.4)), "ner": values(0.6, 0.7)}
    names = ("bert-mini", "roberta-mini", "causal-mini", "deberta-mini")

    def unequal(notes: dict[str, str]) -> list[str]:
        set_of = {
            name: entry(name, tasks, FIGURES | {"run": {"note": notes.get(name, "As all.")}})
            for name in names
        }
        found = claims.outcomes(set_of)
        return [o.ours for o in found if o.verdict.endswith(", trained unequally")]

    measured = claims.outcomes({n: entry(n, tasks, FIGURES) for n in names})
    assert unequal({}) == []
    of_roberta = unequal({"roberta-mini": "It read more."})
    assert 0 < len(of_roberta) < len([o for o in measured if o.verdict != "not measured"])
    assert (
        len(unequal({name: name for name in names}))
        == len([o for o in measured if o.verdict != "not measured"]) - 1
    )  # pretraining against random weights is of one model


def test_goals_say_who_reached_them_and_what_the_others_lack() -> None:
    better = {**FIGURES, "words": {**FIGURES["words"], "accuracy": 0.31}, "forgeries": {"auc": 0.9}}
    names = {"bert-mini": FIGURES, "roberta-mini": better, "deberta-mini": FIGURES}
    names |= {"electra-mini": better}
    found = {name: entry(name, figures=figures) for name, figures in names.items()}
    rows = {title: (least, reached, missed) for title, least, reached, missed in goals.rows(found)}
    assert rows["hidden words right, default"] == (
        "33.0 %",
        "\u2013",
        "bert-mini 30.0 % (lacks 3.0)",
    )
    least, reached, missed = rows["hidden words right, masked models"]
    assert (least, reached) == ("30.0 %", "roberta-mini 31.0 %, deberta-mini 30.0 %")
    assert missed.startswith("albert-mini (not measured), spanbert-mini (not measured)")
    _, _, missed = rows["minimal pairs right, more than on 24 November 2026"]
    assert missed.startswith(
        "roberta-mini 2.1 (lacks 7.9), deberta-mini 1.5 (lacks 8.5), bert-mini"
    )
    least, reached, missed = rows["AUC of forgeries"]
    assert (least, reached, missed) == (
        "0.850",
        "electra-mini 0.900",
        "deberta-v3-mini (not measured)",
    )
    assert rows["million tokens read, default"][2] == "bert-mini 6.0 (lacks 144.0)"


def test_goals_are_of_models_of_the_set() -> None:
    known = {n for name in recipe.read().models for n in (name, f"{name}-generator")}
    assert {name for goal in goals.GOALS for name in goal.models} <= known
