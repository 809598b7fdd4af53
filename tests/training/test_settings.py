"""config.json: what is refused, and in which words."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from core_models.data import FORMATS
from core_models.errors import InputError
from core_models.training import data_schema, settings

RECIPES = [
    path
    for path in sorted((settings.ASSETS / "recipes").glob("*.json"))
    if "model" in json.loads(path.read_text())  # what trains a language model
]
assert RECIPES


def test_names_of_choices_are_those_of_the_core() -> None:
    assert get_args(data_schema.FormatName) == FORMATS == tuple(data_schema.FORMATS)
    assert get_args(data_schema.MaskingKind) == tuple(data_schema.MASKINGS)


def minimal(**changes: Any) -> dict[str, Any]:
    return {"model": {"size": "bert-mini"}, "data": {"texts": ["a.txt"]}, "steps": 10} | changes


def test_defaults_are_filled_in() -> None:
    parsed = settings.parse(minimal())
    assert parsed.batch_size == 32
    assert parsed.masking.rate is None, "left to the family"
    assert parsed.objectives is None


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_are_valid_and_find_their_texts(recipe: Path) -> None:
    parsed = settings.read(recipe)
    assert settings.resolve_texts(parsed.data.texts, recipe.parent)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stpes": 3}, "stpes: no such field. Did you mean 'steps'?"),
        ({"optimizer": {"lr": 1e-3}}, "optimizer.lr: no such field. Allowed: kind, learning_rate"),
        ({"optimizer": {"learning_rate": -1}}, "optimizer.learning_rate = -1: "),
        ({"optimizer": {"learning_rate": "fast"}}, 'optimizer.learning_rate = "fast": '),
        ({"steps": 0}, "steps = 0: "),
        ({"steps": 1.5}, "steps = 1.5: "),
        ({"model": {}}, "model.size or model.checkpoint"),
        ({"model": {"size": "a", "checkpoint": "b"}}, "not both"),
        ({"data": {}}, "either data.texts or data.dataset"),
        ({"data": {"texts": ["a.txt"], "dataset": "b"}}, "not both"),
        ({"model": {"size": "bert-huge"}}, "No published size 'bert-huge'"),
        ({"masking": {"split": [0.8, 0.1, 0.2]}}, "must sum to 1, not to 1.1"),
        ({"objectives": {}}, "objectives = {}"),
        ({"objectives": {"translation": 1.0}}, "'masked_token', 'masked_diffusion'"),
        ({"schedule": {"warmup": 10}}, "schedule.warmup (10) must be below steps (10)"),
        ({"precision": "fp8"}, "'fp32', 'bf16' or 'auto'"),
        (
            {"model": {"size": "bert-mini", "overrides": {"positions": 64}}},
            "data.max_length (128) does not fit",
        ),
    ],
)
def test_errors_name_field_value_and_cure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        settings.parse(minimal(**changes))
    assert message in str(error.value)


def test_all_errors_come_at_once() -> None:
    with pytest.raises(InputError) as error:
        settings.parse(minimal(steps=-1, batch_size=0))
    assert "steps = -1" in str(error.value)
    assert "batch_size = 0" in str(error.value)


@pytest.mark.parametrize("values", [None, 3, [], "text"])
def test_other_json_is_refused(values: Any) -> None:
    with pytest.raises(InputError):
        settings.parse(values)


def test_files_that_are_missing_or_not_json(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        settings.read(tmp_path / "config.json")
    (tmp_path / "config.json").write_text('{"steps": 1,}')
    with pytest.raises(InputError, match=r"is not JSON: .* \(line 1, column 13\)"):
        settings.read(tmp_path / "config.json")


def test_texts_beside_the_config_come_before_the_assets(tmp_path: Path) -> None:
    (tmp_path / "primer").mkdir()
    own = tmp_path / "primer" / "english-world.txt"
    own.write_text("Mine.\n")
    assert settings.resolve_texts(["primer/english-world.txt"], tmp_path) == [own]
    shipped = settings.resolve_texts(["primer/english-*.txt"], tmp_path / "primer")
    assert len(shipped) == 4
    with pytest.raises(InputError, match=r"nothing matches 'nowhere\.txt'"):
        settings.resolve_texts(["nowhere.txt"], tmp_path)


def test_changes_ignore_what_does_not_alter_the_sums() -> None:
    before = settings.parse(minimal()).model_dump(mode="json")
    harmless = settings.parse(minimal(name="x", report_every=1, threads=1)).model_dump(mode="json")
    assert settings.changes(before, json.loads(json.dumps(harmless))) == []
    other = settings.parse(minimal(optimizer={"learning_rate": 0.1})).model_dump(mode="json")
    assert settings.changes(before, other) == ["optimizer.learning_rate"]
