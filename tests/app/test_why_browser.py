"""The Why tab in Chromium: numbers, choices, a shared link, files, giving up, Chinese."""

import json
from urllib.parse import urlencode

import pytest
import torch

from core_models.prediction.passes import seen_with
from core_models.prediction.targets import Target, TargetFunction, baseline, frozen_copy
from tests.app.one_page import start_over

TEXT = "The capital of France is Paris."
ROOT = ".view-why"
SETTLED = """() => {
  const view = document.querySelector('.view-why').dataset;
  return ['ready', 'error'].includes(view.state) && view.rev === view.asked;
}"""


class Tab:
    """The Why tab of a page."""

    def __init__(self, cloze):
        self.cloze, self.page = cloze, cloze.page
        self.page.set_default_timeout(60_000)  # the first explanation imports captum
        self.page.wait_for_selector(f"{ROOT}[data-asked]")
        self.settle()

    def settle(self):
        self.page.wait_for_function(SETTLED)

    def bars(self, method=0):
        """What a method gives to each token: 0 = integrated gradients, 3 = occlusion."""
        return [row[2 + method] for row in self.cloze.numbers(ROOT)]

    def tokens(self):
        return [row[0] for row in self.cloze.numbers(ROOT)]

    def click(self, selector):
        self.page.click(f"{ROOT} {selector}")
        self.settle()


# What is measured, and how, as at the start.
START = """() => {
  for (const [id, value] of [['wy-steps', 30], ['wy-baseline', 'mask']]) {
    const control = document.getElementById(id);
    control.value = value;
    control.dispatchEvent(new Event('change'));
  }
}"""


@pytest.fixture
def open_tab(module_page):
    """The Why tab in the one page for most of these tests: ``open_tab(6)`` hides piece 6."""

    def open_tab(*marks):
        module_page.page.evaluate("Cloze.openTab('Why')")
        tab = Tab(module_page)
        start_over(module_page)
        tab.page.evaluate(START)
        start_over(module_page, marks=marks)
        tab.settle()
        return tab

    yield open_tab
    assert module_page.problems == []


def link(marks="6", **lab):
    values = {"text": TEXT, "model": "bert-mini", "marks": marks, "tab": "why"}
    if lab:
        values["lab-why"] = json.dumps(lab)
    return f"#{urlencode(values)}"


def direct(model, steps=30, kind="mask", **target):
    """Integrated gradients written out: the mean gradient at the points of captum's rule."""
    import numpy as np

    (encoding,) = model.encode([TEXT])
    seen = seen_with(encoding, {6: model.tokenizer.mask_id})
    function = TargetFunction(frozen_copy(model), seen, Target(kind="piece", position=6, **target))
    start, end = baseline(model, seen, kind), function.vectors
    points, weights = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(end)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        at = (start + point * (end - start)).float().requires_grad_()
        total += float(weight) * torch.autograd.grad(function(at).sum(), at)[0]
    return (total * (end - start)).sum(-1)[0].tolist()


def test_numbers_choices_link_and_files(open_tab, visit, model):
    tab = open_tab(6)
    paris, london = model.tokenizer.id("paris"), model.tokenizer.id("london")
    assert tab.bars() == pytest.approx(direct(model, answer=paris), abs=1e-3)
    assert "Why “paris”?" in tab.page.inner_text(f"{ROOT} .summary")
    shown = float(tab.page.get_attribute("[data-sum]", "data-sum"))
    assert shown == pytest.approx(sum(tab.bars()), abs=1e-4)

    tab.page.fill("#wy-word", "london")
    tab.click("#wy-against")
    expected = direct(model, answer=paris, against=london)
    assert tab.bars() == pytest.approx(expected, abs=1e-3)
    assert "rather than “london”" in tab.page.inner_text(f"{ROOT} .summary")
    tab.page.select_option("#wy-baseline", "zero")
    tab.settle()
    expected = direct(model, answer=paris, against=london, kind="zero")
    assert tab.bars() == pytest.approx(expected, abs=1e-3)

    occluded = tab.bars(3)
    whole = frozen_copy(model)
    (encoding,) = model.encode([TEXT])
    gap = {6: model.tokenizer.mask_id}
    target = Target(kind="piece", position=6, answer=paris, against=london)
    before = TargetFunction(whole, seen_with(encoding, gap), target).value
    without = TargetFunction(
        whole, seen_with(encoding, gap | {4: model.tokenizer.mask_id}), target
    ).value
    assert occluded[4] == pytest.approx(before - without, abs=1e-3)
    with tab.page.expect_download() as file:
        tab.page.click(f"{ROOT} [data-title='Save as PNG']")
    assert file.value.path().read_bytes().startswith(b"\x89PNG")

    other = Tab(visit(link=tab.page.evaluate("location.hash")))  # another profile: a shared link
    assert other.bars() == pytest.approx(expected, abs=1e-3)
    assert other.bars(3) == pytest.approx(occluded, abs=1e-6)
    assert other.page.input_value("#wy-baseline") == "zero"


