"""Pictures that Python draws, saved from the Chinese page: its headings, the visitor's words.

``CLOZE_PICTURES=folder`` keeps them for people to look at.
"""

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.labs.mask.lab import LOOKS
from app.serving.locales import catalogue
from tests.app.one_page import start_over
from tests.app.test_walk_browser import OPEN

TEXT = "The sum goes from here to there ."
"""Words of the visitor that are headings, too: "sum", "from", "to"."""
HIDDEN = 2
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = re.compile(r"[A-Za-z]{3,} [a-z]{2,} [a-z]{2,}")


@pytest.fixture
def open_tab(module_page, server):
    """Opens a tab of the one page of these tests, which is opened anew for another language."""
    page = module_page.page

    def open_tab(tab, language="zh"):
        if page.evaluate("ClozeLanguage.language") == language:
            page.evaluate("ClozeLanguage.missing.clear()")
        else:
            module_page.open(f"{server}/?lang={language}")
        if page.evaluate("Cloze.sentence.text") != TEXT:
            start_over(module_page, text=TEXT, marks=[HIDDEN])
        page.wait_for_function(OPEN, arg=[tab, tab.title()], polling=250)
        return page

    yield open_tab
    assert module_page.problems == []


def saved(page, button, name):
    with page.expect_download() as download:
        page.click(button)
    svg = download.value.path().read_text("utf-8")
    if folder := os.environ.get("CLOZE_PICTURES"):
        Path(folder, f"{name}.svg").write_text(svg, "utf-8")
    return svg


def texts(svg):
    """What a picture says, its marks taken out; text of the program, and of the visitor."""
    assert "wording" not in svg
    assert svg.startswith("<svg")
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]


def check(svg, *wanted, kept=("from", "to")):
    found = texts(svg)
    for part in wanted:
        assert any(part in text for text in found), (part, found)
    for word in kept:
        assert any(word in re.findall(r"\w+", text, re.ASCII) for text in found), (word, found)
    # The sentence, and those of the Meaning tab behind their numbers, are nobody's to translate.
    said = [text for text in found if text != TEXT and not re.match(r"\n|\d\. ", text)]
    assert [text for text in said if ENGLISH.search(text) and not CHINESE.search(text)] == []


@pytest.mark.slow
def test_the_permutation_lab_in_both_languages(open_tab):
    page = open_tab("permutation", "en")
    page.get_by_role("list", name="Order of prediction").wait_for()
    page.get_by_role("button", name="How it is drawn").click()
    found = texts(saved(page, '#tab-permutation >> text="Save as SVG"', "permutation-en"))
    assert {"What each stream may see", "Content stream", "2 sum"} <= set(found)
    page = open_tab("permutation", "zh")
    page.get_by_role("list", name="预测顺序").wait_for()
    page.get_by_role("button", name="抽取方式").click()
    found = saved(page, '#tab-permutation >> text="保存为SVG"', "permutation-zh")
    check(found, "每条流可以看到什么", "内容流", "查询流")
    assert [k for k in page.evaluate("[...ClozeLanguage.missing]") if not CHINESE.search(k)] == []


@pytest.mark.slow
def test_the_mask_tab(open_tab):
    page = open_tab("mask")
    page.wait_for_selector("#save-svg")
    check(saved(page, "#save-svg", "mask"))
    for name, wanted in (
        ("together", ("填空的几种方式", "从左到右")),
        ("word", ("这个空位里的词",)),
        ("models", ("已知其他词时",)),
    ):
        title = next(look.title for look in LOOKS if look.name == name)
        page.get_by_role("button", name=catalogue("zh")[title]).click()
        button = f"#mask-{name} [data-title='保存为SVG']"
        page.wait_for_selector(f"#mask-{name} [data-state=ready] .js-plotly-plot")
        check(saved(page, button, f"mask-{name}"), *wanted, kept=())
    assert page.evaluate("[...ClozeLanguage.missing]") == []


@pytest.mark.slow
def test_the_attention_tab(open_tab):
    page = open_tab("attention")
    page.get_by_role("group", name="看的词元", exact=True).wait_for()
    button = '#tab-attention button:text-is("连线，SVG")'
    check(saved(page, button, "attention-lines"), "层·第", "从", "到", "显示1\xa0%以上的连线")
    page.get_by_role("radio", name="展开与流").check()
    page.locator("#attention-more").get_by_text("第4层之后").wait_for()
    button = "#attention-map [data-title='保存为SVG']"
    check(saved(page, button, "attention-map"), "展开", "流", kept=("from", "to"))
    assert page.evaluate("[...ClozeLanguage.missing]") == []


@pytest.mark.slow
def test_the_forge_lab(open_tab, detective):
    page = open_tab("forge")
    page.get_by_role("button", name="抽取方式与所有数字").click()
    found = saved(page, '#tab-forge >> text="保存为SVG"', "forge")
    check(found, "每个词元被替换过的概率", "原为sum")


def test_the_tokenizers_lab(open_tab):
    page = open_tab("tokenizers")
    page.get_by_role("button", name="每个子词").click()
    found = saved(page, '#tab-tokenizers >> text="保存为SVG"', "tokenizers")
    check(found, "同一段文本，用每种词表切分", "个子词，")


@pytest.mark.slow
def test_claims(open_tab):
    page = open_tab("claims")
    page.get_by_role("radio", name="直接测量").check()
    page.wait_for_selector("#claims-numbers [data-state=ready] .js-plotly-plot")
    found = saved(page, '#claims-numbers [data-title="保存为SVG"]', "claims")
    check(found, "测得的数字", "参数减少的倍数", kept=())


def test_marks_are_read_as_they_are_meant(open_tab):
    page = open_tab("mask")
    page.wait_for_selector("#save-svg")
    said = page.evaluate(
        """async () => {
          const { spoken } = await import('/cloze/app/parts/export.js');
          const text = (key) => `<text data-wording='${JSON.stringify(key)}'>old</text>`;
          const words = ['{0}: {1}', 'from', ['from']];
          return spoken(`<svg xmlns="http://www.w3.org/2000/svg"><text>from</text>${text(words)}`
            + `${text(['was {0}', '{0}&lt;b>'])}<text>data-wording=</text></svg>`);
        }"""
    )
    root = ElementTree.fromstring(said)
    assert [node.text for node in root] == ["from", "from：从", "原为{0}<b>", "data-wording="]
    assert not any(node.get("data-wording") for node in root)
