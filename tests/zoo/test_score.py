"""Fine-tuning the set again and again: recipe, resuming, what is kept beside a model."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.tasks.metrics import classification
from core_models.training.finetune import finetune
from tests.core.tiny_models import new, tiny
from zoo import score, score_recipe
from zoo.__main__ import main
from zoo.entries import entries, spread
from zoo.ship import place_folder
from zoo.weights import fingerprint, kept_scores

SETTINGS = {"epochs": 2, "batch_size": 8, "max_length": 20}
RECIPE = {
    "sample_seed": 1,
    "settings": SETTINGS,
    "tasks": {
        "mood": {
            "title": "mood",
            "kind": "classify",
            "shipped": "sentiment",
            "train_rows": 24,
            "dev_rows": 12,
        },
        "parts": {
            "title": "parts",
            "kind": "tag",
            "train": "tasks/parts.jsonl",
            "part_by": "id",
            "settings": {"epochs": 1},
        },
    },
}
DRINKS = {"tokens": ["dog", "sees", "tree"], "tags": ["N", "V", "N"]}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tiny models, a recipe and a data folder."""
    path = tmp_path_factory.mktemp("zoo")
    new(tiny("bert-mini")).save(path / "models" / "bert-mini")
    causal = tiny("bert-mini")
    causal = replace(
        causal,
        objectives=("causal",),
        attention=replace(causal.attention, direction="left"),
        masking=replace(causal.masking, kind="none"),
    )
    new(causal).save(path / "models" / "causal-mini")
    (path / "recipe.json").write_text(json.dumps(RECIPE))
    (path / "tasks").mkdir()
    rows = [json.dumps(DRINKS | {"id": f"text {n % 5}"}) for n in range(20)]
    (path / "tasks" / "parts.jsonl").write_text("\n".join(rows))
    return path


def work(folder: Path, name: str = "work") -> score.Work:
    recipe = score_recipe.read(folder / "recipe.json")
    return score.Work(recipe, folder / "models", folder / name, folder)


def scored(folder: Path) -> dict[str, Any]:
    """Score the tiny BERT once, and read what lies beside it."""
    score.score(work(folder), ["bert-mini"], None, seeds=2, say=lambda line: None)
    return kept_scores(folder / "models" / "bert-mini")["tasks"]


@pytest.mark.slow
def test_a_score_is_what_finetuning_gives(folder: Path) -> None:
    tasks = scored(folder)
    assert list(tasks) == ["mood", "parts"]
    mood = tasks["mood"]
    facts = {key: mood[key] for key in ("kind", "metric", "train_rows", "dev_rows", "language")}
    assert facts == {
        "kind": "classify",
        "metric": "accuracy",
        "train_rows": 24,
        "dev_rows": 12,
        "language": "en",
    }
    asked = work(folder)
    rows = score_recipe.task_set(asked.recipe, "mood", None)
    for kind, pretrained in (("pretrained", True), ("fresh", False)):
        assert list(mood[kind]) == ["1", "2"]
        settings = asked.recipe.settings_of("mood", seed=2, pretrained=pretrained)
        assert (settings.epochs, settings.batch_size) == (2, 8)
        result = finetune(cm.load(folder / "models" / "bert-mini"), rows, settings)
        # after the last epoch, not the best one
        assert mood[kind]["2"] == result.history[-1].metrics["accuracy"]
    common = max({row.label for row in rows.train}, key=[r.label for r in rows.train].count)
    hits = classification([str(r.label) for r in rows.dev], [str(common)] * len(rows.dev))
    assert mood["baselines"]["majority"] == hits["accuracy"]
    assert set(mood["baselines"]) == {"majority", "bag_of_words", "weighted_words"}
    assert tasks["parts"]["baselines"]["tag_of_word"] == 1.0


@pytest.mark.slow
def test_what_is_there_is_not_done_again(folder: Path) -> None:
    scored(folder)
    lines: list[str] = []
    score.score(work(folder), ["bert-mini"], None, seeds=2, say=lines.append)
    assert lines == []
    (folder / "work" / "bert-mini" / "mood.fresh.2.json").unlink()
    score.score(work(folder), ["bert-mini"], ["mood"], seeds=2, say=lines.append)
    assert [line.partition(":")[0] for line in lines] == ["bert-mini mood fresh seed 2"]
    # another setting makes every score of the task an old one
    asked = work(folder)
    longer = asked.recipe.tasks["mood"].model_copy(update={"settings": {"epochs": 1}})
    changed = asked.recipe.model_copy(update={"tasks": asked.recipe.tasks | {"mood": longer}})
    lines.clear()
    score.score(replace(asked, recipe=changed), ["bert-mini"], None, seeds=1, say=lines.append)
    assert len(lines) == 2
    kept = kept_scores(folder / "models" / "bert-mini")["tasks"]
    assert list(kept["mood"]["fresh"]) == ["1"]
    assert list(kept["parts"]["fresh"]) == ["1", "2"]


