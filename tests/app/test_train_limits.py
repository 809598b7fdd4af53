"""Who may change a run, and what a server allows: owners, sharing, limits."""

import json
import time

import pytest

import core_models as cm
from app.runs import limits as run_limits
from app.runs import queue as run_queue
from app.runs.forms import form as run_form
from app.runs.forms import preview as run_preview
from app.runs.forms import tasks as run_tasks
from app.runs.limits import Limits
from app.runs.runs import Runs
from app.serving.settings import Settings
from core_models import InputError
from core_models.tasks import sets
from core_models.training import estimate, task_settings
from core_models.training.finetune import FineTuning
from core_models.training.settings import ASSETS
from tests.app.test_train_tasks import RACE, TASK
from tests.waiting import until

OWN, OTHER = "a" * 32, "b" * 32


def test_only_the_browser_that_made_a_run_may_change_it(make_runs):
    runs = make_runs()
    run = runs.create(TASK, owner=OWN)
    kept = (runs.root / run / "owner").read_text()
    assert OWN not in kept
    assert runs.may_change(run, OWN)
    for token in (OTHER, "", None, 3, kept, OWN.upper(), "ä" * 32):
        assert not runs.may_change(run, token)
        with pytest.raises(InputError, match="this browser"):
            runs.check_owner(run, token)
    nobodys = runs.create(TASK)
    assert not any(runs.may_change(nobodys, token) for token in (OWN, "", None))


def test_in_a_classroom_everybody_may_change_every_run(make_runs):
    run = make_runs().create(TASK, owner=OWN)
    runs = make_runs(shared=True)
    assert runs.may_change(run, OTHER)
    runs.check_owner(run, None)
    with pytest.raises(InputError, match="switched off"):
        make_runs(shared=True, enabled=False).check_owner(run, OWN)


PRETRAINING = {
    "model": {"size": "bert-mini", "overrides": {"layers": 2, "width": 128, "heads": 2}},
    "tokenizer": {"vocabulary": 1000},
    "data": {"texts": ["primer/english-*.txt"]},
    "steps": 100,
}


@pytest.mark.parametrize(
    ("limits", "config", "words"),
    [
        ({"steps": 99}, PRETRAINING, "100 steps; this server allows 99"),
        ({"steps": 19}, RACE, "20 steps"),
        ({"steps": 100}, RACE | {"budget": {"flops": 1e12}}, r"budget\.steps"),
        ({"steps": 83}, TASK, "84 steps"),
        ({"steps": 167}, TASK | {"compare_from_scratch": True}, "168 steps"),
        ({"parameters": 100_000}, PRETRAINING, "100,000"),
        ({"parameters": 100_000}, RACE, "100,000"),
        (
            {"parameters": 3_000_000},
            PRETRAINING
            | {
                "model": {"size": "electra-small-discriminator", "overrides": {"layers": 1}},
                "generator": {"layers": 12, "width": 512, "heads": 8},
            },
            "3,000,000",
        ),
    ],
)
def test_what_is_larger_than_the_server_allows_is_refused(make_runs, limits, config, words):
    runs = make_runs(limits=Limits(**limits))
    with pytest.raises(InputError, match=words):
        runs.create(config)
    assert runs.ids() == []


def test_what_is_as_large_as_allowed_is_made(make_runs):
    runs = make_runs(limits=Limits(steps=100, parameters=1_000_000))
    for config in (PRETRAINING, TASK):
        runs.create(config)
    assert len(runs.ids()) == 2


QUESTIONS = {
    "model": {"checkpoint": "bert-mini"},
    "task": {"set": "qa"},
    "epochs": 2,
    "max_length": 64,
}


