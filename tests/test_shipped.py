"""The models in assets/models: small files, complete cards, sensible answers."""

import json

import pytest

import core_models as cm
from core_models.evaluation import evaluate_capitals, evaluate_forgeries
from core_models.model import SHIPPED

NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
DETECTIVES = [name for name in NAMES if f"{name}-generator" in NAMES]
BEGINNERS = {"xlnet-mini"}
"""Read 1.6 million tokens, as the card says: fills gaps with fitting words and knows no facts."""
FILLERS = [name for name in NAMES if name not in DETECTIVES and name not in BEGINNERS]


def shipped(name: str) -> cm.Model:
    """By its folder: the page's tests, in the same process, know one shipped model by name."""
    return cm.load(SHIPPED / name)


def test_files_are_small_enough_for_plain_git() -> None:
    sizes = [path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()]
    assert max(sizes) <= 10_000_000
    assert sum(sizes) <= 130_000_000


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_card_and_loads(name: str) -> None:
    card = json.loads((SHIPPED / name / "cloze.json").read_text(encoding="utf-8"))
    model = shipped(name)
    assert set(card["trained"]) == set(model.heads)
    text = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in text
    assert "CC0" in text


@pytest.mark.parametrize("name", FILLERS)
def test_most_capitals_of_the_atlas_are_known(name: str) -> None:
    found = evaluate_capitals(shipped(name))
    assert found.in_first_five > found.asked / 2


@pytest.mark.parametrize("name", DETECTIVES)
def test_forged_words_are_told_from_real_ones(name: str) -> None:
    sentences = [
        "Bees make honey, and the bees fly from flower to flower.",
        "The river runs through the middle of the city.",
        "In winter the lake is covered with snow.",
    ] * 10
    found = evaluate_forgeries(shipped(f"{name}-generator"), shipped(name), sentences)
    assert found.auc > 0.7
