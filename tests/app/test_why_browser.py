"""The Why lab in Chromium: numbers, choices, a shared link, files, giving up, Chinese."""

import json
import re
from threading import Event
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import expect

from app.labs.why import answers
from app.labs.why.tries import FIRST, TRIES
from app.serving import locales
from app.serving.examples import DEFAULT
from core_models.prediction.passes import seen_with
from core_models.prediction.targets import SCALES, Target, TargetFunction, baseline, frozen_copy
from tests.app.held import Held
from tests.app.one_lab import OneLab
from tests.app.one_page import mark, start_over
from tests.app.visitors import take
from tests.app.why_questions import without_end

TEXT = "The capital of France is Paris."
OTHER = "A cat sat on the mat."
PREDICT = "/gradio_api/run/predict"
BARS = "#why-bars"


class Lab(OneLab):
    """The Why lab of a page."""

    lab, heading = "why", "Why this answer?"

    def says(self, text):
        """Wait for a line; the first explanation imports captum."""
        expect(self.panel.get_by_text(text).first).to_be_visible()

    def settle(self):
        """Wait until nothing is computed: between two looks of its clock the page rests, too."""
        self.cloze.rest()
        expect(self.panel.get_by_role("button", name=self.named("Cancel"))).to_be_hidden()
        self.cloze.rest()

    def bars(self, method=0):
        """What a method gives to each token: 0 = integrated gradients, 3 = occlusion."""
        self.settle()
        return [row[2 + method] for row in self.cloze.numbers(BARS)]

    def tokens(self):
        self.settle()
        return [row[0] for row in self.cloze.numbers(BARS)]

    def box(self, label):
        return self.panel.get_by_label(self.named(label), exact=True)

    def pick(self, label, option):
        take(self.box(label), self.named(option))

    def type(self, label, text):
        self.box(label).fill(text)
        self.page.keyboard.press("Enter")

    def attempt(self, name):
        self.panel.get_by_role("radio", name=self.named(name)).check()

    def slide(self, label, value):
        number = self.panel.get_by_role("spinbutton", name=re.compile(self.named(label)))
        number.fill(str(value))
        number.press("Tab")


@pytest.fixture
def lab(module_page):
    """The lab in the one page for most of these tests, with Paris hidden and nothing chosen."""
    lab = Lab(module_page)
    start_over(module_page, text=OTHER)
    lab.attempt("Why Paris, not London?")  # which chooses all else as it is at first
    lab.says("Why “paris” rather than “london”?")
    start_over(module_page, text=OTHER)
    start_over(module_page, marks=[6])
    lab.says("Why “paris”?")
    yield lab
    module_page.page.unroute_all(behavior="ignoreErrors")
    assert module_page.problems == []


def link(marks="6", text=TEXT, **lab):
    values = {"text": text, "model": "bert-mini", "marks": marks, "tab": "why"}
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


def test_a_number_that_is_typed_may_be_none_or_too_large_on_its_way(lab):
    lab.unfold("How it is computed")
    steps = lab.panel.get_by_role("spinbutton", name=re.compile("Steps"))
    for typed, taken in (("", 10), ("5000", 300), ("40", 40)):
        steps.fill(typed)
        steps.press("Tab")
        lab.page.wait_for_function("n => Cloze.kept('why')?.steps === n", arg=taken)
        lab.cloze.rest()
        # What stands there by now is what was asked for.
        expect(lab.panel.get_by_text("it must be a whole number")).to_be_hidden()
        expect(lab.panel.get_by_text(f"n_steps={taken}")).to_be_attached()


def test_a_slider_answers_to_the_keyboard_and_a_try_is_named_while_it_is_shown(lab):
    lab.unfold("How it is computed")
    lab.attempt("Three words at a time")
    tried = lab.panel.get_by_role("radio", name="Three words at a time")
    number = lab.panel.get_by_role("spinbutton", name=re.compile("Words at a time"))
    expect(number).to_have_value("3")
    lab.settle()
    expect(tried).to_be_checked()
    code = lab.panel.get_by_text("import FeatureAblation")
    wanted = code.text_content()
    slider = lab.panel.get_by_role("slider", name=re.compile("Words at a time"))
    slider.press("ArrowLeft")
    expect(number).to_have_value("2")
    expect(tried).not_to_be_checked()
    lab.settle()
    expect(code).not_to_have_text(wanted)
    lab.attempt("Why Paris, not London?")
    lab.says("Why “paris” rather than “london”?")


