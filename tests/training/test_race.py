"""An objective race: same budget, measured alike, killed and continued."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.data import documents
from core_models.errors import InputError
from core_models.evaluation import evaluate_words
from core_models.evaluation.words import Word
from core_models.tasks import sets
from core_models.tasks.probe import probe
from core_models.training import process, race_measure, race_run, race_schema, settings
from core_models.training.folder import RunFolder, runs
from core_models.training.models import model_config
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.process import train
from core_models.training.race import main
from core_models.training.race_cost import cost_of
from core_models.training.race_folder import RaceFolder, races
from core_models.training.race_run import new_race, run_race
from tests.training.conftest import forget_accelerator, quiet, text
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("in_process")
ROOT = Path(__file__).parents[2]
Whole = tuple[RaceFolder, list[list[str]]]
TIMING = {"seconds", "updated", "process", "tokens_per_second"}


def values(**changes: Any) -> dict[str, Any]:
    """A race of two objectives on the toy text."""
    return {
        "name": "toy",
        "entrants": [
            {"name": "masked", "size": "bert-mini", "objectives": {"masked_token": 1.0}},
            {"name": "replaced", "size": "electra-small", "generator": {"width": 16, "heads": 2}},
        ],
        "budget": {"steps": 10},
        "overrides": {"layers": 2, "width": 32, "heads": 2, "inner": 64, "embedding_width": 32},
        "tokenizer": {"vocabulary": 120},
        "data": {"texts": ["text.txt"], "held_out": 0.1, "max_length": 24, "duplicates": 1},
        "batch_size": 8,
        "precision": "auto",
        "threads": 1,
        "report_every": 2,
        "validate_every": 5,
        "checkpoints": {"every": 3, "keep": 2},
        "measures": {"probes": ["topic"], "words": 12, "minimal_pairs": False},
    } | changes


def write_recipe(folder: Path) -> Path:
    """The race and its text in a folder."""
    (folder / "text.txt").write_text(text(40))
    path = folder / "race.json"
    path.write_text(json.dumps(values()))
    return path


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return {}


@pytest.fixture
def whole(kept: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, few_rows: None) -> Whole:
    """A race that nothing disturbs, run once, and the states of its runs at each line it said."""
    if not kept:
        path = write_recipe(tmp_path_factory.mktemp("whole"))
        config = new_race(path, path.parent / "race")
        folder, states = RaceFolder(config.parent), []
        end = run_race(config, lambda _: states.append([row["state"] for row in folder.table()]))
        assert end == "finished"
        forget_accelerator()
        kept["whole"] = folder, states
    return kept["whole"]


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes on the first rows of a set."""
    every_row = sets.load

    def load(name: str) -> sets.TaskSet:
        task = every_row(name)
        return replace(task, train=task.train[:40], dev=task.dev[:20])

    monkeypatch.setattr(race_measure.sets, "load", load)


def rows(folder: RaceFolder) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in TIMING} for row in folder.table()]


def test_a_race_of_two_objectives(whole: Whole) -> None:
    folder, states = whole
    assert folder.state() == "finished"
    assert [race.path for race in races(folder.path.parent)] == [folder.path]
    assert {run.path.name for run in runs(folder.path)} == {"masked", "replaced"}
    assert ["running", "waiting"] in states
    assert ["finished", "running"] in states
    assert ["finished", "measuring"] in states

    masked, replaced = folder.table()
    for row in (masked, replaced):
        status = folder.run(row["name"]).status()
        assert row["step"] == row["steps"] == status["step"] == 10
        assert row["tokens"] == status["tokens"]
        assert row["parameters"] == status["parameters"]
        assert row["flops"] == 10 * row["flops_per_step"]
        assert row["seconds"] > 0
        assert status["precision"] == folder.status()["precision"] != "auto"
    assert masked["generator_parameters"] == 0 < replaced["generator_parameters"]
    assert masked["objectives"] == {"masked_token": 1.0}
    assert replaced["objectives"] == {"replaced_token": 1.0}
    assert replaced["held_out"].keys() >= {"replaced_token_loss", "replaced_token_accuracy"}

    # The figures are those of the core, asked for by hand.
    model = cm.load(folder.run("masked").model_path)
    by_hand = probe(model, race_measure.sets.load("topic"))
    assert masked["probes"]["topic"]["value"] == by_hand.metrics[by_hand.main]
    words = [Word(*word) for word in json.loads(folder.words_path.read_text())]
    assert len(words) == 12
    assert masked["words"]["accuracy"] == evaluate_words(model, words).accuracy
    assert "words" not in replaced  # it predicts no pieces
    assert folder.status()["probe_baselines"]["topic"].keys() >= {"majority", "bag_of_words"}


