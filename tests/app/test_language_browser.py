"""The page in Chinese and English, in Chromium."""

import pytest
from playwright.sync_api import expect

from app.labs.mask.lab import LOOKS
from app.serving.locales import catalogue
from tests.app.test_walk_browser import look

TEXT = "Madrid is the capital of Spain."
LINK = "#text=Madrid+is+the+capital+of+Spain.&model=bert-mini&marks=1.6&tab=forge"
LEAVING = ("AbortError", "Connection errored out")
MISSING = "[...ClozeLanguage.missing]"


def language(cloze) -> tuple[str, str]:
    return tuple(cloze.page.evaluate("[ClozeLanguage.language, document.documentElement.lang]"))


@pytest.mark.slow
def test_the_mask_tab_in_chinese_on_a_dark_phone_and_a_desktop(visit):
    cloze = visit(390, dark=True, link="?lang=zh#text=Madrid+is+the+capital+of+Spain.&marks=1.6")
    page = cloze.page
    page.wait_for_function("Cloze.sentence.marks.size === 2")
    assert language(cloze) == ("zh", "zh-Hans")
    expect(page.get_by_role("textbox", name="句子")).to_have_value(TEXT)
    expect(page.get_by_role("tab").first).to_have_text("预测")
    expect(page.get_by_role("tab", name="填空")).to_be_visible()
    expect(page.get_by_text("模型在这里期待哪个词？")).to_be_visible()
    expect(page.locator("#sentence-model input")).to_have_value("bert-mini · 填空、下一句")
    cloze.unfold("选项")
    page.select_option("#draw-kind", "span")
    page.click("#draw")
    page.wait_for_selector("#draw-lengths")
    expect(page.locator("#draw-lengths")).to_contain_text("平均")
    page.click("#clear")
    cloze.at(1).click()
    cloze.at(6).click()
    for each in LOOKS:
        page.get_by_role("button", name=catalogue("zh")[each.title]).click()
        cloze.rest()
    cloze.settle()
    expect(page.locator(".guess").last).to_contain_text("spain")
    page.wait_for_selector("#mask-layers .js-plotly-plot")
    expect(page.locator(".view-chips")).to_contain_text("[MASK]", use_inner_text=True)
    assert page.evaluate(MISSING) == []
    assert cloze.overflow() <= 0
    look(page, 1280, dark=False)
    page.wait_for_selector("#mask-layers .js-plotly-plot")
    assert page.evaluate(MISSING) == []
    assert cloze.overflow() <= 0
    page.fill(".mine-word", "Quizzifying")
    page.locator(".mine-note", has_text="个子词").wait_for()
    cloze.write("a" * 20_001)
    expect(page.locator(".view-chips .problem")).to_have_text(
        "这段文本有20,001个字符，本页最多接受20,000个。请用短一些的部分。"
    )
    assert page.evaluate(MISSING) == []


@pytest.mark.slow
def test_the_switch_keeps_what_is_open(visit):
    cloze = visit(link=LINK)
    page = cloze.page
    page.wait_for_function("Cloze.sentence.marks.size === 2")
    assert language(cloze) == ("en", "en")
    for name, tag, other in (("zh", "zh-Hans", "English"), ("en", "en", "简体中文")):
        page.click("#language-switch")
        page.wait_for_function("name => window.ClozeLanguage?.language === name", arg=name)
        page.wait_for_function("window.Cloze?.sentence.marks.size === 2")
        assert language(cloze) == (name, tag)
        expect(page.locator("#language-switch")).to_have_text(other)
        expect(page.locator("#sentence-text textarea")).to_have_value(TEXT)
        assert cloze.marked() == [1, 6]
        page.locator("#tab-forge").wait_for()
        expect(page.locator("#tab-mask")).to_be_hidden()
    # A page that is left ends what Gradio still waits for, and Gradio says so in the console.
    cloze.problems[:] = [line for line in cloze.problems if not any(n in line for n in LEAVING)]


@pytest.mark.slow
def test_the_choice_survives_a_reload(visit, server):
    cloze = visit()
    cloze.page.click("#language-switch")
    cloze.page.wait_for_function("window.ClozeLanguage?.language === 'zh'")
    cloze.open(f"{server}/")
    assert language(cloze) == ("zh", "zh-Hans")
    cloze.page.reload()
    cloze.page.wait_for_selector(".view-chips[data-mounted]")
    assert language(cloze) == ("zh", "zh-Hans")


@pytest.mark.slow
@pytest.mark.parametrize("wish", ["xx", "__proto__", "", "zh%22%3E%3Cscript%3E"])
def test_an_unknown_language_is_english(visit, wish):
    cloze = visit(link=f"?lang={wish}")
    assert language(cloze) == ("en", "en")
    expect(cloze.page.get_by_role("tab").first).to_have_text("Predict")
    assert cloze.page.evaluate(MISSING) == []


@pytest.mark.slow
def test_what_a_visitor_types_is_never_translated(visit):
    cloze = visit(link="?lang=zh")
    cloze.write("Model Sentence Seed Copy")
    words = cloze.page.locator(".chip:not([hidden]) .face").all_inner_texts()
    assert (
        words == ["Model", "Sentence", "Seed", "Copy"] or "".join(words) == "ModelSentenceSeedCopy"
    )
