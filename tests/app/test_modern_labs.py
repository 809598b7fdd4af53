"""Every lab over a ModernBERT of the core whose local layers see two pieces on each side.

And the labs that look inside over a DistilBERT and an EuroBERT with groups of heads.
"""

import asyncio
from dataclasses import replace

import pytest

import core_models as cm
from app.labs.attention import lab as attention
from app.labs.attention.scene import Lab
from app.labs.budget import answers as budget
from app.labs.mask import sections
from app.labs.meaning import answers as meaning
from app.labs.pairs import answers as pairs
from app.labs.terms import said
from app.labs.terms import scene as terms
from app.labs.why.service import Explainer
from app.runs.forms import form
from app.serving.ask import read_ask
from app.serving.session import Session
from core_models.prediction import fill, lens
from tests.app import attention_lab, test_mask_sections, test_terms_tab, why_questions
from tests.core.tiny_models import new, tiny

TEXT = "the red fox sees a small dog"
MARKS = [{"position": 3, "case": "mask"}]
NAME = "modernbert-tiny"
OTHERS = ("distilbert-tiny", "eurobert-tiny", "neobert-tiny")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    config = tiny("modernbert-base", layers=4, width=16)
    config = replace(config, attention=replace(config.attention, window=2))
    new(config).save(folder / NAME)
    for name in OTHERS:
        size = next(s for s in cm.sizes() if s.startswith(name.removesuffix("-tiny")))
        config = tiny(size, width=16, inner=24)
        parts = config.attention
        grouped = replace(parts, key_heads=1 if size.startswith("euro") else None)
        new(replace(config, attention=grouped)).save(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        session.models()
        yield session
        session.close()


def test_the_sentence_and_the_card(session):
    info = next(info for info in session.models() if info.name == NAME)
    assert info.family == "modernbert"
    assert session.card(NAME)["layers"] == 4
    expected = fill(session.model(NAME), TEXT, masks=[3]).predictions[0].candidates[0]
    found = asyncio.run(session.fill(read_ask({"text": TEXT, "model": NAME, "marks": MARKS})))
    assert found.predictions[0].candidates[0].id == expected.id


def test_the_last_layer_of_the_lens_is_the_prediction_and_earlier_ones_are_normed(session):
    model = session.model(NAME)
    found = lens(model, TEXT, 3)
    best = fill(model, TEXT, masks=[3]).predictions[0].candidates[0]
    assert found.layers[-1].prediction.candidates[0].probability == pytest.approx(best.probability)
    assert len(found.layers) == 5


@pytest.mark.parametrize("mode", attention.MODES)
def test_modes_of_attention(session, mode):
    values = {"off": "1.0", "sweep": True} if mode == "off" else {}
    values |= {"other": "bert-mini"} if mode == "compare" else {}
    found = attention_lab.ask(Lab(session), mode, NAME, text=TEXT, marks=MARKS, **values)
    assert "cannot be shown" not in str(found.get("said"))
    assert set(found) - {"said", "grid", "drawn", "layer", "head"}, "nothing but a sentence"


@pytest.mark.parametrize("section", [sections.together, sections.word, sections.layers])
def test_sections_of_predict(session, section):
    answer = test_mask_sections.ask(session, section, 3, 5, model=NAME, text=TEXT, rivals=["red"])
    assert test_mask_sections.rows(answer)


def test_why(session):
    asked = {"model": NAME, "text": TEXT, "marks": MARKS}
    found = why_questions.ask(Explainer(session), **asked, steps=60)
    assert found["error"] is None
    answer = found["answer"]
    difference = answer["value"] - answer["start"]
    assert answer["sum"] == pytest.approx(difference, abs=0.05 * max(0.5, abs(difference)))


def test_meaning_and_pairs(session):
    words = meaning.read_words("red", "the red fox sees a dog\nbirds like the red house")
    found = meaning.locate(session.model(NAME), words)
    assert found.vectors.shape == (2, 4 + 2, 16)
    assert found.vectors.isfinite().all()
    assert pairs.drawn(session.model(NAME), "red fox", "small dog")["pieces"]


def test_terms_have_one_summand(session):
    looked = asyncio.run(terms.look(session, test_terms_tab.asked(model=NAME, text=TEXT)))
    assert looked.reader == NAME
    assert "turned by their positions" in str(said.notes(looked))


@pytest.mark.parametrize("name", OTHERS)
def test_labs_that_look_inside_other_families(session, name):
    found = attention_lab.ask(Lab(session), "products", name, text=TEXT, marks=MARKS)
    assert "cannot be shown" not in str(found.get("said"))
    looked = asyncio.run(terms.look(session, test_terms_tab.asked(model=name, text=TEXT)))
    assert looked.reader == name
    asked = {"model": name, "text": TEXT, "marks": MARKS}
    assert why_questions.ask(Explainer(session), **asked, steps=20)["error"] is None
    assert pairs.drawn(session.model(name), "red fox", "small dog")["pieces"]
    assert len(lens(session.model(name), TEXT, 3).layers) == 3
    optimized = cm.optimize_for_inference(session.model(name))
    plain = session.model(name)(TEXT).logits["masked_token"]
    assert (optimized(TEXT).logits["masked_token"] - plain).abs().max() < 1e-4


def test_budget_counts_a_size_of_ones_own_and_the_local_layers():
    own = {"base": "modernbert-base", "vocabulary": 8000, "embedding": 256, "width": 256}
    own |= {"layers": 7, "heads": 4, "inner": 384, "sharing": "none"}
    config = budget.read_own(own)
    assert config.kinds.count("local") == 4
    parts = budget.parts_of(config)
    assert sum(parts.values()) == budget.counted(config).pretraining
    assert parts["positions"] == parts["relative"] == 0
    per_token = [budget.describe("own", config, length)["per_token"] for length in (512, 4096)]
    square = budget.describe("all", replace(config, layer_kinds=("global",)), 4096)["per_token"]
    assert per_token[0] < per_token[1] < square


def test_train_offers_the_family_by_a_size_that_is_cut_from():
    offered = next(each for each in form.families() if each["name"] == "modernbert")
    assert (offered["title"], offered["size"]) == ("ModernBERT", "ettin-encoder-17m")
    assert offered["objectives"] == ["masked_token"]