def test_a_folder_in_place_of_its_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.json"
    file.write_text("{}")
    for more in ([], ["--runs", str(tmp_path / "new")]):
        assert main([str(tmp_path), *more]) == 2
        assert f"{tmp_path} is a folder; give the file {file}." in capsys.readouterr().err


def test_the_runs_are_ordinary_ones(whole: Whole, tmp_path: Path) -> None:
    folder, _ = whole
    config = folder.run("masked").config_path
    alone = RunFolder.create(tmp_path / "alone", json.loads(config.read_text()))
    assert train(alone.config_path, quiet) == "finished"
    first, second = (cm.load(run.model_path).state_dict() for run in (folder.run("masked"), alone))
    assert all(torch.equal(first[name], second[name]) for name in second)


def test_words_come_from_documents_that_nobody_trains_on(recipe: Path, tmp_path: Path) -> None:
    whole = list(documents.read([tmp_path / "text.txt"]))
    _, held = documents.split_held_out(len(whole), 0.1, 1)
    race = race_schema.parse(values())
    allowed = {sentence for i in held for sentence in whole[i]}
    assert {w.sentence for w in race_measure.held_out_words(race, tmp_path)} <= allowed


def test_operations_of_a_step_by_hand(recipe: Path, tmp_path: Path) -> None:
    race = race_schema.parse(values())
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    (run.path / "text.txt").write_text(text(40))
    first = race_schema.run_values(race, race.entrants[0], 10)
    cost = race_measure.cost(run, settings.parse(first))
    n, d, f = cost.length, 32, 64
    vocabulary = json.loads((run.data_path / "prepared.json").read_text())["vocabulary"]
    encoder = 2 * (8 * n * d * d + 4 * n * n * d + 4 * n * d * f)
    head = n * (2 * d * d + 2 * d * vocabulary)
    assert cost.flops_per_step == pytest.approx(3 * 8 * (encoder + 0.15 * head))


def test_shorter_examples_cost_what_they_cost(recipe: Path, tmp_path: Path) -> None:
    """A third of the steps read twice as many of half the length."""
    race = race_schema.parse(values())
    found = []
    for name, more in (("long", {}), ("mixed", {"first_length": 12, "first_share": 1 / 3})):
        run = RunFolder(tmp_path / name)
        run.path.mkdir()
        (run.path / "text.txt").write_text(text(40))
        made = race_schema.run_values(race, race.entrants[0], 9)
        made["data"] |= {"max_length": 24} | more
        found.append((race_measure.cost(run, settings.parse(made)), settings.parse(made), run))
    (whole, _, _), (mixed, asked, run) = found
    plan = plan_for(asked, cm.size(asked.model.size or ""))
    data = prepare(run, asked, plan)
    assert data.first is not None
    config = model_config(
        asked, plan, None, vocabulary=data.tokenizer.vocabulary, pad_id=data.tokenizer.pad_id
    )
    shorter = cost_of(asked, config, plan, round(float(data.first.lengths.mean())))
    assert asked.first_batch == 2 * asked.batch_size
    expected = (2 * shorter.flops_per_step + 2 * whole.flops_per_step) / 3
    assert mixed.flops_per_step == pytest.approx(expected)


def test_smaller_batches_cost_less(recipe: Path, tmp_path: Path) -> None:
    """Half the steps read half as many examples."""
    run = RunFolder(tmp_path / "grown")
    run.path.mkdir()
    (run.path / "text.txt").write_text(text(40))
    race = race_schema.parse(values())
    made = race_schema.run_values(race, race.entrants[0], 10)
    whole = race_measure.cost(run, settings.parse(made))
    half = made["batch_size"] // 2
    made["data"] |= {"first_batch": half, "first_share": 0.5}
    grown = race_measure.cost(run, settings.parse(made))
    assert grown.flops_per_step == pytest.approx(0.75 * whole.flops_per_step)


