"""Every lab over models that transformers runs: it answers, or says in a sentence why not."""

import asyncio
import math

import pytest

from app.labs.attention import lab as attention
from app.labs.attention.scene import Lab
from app.labs.mask import sections
from app.labs.meaning import answers as meaning
from app.labs.pairs import answers as pairs
from app.labs.terms import scene as terms
from app.labs.tokenizers import answers as tokenizers
from app.labs.why.service import Explainer
from app.serving.ask import read_ask
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import fill
from tests.app import attention_lab, test_mask_sections, test_terms_tab, why_questions
from tests.core.foreign_models import saved

TEXT = "the red fox sees a small dog"
MARKS = [{"position": 3, "case": "mask"}]
NAMES = ("mpnet", "esm")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in (*NAMES, "fnet"):
        saved(name, folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        session.models()
        yield session
        session.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_sentence_and_the_card(session, name):
    assert name in [info.name for info in session.models()]
    assert session.sentence(TEXT, name).tokens
    card = session.card(name)
    assert (card["layers"], card["width"], card["fills"]) == (3, 16, "masked")
    expected = fill(session.model(name), TEXT, masks=[3]).predictions[0].candidates[0]
    found = asyncio.run(session.fill(read_ask({"text": TEXT, "model": name, "marks": MARKS})))
    assert found.predictions[0].candidates[0].id == expected.id


@pytest.mark.parametrize("mode", [mode for mode in attention.MODES if mode != "products"])
@pytest.mark.parametrize("name", NAMES)
def test_modes_of_attention(session, name, mode):
    values = {"off": "1.0", "sweep": True} if mode == "off" else {}
    values |= {"other": "mpnet"} if mode == "compare" else {}
    found = attention_lab.ask(Lab(session), mode, name, text=TEXT, marks=MARKS, **values)
    assert "cannot be shown" not in str(found.get("said"))
    assert len(found["layer"]["choices"]) == 4
    assert set(found) - {"said", "grid", "drawn", "layer", "head"}, "nothing but a sentence"


def test_products_say_why_not(session):
    found = attention_lab.ask(Lab(session), "products", "mpnet", text=TEXT)
    assert "does not hand out the parts of a score" in str(found["said"])


def test_attention_of_a_model_without_it(session):
    with pytest.raises(InputError, match="fnet attends in a way of its own"):
        attention_lab.ask(Lab(session), "heads", "fnet", text=TEXT)


@pytest.mark.parametrize("section", [sections.together, sections.word, sections.layers])
@pytest.mark.parametrize("name", [*NAMES, "fnet"])
def test_sections_of_predict(session, name, section):
    answer = test_mask_sections.ask(session, section, 3, 5, model=name, text=TEXT, rivals=["red"])
    assert test_mask_sections.rows(answer)


@pytest.mark.parametrize("name", [*NAMES, "fnet"])
def test_why(session, name):
    asked = {"model": name, "text": TEXT, "marks": MARKS}
    found = why_questions.ask(Explainer(session), **asked, steps=60)
    assert found["error"] is None
    answer = found["answer"]
    difference = answer["value"] - answer["start"]
    assert answer["sum"] == pytest.approx(difference, abs=0.05 * max(0.5, abs(difference)))
    assert set(answer["methods"]) >= {"integrated", "gradient", "saliency", "occlusion"}


@pytest.mark.parametrize("name", NAMES)
def test_meaning(session, name):
    words = meaning.read_words("red", "the red fox sees a dog\nbirds like the red house")
    found = meaning.locate(session.model(name), words)
    assert found.vectors.shape == (2, 3 + 2, 16)
    assert found.vectors.isfinite().all()


def test_pairs_and_tokenizers(session):
    model = session.model("mpnet")
    (first, second) = (pairs.read_alone(model, text) for text in ("red fox", "small dog"))
    assert math.isfinite(pairs.cosines(model, first, second)["mean"])
    assert pairs.drawn(model, "red fox", "small dog")["pieces"]
    for name in NAMES:
        assert tokenizers.cut(session.model(name).tokenizer, TEXT).pieces


def test_terms_say_why_not(session):
    question = test_terms_tab.asked(model="mpnet", text=TEXT)
    with pytest.raises(InputError, match="does not hand out the parts of a score"):
        asyncio.run(terms.look(session, question))
