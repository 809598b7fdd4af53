"""The Budget lab in Chromium: what is shown against the core, own sizes, times, links."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

import core_models as cm
from app.serving import locales

LINK = "#text=Paris&model=bert-mini&tab=budget"


class Lab:
    """The Budget lab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_function("!!Cloze.openTab")
        self.page.evaluate("Cloze.openTab('Budget')")
        self.bars = self.page.get_by_role(
            "group", name=re.compile("Parameters by part|各部分的参数")
        )
        self.bars.wait_for()

    def shows(self, *names):
        """Wait until the bars are those of these sizes."""
        self.page.wait_for_function(
            """names => {
              const plot = document.querySelector('#budget-bars .js-plotly-plot');
              return JSON.stringify(plot?.data[0]?.y ?? []) === JSON.stringify(names);
            }""",
            arg=list(names),
        )

    def try_(self, name):
        self.page.get_by_role("radio", name=name).check()

    def fold(self, name):
        self.page.get_by_role("button", name=name).click()

    def costs(self):
        return self.page.locator("#budget-costs")


@pytest.fixture
def lab(module_page):
    """One page for most of these tests, with the sizes that it opens with."""
    lab = Lab(module_page)
    yield lab
    assert module_page.problems == []


def test_the_numbers_are_those_of_the_core(lab):
    lab.try_("BERT against ALBERT")
    lab.shows("bert-base-uncased", "albert-base")
    said = lab.page.get_by_text("9.3 times fewer parameters than bert-base-uncased")
    expect(said).to_be_visible()
    lab.page.locator("#budget-bars").get_by_text("The numbers").click()
    cells = lab.page.locator("#budget-bars tr", has_text="With pretraining heads").get_by_role(
        "cell"
    )
    wanted = [cm.count(n).pretraining for n in ("bert-base-uncased", "albert-base")]
    expect(cells).to_have_text([f"{count:,}" for count in wanted])


def test_an_own_size_is_counted_and_a_wrong_one_explained(lab):
    lab.try_("BERT against ALBERT")
    lab.shows("bert-base-uncased", "albert-base")
    lab.fold("A size of your own")
    heads = lab.page.get_by_label("Number of heads")
    heads.fill("6")
    lab.shows("bert-base-uncased", "albert-base", "own size")
    expect(lab.page.get_by_label("Show it")).to_be_checked()
    heads.fill("7")
    problem = lab.page.get_by_text("Number of heads is 7; it must divide a width of 768")
    expect(problem).to_be_visible()
    heads.fill("8")
    expect(problem).to_be_hidden()
    lab.shows("bert-base-uncased", "albert-base", "own size")


def test_what_a_link_holds_and_is_refused_can_be_corrected_at_once(visit):
    state = quote(json.dumps({"length": 0, "own": {"width": 0}}))
    page = visit(link=f"{LINK}&lab-budget={state}").page
    length = page.get_by_label("Tokens in the sequence")
    expect(page.get_by_text("Tokens in the sequence is 0; it must be")).to_be_visible()
    expect(length).to_be_visible()
    expect(page.get_by_label("Inner width")).to_be_hidden()
    length.fill("128")
    expect(page.get_by_text("Hidden width, H is 0; it must be")).to_be_visible()
    expect(page.get_by_label("Inner width")).to_be_visible()


@pytest.mark.slow
def test_a_pass_is_measured_on_request(lab):
    lab.try_("BERT against ALBERT")
    lab.fold("Parameters, bytes, operations, time")
    length = lab.page.get_by_label("Tokens in the sequence")
    length.fill("8")
    expect(lab.costs()).to_contain_text("a sequence of 8 tokens")
    lab.page.get_by_role("button", name="Measure on this machine").click()
    expect(lab.costs().get_by_role("cell", name=re.compile(r"^[\d.]+ ms$"))).to_have_count(2)


def test_claims_are_counted_when_they_are_wanted(lab):
    lab.fold("What is printed, and what is counted")
    row = lab.page.get_by_role("row", name=re.compile("Multilingual BERT"))
    expect(row).to_contain_text("177.9")
    expect(row).to_contain_text("38\xa0% lower")


def test_a_choice_is_kept_in_the_address_and_comes_back(lab):
    lab.try_("Relative positions")
    lab.page.wait_for_function("() => location.hash.includes('xlnet-base-cased')")
    lab.try_("Four ways to be base")
    lab.page.wait_for_function("() => !location.hash.includes('sizes')")


@pytest.mark.slow
def test_an_old_link_restores_the_choice_in_chinese(visit):
    own = {"base": "bert-base-uncased", "vocabulary": 1000, "embedding": 64, "width": 64}
    own |= {"layers": 4, "heads": 2, "inner": 128, "sharing": "groups", "groups": 2}
    state = json.dumps({"sizes": ["bert-2x128"], "own": own, "length": 9, "shares": True})
    cloze = visit(link=f"?lang=zh{LINK}&lab-budget={quote(state)}")
    lab = Lab(cloze)
    lab.shows("bert-2x128", "自设规格")
    expect(lab.page.locator("#tab-budget").get_by_role("radio", checked=True)).to_have_count(0)
    words = locales.catalogue("zh")
    lab.fold(words["A size of your own"])
    expect(lab.page.get_by_label(words["Groups"], exact=True)).to_have_value("2")
    lab.fold(words["Parameters, bytes, operations, time"])
    expect(lab.page.get_by_label(words["Tokens in the sequence"])).to_have_value("9")
    expect(lab.page.get_by_label(words["Each bar to full length"])).to_be_checked()
    assert [
        text for text in cloze.page.evaluate("[...ClozeLanguage.missing]") if text.isascii()
    ] == []
    lab.fold(words["What is printed, and what is counted"])
    with lab.page.expect_download() as saved:
        lab.page.locator("#budget-claims").get_by_role("button", name=words["Save as CSV"]).click()
    assert words["BERT base has 110 million parameters"] in saved.value.path().read_text("utf-8")


@pytest.mark.slow
def test_a_strange_link_is_explained_and_nothing_sticks_out_narrow_and_dark(visit):
    strange = json.dumps({"sizes": ["nothing", "<b>"], "own": {"base": "x"}, "length": "9"})
    cloze = visit(width=390, dark=True, link=f"{LINK}&lab-budget={quote(strange)}")
    expect(cloze.page.get_by_text("No published size")).to_be_visible()
    assert cloze.overflow() <= 0


@pytest.mark.slow
def test_the_crosses_of_sizes_have_their_names(visit):
    lab = Lab(visit(link=LINK))
    cross = lab.page.get_by_role("button", name="Remove albert-base", exact=True)
    cross.first.wait_for()
    lab.cloze.rest()
    cross.first.click()
    cross.first.wait_for(state="detached")
    expect(lab.page.get_by_role("button", name=re.compile(r"Remove \d+"))).to_have_count(0)


def test_what_gradio_leaves_untold_is_heard(lab):
    expect(lab.page.get_by_role("tabpanel", name="Parameters", exact=True)).to_have_count(1)
    tries = lab.page.get_by_role("group", name="What to try")
    expect(tries.get_by_role("radio", name="BERT against ALBERT")).to_be_visible()
    expect(lab.page.get_by_role("button", name="Remove all", exact=True)).to_be_visible()
    name = "What is printed, and what is counted"
    fold = lab.page.get_by_role("button", name=name, exact=True)
    before = fold.evaluate("each => each.classList.contains('open')")  # by another test
    for expanded in (before, not before, before):
        expect(fold).to_have_attribute("aria-expanded", str(expanded).lower())
        fold.click()
    lab.cloze.rest()
