"""A causal head over a model that sees both sides (GPT-BERT): nothing says that it does not."""

import asyncio
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.mask import models as mask_models
from app.labs.mask import said
from app.labs.why import answers as why
from app.labs.why.service import Explainer
from app.serving import examples
from app.serving.session import Session
from core_models.prediction.passes import kind_of
from tests.app.test_mask_sections import FRANCE, ask
from tests.app.why_questions import question
from tests.core.tiny_models import narrow

BOTH, LEFT = "tiny-both", "tiny-left"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A session over two such models: one that sees both sides, one that reads from the left."""
    folder = tmp_path_factory.mktemp("both")
    words = cm.load("bert-mini").tokenizer
    config = cm.size("bert-tiny").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    config = narrow(config, width=32, inner=64, objectives=("causal",))
    left = replace(config, attention=replace(config.attention, direction="left"))
    left = replace(left, masking=replace(left.masking, kind="none"))
    for name, made in ((BOTH, config), (LEFT, left)):
        source = torch.Generator().manual_seed(4)
        cm.Model.new(made, words, heads=["causal"], generator=source).save(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        session.models()
        yield session
        session.close()


def test_kinds():
    assert kind_of(["masked_token", "causal"], leftward=False) == "masked"
    assert kind_of(["causal"], leftward=True) == "causal"
    assert kind_of(["causal"], leftward=False) == "before"
    assert kind_of(["permutation"], leftward=True) == "order"
    assert kind_of(["replaced_token"], leftward=False) is None


def test_cards_and_titles(pair):
    both, left = pair.card(BOTH), pair.card(LEFT)
    assert (both["fills"], both["sees"], both["learnt"]) == ("before", ["full"], ["causal"])
    assert (left["fills"], left["sees"], left["learnt"]) == ("causal", ["causal"], [])
    plain = pair.card("bert-mini")
    assert (plain["fills"], plain["sees"], plain["learnt"]) == ("masked", ["full"], [])
    titles = {name: title for title, name in pair.choices()}
    assert titles[BOTH] == f"{BOTH} · gaps from the place before"
    assert titles[LEFT] == f"{LEFT} · next token"
    by_name = {info.name: info.left_to_right for info in pair.models()}
    assert (by_name[BOTH], by_name[LEFT], by_name["bert-mini"]) == (False, True, False)


def test_examples_are_those_of_its_direction(pair):
    assert examples.examples_of(pair.model(LEFT)) == examples.FROM_THE_LEFT
    assert examples.examples_of(pair.model(BOTH)) == examples.EXAMPLES


def test_side_by_side(pair):
    answer = ask(pair, mask_models.models, 6, text=FRANCE, models=[BOTH, "bert-mini"])
    kinds = {entry["name"]: entry["kind"] for entry in answer["models"]}
    assert kinds == {BOTH: "before", "bert-mini": "masked"}
    assert said.ONE_SIDED not in answer["said"]
    assert "both sides" in said.SEES["before"]
    answer = ask(pair, mask_models.models, 6, text=FRANCE, models=[LEFT, "bert-mini"])
    assert said.ONE_SIDED in answer["said"]
    # A model that reads from the left is what stands beside a model at first.
    answer = ask(pair, mask_models.models, 6, text=FRANCE, model=BOTH)
    assert [entry["name"] for entry in answer["models"]] == [BOTH, LEFT]


def test_a_baseline_of_what_reads_masks(pair):
    """What has read [MASK] in its training is measured from [MASK]."""
    explainer = Explainer(pair)

    async def start(name):
        asked = question(model=name, marks=[{"position": 6, "case": "mask"}])
        _, planned, _ = await explainer.plan(why.read(asked))
        return planned.options.baseline

    assert {name: asyncio.run(start(name)) for name in (BOTH, LEFT)} == {BOTH: "mask", LEFT: "zero"}
