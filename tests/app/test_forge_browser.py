"""The Forge tab in Chromium, over small random models or none."""

import pytest

from core_models.prediction import detect
from tests.app.one_page import choose, renewed

ROOT = ".view-forge"
# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
SETTLED = """() => {
  const view = document.querySelector('.view-forge').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""


def open_tab(cloze, state="ready"):
    cloze.page.wait_for_function("!!Cloze.openTab")
    cloze.page.evaluate("Cloze.openTab('Forge')")
    cloze.page.wait_for_selector(f'{ROOT}[data-state="{state}"]')
    return cloze.page


def chances(page, strip):
    tokens = page.locator(".fd-strip").nth(strip).locator(".fd-token")
    return tokens.evaluate_all("all => all.map(token => Number(token.dataset.chance))")


@pytest.fixture
def cloze(module_page):
    """One page for the tests that choose no other model."""
    yield from renewed(module_page)


def test_without_a_detective_the_tab_says_how_to_train_one(cloze, session):
    if any("replaced_token" in info.heads for info in session.models()):
        pytest.skip("a detective is installed")
    cloze.at(6).click()
    page = open_tab(cloze, "missing")
    shown = page.inner_text(ROOT)
    assert "core_models.zoo build electra-mini" in shown
    assert page.locator(".fd-strip:visible").count() == 0


def test_a_round_of_forging_and_judging(cloze, detective):
    cloze.at(6).click()
    page = open_tab(cloze)
    if (radio := page.get_by_role("radio", name="zz-detective")).count():
        radio.click()
        page.wait_for_function(SETTLED)
    text = page.evaluate("Cloze.sentence.text")
    drawn = page.get_attribute(".fd-gap", "data-piece")
    index = detective.tokenizer.id(drawn)
    judged = detect(detective, text, replaced={6: index})
    expected = [verdict.probability for verdict in judged.verdicts]
    assert chances(page, 0) == pytest.approx(expected, abs=1e-6)
    assert len(expected) == page.locator("[data-loss=discriminator] i.on").count()
    assert page.locator("[data-loss=generator] i.on").count() == 1

    page.click("#fd-roll")
    page.wait_for_function(SETTLED)
    page.click('.fd-strip button[data-position="4"]')
    page.fill("#fd-word", "spain")
    page.keyboard.press("Enter")
    page.wait_for_selector(".fd-notes p")
    (spain,) = detective.tokenizer.pieces_of("spain")
    mine = detect(detective, text, replaced={4: spain}).verdicts
    assert chances(page, 1) == pytest.approx([v.probability for v in mine], abs=1e-6)
    fooled = mine[4].probability < 0.5
    assert page.get_attribute(".fd-notes p", "data-fooled") == str(fooled).lower()
    score = page.inner_text('[data-side="human"] .fd-count')
    assert score.startswith(f"fooled it with {int(fooled)} of 1")
    # Asking for the same thing again is no new attempt.
    page.click("#fd-try")
    page.wait_for_function(SETTLED)
    assert page.inner_text('[data-side="human"] .fd-count') == score

    cloze.write("The capital is 天 .")
    page.locator(".view-notes .notes", has_text="has no piece for 天 and reads [UNK]").wait_for()
    page.wait_for_function(SETTLED)
    assert not page.locator(".fd-who p").count(), "the sentence bar says it already"


def test_a_detective_in_the_bar_leaves_no_old_guesses_and_a_link_restores_its_round_in_chinese(
    visit, detective
):
    cloze = visit(link="#text=The+capital+of+France+is+Paris.&model=bert-mini&marks=6")
    cloze.settle()
    assert cloze.page.locator(".guess").first.is_visible()
    cloze.page.click("#sentence-model input")
    cloze.page.get_by_role("option").filter(has_text="zz-detective · judges").click()
    cloze.page.wait_for_selector('.view-predictions[data-state="error"]')
    problem = cloze.page.locator(".view-predictions .problem")
    assert "zz-detective judges words and fills no gaps" in problem.inner_text()
    assert not cloze.page.locator(".guess:visible").count()
    cloze.unfold("Options")
    cloze.page.click("#switch-pieces")
    cloze.page.click("#clear")
    cloze.page.wait_for_timeout(300)
    assert problem.is_visible()
    assert not cloze.page.locator(".guess:visible").count()
    cloze.page.click("#open-generator")
    cloze.page.wait_for_function("Cloze.sentence.model === 'zz-detective-generator'")
    cloze.at(6).click()
    cloze.settle()
    assert problem.is_hidden()

    choose(cloze, "zz-detective")
    page = open_tab(cloze)
    page.fill("#fd-heat", "2.5")
    page.wait_for_function(SETTLED)
    page.click("#fd-roll")
    page.wait_for_function(SETTLED)
    page.click('.fd-strip button[data-position="4"]')
    page.fill("#fd-word", "spain")
    page.keyboard.press("Enter")
    page.wait_for_selector(".fd-notes p")
    with page.expect_download() as download:
        page.click(f'{ROOT} [data-save="png"]')
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    link = page.evaluate("location.hash")
    assert "lab-forge" in link
    other = visit(link=f"?lang=zh{link}").page
    other.wait_for_selector(f"{ROOT} .fd-notes p")
    other.wait_for_function("Cloze.sentence.marks.size === 1")
    other.wait_for_function(SETTLED)
    for strip in (0, 1):
        assert chances(other, strip) == chances(page, strip)
    assert other.input_value("#fd-heat") == "2.5"
    assert other.evaluate(MISSING) == []
    assert "生成器" in other.inner_text(f"{ROOT} h3")


def test_narrow_and_dark_nothing_sticks_out(visit, detective):
    cloze = visit(width=390, dark=True)
    open_tab(cloze)
    cloze.write("x" * 200)
    cloze.page.wait_for_function(SETTLED)
    assert cloze.overflow() <= 0