@pytest.mark.slow
def test_numbers_choices_link_and_files(visit, model):
    lab = Lab(visit(link=link()))
    paris, london = model.tokenizer.id("paris"), model.tokenizer.id("london")
    lab.says("Why “paris”? The model gives it")
    assert lab.bars() == pytest.approx(direct(model, answer=paris), abs=1e-3)
    lab.unfold("How it is computed")
    lab.says("✓ The shares add up to")

    lab.unfold("What to explain")
    lab.type("rather than", "london")
    lab.says("Why “paris” rather than “london”?")
    expected = direct(model, answer=paris, against=london)
    assert lab.bars() == pytest.approx(expected, abs=1e-3)
    lab.pick("Baseline", "zero vectors")
    expected = direct(model, answer=paris, against=london, kind="zero")
    assert lab.bars() == pytest.approx(expected, abs=1e-3)

    occluded = lab.bars(3)
    whole = frozen_copy(model)
    (encoding,) = model.encode([TEXT])
    gap = {6: model.tokenizer.mask_id}
    target = Target(kind="piece", position=6, answer=paris, against=london)
    function = TargetFunction(whole, seen_with(encoding, gap), target)
    vectors = function.vectors.clone()
    vectors[0, 4] = 0  # the baseline
    without = float(function(vectors))
    before = function.value
    assert occluded[4] == pytest.approx(before - without, abs=1e-3)
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        lab.panel.get_by_role("group", name="most for it speaks “France”").hover()
        with lab.page.expect_download() as file:
            lab.page.locator(f"{BARS} [data-title='Save as {kind}']").click()
        assert file.value.path().read_bytes().startswith(begins)

    other = Lab(visit(link=lab.page.evaluate("location.hash")))  # another profile: a shared link
    other.says("Why “paris” rather than “london”?")
    assert other.bars() == pytest.approx(expected, abs=1e-3)
    assert other.bars(3) == pytest.approx(occluded, abs=1e-6)
    other.unfold("What to explain")
    expect(other.box("rather than")).to_have_value(re.compile("^london · "))
    other.unfold("How it is computed")
    expect(other.box("Baseline")).to_have_value("zero vectors")


LATE = """
let found;
Object.defineProperty(window, 'Cloze', { configurable: true, get: () => found, set: (cloze) => {
  found = cloze;
  let put;
  Object.defineProperty(cloze, 'keptValues', { get: () => put, set: (own) => {
    put = async (names) => {
      if (names[0] === 'why') await new Promise((done) => { cloze.release = done; });
      return own(names);
    };
  } });
} });
"""
"""What a link holds of Why comes into the lab once the test calls ``Cloze.release()``."""


def test_nothing_is_asked_before_what_the_link_holds_is_there(visit):
    """Of the page's own sentence, whose pieces come with the page."""
    visit()  # the second visitor has a profile, and so a script, of their own
    late = visit(link=link("5", DEFAULT, word="paris", against="london"))
    late.page.add_init_script(LATE)
    asked = []

    def note(request):
        # The lab's own questions have a scale; what else the page asks is another matter.
        if PREDICT in request.url and SCALES[0] in (request.post_data or ""):
            asked.append(request.url)

    late.hear("request", note)
    late.page.reload()
    asked.clear()  # by the page before
    lab = Lab(late)
    lab.page.wait_for_function("Cloze.sentence.marks.size === 1")
    lab.cloze.rest()
    assert asked == []
    lab.page.evaluate("Cloze.release()")
    lab.says("Why “paris” rather than “london”?")
    assert asked


def test_a_reload_names_the_try(visit):
    chosen = {"word": "paris", "against": "london"}
    lab = Lab(visit(link=link(**chosen)))
    lab.says("Why “paris” rather than “london”?")
    first = lab.panel.get_by_role("radio", name="Why Paris, not London?")
    expect(first).to_be_checked()
    mark(lab.cloze, 4)
    expect(first).not_to_be_checked()
    # What only some questions have is there, although the fold was closed when it was told.
    lab.attempt("Two sentences")
    lab.says("Why “next”?")
    lab.settle()
    lab.unfold("What to explain")
    expect(lab.box("Second text (the first one is the sentence above)")).to_be_visible()
    expect(lab.box("At")).to_be_hidden()