@pytest.mark.parametrize(
    ("objective", "masking", "share"),
    [
        ("masked_token", {"rate": 0.3, "last_rate": 0.1, "dynamic": True}, 0.2),
        ("masked_next_token", {"rate": 0.2, "leftward": 0.25}, 0.25 + 0.75 * 0.2),
        ("causal", {}, 1.0),
    ],
)
def test_a_head_costs_where_it_is_asked(objective: str, masking: Any, share: float) -> None:
    """What is hidden moves from the first rate to the last; rows read leftward are asked whole."""
    whole = settings.parse(
        {
            "model": {"size": "bert-tiny"},
            "data": {"texts": ["text.txt"]},
            "objectives": {objective: 1.0},
            "masking": masking,
            "steps": 10,
            "batch_size": 2,
        }
    )
    plan = plan_for(whole, cm.size("bert-tiny"))
    config = model_config(whole, plan, None, vocabulary=200, pad_id=0)
    parts = cm.count(config).flops(64)
    (head,) = parts.heads.values()
    cost = cost_of(whole, config, plan, 64)
    assert cost.flops_per_step == pytest.approx(3 * 2 * (parts.encoder + share * head))


@pytest.mark.slow
def test_a_budget_of_operations_gives_each_its_steps(recipe: Path, tmp_path: Path) -> None:
    changed = values(budget={"flops": 1e8}, measures={"probes": [], "words": 0})
    recipe.write_text(json.dumps(changed))
    folder = RaceFolder(tmp_path / "race")
    run_race(new_race(recipe, folder.path), quiet)
    table = folder.table()
    for row in table:
        assert row["steps"] == round(1e8 / row["flops_per_step"]) == row["step"]
        assert row["flops"] == pytest.approx(1e8, rel=0.5 / row["steps"])
    assert table[0]["steps"] > table[1]["steps"]  # the generator costs, too


def test_families_share_data_size_and_vocabulary() -> None:
    entrants = [
        {"name": "bert", "size": "bert-base-uncased"},
        {"name": "xlnet", "size": "xlnet-base-cased"},
        {"name": "causal", "size": "bert-mini", "objectives": {"causal": 1.0}},
        {"name": "deberta", "size": "deberta-base", "learning_rate": 1e-3},
    ]
    data = values()["data"] | {"singles": 0.5}
    race = race_schema.parse(values(entrants=entrants, data=data, seed=7))
    made = [settings.parse(race_schema.run_values(race, e, 20)) for e in race.entrants]
    assert {run.seed for run in made} == {7}
    assert {run.steps for run in made} == {20}
    assert {(run.tokenizer.kind, run.tokenizer.vocabulary) for run in made} == {("wordpiece", 120)}
    assert {run.model.overrides.width for run in made} == {32}
    assert [run.data.singles for run in made] == [0.5, 0.0, 0.5, 0.5]
    assert [run.optimizer.learning_rate for run in made] == [5e-4, 5e-4, 5e-4, 1e-3]


def test_stop_and_go_on(recipe: Path, tmp_path: Path, whole: Whole) -> None:
    stopped = RaceFolder(tmp_path / "stopped")
    config = new_race(recipe, stopped.path)

    def stop(line: str) -> None:
        if line.startswith(("masked: step 4/", "masked: probes.topic", "replaced: step 6/")):
            stopped.request_stop()

    seen = []
    for _ in range(3):
        assert run_race(config, stop) == "stopped"
        assert stopped.state() == "stopped"
        assert not stopped.stop_requested()
        seen.append([row["state"] for row in stopped.table()])
    assert seen == [["stopped", "waiting"], ["measuring", "waiting"], ["finished", "stopped"]]
    assert main([str(recipe), "--runs", str(stopped.path)]) == 0
    assert rows(stopped) == rows(whole[0])
    assert main([str(recipe), "--runs", str(stopped.path)]) == 0  # nothing left to do


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_race_goes_on(recipe: Path, tmp_path: Path, whole: Whole) -> None:
    killed = RaceFolder(tmp_path / "killed")
    for run in ("masked", "replaced"):
        new_race(recipe, killed.path)
        child = os.fork()
        if not child:
            torch.set_num_threads(1)
            forget_accelerator()
            run_race(killed.config_path, quiet)
            os._exit(0)
        assert until(lambda run=run: killed.run(run).checkpoints())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert killed.state() in ("crashed", "finished")
    forget_accelerator()
    assert run_race(killed.config_path, quiet) == "finished"
    assert rows(killed) == rows(whole[0])


