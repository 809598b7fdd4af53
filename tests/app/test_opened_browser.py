"""Opening a model of the hub on the page: told before, fetched, cancelled, used, shared."""

import re
import threading
from importlib.resources import files

import pytest
from playwright.sync_api import expect

import core_models.model as shipped
from tests.app.conftest import MODEL
from tests.app.held import Held
from tests.app.test_accessibility import ALL, RUN
from tests.app.visitors import PAINTED, PATIENCE
from tests.stand_in_hub import stand_in

NAME = "somebody/small-bert"
SHOWN = f"hub/{NAME}"
LINK = f"#text=The+capital+of+France+is+Paris.&model={SHOWN.replace('/', '%2F')}&marks=4"
CHOSEN = f"() => Cloze.sentence.model === '{SHOWN}' && Cloze.sentence.tokens.length"


@pytest.fixture(name="there")
def hub_here(tmp_path, session):
    """A hub with the shipped model under another name; nothing of it is open afterwards."""
    with pytest.MonkeyPatch.context() as patch, stand_in(patch, tmp_path / "cache") as hub:
        hub.add(NAME, shipped.SHIPPED / MODEL)
        hub.add("somebody/gated", shipped.SHIPPED / MODEL, status=401, error="GatedRepo")
        yield hub
    forget(session)


def forget(session) -> None:
    """As after a restart of the server."""
    session.opened._found = {}
    session._of_others._models.clear()


def unfold(page):
    page.get_by_role("button", name="Open a model", exact=True).click()
    return (
        page.get_by_role("listbox", name="Model of the hub, or a folder")
        .or_(page.get_by_label("Model of the hub, or a folder"))
        .first
    )


def name_it(page, name: str) -> None:
    box = unfold(page)
    box.fill(name)
    box.press("Enter")


@pytest.mark.slow
def test_a_model_is_opened_cancelled_opened_again_and_used(visit, there, session):
    held = threading.Event()
    there.repositories[NAME].held = held
    cloze = visit()
    page = cloze.page
    name_it(page, NAME)
    expect(
        page.get_by_text(f"{NAME}: 5.4 million parameters. 11.0 of 11.0 MB come")
    ).to_be_visible()
    assert not there.fetched(".safetensors")
    page.get_by_role("button", name="Open it", exact=True).click()
    bar = page.get_by_role("progressbar", name="How much of the model is here")
    page.wait_for_function(
        "() => { const at = document.querySelector('.open-progress progress')?.value; "
        "return at > 0.2 && at < 0.9; }"
    )
    page.get_by_role("button", name="Cancel", exact=True).click()
    assert session.opened.job.cancelled.wait(PATIENCE / 1000)  # else the rest may be here before
    held.set()
    expect(page.get_by_text("was cancelled; what is here is kept")).to_be_visible()
    expect(bar).to_be_hidden()
    assert page.evaluate("Cloze.sentence.model") == MODEL
    there.repositories[NAME].held = None
    page.get_by_role("button", name="Open it", exact=True).click()
    page.wait_for_function(CHOSEN)
    expect(page.locator("#open-model")).to_be_hidden()
    cloze.chip("France").click()
    cloze.settle()
    assert len(cloze.rows(4)) == 5
    assert f"model={SHOWN.replace('/', '%2F')}" in page.url
    page.get_by_role("button", name="Share", exact=True).click()
    link = page.get_by_role("textbox", name="Link to this view")
    expect(link).to_have_value(re.compile(re.escape(LINK) + "$"))
    page.keyboard.press("Escape")
    page.evaluate("Cloze.openTab('attention')")
    page.wait_for_function("() => Cloze.place.tab === 'attention'")
    expect(page.locator("#tab-attention [data-picture]").first).to_be_visible()
    cloze.rest()
    # Another visitor finds it in the list, a link opens with it.
    other = visit(link=LINK)
    other.page.wait_for_function(CHOSEN)
    assert other.marked() == [4]