@pytest.mark.slow
def test_an_old_link_names_answers_by_their_numbers(visit, model):
    rome, london = model.tokenizer.id("rome"), model.tokenizer.id("london")
    lab = Lab(visit(link=link(word=rome, against=london, position=6, steps=50, window=2)))
    lab.says("Why “rome” rather than “london”?")
    expected = direct(model, steps=50, answer=rome, against=london)
    assert lab.bars() == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_a_choice_belongs_to_its_sentence(lab):
    lab.unfold("What to explain")
    lab.type("The answer to explain", "rome")
    lab.says("Why “rome”?")
    lab.pick("rather than", "paris")
    lab.says("Why “rome” rather than “paris”?")
    lab.type("rather than", "parisparis")
    lab.says(re.compile("“parisparis” is \\d pieces here"))
    mark(lab.cloze, 4)
    lab.says("Why “france”?")
    expect(lab.box("rather than")).to_have_value("nothing in particular")
    mark(lab.cloze, 4, 6)
    lab.settle()  # a chart that comes now moves the box away from its list
    lab.pick("At", "6: Paris")
    lab.says("Why “paris”?")


GAP = """box => {
  const list = document.getElementById(box.getAttribute('aria-controls'));
  const [one, other] = [box, list].map((each) => each.getBoundingClientRect());
  return Math.max(one.top - other.bottom, other.top - one.bottom);
}"""
GROW = """() => {
  document.documentElement.style.overflowAnchor = 'none'; // the browser would scroll along
  const grown = Object.assign(document.createElement('p'), { style: 'height: 200px' });
  document.querySelector('#tabs').prepend(grown);
}"""


@pytest.mark.slow
def test_an_open_list_stays_at_its_box_when_something_above_it_grows(lab):
    lab.unfold("What to explain")
    box = lab.box("rather than")
    box.click()
    lab.page.get_by_role("option").first.wait_for()
    place = box.bounding_box()["y"]
    lab.page.wait_for_function(f"box => Math.abs(({GAP})(box)) < 20", arg=box.element_handle())
    lab.page.evaluate(GROW)
    assert box.bounding_box()["y"] > place + 100
    lab.page.wait_for_function(f"box => Math.abs(({GAP})(box)) < 20", arg=box.element_handle())


@pytest.mark.slow
def test_every_try_brings_its_sentence_and_its_choices(lab):
    for name, (text, hidden, chosen) in TRIES.items():
        if chosen.get("kind") == "replaced":
            continue  # no detective is here
        lab.attempt(name)
        lab.settle()
        kept = {n: value for n, value in chosen.items() if value != FIRST[n]}
        assert lab.page.evaluate("Cloze.kept('why')") == kept, name
        assert lab.page.evaluate("Cloze.sentence.text") == text
        assert len(lab.cloze.marked()) == len(hidden)
        assert lab.tokens()[1] == text.split()[0]
    lab.attempt("Why Paris, not London?")
    lab.says("Why “paris” rather than “london”?")
    lab.page.fill("#sentence-text textarea", "A cat sat on the mat.")
    lab.says("No word is hidden")
    expect(lab.panel.get_by_role("radio", name="Why Paris, not London?")).not_to_be_checked()
    lab.attempt("Why Paris, not London?")
    lab.says("Why “paris” rather than “london”?")


@pytest.mark.slow
def test_a_try_that_was_typed_over_is_waited_for_no_longer(lab):
    def reads(request):
        values = (request.post_data_json or {}).get("data") or []
        return len(values) == 2 and isinstance(values[0], str)

    held = Held(lab.page, PREDICT, reads)
    lab.page.fill("#sentence-text textarea", "A")
    held.wait()
    lab.attempt("One or many?")
    field = lab.page.locator("#sentence-text textarea")
    expect(field).to_have_value("The children are playing in the garden.")
    field.fill("A cat sat.")
    held.end()
    lab.page.wait_for_function("Cloze.sentence.text === 'A cat sat.'")
    lab.says("No word is hidden")
    mark(lab.cloze, 2)
    lab.says("Why “cat”?")
    assert lab.page.evaluate("Cloze.kept('why')") == {}