def test_a_run_that_fails_does_not_end_the_race(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = values(measures={"probes": [], "words": 0})
    changed["entrants"][0]["learning_rate"] = 1e9
    recipe.write_text(json.dumps(changed))
    folder = RaceFolder(tmp_path / "race")
    assert run_race(new_race(recipe, folder.path), quiet) == "finished"
    first, second = folder.table()
    assert first["state"] == "failed"
    assert "diverged" in first["reason"]
    assert second["state"] == "finished"
    kept = (folder.run("replaced").path / "evaluation.json").stat().st_mtime_ns
    assert main([str(folder.config_path)]) == 1, "tried again, and failed again"
    assert "masked failed: " in capsys.readouterr().err
    made = json.loads(folder.run("masked").config_path.read_text())
    made["optimizer"]["learning_rate"] = 1e-3
    folder.run("masked").config_path.write_text(json.dumps(made))
    assert main([str(folder.config_path)]) == 0
    assert [row["state"] for row in folder.table()] == ["finished", "finished"]
    assert (folder.run("replaced").path / "evaluation.json").stat().st_mtime_ns == kept


def test_a_measure_that_fails_does_not_end_the_race(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measurements(model: cm.Model, *_: Any) -> dict[str, Any]:
        def call() -> dict[str, Any]:
            if "masked_token" in model.heads:
                raise InputError("every word is unknown")
            return {"accuracy": 1.0}

        return {"words": call}

    monkeypatch.setattr(race_measure, "measurements", measurements)
    recipe.write_text(json.dumps(values()))
    folder = RaceFolder(tmp_path / "race")
    assert run_race(new_race(recipe, folder.path), quiet) == "finished"
    first, second = folder.table()
    assert (first["state"], first["reason"]) == ("failed", "every word is unknown")
    assert second["state"] == "finished"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entrants": values()["entrants"][:1]}, "a race compares 2 to 24 models, not 1"),
        ({"budget": {}}, "either budget.steps or budget.flops"),
        ({"budget": {"steps": 5, "flops": 1e9}}, "either budget.steps or budget.flops"),
        ({"entrants": [values()["entrants"][0]] * 2}, "two are called 'masked'"),
        (
            {
                "entrants": [
                    values()["entrants"][0] | {"name": "Queue"},
                    values()["entrants"][1],
                ]
            },
            "the race has a file 'queue'; choose another name",
        ),
        ({"measures": {"probes": ["mood"]}}, "no shipped set 'mood'; there are ner"),
        ({"seeds": 1}, "Did you mean 'seed'"),
        ({"data": values()["data"] | {"format": "single"}}, "say format in an entrant"),
        (
            {
                "entrants": [
                    {"name": "a", "size": "bert-mini"},
                    {"name": "b", "size": "bert-mini", "objectives": {"permutation": 1.0}},
                ]
            },
            "entrants, b: objectives: permutation needs",
        ),
        ({"overrides": {"width": 33}}, "entrants, masked"),
    ],
)
def test_a_bad_file_is_refused(
    recipe: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    recipe.write_text(json.dumps(values(**changes)))
    with pytest.raises(InputError, match=message):
        new_race(recipe, tmp_path / "race")
    assert not (tmp_path / "race").exists()


def test_a_race_that_is_not_there_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "typo" / "experiment.json"
    assert main([str(missing)]) == 2
    assert f"There is no file {missing}." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (None, "neither beside race.json"),
        ("", "entrants, masked: .*no text in text"),
        ("A cat.\n", "entrants, masked: .*too few"),
    ],
)
def test_a_race_that_cannot_start_leaves_no_folder(
    recipe: Path,
    tmp_path: Path,
    words: str | None,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if words is None:
        (tmp_path / "text.txt").unlink()
    else:
        (tmp_path / "text.txt").write_text(words)
    (tmp_path / "empty").mkdir()
    for name in ("race", "empty"):
        assert main([str(recipe), "--runs", str(tmp_path / name)]) == 2
        assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "race").exists()
    assert (tmp_path / "empty").is_dir()  # it was there before


