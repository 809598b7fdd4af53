"""The Permutation lab in Chromium: grids, moved pieces, what a model with two streams adds."""

import csv
import json
import os
import re
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import torch
from playwright.sync_api import expect

from app.labs.permutation import answers as permutation
from app.labs.permutation import chances
from app.serving import locales
from core_models.masking.orderings import paper
from tests.app.one_lab import OneLab
from tests.app.one_page import start_over
from tests.app.test_permutation_tab import NAME, TEXT, tiny
from tests.app.visitors import swipe, take

# Names of tabs are translated before anything asks for them, so Chinese ones may be looked up, too.
MISSING = "[...ClozeLanguage.missing].filter((key) => /[a-z]/i.test(key))"
LINK = f"#text={quote(TEXT)}&tab=permutation&lab-permutation="


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """A tiny model with two streams, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("two-streams")
    tiny().save(folder / NAME)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


ORDERED = """order => {
  const chips = [...document.querySelectorAll('.view-order ol button')];
  return chips.map((chip) => chip.dataset.position).join() === order.join();
}"""


class Lab(OneLab):
    """The Permutation lab of a page."""

    lab, heading = "permutation", "In which order is a sentence predicted?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.list = self.panel.get_by_role("list", name=self.named("Order of prediction"))
        self.list.get_by_role("button").first.wait_for()
        cloze.rest()

    def chip(self, nth):
        return self.list.get_by_role("button").nth(nth)

    def order(self):
        chips = self.list.get_by_role("button")
        return chips.evaluate_all("chips => chips.map(chip => Number(chip.dataset.position))")

    def grid(self, stream):
        return self.panel.get_by_role("table", name=self.named(stream))

    def seen(self, stream):
        """Whether the row sees the column, of each row of a grid."""
        rows = self.grid(stream).locator("tbody").get_by_role("row")
        return rows.evaluate_all(
            "rows => rows.map(row => [...row.querySelectorAll('td')]"
            ".map(cell => ['seen', 'sees itself'].includes(cell.ariaLabel)))"
        )

    def both(self):
        return self.seen("Content stream"), self.seen("Query stream")

    def said(self):
        return self.panel.get_by_role("status").filter(has_text=self.named("position")).last

    def wanted(self, session, count):
        """Both grids of the order that is shown, by the core."""
        model = session.model(NAME)
        special = [n for n, flag in enumerate(model.tokenizer.encode(TEXT).special) if flag]
        seen = paper(torch.tensor([[*special, *self.order()]]), torch.tensor([count]))
        return seen.visibility[0].tolist(), seen.target_visibility[0].tolist()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.cloze.rest()


@pytest.fixture
def lab(module_page, visit):
    """One page for these tests; the lab as a link without values opens it."""
    start_over(module_page, text=TEXT)
    found = Lab(module_page)
    if module_page.page.evaluate("Object.keys(Cloze.kept('permutation') ?? {}).length"):
        found = Lab(visit(link=f"{LINK}{{}}"))
    yield found
    assert found.cloze.problems == []


def test_arrow_keys_and_dragging_move_a_piece_and_both_grids(lab, session):
    before = lab.order()
    count = permutation.goal(permutation.cut(session.model(NAME).tokenizer, TEXT), 3)
    assert lab.both() == lab.wanted(session, count)
    lab.chip(0).focus()
    lab.press("End")
    assert lab.order() == [*before[1:], before[0]]
    assert lab.both() == lab.wanted(session, count)
    lab.press("ArrowLeft")  # the piece keeps the focus
    assert lab.order() == [*before[1:-1], before[0], before[-1]]
    moved = lab.order()
    lab.chip(0).scroll_into_view_if_needed()
    lab.chip(0).hover()
    lab.page.mouse.down()
    lab.chip(2).hover()
    lab.page.mouse.up()
    lab.cloze.rest()
    assert lab.order() == [*moved[1:3], moved[0], *moved[3:]]
    assert lab.both() == lab.wanted(session, count)
    # It belongs to its text.
    lab.cloze.write("A cat sat on the mat.")
    lab.cloze.rest()
    assert "order" not in lab.page.evaluate("Cloze.kept('permutation') ?? {}")


def test_a_finger_scrolls_the_page_up_and_down_and_moves_a_piece_sideways(phone):
    lab = Lab(phone(f"{LINK}{{}}"))
    before, scrolled = lab.order(), lab.page.evaluate("scrollY")
    swipe(lab.chip(0), *((0, -20 * n) for n in range(1, 11)))
    lab.page.wait_for_function("before => scrollY > before", arg=scrolled)
    assert lab.order() == before
    chip, other = (lab.chip(n).bounding_box() for n in (0, 1))
    away = other["x"] - chip["x"] + other["width"] / 2 - chip["width"] / 2
    swipe(lab.chip(0), *((away * n / 5, 0) for n in range(1, 6)))
    moved = [before[1], before[0], *before[2:]]
    lab.page.wait_for_function(ORDERED, arg=moved)
    lab.cloze.rest()


def test_rows_read_as_sentences_and_a_leak_is_marked(lab):
    lab.panel.get_by_role("radio", name="Predict every piece").check()
    lab.cloze.rest()
    target = lab.order()[1]
    row = lab.grid("Query stream").get_by_role("row").nth(2)
    row.get_by_role("button").focus()
    said = lab.panel.get_by_text(f"To predict position {target}, the query may see only")
    said.wait_for()
    lab.panel.get_by_role("radio", name="Why two streams").check()
    lab.panel.get_by_text("That is wrong").wait_for()
    lab.panel.get_by_text("Wrong on purpose").wait_for()
    lab.cloze.rest()
    assert lab.order() == sorted(lab.order())
    targets = lab.grid("Query stream").locator("tbody").get_by_role("row").count()
    expect(lab.grid("Query stream").get_by_label("sees itself")).to_have_count(targets)
    example = lab.panel.get_by_role("radio", name="Why two streams")
    lab.cloze.write("A cat sat on the mat.")
    lab.cloze.rest()
    expect(example).to_be_checked()  # of any text
    lab.panel.get_by_label("Predict one piece in").first.fill("5")
    expect(example).not_to_be_checked()


@pytest.mark.slow
def test_chances_and_attention_come_from_the_other_model(lab):
    lab.panel.get_by_text(f"so {NAME} answers, with its own pieces").wait_for()
    lab.unfold("How probable is each piece?")
    framed = lab.list.get_by_role("button").filter(has_text="to be predicted").count()
    rows = lab.cloze.numbers("#permutation-chances")
    assert len(rows) == framed + 2
    best = lab.panel.get_by_role("region", name="Its best guesses")
    expect(best.get_by_role("row")).to_have_count(1 + framed * chances.GUESSES)
    lab.unfold("Where both streams look")
    take(lab.panel.get_by_label("Layer", exact=True), "3", exact=True)
    lab.page.get_by_text("Query stream: layer 3, head 1").first.wait_for()
    lab.unfold("How it is drawn")
    lab.panel.get_by_label("A sentence before").fill("France lies in Europe .")
    lab.panel.get_by_text("With the memory the framed pieces need").wait_for()
    lab.cloze.rest()
    looks = lab.cloze.numbers("#permutation-content")
    assert len(looks[0]) - 1 > len(lab.seen("Content stream")) + 3
    with lab.page.expect_download() as download:
        lab.panel.get_by_role("button", name="Save as CSV").first.click()
    with download.value.path().open(encoding="utf-8-sig") as file:
        saved = [row for row in csv.DictReader(file) if row["stream"] == "query"]
    assert [row["sees"].split() for row in saved] == [
        [str(n) for n, flag in enumerate(row) if flag] for row in lab.seen("Query stream")
    ]
    with lab.page.expect_download() as download:
        lab.panel.get_by_role("button", name="Save as SVG").first.click()
    ElementTree.parse(download.value.path())


def test_without_two_streams_grids_work_and_training_is_explained(lab, session, monkeypatch):
    infos = [info for info in session.models() if permutation.HEAD not in info.heads]
    monkeypatch.setattr(session, "models", lambda: infos)
    lab.panel.get_by_role("button", name="Shuffle").click()
    lab.unfold("How probable is each piece?")
    lab.panel.get_by_text("zoo build xlnet-mini").wait_for()
    lab.cloze.rest()
    assert len(lab.seen("Content stream")) == len(session.model("bert-mini").encode([TEXT])[0])
    expect(lab.page.locator("#permutation-chances .figure")).to_be_hidden()


def test_an_emptied_sentence_leaves_no_old_answer(lab):
    lab.cloze.write("   ")
    lab.panel.get_by_text("There is no text yet").wait_for()
    expect(lab.list).to_be_hidden()
    lab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)} {{value}}")
    expect(lab.list).to_be_visible()
    lab.cloze.rest()
    expect(lab.panel.get_by_text("There is no text yet")).to_be_hidden()
    assert lab.panel.locator("img").count() == 0  # at once


@pytest.mark.slow
def test_a_link_restores_order_and_settings_in_chinese(lab, visit):
    lab.chip(0).focus()
    lab.press("End")
    lab.unfold("How it is drawn")
    lab.panel.get_by_label("A sentence before").fill("It is old .")
    lab.unfold("Where both streams look")
    take(lab.panel.get_by_label("Layer", exact=True), "2", exact=True)
    lab.page.get_by_text("Query stream: layer 2, head 1").first.wait_for()
    lab.unfold("How probable is each piece?")
    lab.cloze.rest()
    rows = [row[2:] for row in lab.cloze.numbers("#permutation-chances")]
    link = lab.page.evaluate("location.hash")
    other = Lab(visit(link=f"?lang=zh{link}"), locales.catalogue("zh"))
    other.cloze.rest()
    assert other.order() == lab.order()
    other.unfold("How probable is each piece?")
    assert [row[2:] for row in other.cloze.numbers("#permutation-chances")] == rows
    for button in other.panel.get_by_role("table").get_by_role("button").all():
        button.focus()
        other.panel.get_by_text("位置").first.wait_for()
    with other.page.expect_download() as download:
        other.unfold("How it is drawn")
        other.panel.get_by_role("button", name="保存为PNG").first.click()
    assert download.value.path().read_bytes()[:4] == b"\x89PNG"
    assert other.page.evaluate(MISSING) == []


@pytest.mark.slow
def test_an_old_link_opens_and_narrow_and_dark_nothing_sticks_out(visit, session):
    state = {"order": [0, 0], "k": 99, "seed": 3, "variant": "released", "leak": True}
    lab = Lab(visit(width=390, dark=True, link=LINK + quote(json.dumps(state))))
    plain = [n for n in session.model(NAME).tokenizer.encode(TEXT).special if not n]
    expect(lab.list.get_by_role("button")).to_have_count(len(plain))
    lab.panel.get_by_text("another is drawn").wait_for()
    lab.unfold("How it is drawn")
    expect(lab.panel.get_by_role("radio", name="Released code")).to_be_checked()
    expect(lab.panel.get_by_label("Seed")).to_have_value("3")
    lab.cloze.write("word " * 600)
    lab.panel.get_by_text("its first 30 pieces").wait_for()
    lab.cloze.rest()
    assert lab.cloze.overflow() <= 0
    # Every column is in sight.
    edges = lab.grid("Content stream").get_by_role("columnheader").last.bounding_box()
    assert edges["x"] + edges["width"] <= 390


def test_numbers_that_cannot_be_are_told_and_put_right(lab):
    lab.unfold("How it is drawn")
    seed = lab.panel.get_by_label("Seed", exact=True)
    for typed, told in (("-5", "seed is -5"), ("99999999999", "seed is 9999"), ("", "seed is emp")):
        seed.fill(typed)
        lab.panel.get_by_text(told).wait_for()
    seed.fill("-5")
    lab.panel.get_by_role("button", name="Shuffle").click()
    expect(seed).to_have_value("1")
    expect(lab.panel.get_by_text("seed is")).to_be_hidden()
    k = lab.panel.get_by_role("spinbutton", name=re.compile("Predict one piece in"))
    named = "Predict one piece in is"
    for typed, told in (("99", f"{named} 99"), ("", f"{named} empty")):
        k.fill(typed)
        lab.panel.get_by_text(told).wait_for()
    k.fill("2")
    expect(lab.panel.get_by_text(named)).to_be_hidden()
