"""The Pairs tab in Chromium: the shipped model's verdicts, examples, missing heads."""

import pytest

from app import pairs
from core_models.prediction import judge_pair

ROOT = ".view-pairs"
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


def test_examples_and_own_texts_are_judged_by_the_model(cloze, model):
    if "next_sentence" not in model.heads:
        pytest.skip("the shipped model has no next-sentence head")
    tab = Tab(cloze)
    found = pairs.example(0)
    for kind in pairs.KINDS:
        tab.page.click(f'{ROOT} button[data-kind="{kind}"]')
        texts = found.pair(kind)
        tab.settle(*texts)
        expected = judge_pair(model, *texts).probabilities[0]
        assert tab.chance("next_sentence") == pytest.approx(expected, abs=1e-6)
    assert tab.page.locator(".pr-square td[data-cell]").count() % 4 == 0
    tab.page.fill("#pr-second", "<b>${alert(1)}</b>")
    tab.settle(found.first, "<b>${alert(1)}</b>")
    expected = judge_pair(model, found.first, "<b>${alert(1)}</b>").probabilities[0]
    assert tab.chance("next_sentence") == pytest.approx(expected, abs=1e-6)
    ids = tab.page.locator(".pr-piece").evaluate_all("all => all.map(p => Number(p.dataset.id))")
    assert ids == model.encode([(found.first, "<b>${alert(1)}</b>")])[0].ids
    tab.page.fill("#pr-second", " ")
    tab.page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert "second text is empty" in tab.page.inner_text(f"{ROOT} .problem")


def test_narrow_and_dark_nothing_sticks_out(visit):
    tab = Tab(visit(width=390, dark=True))
    tab.cloze.write("x" * 300)
    tab.page.fill("#pr-second", "y" * 300)
    tab.settle("x" * 300, "y" * 300)
    assert tab.cloze.overflow() <= 0
    shown = tab.page.inner_text(ROOT)
    assert "not trained for similarity" in shown
