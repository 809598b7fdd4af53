"""What is done with an opened model on the page: compared, counted, put out of memory, refused."""

import json

import pytest
from playwright.sync_api import expect

import core_models as cm
import core_models.model as shipped
from tests.app.conftest import MODEL
from tests.app.test_opened_browser import forget, name_it
from tests.app.visitors import take

PARENT = "google-bert/bert-base-uncased"
OTHER = "somebody/other"
LINK = f"#text=The+capital+of+France+is+Paris.&model={MODEL}&marks=4"
CHOSEN = "name => Cloze.sentence.model === name && Cloze.sentence.tokens.length"


@pytest.fixture(name="parent")
def published(there, session):
    """A hub with the shipped model under the name of its parent; nothing is open afterwards."""
    there.add(PARENT, shipped.SHIPPED / MODEL)
    yield there
    forget(session)


def open_it(page, name: str) -> None:
    page.get_by_role("button", name="Open it", exact=True).click()
    page.wait_for_function(CHOSEN, arg=f"hub/{name}")


@pytest.mark.slow
def test_a_shipped_model_stands_beside_its_parent_after_one_click(visit, parent):
    cloze = visit(link=LINK)
    page = cloze.page
    page.get_by_role("button", name="Several models side by side").click()
    expect(page.get_by_text(f"Published of this kind: {PARENT}, 110.1 million")).to_be_visible()
    beside = page.get_by_role("button", name="Beside its published parent")
    beside.click()
    expect(page.get_by_text(f"{PARENT}: 5.4 million parameters. 11.0 of 11.0 MB")).to_be_visible()
    assert not parent.fetched(".safetensors")
    open_it(page, PARENT)
    for column, name in enumerate([MODEL, PARENT]):
        expect(page.locator(f"#mask-model-{column} .gtitle")).to_have_text(name)
    expect(beside).to_be_hidden()


@pytest.mark.slow
def test_the_budget_offers_the_opened_model_with_its_exact_count(visit, parent):
    cloze = visit(link=LINK)
    page = cloze.page
    name_it(page, PARENT)
    open_it(page, PARENT)
    page.evaluate("Cloze.openTab('budget')")
    page.get_by_role("button", name="This model", exact=True).click()
    count = cm.inspect(shipped.SHIPPED / MODEL).parameters
    said = page.locator("#budget-said")
    expect(said).to_contain_text(f"hub/{PARENT} has {count:,} parameters in its files.")


@pytest.mark.slow
def test_a_model_that_was_put_out_of_memory_answers_again(visit, parent, session, monkeypatch):
    monkeypatch.setattr(session._of_others, "most", 1)  # one at a time
    cloze = visit(link=LINK)
    page = cloze.page
    parent.add(OTHER, shipped.SHIPPED / MODEL)
    for name in (PARENT, OTHER):
        name_it(page, name)
        open_it(page, name)
    assert len(session._of_others._models) == 1
    titles = dict(map(reversed, session.choices()))
    take(page.locator("#sentence-model input"), titles[f"hub/{PARENT}"])
    page.wait_for_function(CHOSEN, arg=f"hub/{PARENT}")
    page.evaluate("Cloze.change({marks: new Map()})")
    cloze.chip("Paris").click()
    cloze.settle()
    assert len(cloze.rows(6)) == 5
    assert list(session._of_others._models) == [session.folder(f"hub/{PARENT}")]


@pytest.mark.slow
def test_after_a_restart_of_the_server_the_page_says_what_to_do(visit, parent, session):
    cloze = visit(link=LINK)
    page = cloze.page
    name_it(page, PARENT)
    open_it(page, PARENT)
    forget(session)
    cloze.chip("Paris").click()
    told = f"The model “hub/{PARENT}” is not open here. Open it beside the list of models."
    expect(page.get_by_text(told).first).to_be_visible()
    fetched = len(parent.fetched(".safetensors"))
    name_it(page, PARENT)
    expect(page.get_by_text("All of its 11.0 MB are here.")).to_be_visible()
    page.get_by_role("button", name="Open it", exact=True).click()
    expect(page.locator("#open-model")).to_be_hidden()
    expect(page.locator('.guess[data-position="6"] button.candidate')).to_have_count(5)
    assert len(parent.fetched(".safetensors")) == fetched


@pytest.mark.slow
def test_a_tokenizer_bomb_is_a_sentence_and_does_no_harm(visit, there, folder, session):
    file = folder / "tokenizer.json"
    rules = json.loads(file.read_text("utf-8"))
    bomb = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"}
    rules["normalizer"] = {"type": "Sequence", "normalizers": [bomb] * 9}
    file.write_text(json.dumps(rules), "utf-8")
    there.add(OTHER, folder)
    page = visit(link=LINK).page
    name_it(page, OTHER)
    page.get_by_role("button", name="Open it", exact=True).click()
    expect(page.get_by_text("replacements make up to 134217728 characters")).to_be_visible()
    assert page.evaluate("Cloze.sentence.model") == MODEL
    assert session.opened.models() == []