def test_tries_errors_and_the_check(open_tab):
    tab = open_tab()
    assert "No word is hidden" in tab.page.inner_text(f"{ROOT} .problem")
    tab.page.click(f"{ROOT} button:text-is('Two sentences')")
    tab.page.wait_for_selector("#wy-second:visible")
    tab.settle()
    tab.page.wait_for_function(
        "document.querySelector('.view-why .js-plotly-plot')?.layout.meta.rows.at(-3)[0] === 'sea'"
    )
    assert (
        tab.page.input_value("#wy-second") == "Its top lies almost nine kilometres above the sea."
    )
    tab.page.fill("#wy-second", " ")
    tab.page.wait_for_selector(f"{ROOT}[data-state='error']")
    assert "reads two texts" in tab.page.inner_text(f"{ROOT} .problem")
    tab.page.fill("#wy-second", "<b>${alert(1)}</b>")
    tab.page.wait_for_function(
        """() => document.querySelector('.view-why .js-plotly-plot')?.layout.meta.rows
        .map(([text]) => text).join('').endsWith('<b>${alert(1)}</b>[SEP]')"""
    )
    tab.settle()
    tab.page.click(f"{ROOT} button:text-is('Why Paris, not London?')")
    tab.page.wait_for_function(
        "document.querySelector('.view-why .summary').textContent.includes('london')"
    )
    tab.settle()
    tab.page.click("#wy-check")
    stages = tab.page.get_by_role("region", name="The check")
    stages.get_by_role("row").first.wait_for()
    assert stages.get_by_role("rowheader").count() == 5
    agreement = tab.page.get_by_role("region", name="Do the methods agree?")
    assert agreement.get_by_role("cell").count() == 16


def test_giving_up_and_computing_after_all(open_tab):
    tab = open_tab(6)
    tab.cloze.write("word " * 120 + ".")
    tab.cloze.at(3).click()
    tab.page.evaluate(
        """() => { const s = document.querySelector('#wy-steps'); s.value = 300;
        s.dispatchEvent(new Event('change')); }"""
    )
    tab.page.wait_for_selector("#wy-progress:visible")
    tab.page.click("#wy-progress button")
    tab.page.wait_for_selector(f"{ROOT}[data-state='stopped']")
    assert tab.page.is_hidden("#wy-progress")
    tab.page.click("#wy-again")
    tab.page.wait_for_selector(f"{ROOT}:not([data-state='stopped'])")
    tab.cloze.write(TEXT)
    tab.cloze.at(6).click()
    tab.page.wait_for_function(
        "document.querySelector('.view-why .js-plotly-plot')?.layout.meta.rows.length === 9"
    )
    tab.settle()


def test_a_broken_link_opens_the_lab_as_it_is_narrow_dark_and_chinese(visit):
    values = {
        "kind": "toString",
        "position": "x",
        "steps": 1e9,
        "baseline": ["a"],
        "word": {"a": 1},
    }
    cloze = visit(width=390, dark=True, link="?lang=zh" + link(**values, method="saliency"))
    tab = Tab(cloze)
    assert tab.page.get_attribute(ROOT, "data-state") == "ready"
    assert tab.page.input_value("#wy-steps") == "30"
    assert cloze.overflow() <= 0
    assert "为什么是“paris”" in tab.page.inner_text(f"{ROOT} .summary")
    assert tab.bars()
    legend = tab.page.locator(f"{ROOT} .legendtext")
    assert legend.all_text_contents()[0] == "积分梯度"
    tab.click("[data-kind='class']")
    assert "两段文本" in tab.page.inner_text(f"{ROOT} .problem")
    missing = tab.page.evaluate("[...ClozeLanguage.missing]")
    assert missing == []
