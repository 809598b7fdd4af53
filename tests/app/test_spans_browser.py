"""The Spans lab in Chromium: the picture, both heads, links, Chinese, what is missing."""

import csv
import os
import re

import pytest
from playwright.sync_api import expect

from app.labs.spans import answers as spans
from app.labs.spans import lengths
from core_models.prediction import fill_spans
from tests.app.one_lab import OneLab
from tests.app.one_page import renewed
from tests.app.test_spans import NAME, tiny
from tests.app.visitors import take

# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
CHINESE = {
    "What stands inside": "片段里面放什么",
    "Other words (1 of 10)": "别的词（10次中有1次）",
    "The span in its sentence": "句子中的片段",
    "What the edges of a span know": "片段的边界知道什么",
    "Model": "模型",
}
PICTURE = """() => JSON.stringify(document.querySelector(
  '#spans-heads .figure[data-state=ready] .js-plotly-plot')?.layout.meta.rows)"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny SpanBERT, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("with-spans")
    tiny(session.model("bert-mini").tokenizer).save(folder / NAME)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


class Lab(OneLab):
    """The Spans lab of a page."""

    lab, heading = "spans", "What the edges of a span know"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.picture = self.panel.get_by_role("region", name=self.named("The span in its sentence"))
        self.picture.wait_for()
        readers = self.panel.get_by_role("radio", name=NAME)
        if readers.count() and readers.is_visible():
            readers.check()  # a trained one is installed as well

    def places(self):
        """Numbers of the hidden places."""
        return self.picture.locator(".place")

    def inside(self, kind):
        take(self.panel.get_by_label(self.named("What stands inside")), self.named(kind))

    def choose(self, label, value):
        take(self.panel.get_by_label(label), value, exact=True)

    def numbers(self, changes=lambda rows: True):
        """Rows beside the chart of both heads, as soon as they are as wanted."""
        for _ in range(20):
            before = self.cloze.numbers("#spans-heads")
            if changes(before):
                return before
            changed = f"old => ({PICTURE})() !== JSON.stringify(old)"
            self.page.wait_for_function(changed, arg=before)
        raise AssertionError(before)

    def tells(self, session, span, **values):
        """Wait until the chart has what the core says of a span."""
        text = self.page.evaluate("Cloze.sentence.text")
        (told,) = fill_spans(session.model(NAME), text, [span], **values)
        step = 4 if values else 3
        wanted = [
            [spans.loss_of(p.masked_token), spans.loss_of(p.span_boundary)] for p in told.pieces
        ]

        def same(rows):
            return [[row[5], row[5 + step]] for row in rows] == [
                pytest.approx(losses, rel=1e-5) for losses in wanted
            ]

        return self.numbers(same)


@pytest.fixture
def cloze(module_page):
    """One page for these tests; nothing is hidden at first."""
    yield from renewed(module_page)


def test_a_span_from_the_sentence_is_told_by_both_heads(cloze, session):
    for position in (3, 4):
        cloze.at(position).click()
    lab = Lab(cloze)
    expect(lab.places()).to_have_text(["0", "1"])
    edges = lab.picture.get_by_role("listitem").filter(has_text="boundary token")
    expect(edges).to_have_text([re.compile("^capital"), re.compile("^is")])
    expect(lab.picture.locator("path")).to_have_count(4)
    lab.tells(session, (3, 5))
    best = lab.panel.get_by_role("region", name="The best words of both heads")
    expect(best.get_by_role("row")).to_have_count(1 + 2 * spans.TOP)
    lab.inside("Its own words")
    lab.tells(session, (3, 5), kept=True)
    lab.panel.get_by_text("The last states of the two boundary tokens moved by").wait_for()
    # The other way: choose words here, and they are hidden above.
    lab.choose("First word", "2. capital")
    cloze.page.wait_for_function("Cloze.sentence.marks.has(2)")
    lab.choose("Number of words", "4")
    cloze.page.wait_for_function("Cloze.sentence.marks.size === 4")
    assert cloze.marked() == [2, 3, 4, 5]
    expect(lab.places()).to_have_text(["0", "1", "2", "3"])
    lab.inside("[MASK]")
    rows = lab.tells(session, (2, 6))
    lab.panel.get_by_text("The numbers").first.click()
    with cloze.page.expect_download() as download:
        lab.panel.get_by_role("button", name="Save as CSV").first.click()
    with download.value.path().open(encoding="utf-8-sig") as file:
        assert [float(row["Sum"]) for row in csv.DictReader(file)] == [row[9] for row in rows]
    lab.panel.get_by_role("button", name="How long the spans are").click()
    law = cloze.numbers("#spans-law")
    assert [row[3] for row in law] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, None]


def test_a_seed_that_cannot_be_is_told(cloze):
    lab = Lab(cloze)
    lab.inside("Other words (1 of 10)")
    seed = lab.panel.get_by_label("Seed of the other words")
    for typed, told in (("-5", "seed is -5"), ("", "seed is empty")):
        seed.fill(typed)
        lab.panel.get_by_text(told).wait_for()
    seed.fill("2")
    expect(lab.panel.get_by_text("seed is")).to_be_hidden()


@pytest.mark.slow
def test_a_link_restores_the_lab(cloze, visit):
    lab = Lab(cloze)
    lab.panel.get_by_role("radio", name="Other words inside").check()
    cloze.page.wait_for_function("Cloze.sentence.marks.size === 3")
    first = lab.numbers(lambda rows: len(rows) == 3 and len(rows[0]) == 12)
    lab.panel.get_by_label("Seed of the other words").fill("5")
    cloze.page.wait_for_function("location.hash.includes('%22roll%22%3A5')")
    before = lab.numbers(lambda rows: rows[0][2] != first[0][2])
    shown = lab.picture.inner_text()
    other = Lab(visit(link=cloze.page.evaluate("location.hash")))
    assert other.numbers(lambda rows: rows[0][2] == before[0][2]) == before
    expect(other.picture).to_have_text(shown, use_inner_text=True)
    expect(other.panel.get_by_role("radio", name="Other words inside")).to_be_checked()
    expect(other.panel.get_by_label("Seed of the other words")).to_have_value("5")


@pytest.mark.slow
def test_an_old_link_with_words_that_were_chosen_and_not_hidden_opens(visit):
    state = '{"pick":[1,4],"run":1,"inside":"kept","seed":3}'
    lab = Lab(visit(link=f"#text=Bees+fly+far+away&marks=1.4&tab=spans&lab-spans={state}"))
    lab.numbers(lambda rows: rows[0][1:3] == ["away", "away"])
    expect(lab.panel.get_by_role("radio", name="away", exact=True)).to_be_checked()


def test_a_draw_hides_spans_above(cloze, session):
    lab = Lab(cloze)
    lab.panel.get_by_role("button", name="Draw spans as in pretraining").click()
    cloze.page.wait_for_function("Cloze.sentence.marks.size > 0")
    text = cloze.page.evaluate("Cloze.sentence.text")
    sentence = spans.cut(session.model(NAME), text)
    found = spans.hidden_runs(sentence, lengths.draw(sentence, 1))
    assert cloze.marked() == [p for start, stop in found for p in range(start, stop)]


def test_an_emptied_sentence_leaves_no_old_answer(cloze):
    lab = Lab(cloze)
    cloze.write("")
    lab.panel.get_by_text("There is no text yet").wait_for()
    expect(lab.picture).to_be_hidden()
    cloze.write("Bees fly far away.")
    lab.picture.get_by_text("fly", exact=True).first.wait_for()
    expect(lab.panel.get_by_text("There is no text yet")).to_be_hidden()


@pytest.mark.slow
def test_narrow_dark_and_chinese_nothing_sticks_out_or_stays_english(visit):
    # Anything may stand in a link.
    broken = '#text=Bees+fly+far+away&tab=spans&lab-spans={"run":"x","inside":[],"roll":-1}'
    lab = Lab(visit(width=390, dark=True, link=f"?lang=zh{broken}"), CHINESE)
    page = lab.page
    inside = lab.panel.get_by_label(lab.named("What stands inside"))
    expect(inside).to_have_value(re.compile(re.escape("[MASK]")))
    page.evaluate("Cloze.setHidden(Cloze.sentence.tokens.slice(1, 3), true)")
    lab.inside("Other words (1 of 10)")
    lab.numbers(lambda rows: len(rows) == 2 and len(rows[0]) == 12)
    assert lab.cloze.overflow() <= 0
    lab.cloze.write("word " * 600)
    lab.picture.get_by_text("word", exact=True).first.wait_for()
    assert lab.cloze.overflow() <= 0
    lab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    lab.picture.get_by_text("alert", exact=True).first.wait_for()
    assert lab.panel.locator("img").count() == 0  # at once
    assert page.evaluate(MISSING) == []


def test_without_the_heads_the_lab_says_how_to_train_one(cloze, session, monkeypatch):
    lab = Lab(cloze)
    infos = [info for info in session.models() if "span_boundary" not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    cloze.at(3).click()
    lab.panel.get_by_text("zoo build spanbert-mini").wait_for()
    # The answer of the page's opening may come first, three words wide.
    expect(lab.picture.locator("path")).to_have_count(2)
    expect(lab.page.locator("#spans-heads .figure")).to_be_hidden()