@pytest.mark.slow
def test_second_texts_errors_and_the_check(lab):
    mark(lab.cloze)
    lab.says("No word is hidden")
    expect(lab.page.locator(BARS).get_by_role("group")).to_be_hidden()
    lab.page.fill("#sentence-text textarea", "")
    lab.says("There is no text yet")
    lab.attempt("Two sentences")
    lab.says("Why “next”?")
    assert lab.tokens()[-3] == "sea"
    lab.unfold("What to explain")
    second = lab.box("Second text (the first one is the sentence above)")
    expect(second).to_have_value(TRIES["Two sentences"][2]["second"])
    second.fill(" ")
    lab.says("reads two texts")
    second.fill("<b>${alert(1)}</b>")
    lab.says("Why “")
    assert "".join(lab.tokens()).endswith("<b>${alert(1)}</b>[SEP]")
    lab.attempt("Why Paris, not London?")
    lab.says("Why “paris” rather than “london”?")
    lab.cloze.rest()
    lab.unfold("Do the methods agree?")
    agreement = lab.panel.get_by_role("region", name=re.compile("Spearman"))
    expect(agreement.get_by_role("cell")).to_have_count(16)
    lab.unfold("Would a model that has forgotten")
    lab.panel.get_by_role("button", name="Draw the top layers anew").click()
    stages = lab.panel.get_by_role("region", name=re.compile("How alike .* draw 1"))
    expect(stages.get_by_role("rowheader")).to_have_count(5)
    lab.panel.get_by_role("button", name="Draw the top layers anew").click()
    again = lab.panel.get_by_role("region", name=re.compile("draw 2"))
    again.wait_for()
    mark(lab.cloze, 4)
    expect(again).to_be_hidden()


def test_giving_up_and_computing_after_all(lab, monkeypatch):
    gate = Event()
    monkeypatch.setattr(answers, "attribute", without_end(answers.attribute, gate))
    cancel = lab.panel.get_by_role("button", name="Cancel")
    compute = lab.panel.get_by_role("button", name="Compute", exact=True)
    start_over(lab.cloze, text="Bees make honey.", marks=[1])  # nothing of it is remembered
    lab.says("are computed.")
    cancel.click()
    compute.wait_for()
    expect(cancel).to_be_hidden()
    expect(lab.panel.get_by_text("are computed.")).to_be_hidden()
    compute.click()
    cancel.wait_for()
    expect(compute).to_be_hidden()
    cancel.click()
    mark(lab.cloze, 3)  # another question is computed
    cancel.wait_for()
    expect(compute).to_be_hidden()
    gate.set()
    lab.says("Why “honey”?")
    assert len(lab.tokens()) == 6


@pytest.mark.slow
def test_a_broken_link_opens_the_lab_as_it_is_narrow_dark_and_chinese(visit):
    values = {
        "kind": "toString",
        "position": "x",
        "steps": 1e9,
        "baseline": ["a"],
        "word": {"a": 1},
    }
    cloze = visit(width=390, dark=True, link="?lang=zh" + link(**values, method="saliency"))
    lab = Lab(cloze, locales.catalogue("zh"))
    lab.says("为什么是“paris”")
    assert cloze.overflow() <= 0
    expect(lab.page.locator(f"{BARS} .legendtext").first).to_have_text("积分梯度")
    for fold in ("How it is computed", "Do the methods agree?", "What this shows"):
        lab.unfold(fold)
    expect(lab.panel.get_by_role("spinbutton", name=re.compile("步数"))).to_have_value("30")
    lab.unfold("What to explain")
    expect(lab.box("rather than")).to_have_value("不作对比")
    lab.unfold("Would a model that has forgotten say the same?")
    lab.panel.get_by_role("radio", name="下一句").check()
    lab.says("两段文本")
    assert cloze.overflow() <= 0
    assert lab.page.evaluate("[...ClozeLanguage.missing]") == []
