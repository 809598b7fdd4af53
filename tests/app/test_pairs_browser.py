"""The Pairs tab in Chromium: the shipped model's verdicts, examples, missing heads."""

import pytest

from app.labs.pairs import answers as pairs
from core_models.prediction import judge_pair
from tests.app.one_page import renewed

ROOT = ".view-pairs"
# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
SETTLED = """([first, second]) => {
  const view = document.querySelector('.view-pairs').dataset;
  return Cloze.sentence.text === first && document.querySelector('#pr-second').value === second
    && view.state === 'ready' && view.rev === view.asked;
}"""


class Tab:
    """The Pairs tab of a page."""

    def __init__(self, cloze):
        self.cloze = cloze
        self.page = cloze.page
        self.page.wait_for_function("!!Cloze.openTab")
        self.page.evaluate("Cloze.openTab('Pairs')")
        self.page.wait_for_selector(f'{ROOT}[data-state="ready"]')

    def settle(self, first, second):
        self.page.wait_for_function(SETTLED, arg=[first, second])

    def chance(self, head):
        return float(
            self.page.get_attribute(f'.pr-head[data-head="{head}"] [data-yes]', "data-yes")
        )


@pytest.fixture
def cloze(module_page):
    """One page for these tests."""
    yield from renewed(module_page)


def test_examples_and_own_texts_are_judged_and_a_link_restores_them_in_chinese(
    cloze, visit, model, monkeypatch
):
    if "next_sentence" not in model.heads:
        pytest.skip("the shipped model has no next-sentence head")
    tab = Tab(cloze)
    found = pairs.shown_example(0)
    announced = {
        "next": "Right is “next”",
        "swapped": "does not see order",
        "same": "no answer is right or wrong",
        "other": "Right is “random”",
    }
    for kind in pairs.KINDS:
        tab.page.click(f'{ROOT} button[data-kind="{kind}"]')
        texts = found.pair(kind)
        tab.settle(*texts)
        assert announced[kind] in tab.page.inner_text("#pr-expected")
        expected = judge_pair(model, *texts).probabilities[0]
        assert tab.chance("next_sentence") == pytest.approx(expected, abs=1e-6)
    assert tab.page.locator(".pr-square td[data-cell]").count() % 4 == 0
    assert "points less probable" in tab.page.inner_text(".pr-effects")
    assert "it goes by the topic, and it hardly minds the order" in tab.page.inner_text(
        f"{ROOT} .summary"
    )
    tab.page.fill("#pr-second", "<b>${alert(1)}</b>")
    tab.settle(found.first, "<b>${alert(1)}</b>")
    expected = judge_pair(model, found.first, "<b>${alert(1)}</b>").probabilities[0]
    assert tab.chance("next_sentence") == pytest.approx(expected, abs=1e-6)
    ids = tab.page.locator(".pr-piece").evaluate_all("all => all.map(p => Number(p.dataset.id))")
    assert ids == model.encode([(found.first, "<b>${alert(1)}</b>")])[0].ids
    tab.page.fill("#pr-second", " ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert "second text is empty" in tab.page.inner_text(f"{ROOT} .problem")
    # Another example, and one more.
    tab.page.click("#pr-another")
    tab.settle(*pairs.shown_example(1).pair("next"))
    tab.page.click("#pr-another")
    found = pairs.shown_example(2)
    tab.settle(*found.pair("next"))
    tab.page.click(f'{ROOT} button[data-kind="swapped"]')
    tab.settle(*found.pair("swapped"))
    link = tab.page.evaluate("location.hash")
    monkeypatch.setattr(pairs, "MEASURED", 3)
    other = Tab(visit(link=f"?lang=zh{link}"))
    other.settle(*found.pair("swapped"))
    pressed = other.page.locator(f'{ROOT} button[aria-pressed="true"]')
    assert pressed.get_attribute("data-kind") == "swapped"
    cells = ".pr-square td[data-cell] .pr-chance"
    assert other.page.locator(cells).all_inner_texts() == tab.page.locator(cells).all_inner_texts()
    if other.page.locator("#pr-measure").is_visible():
        other.page.click("#pr-measure")
        rows = other.cloze.numbers("#pr-wins")
        assert rows[-1][2:] == [1.5, "3个中的0个，3个打平"]
        with other.page.expect_download() as download:
            other.page.click(f'{ROOT} [data-save="png"]')
        assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    assert other.page.evaluate(MISSING) == []


def test_an_emptied_sentence_takes_the_old_answers_away(cloze):
    tab = Tab(cloze)
    assert tab.page.locator(f"{ROOT} .pr-body").is_visible()
    tab.page.fill("#sentence-text textarea", "")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert "no text yet" in tab.page.inner_text(f"{ROOT} .problem")
    assert tab.page.locator(f"{ROOT} .pr-body").is_hidden()
    tab.cloze.write("Bees make honey.")
    tab.page.wait_for_selector(f'{ROOT}[data-state="ready"]')
    assert tab.page.locator(f"{ROOT} .pr-body").is_visible()


def test_narrow_and_dark_a_link_restores_texts_of_ones_own_and_nothing_sticks_out(cloze, visit):
    tab = Tab(cloze)
    found = pairs.shown_example(tab.page.evaluate("Cloze.kept('pairs')?.example ?? 0"))
    tab.page.click(f'{ROOT} button[data-kind="next"]')
    tab.settle(*found.pair("next"))
    own = "Snow fell all night ."
    tab.page.fill("#pr-second", own)
    tab.settle(found.first, own)
    narrow = Tab(visit(width=390, dark=True, link=tab.page.evaluate("location.hash")))
    narrow.settle(found.first, own)
    narrow.cloze.write("x" * 300)
    narrow.page.fill("#pr-second", "y" * 300)
    narrow.settle("x" * 300, "y" * 300)
    assert narrow.cloze.overflow() <= 0
    shown = narrow.page.inner_text(ROOT)
    assert "not trained for similarity" in shown
