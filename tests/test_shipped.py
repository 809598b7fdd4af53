"""The models in assets/models: small files, complete cards, sensible answers."""

import json

import pytest
import torch
import transformers

import core_models as cm
from app.serving import examples
from core_models.checkpoints.files import read_tensors
from core_models.evaluation import evaluate_capitals, evaluate_forgeries
from core_models.model import SHIPPED
from core_models.prediction import fill
from zoo import ship

NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
DETECTIVES = [name for name in NAMES if f"{name}-generator" in NAMES]
BEGINNERS = {"causal-mini"}
"""Fills gaps with fitting words and knows few facts, as its card says."""
CHINESE = {name for name in NAMES if name.endswith("-chinese")}
FILLERS = [name for name in NAMES if name not in {*DETECTIVES, *BEGINNERS, *CHINESE}]


def shipped(name: str) -> cm.Model:
    """By its folder: the page's tests, in the same process, know one shipped model by name."""
    return cm.load(SHIPPED / name)


def test_files_are_small_enough_for_plain_git() -> None:
    sizes = [path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()]
    assert max(sizes) <= ship.LARGEST_FILE
    assert sum(sizes) <= ship.LARGEST_SET


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_card_and_loads(name: str) -> None:
    card = json.loads((SHIPPED / name / "cloze.json").read_text(encoding="utf-8"))
    model = shipped(name)
    assert set(card["trained"]) == set(model.heads)
    text = (SHIPPED / name / "README.md").read_text(encoding="utf-8")
    assert "license: apache-2.0" in text
    assert "CC0" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_model_is_in_half_precision_and_measured(name: str) -> None:
    assert {t.dtype for t in read_tensors(SHIPPED / name).values()} == {torch.float16}
    assert {p.dtype for p in shipped(name).parameters()} == {torch.float32}
    figures = json.loads((SHIPPED / name / "evaluation.json").read_text(encoding="utf-8"))
    assert {"tokens", "seconds", "machine", "held_out"} <= figures["run"].keys()
    if name in DETECTIVES:
        assert figures["forgeries"]["tokens"] >= 2000
    else:
        assert figures["words"]["words"] >= 2000


@pytest.mark.parametrize("name", NAMES)
def test_transformers_opens_the_same_encoder(name: str) -> None:
    """In float32, as config.json says; to 1e-4 of hidden states of size 1."""
    model = shipped(name)
    theirs = transformers.AutoModel.from_pretrained(SHIPPED / name).eval()
    assert theirs.dtype == torch.float32
    batch = model.batch(["In winter the lake is covered with snow."])
    with torch.inference_mode():
        expected = theirs(input_ids=batch.input_ids, token_type_ids=batch.segment_ids)[0]
        found = model.encoder(batch).hidden
    assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DETECTIVES])
def test_the_examples_of_the_page_show_what_a_model_can_do(name: str) -> None:
    model = shipped(name)
    ranks = {}
    for example in examples.examples_of(model):
        places = positions(model, example["text"], example["hide"])
        found = fill(model, example["text"], masks=places, top_k=1)
        ranks[example["name"]] = [p.original.rank for p in found.predictions if p.original]
    blind = ranks.pop(examples.BLIND["name"], None)
    assert blind is None or min(blind) > 5, blind
    assert all(max(found) <= 5 for found in ranks.values()), ranks
    assert sum(found == [1] * len(found) for found in ranks.values()) > len(ranks) / 2, ranks


def positions(model: cm.Model, text: str, words: list[str]) -> list[int]:
    """Pieces of the first place of each word."""
    places = [(start, start + len(w)) for w in words for start in [text.lower().index(w)]]
    (encoding,) = model.encode([text])
    return [
        position
        for position, (start, stop) in enumerate(encoding.offsets)
        if not encoding.special[position]
        and any(start < end and stop > begin for begin, end in places)
    ]


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
