"""What the page says about a model."""

import json
import re
import shutil

import pytest
from playwright.sync_api import expect

import core_models as cm
from app.page.proof import compare
from app.page.sentence import read
from app.serving.model_card import card
from app.serving.model_titles import HEADS
from core_models import InputError
from tests.app.held import Held


def test_the_shipped_model(session, model):
    found = session.card("bert-mini")
    heads = {badge["head"]: badge["state"] for badge in found["heads"]}
    assert heads == {"masked_token": "trained", "next_sentence": "trained"}
    assert found["parameters"] == sum(p.numel() for p in model.parameters())
    assert (found["layers"], found["width"], found["longest"]) == (4, 256, 128)
    assert read(session, "The sky is blue.", "bert-mini")["card"] == found
    assert "card" not in read(session, "The sky is blue.", "nobody")
    json.dumps(found)


def test_the_page_has_a_word_for_every_head(static_folder):
    script = (static_folder / "page" / "model-card.js").read_text("utf-8")
    (words,) = re.findall(r"HEADS = texts\(\{(.*?)\}\)", script, re.S)
    assert {*re.findall(r"(\w+):", words)} == {*HEADS}


def test_figures_notes_and_missing_heads(model, tmp_path):
    folder = tmp_path / "other"
    model.save(folder)
    plain = card(model, folder, "")
    assert {badge["state"] for badge in plain["heads"]} == {"converted"}
    assert (plain["tokens"], plain["figures"]) == (None, [])

    (folder / "evaluation.json").write_text(
        json.dumps(
            {
                "run": {"tokens": 12, "note": "Short."},
                "words": {"accuracy": 0.25},
                "text_pairs": {"accuracy": 0.75, "pairs": 8},
            }
        )
    )
    known = card(model, folder, "A model.")
    assert (known["tokens"], known["note"]) == (12, "Short.")
    assert known["figures"] == [["hidden words right", 0.25], ["pairs of texts told right", 0.75]]
    assert known["text_pairs"] == {"accuracy": 0.75, "pairs": 8}

    (folder / "evaluation.json").write_text("{")
    assert card(model, folder, "")["figures"] == []

    bare = tmp_path / "bare"
    cm.Model.new(model.config, model.tokenizer, heads=["masked_token"]).save(bare)
    missing = {badge["head"]: badge["state"] for badge in card(cm.load(bare), bare, "")["heads"]}
    assert missing == {"masked_token": "converted", "next_sentence": "missing"}
    shutil.rmtree(bare)


def test_the_page_names_heads_and_opens_the_rest(cloze):
    page = cloze.page
    badges = page.locator(".model-card .badge")
    expect(badges).to_have_count(2)
    cloze.unfold("Model")
    named = ["masked token\ntrained here", "next sentence\ntrained here"]
    expect(badges).to_have_text(named, use_inner_text=True)
    facts = dict(
        zip(
            page.locator(".model-card dt").all_inner_texts(),
            page.locator(".model-card dd").all_inner_texts(),
            strict=True,
        )
    )
    assert facts["Layers × width"] == "4 × 256"
    assert facts["Attention"] == "full"
    assert facts["Parameters"] == f"{sum(p.numel() for p in cm.load('bert-mini').parameters()):,}"


def test_the_same_sentence_through_transformers(cloze, session):
    """In float32 the two agree to the last digits; another sentence takes the answer away."""
    cloze.unfold("Model")
    button = cloze.page.get_by_role("button", name="The same sentence through transformers")
    button.click()
    said = cloze.page.get_by_text("bert-mini as BertForPreTraining of transformers")
    expect(said).to_be_visible()
    found = re.findall(r": (0|\d\.\de-\d\d)\.", said.inner_text())
    assert len(found) == 3
    assert max(map(float, found)) < 1e-4
    cloze.write("Bees make honey.")
    expect(said).to_be_hidden()
    with pytest.raises(InputError, match="There is no text yet"):
        compare(session, {"text": " ", "model": "bert-mini"})


def test_what_is_said_of_a_sentence_that_was_there_before_is_not_shown(cloze):
    cloze.unfold("Model")
    held = Held(cloze.page, "/run/predict")
    cloze.page.get_by_role("button", name="The same sentence through transformers").click()
    held.wait().what = lambda request: False
    cloze.write("Bees make honey.")
    with cloze.page.expect_response(re.compile("/run/predict")):
        held.end()
    cloze.rest()
    expect(cloze.page.get_by_text("as BertForPreTraining of transformers")).to_be_hidden()
