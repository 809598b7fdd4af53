"""What labs make of opened models: side by side, counted in their files, trained further."""

import asyncio
from pathlib import Path

import pytest

import core_models as cm
from app.labs.budget.known import chosen_name, known_models
from app.labs.budget.lab import show
from app.labs.mask import models as mask_models
from app.runs.forms.form import check, readers, weigh
from app.runs.reports.reports import Reports
from app.runs.runs import Runs
from app.serving.opened.suggestions import parent_of
from core_models import InputError
from tests.app.opening import NAME, opened
from tests.core.foreign_models import saved

PRIMER = {"data": {"texts": ["primer/english-*.txt"]}, "steps": 2}
PARENT = "google-bert/bert-base-uncased"


def side_by_side(session, model: str = "bert-mini", **more):
    question = {"text": "The capital of France is Paris.", "model": model, "marks": [], **more}
    return asyncio.run(mask_models.models(session, question))


def test_a_shipped_model_is_offered_beside_its_published_parent(there, folder, open_with):
    there.add(PARENT, folder)
    session = open_with()
    found = side_by_side(session)
    assert found["parent"] == {"name": PARENT, "beside": "bert-mini"}
    assert found["said"].endswith(
        f"Published of this kind: {PARENT}, 110.1 million parameters, 440 MB."
    )
    name = opened(session, PARENT)
    both = side_by_side(session, models=["bert-mini", name])
    assert [entry["name"] for entry in both["models"]] == ["bert-mini", name]
    assert f"cm.load('{PARENT}')" in both["code"]
    assert both["parent"] is None
    assert side_by_side(session, name)["parent"] is None


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (("bert", ["masked_token", "next_sentence"], "zh"), "google-bert/bert-base-chinese"),
        (("roberta", ["masked_token"], "en"), "FacebookAI/roberta-base"),
        (("xlnet", ["permutation"], "en"), "xlnet/xlnet-base-cased"),
        (("electra", ["masked_token"], "en"), "google/electra-small-generator"),
        (("electra", ["replaced_token"], "en"), None),
        (("bert", ["causal"], "en"), None),
        (("deberta_v2", ["masked_token"], "en"), None),
    ],
)
def test_a_parent_is_of_the_same_family_head_and_language(kind, parent):
    found = parent_of(*kind)
    assert (found and found.name) == parent


def test_no_parent_is_offered_where_it_may_not_be_opened(open_with):
    assert side_by_side(open_with(mode="off"))["parent"] is None
    assert side_by_side(open_with(mode="list", ids=(NAME,)))["parent"] is None
    assert side_by_side(open_with(mode="list", ids=(PARENT,)))["parent"]


@pytest.mark.parametrize("of_the_hub", [True, False])
def test_a_run_begins_with_an_opened_model(there, folder, open_with, tmp_path, of_the_hub):
    there.add(NAME, folder)
    session = open_with()
    name = opened(session, NAME if of_the_hub else str(folder))
    runs = Runs(tmp_path / "runs", seconds=60, others=session.opened)
    try:
        config = {
            "model": {"checkpoint": name},
            **PRIMER,
        }
        found = check(runs, session, config, [], None)
        assert found["family"] == "bert"
        run = runs.create(config)
        path = Path(runs.config(run)["model"]["checkpoint"])
        assert path == session.opened.model_path(name)
        assert runs.as_form(run)["model"]["checkpoint"] == name
        assert Reports(runs).summary(run)["model"]["from"] == (NAME if of_the_hub else "bert")
        (reader,) = [each for each in readers(runs, session) if each["name"] == name]
        assert (reader["language"], reader["left_to_right"]) == ("en", False)
        for wrong in ("hub/somebody/else", "folder/0123456789ab", str(tmp_path)):
            with pytest.raises(InputError):
                runs.create({**config, "model": {"checkpoint": wrong}})
    finally:
        runs.close()


def test_a_model_that_transformers_runs_is_not_trained_further(tmp_path, open_with):
    saved("mpnet", tmp_path / "model")
    session = open_with()
    name = opened(session, str(tmp_path / "model"))
    runs = Runs(tmp_path / "runs", seconds=60, others=session.opened)
    try:
        for more in ({"task": {"set": "sentiment"}}, PRIMER):
            with pytest.raises(InputError, match="mpnet"):
                weigh(runs, session, {"model": {"checkpoint": name}, **more}, [], None)
    finally:
        runs.close()


def test_the_budget_counts_an_opened_model_in_its_files(there, folder, open_with):
    there.add(NAME, folder)
    session = open_with()
    name = opened(session, NAME)
    exact = f"{sum(p.numel() for p in cm.load(folder).parameters()):,}"
    question = {"sizes": ["bert-base-uncased"], "chosen": {"model": name}, "length": 8}
    question |= {"own": False, "shares": False, "costs": None}
    assert chosen_name(question) == name
    asked = {**question, "sizes": ["bert-base-uncased", name]}
    said, *_, code = show(session, {**asked, "known": known_models(session, asked)})
    assert f"{name} has {exact} parameters in its files." in said
    assert f"cm.load('{NAME}').config" in code
    assert chosen_name({**question, "chosen": {"model": "bert-mini"}}) == "model/bert-mini"
    for wrong in ("hub/somebody/else", "model/../x", "run/none"):
        with pytest.raises(InputError):
            known_models(session, {"sizes": [wrong]})