def test_prepared_texts_stay_where_a_race_cannot_start(recipe: Path, tmp_path: Path) -> None:
    """The first entrant has its data when the second is refused."""
    given = values(entrants=[*values()["entrants"], {"name": "last", "size": "neobert"}])
    given["overrides"] |= {"inner": 60}
    recipe.write_text(json.dumps(given))
    assert main([str(recipe), "--runs", str(tmp_path / "race")]) == 2
    assert (tmp_path / "race" / "masked" / "data").is_dir()


def test_another_race_in_the_folder_is_left_alone(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new_race(recipe, tmp_path / "race")
    recipe.write_text(json.dumps(values(seed=2)))
    assert main([str(recipe), "--runs", str(tmp_path / "race")]) == 2
    assert "already holds a race" in capsys.readouterr().err
    assert main([str(recipe)]) == 2
    assert "experiment.json" in capsys.readouterr().err
    assert main([str(recipe), "--runs", str(recipe.parent)]) == 2
    assert "already holds other files" in capsys.readouterr().err


def test_nothing_held_out_is_told_before_anything_is_trained(recipe: Path, tmp_path: Path) -> None:
    data = values()["data"] | {"held_out": 0.0}
    recipe.write_text(json.dumps(values(data=data)))
    with pytest.raises(InputError, match="nothing is held out"):
        new_race(recipe, tmp_path / "race")
    assert not (tmp_path / "race").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": "neobert"}, "entrants, last: .*family neobert cannot hold"),
        ({"size": "bert-mini", "learning_rate": 1.0}, "entrants, last: .*warmup"),
    ],
)
def test_a_run_that_cannot_end_is_refused_before_any_is_trained(
    recipe: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    entrants = [*values()["entrants"], {"name": "last"} | changes]
    schedule = {"warmup": 2 if changes["size"] == "neobert" else 30}
    overrides = values()["overrides"] | {"inner": 60}
    given = values(entrants=entrants, schedule=schedule, overrides=overrides, budget={"flops": 1e8})
    recipe.write_text(json.dumps(given))
    folder = RaceFolder(tmp_path / "race")
    with pytest.raises(InputError, match=message.replace("last", "(last|masked)")):
        run_race(new_race(recipe, folder.path), quiet)
    assert folder.state() == "failed"
    assert not any(run.checkpoints() or run.status() for run in runs(folder.path))


def test_reading_a_race_needs_no_pytorch() -> None:
    code = (
        "import sys; from core_models.training import race_folder, race_schema;"
        "race_folder.races('.'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_several_processes_are_refused(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would want the folder for itself, and one would say that it is taken."""
    config = new_race(recipe, tmp_path / "race")
    for rank in "01":
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(InputError, match="A race runs in one process"):
            run_race(config, quiet)
    assert RaceFolder(config.parent).state() == "new"


@pytest.mark.parametrize(
    ("place", "name", "state"),
    [
        pytest.param(process, "_export", "measuring", id="while its model is written"),
        pytest.param(race_run, "train", "stopped", id="before it takes signals"),
    ],
)
def test_a_signal_that_a_run_does_not_see_stops_the_race(
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: ModuleType,
    name: str,
    state: str,
) -> None:
    """The race must not go on to measure and train."""
    real = getattr(place, name)

    def signalled(*given: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return real(*given)

    monkeypatch.setattr(place, name, signalled)
    folder = RaceFolder(tmp_path / "race")
    assert run_race(new_race(recipe, folder.path), lambda line: None) == "stopped"
    assert [row["state"] for row in folder.table()] == [state, "waiting"]
    assert folder.status()["reason"] == "by signal SIGTERM"
    monkeypatch.undo()
    assert run_race(folder.config_path, lambda line: None) == "finished"