@pytest.mark.slow
def test_steps_are_those_of_texts_that_are_read_in_parts(make_runs, session, monkeypatch):
    """470 rows are 58 batches of 16 in two epochs, but their windows are many more."""
    options = task_settings.parse(QUESTIONS)
    tuning = task_settings.tuning(options)
    steps = FineTuning(cm.load("bert-mini"), sets.load("qa"), tuning).steps
    assert steps > 2 * (470 // 16)
    for allowed, times in ((steps, 1), (2 * steps, 2)):
        config = QUESTIONS | {"compare_from_scratch": times == 2}
        runs = make_runs(limits=Limits(steps=allowed))
        run = runs.create(config)
        assert run_queue.steps_of(runs.config(run), runs.root / run) == steps
        found = run_tasks.check(runs, session, config, [], None)
        assert (found["steps"], found["estimated"]) == (steps, False)
        runs.delete(run)
        with pytest.raises(InputError, match=f"in parts.* at least .* allows {allowed - 1:,}"):
            make_runs(limits=Limits(steps=allowed - 1)).create(config)
        assert runs.ids() == []
    # Where nothing is limited some rows of a large set speak for all; where it is, all are read.
    for module in (run_limits, run_tasks):
        monkeypatch.setattr(module, "COUNTED", 400)
        monkeypatch.setattr(module, "SAMPLED", 100)
    runs = make_runs()
    run = runs.create(QUESTIONS)
    noted = run_queue.steps_of(runs.config(run), runs.root / run)
    assert noted == pytest.approx(steps, rel=0.1)
    assert noted != steps, "other rows than these must be chosen for the test to see it"
    found = run_tasks.check(runs, session, QUESTIONS, [], None)
    assert (found["steps"], found["estimated"]) == (noted, True)
    sure = run_tasks.check(runs, session, QUESTIONS | {"task": {"set": "sentiment"}}, [], None)
    assert (sure["steps"], sure["estimated"]) == (84, False)
    with pytest.raises(InputError, match="in parts"):
        make_runs(limits=Limits(steps=steps - 1)).create(QUESTIONS)


@pytest.mark.parametrize("counted", [5000, 0])
def test_a_model_that_cannot_learn_a_set_makes_no_run(make_runs, monkeypatch, counted):
    monkeypatch.setattr(run_limits, "COUNTED", counted)
    monkeypatch.setenv("CLOZE_MODELS", str(ASSETS / "models"))
    runs = make_runs()
    with pytest.raises(InputError, match="reads from left to right"):
        runs.create(TASK | {"model": {"checkpoint": "causal-mini"}})
    assert runs.ids() == []


def test_a_run_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    runs = Runs(tmp_path / "runs", seconds=0.02, limits=Limits(minutes=1))
    old, new = runs.create(PRETRAINING), runs.create(PRETRAINING)
    for run, began in ((old, time.time() - 61), (new, time.time())):
        (runs.root / run / "launch.json").write_text(json.dumps({"time": began, "process": {}}))
    monkeypatch.setattr(runs, "state", lambda run: "running")
    assert until(lambda: runs.folder(old).stop_requested())
    assert not runs.folder(new).stop_requested()
    runs.close()


def test_limits_and_sharing_come_from_the_environment():
    found = Settings.from_environment(
        {
            "CLOZE_TRAIN": "shared",
            "CLOZE_TRAIN_STEPS": "500",
            "CLOZE_TRAIN_PARAMETERS": "5000000",
            "CLOZE_TRAIN_MINUTES": "10",
        }
    )
    assert (found.training, found.shared) == (True, True)
    assert found.limits == Limits(steps=500, parameters=5_000_000, minutes=10)
    assert Settings.from_environment({}).limits == Limits()
    with pytest.raises(InputError, match="CLOZE_TRAIN_STEPS"):
        Settings.from_environment({"CLOZE_TRAIN_STEPS": "many"})


def test_the_form_counts_the_parameters_that_the_run_trains(make_runs, session, monkeypatch):
    """Published counts leave the mask decoder's positions out; a run has and moves them."""
    monkeypatch.setitem(estimate.estimate.__kwdefaults__, "seconds", 0.1)
    monkeypatch.setattr(run_preview, "_KNOWN", {})
    presets = {preset["name"]: preset for preset in run_form.presets()}
    assert list(presets)[:3] == ["classroom", "gpu-five-minutes", "overnight"]
    assert [name for name, preset in presets.items() if preset["gpu"]] == ["gpu-five-minutes"]
    config = presets["classroom"]["config"]
    assert run_preview.known_seconds(config) is None
    found = run_preview.estimate(make_runs(), config, [], None)
    shown = run_form.check(make_runs(), session, config, [], None)
    assert shown["parameters"] == found["parameters"] == 761_680
    assert run_preview.known_seconds(config) == found["seconds"]