def test_one_kind_at_a_time_leaves_what_the_other_left(folder: Path) -> None:
    asked = work(folder, "kinds")
    lines: list[str] = []
    for kind in ("fresh", "pretrained"):
        score.score(
            replace(asked, kinds=[kind]), ["bert-mini"], ["mood"], seeds=1, say=lines.append
        )
    said = [line.partition(":")[0] for line in lines]
    assert said == ["bert-mini mood fresh seed 1", "bert-mini mood pretrained seed 1"]
    mood = kept_scores(folder / "models" / "bert-mini")["tasks"]["mood"]
    assert list(mood["fresh"]) == list(mood["pretrained"]) == ["1"]


def test_scores_belong_to_weights(folder: Path, tmp_path: Path) -> None:
    scored(folder)
    source = folder / "models" / "bert-mini"
    model = tmp_path / "models" / "bert-mini"
    shutil.copytree(source, model)
    assert kept_scores(model)
    place_folder(source, model)  # an export of the same weights keeps them
    assert kept_scores(model) == kept_scores(source)
    other = tmp_path / "other"
    new(tiny("bert-mini"), seed=2).save(other)
    assert fingerprint(other) != fingerprint(source)
    place_folder(other, model)
    assert not (model / "scores.json").exists()
    shutil.copyfile(source / "scores.json", model / "scores.json")
    assert kept_scores(model) == {}
    entry = entries(tmp_path / "models")["bert-mini"]
    assert entry.outdated
    assert entry.tasks == {}


def test_a_causal_model_is_not_asked_for_labels_of_texts(folder: Path) -> None:
    """Its first token, which the head reads, sees nothing else."""
    lines: list[str] = []
    score.score(work(folder), ["causal-mini"], None, seeds=1, say=lines.append)
    assert "causal-mini mood: left out" in lines[0]
    assert list(kept_scores(folder / "models" / "causal-mini")["tasks"]) == ["parts"]


def test_a_failed_fine_tuning_does_not_end_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> dict[str, Any]:
        raise InputError("Fine-tuning diverged.")

    monkeypatch.setattr(score, "_tuned", fail)
    lines: list[str] = []
    score.score(work(folder, "failing"), ["bert-mini"], None, seeds=1, say=lines.append)
    assert len(lines) == 4
    assert lines[0] == "bert-mini mood pretrained seed 1: Fine-tuning diverged."


def test_rows_are_drawn_the_same_way_each_time(folder: Path) -> None:
    asked = work(folder).recipe
    first, again = (score_recipe.task_set(asked, "mood", None) for _ in range(2))
    assert first == again
    assert len(first.train) == 24
    other = asked.model_copy(update={"sample_seed": 2})
    assert score_recipe.task_set(other, "mood", None).train != first.train
    numbers = [row.number for row in first.train]
    assert numbers == sorted(numbers)
    parts = score_recipe.task_set(asked, "parts", folder)
    assert (len(parts.train), len(parts.dev)) == (16, 4)  # five texts, of which one is measured on
    texts = [line["id"] for line in map(json.loads, _lines(folder))]
    assert not {texts[r.number - 1] for r in parts.train} & {texts[r.number - 1] for r in parts.dev}


def _lines(folder: Path) -> list[str]:
    return (folder / "tasks" / "parts.jsonl").read_text().splitlines()


@pytest.mark.parametrize("name", score_recipe.read().tasks)
def test_the_shipped_recipe(name: str) -> None:
    recipe = score_recipe.read()
    task = recipe.tasks[name]
    settings = recipe.settings_of(name, seed=3)
    assert settings.seed == 3
    if task.shipped is None:
        assert task.train is not None
        assert task.train_rows is not None or name == "pos-zh"
        with pytest.raises(InputError, match="--data"):
            score_recipe.task_set(recipe, name, None)
        return
    rows = score_recipe.task_set(recipe, name, None)
    assert rows.kind == task.kind
    assert rows.chinese == (task.language == "zh")


def test_unusable_recipes_and_names(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.json"
    for change, message in (
        ({"settings": {"epoch": 3}}, r"tasks\.mood: .*epoch"),
        ({"settings": {"epochs": 0}}, "epochs is 0"),
        ({"tasks": {"x": {"title": "x", "kind": "tag"}}}, "either shipped or train"),
        (
            {"tasks": {"x": {"title": "x", "kind": "tag", "train": "x.jsonl"}}},
            "either dev or part_by",
        ),
    ):
        path.write_text(json.dumps(RECIPE | change))
        with pytest.raises(InputError, match=message):
            score_recipe.read(path)
    common = ["--recipe", str(folder / "recipe.json"), "--models", str(folder / "models")]
    common += ["--work", str(tmp_path / "work")]
    assert main(["score", "bert-maxi", *common]) == 2
    assert "no model 'bert-maxi'" in capsys.readouterr().err
    assert main(["score", "bert-mini", "--tasks", "none", *common]) == 2
    assert "No task 'none'" in capsys.readouterr().err
    assert main(["score", "bert-mini", "--tasks", "parts", *common]) == 2
    assert "--data" in capsys.readouterr().err


def test_spread_by_hand() -> None:
    found = spread([0.5, 0.7, 0.9])
    assert found is not None
    assert found.mean == pytest.approx(0.7)
    assert found.deviation == pytest.approx(0.2)
    assert found.variance_of_mean == pytest.approx(0.04 / 3)
    assert spread([0.4]) == (0.4, 0.0, 1)
    assert spread([]) is None