@pytest.mark.slow
def test_a_link_asks_before_anything_is_fetched_and_goes_on_where_it_had_to_wait(
    visit, there, session
):
    cloze = visit(link=LINK)
    page = cloze.page
    expect(page.get_by_text("11.0 of 11.0 MB come from the hub")).to_be_visible()
    assert not any("/resolve/" in path for _, path, _ in there.asked)
    assert page.evaluate("Cloze.sentence.model") == MODEL
    assert page.evaluate("Cloze.sentence.text") == "The capital of France is Paris."
    page.get_by_role("button", name="Open it", exact=True).click()
    page.wait_for_function(CHOSEN)
    page.wait_for_function("() => Cloze.sentence.marks.size === 1")
    assert cloze.marked() == [4]
    forget(session)
    again = visit(link=LINK)
    expect(again.page.get_by_text("All of its 11.0 MB are here.")).to_be_visible()
    again.page.get_by_role("button", name="Open it", exact=True).click()
    again.page.wait_for_function(CHOSEN)
    assert len(there.fetched("model-00001-of-00002.safetensors")) == 1


def test_what_cannot_be_opened_is_said_and_a_later_name_takes_its_place(visit, there):
    page = visit().page
    name_it(page, "somebody/gated")
    expect(page.get_by_text("is gated: accept its terms on the hub")).to_be_visible()
    expect(page.get_by_role("button", name="Open it", exact=True)).to_be_hidden()
    box = page.get_by_label("Model of the hub, or a folder").first
    box.fill("<b>no</b>")
    box.press("Enter")
    expect(page.get_by_text("“<b>no</b>” is no folder with a config.json here")).to_be_visible()
    box.fill(NAME)
    box.press("Enter")
    expect(page.get_by_role("button", name="Open it", exact=True)).to_be_visible()
    expect(page.locator("#open-problem p")).to_be_hidden()


@pytest.mark.slow
def test_a_look_that_comes_late_offers_nothing_under_another_name(visit, there):
    cloze = visit()
    page = cloze.page
    go = page.get_by_role("button", name="Open it", exact=True)
    held = Held(page, "/gradio_api/run/predict", lambda it: '"somebody/' in (it.post_data or ""))
    name_it(page, NAME)
    held.wait()
    page.evaluate(OFFERED)
    box = page.get_by_label("Model of the hub, or a folder").first
    box.fill("somebody/gated")
    box.press("Enter")
    page.evaluate(PAINTED)
    with page.expect_response("**/run/predict"):
        held.give()
    held.wait()  # it is asked about the other one now
    held.give()
    expect(page.get_by_text("is gated: accept its terms on the hub")).to_be_visible()
    expect(go).to_be_hidden()
    assert page.evaluate("offered") == []
    # Named again, it is offered again.
    box.fill(NAME)
    box.press("Enter")
    held.wait().end()
    expect(go).to_be_visible()
    expect(page.get_by_text("5.4 million parameters. 11.0")).to_be_visible()
    page.wait_for_function("name => offered.includes(name)", arg=NAME)
    assert set(page.evaluate("offered")) == {NAME}


# Names that were there, if only for a moment, when the button was.
OFFERED = """() => {
  window.offered = [];
  new MutationObserver(() => {
    const go = document.getElementById('open-go');
    const named = document.querySelector('#open-named input').value;
    if (go?.checkVisibility()) window.offered.push(named);
  }).observe(document.getElementById('open-model'), {
    subtree: true, attributes: true, childList: true, // Gradio takes hidden buttons out of the page
  });
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_fold_is_read_by_everybody(visit, there, width, dark):
    cloze = visit(width=width, dark=dark)
    page = cloze.page
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
    name_it(page, NAME)
    expect(page.get_by_role("button", name="Open it", exact=True)).to_be_visible()
    assert page.evaluate(RUN, ["#sentence", ALL]) == []
    assert cloze.overflow() <= 0
    page.evaluate("Cloze.openTab('meaning')")
    page.wait_for_function("() => Cloze.place.tab === 'meaning'")
    expect(page.get_by_role("button", name="Open it", exact=True)).to_be_visible()
    assert cloze.overflow() <= 0


@pytest.mark.slow
def test_in_chinese_nothing_is_left_in_english(visit, there):
    page = visit(link="?lang=zh").page
    page.get_by_role("button", name="打开模型", exact=True).click()
    box = page.get_by_label("Hub上的模型，或一个文件夹").first
    box.fill(NAME)
    box.press("Enter")
    said = page.locator("#open-said p")
    expect(said).to_contain_text(f"{NAME}：5.4M参数。")
    expect(said).to_contain_text("其中11.0 MB（共11.0 MB）要从Hub下载。")
    page.get_by_role("button", name="打开", exact=True).click()
    page.wait_for_function(CHOSEN)
    expect(page.locator("#sentence-model input")).to_have_value(f"{NAME} · 填空、下一句")
    assert page.evaluate("[...ClozeLanguage.missing]") == []
