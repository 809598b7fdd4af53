"""The Terms lab in Chromium: maps, switches, predictions, distances, tables, links, languages."""

import csv
import json
import os
import re
from urllib.parse import quote, unquote_plus
from xml.etree import ElementTree

import pytest
import torch
from playwright.sync_api import expect

import core_models as cm
from app.serving import locales
from core_models.network.terms.buckets import rows_of
from core_models.prediction import terms_view
from core_models.prediction.passes import seen_with
from tests.app.one_lab import OneLab
from tests.app.one_page import SENTENCE, choose, start_over
from tests.app.terms_models import MODELS, save_tiny_models
from tests.app.visitors import take

LINK = "#text=The+capital+of+France+is+Paris.&tab=terms&model="
ROWS = """id => document.querySelector(`#${id} .figure[data-state=ready] .js-plotly-plot`)
  ?.layout.meta.rows ?? null"""
# The lab as it is without a link.
PLAIN = """() => { Cloze.keep('terms', {});
  document.dispatchEvent(new CustomEvent('cloze:lab', { detail: 'terms' })); }"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory, session):
    """Tiny models with terms, known to the page while this module runs."""
    folder = tmp_path_factory.mktemp("terms")
    save_tiny_models(folder)
    before = os.environ.get("CLOZE_MODELS")
    os.environ["CLOZE_MODELS"] = os.pathsep.join(filter(None, [before, str(folder)]))
    session._infos = {}
    yield
    session._infos = {}
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


class Lab(OneLab):
    """The Terms lab of a page."""

    lab, heading = "terms", "What is a score made of?"

    def __init__(self, cloze, words=None):
        super().__init__(cloze, words)
        self.maps = self.panel.get_by_role("group", name=re.compile("Maps of the terms|各项的图"))
        self.maps.wait_for()
        cloze.rest()

    def unfold(self, name):
        super().unfold(name)
        self.cloze.rest()

    def choose(self, label, value):
        take(self.panel.get_by_label(label, exact=True), value, exact=True)
        self.cloze.rest()

    def switch(self, name):
        return self.maps.get_by_role("switch", name=name)

    def told(self):
        """The sum of the marked cell: the terms, the score, the share."""
        text = self.panel.locator(".view-maps").get_by_role("status").inner_text()
        numbers = text.split("): ")[1].replace("−", "-")
        return [float(n) for n in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", numbers)]

    def rows(self, figure):
        self.page.wait_for_function(ROWS, arg=figure)
        return self.page.evaluate(ROWS, figure)


@pytest.fixture
def open_lab(module_page):
    """Shows a model in the one page of these tests: ``open_lab("xlnet-tiny", 1)`` hides piece 1."""

    def open_lab(model, *marks):
        lab = Lab(module_page)
        start_over(module_page, model=model, marks=marks)
        lab.page.evaluate(PLAIN)
        module_page.rest()
        return lab

    yield open_lab
    assert module_page.problems == []


@pytest.mark.slow
def test_one_cell_is_read_in_every_map_and_adds_up(open_lab, session):
    lab = open_lab("deberta-tiny")
    lab.choose("Layer", "2")
    lab.choose("Head", "2")
    expect(lab.maps.get_by_role("switch")).to_have_count(3)
    expect(lab.maps.get_by_role("img")).to_have_count(5)
    lab.maps.focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowDown"):
        lab.page.keyboard.press(key)
    model = session.model("deberta-tiny")
    (encoding,) = model.encode([SENTENCE])
    view = terms_view.look(model, encoding, step=1, head=1).view
    *terms, score, share = lab.told()
    assert terms == pytest.approx([float(term[1, 2]) for term in view.terms], rel=1e-3)
    assert score == pytest.approx(float(view.scores[1, 2]), rel=1e-3)
    assert share == pytest.approx(100 * float(view.probabilities[1, 2]), abs=0.06)
    lab.unfold("What this shows")
    lab.panel.get_by_text("without any difference").wait_for()
    # The same numbers in the table.
    lab.unfold("The numbers of one row")
    lab.panel.get_by_label("Query", exact=True).click()
    lab.page.get_by_role("option").nth(1).click()
    table = lab.panel.get_by_role("region", name=re.compile(r"^Query: .* \(1\)"))
    cells = table.get_by_role("row").nth(3).get_by_role("cell")
    number = cells.nth(1).inner_text().replace("−", "-")
    assert float(number) == pytest.approx(terms[0], rel=1e-3)
    lab.choose("Layer", "1")
    lab.choose("Head", "1")


HANGING = """[...document.querySelectorAll('.view-maps .sign')].filter((sign) =>
  sign.getBoundingClientRect().left < sign.closest('.view-maps').getBoundingClientRect().left)
  .map((sign) => sign.textContent)"""
ROWS_OF_MAPS = """maps => {
  const rows = new Map();
  for (const map of maps.querySelectorAll('figure')) {
    const [row, top] = [map, map.querySelector('canvas')]
      .map((each) => Math.round(each.getBoundingClientRect().top));
    rows.set(row, (rows.get(row) ?? new Set()).add(top));
  }
  return [...rows.values()].map((tops) => tops.size);
}"""


def test_a_finger_reads_a_cell_and_its_sum_is_in_sight(phone):
    lab = Lab(phone(f"{LINK}deberta-tiny"))
    lab.maps.get_by_role("img").first.evaluate("each => each.scrollIntoView({ block: 'end' })")
    lab.maps.get_by_role("img").first.tap()
    sum_of = lab.panel.locator(".view-maps").get_by_role("status")
    expect(sum_of).to_contain_text("=")
    expect(sum_of).to_be_in_viewport(ratio=1)


def test_maps_of_a_row_begin_at_one_height(open_lab):
    lab = open_lab("deberta-tiny")
    lab.switch("content to position").click()
    expect(lab.maps.get_by_text("off in this head")).to_be_visible()
    assert {*lab.maps.evaluate(ROWS_OF_MAPS)} == {1}


def test_switching_terms_changes_map_and_prediction(open_lab, session):
    lab = open_lab("deberta-tiny")
    lab.panel.get_by_role("radio", name="Without positions").check()
    lab.maps.get_by_text("change of attention").wait_for()
    lab.unfold("What the model makes of it")
    expect(lab.switch("content to position")).not_to_be_checked()
    expect(lab.panel.get_by_role("radio", name="the whole model")).to_be_checked()
    expect(lab.panel.get_by_role("radio", name="Without positions")).to_be_checked()
    model = session.model("deberta-tiny")
    (encoding,) = model.encode([lab.page.evaluate("Cloze.sentence.text")])
    gaps = lab.cloze.marked()
    seen = seen_with(encoding, dict.fromkeys(gaps, model.tokenizer.mask_id))
    chances = []
    for off in ((), ("c2p", "p2c")):
        edits = terms_view.switched_off(model.config, off, "model")
        found = terms_view.look(model, seen, gaps, edits=edits)
        chances.append(terms_view.distribution(model, found.answers)[0].exp())
    pairs = torch.stack(chances, dim=1)
    for _, before, _, after, _ in lab.rows("terms-prediction"):
        assert (pairs - torch.tensor([before, after])).abs().amax(1).min() < 1e-5
    lab.switch("content to position").focus()
    lab.page.keyboard.press("Enter")
    expect(lab.switch("content to position")).to_be_checked()
    lab.cloze.rest()
    expect(lab.switch("content to position")).to_be_focused()
    lab.switch("position to content").click()
    expect(lab.maps.get_by_text("change of attention")).to_have_count(0)


@pytest.mark.slow
def test_a_text_that_is_cut_is_told_with_its_numbers(open_lab, session):
    lab = open_lab("deberta-tiny")
    text = "A lake is cold. " * 80
    whole = len(session.model("deberta-tiny").tokenizer.encode(text, max_length=99_999).ids)
    lab.cloze.write(text)
    lab.panel.get_by_text(f"reads 512 of its {whole:,} pieces").wait_for()
    lab.panel.get_by_text("Pieces 0 to 39 of 512").wait_for()
    lab.panel.get_by_role("slider").focus()
    lab.page.keyboard.press("End")
    lab.panel.get_by_text("Pieces 472 to 511 of 512").wait_for()


def test_another_model_is_opened_where_there_is_nothing_to_take_apart(open_lab):
    lab = open_lab("bert-mini")
    lab.panel.get_by_text("is taken apart in place of bert-mini").wait_for()
    expect(lab.maps.get_by_role("switch")).not_to_have_count(0)
    lab.choose("Model", "deberta-v2-tiny")
    lab.panel.get_by_text("deberta-v2-tiny is taken apart in place of bert-mini").wait_for()
    expect(lab.switch("position to content")).to_be_visible()
    lab.page.wait_for_function("location.hash.includes('deberta-v2-tiny')")
    lab.choose("Model", "bert-mini")
    lab.panel.get_by_text("bert-mini has one product q·k").wait_for()
    expect(lab.maps.get_by_role("switch")).to_have_count(0)


def test_without_models_with_terms_training_is_explained(open_lab, session, monkeypatch):
    plain = [info for info in session.models() if info.name not in MODELS]
    monkeypatch.setattr(session, "models", lambda: plain)
    lab = open_lab("bert-mini", 2)
    lab.panel.get_by_text("zoo build deberta-mini").wait_for()
    lab.unfold("What a distance is worth")
    lab.page.get_by_role("group", name="1024 rows; each distance").wait_for()


@pytest.mark.slow
def test_distances_tables_and_the_mask_decoder(open_lab):
    lab = open_lab("deberta-tiny", 6)
    lab.unfold("What a distance is worth")
    assert len(lab.rows("terms-distances")) == 33
    lab.choose("Distances up to", "640")
    lab.panel.get_by_text("2 ticks").wait_for()
    lab.choose("Distances up to", "16")
    lab.choose("Published size", "deberta-v3-base")
    lab.panel.get_by_label("Distance", exact=True).fill("200")
    rows = rows_of(cm.size("deberta-v3-base").attention.terms, torch.tensor([200]))
    lab.panel.get_by_text(f"Distance 200 reads row {int(rows)}").wait_for()
    lab.unfold("What the model makes of it")
    words = lab.rows("terms-decoder")
    assert len(words) >= 5
    assert {len(row) for row in words} == {7}


@pytest.mark.slow
def test_rotary_positions_set_two_pieces_at_every_distance(open_lab, session):
    lab = open_lab("modernbert-tiny")
    lab.choose("Layer", "2")
    take(lab.panel.get_by_label("Looking piece"), re.compile("^5 "))
    lab.cloze.rest()
    take(lab.panel.get_by_label("Piece that is moved"), re.compile("^2 "))
    lab.panel.get_by_text("Layer 2 is local: it sees 3 pieces on each side").wait_for()
    lab.cloze.rest()
    model = session.model("modernbert-tiny")
    (encoding,) = model.encode([SENTENCE])
    scores = terms_view.look(model, encoding, step=1).view.terms[0][5].tolist()
    by_distance = {at: (score, seen) for at, score, seen in lab.rows("terms-turned")}
    assert by_distance[3] == (pytest.approx(scores[2], abs=1e-5), "seen")
    assert by_distance[-4][1] == "not seen"
    assert [row[2] for row in lab.rows("terms-turned-row")] == pytest.approx(scores, abs=1e-5)
    kept = json.loads(unquote_plus(lab.page.evaluate("location.hash")).split("lab-terms=")[1])
    assert (kept["query"], kept["key"]) == (5, 2)
    choose(lab.cloze, "bert-mini")
    lab.panel.get_by_text("bert-mini has one product q·k, and its absolute").wait_for()
    expect(lab.panel.get_by_label("Looking piece")).to_be_hidden()
    expect(lab.panel.locator("#terms-turned figure")).to_be_hidden()


@pytest.mark.slow
def test_xlnet_has_its_own_terms_and_a_query_stream(open_lab):
    lab = open_lab("xlnet-tiny", 1)
    names = ["content to content", "content to position", "content to segment"]
    expect(lab.maps.get_by_role("switch")).to_have_text(names)
    lab.choose("Stream", "query stream")
    lab.unfold("What this shows")
    lab.panel.get_by_text("Grey cells").wait_for()
    lab.unfold("The numbers of one row")
    lab.panel.get_by_label("Query", exact=True).click()
    expect(lab.page.get_by_role("option")).to_have_count(1)
    lab.page.keyboard.press("Escape")
    lab.choose("Stream", "content stream")


@pytest.mark.slow
def test_a_link_restores_the_lab_and_files_open(open_lab, visit):
    lab = open_lab("deberta-tiny", 3, 6)
    lab.choose("Layer", "2")
    lab.choose("Stream", "mask decoder")
    lab.switch("position to content").click()
    lab.panel.get_by_role("radio", name="this layer").check()
    lab.maps.get_by_text("off in this layer").wait_for()
    with lab.page.expect_download() as download:
        lab.panel.locator(".view-maps").get_by_role("button", name="Save as CSV").click()
    with download.value.path().open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert {float(row["p2c"]) for row in rows} == {0}
    for row in rows:
        total = sum(float(row[name]) for name in ("content", "c2p", "p2c"))
        assert float(row["score"]) == pytest.approx(total, abs=1e-5)
    lab.unfold("The numbers of one row")
    for kind in ("SVG", "PNG"):
        with lab.page.expect_download() as download:
            lab.panel.get_by_role("button", name=f"Save as {kind}", exact=True).last.click()
        path = download.value.path()
        if kind == "SVG":
            ElementTree.parse(path)
        else:
            assert path.read_bytes()[:4] == b"\x89PNG"
    lab.unfold("What the model makes of it")
    words = lab.rows("terms-prediction")
    other = Lab(visit(link=lab.page.evaluate("location.hash")))
    for label, value in (("Layer", "2"), ("Stream", "mask decoder")):
        expect(other.panel.get_by_label(label, exact=True)).to_have_value(value)
    expect(other.switch("position to content")).not_to_be_checked()
    expect(other.panel.get_by_role("radio", name="this layer")).to_be_checked()
    other.unfold("What the model makes of it")
    assert other.rows("terms-prediction") == words
    # What only some sentences have is there, too, although the fold was closed when it was told.
    expect(other.panel.get_by_label("Hidden word", exact=True)).to_be_visible()


@pytest.mark.slow
def test_strange_links_and_empty_texts_are_answered(visit):
    state = {"layer": "x", "off": [{}], "scope": 3, "reader": []}
    state |= {"reach": 17, "size": {}, "gap": -9}
    lab = Lab(visit(link=f"{LINK}deberta-tiny&lab-terms={quote(json.dumps(state))}"))
    expect(lab.maps.get_by_role("img")).to_have_count(5)
    lab.cloze.write("   ")
    lab.panel.get_by_text("There is no text yet").wait_for()
    expect(lab.maps).to_be_hidden()
    lab.cloze.write("<img src=x onerror=alert(1)> ${alert(2)}")
    expect(lab.maps).to_be_visible()
    lab.cloze.rest()
    assert lab.panel.locator("img").count() == 0  # at once


@pytest.mark.slow
def test_narrow_in_chinese_nothing_sticks_out_or_stays_english(visit):
    cloze = visit(width=390, dark=True, link=f"?lang=zh{LINK}deberta-v3-tiny")
    lab = Lab(cloze, locales.catalogue("zh"))
    page = lab.page
    for model, light in (("deberta-v3-tiny", "dark"), ("xlnet-tiny", "light")):
        page.evaluate("light => Cloze.setTheme(light)", light)
        choose(lab.cloze, model)
        lab.panel.get_by_role("radio", name="一个头里的一项").check()
        lab.maps.get_by_text("注意力的变化").wait_for()
        for name in ("模型的看法", "距离值多少分", "一行的数值", "这里展示什么"):
            lab.unfold(name)
        lab.rows("terms-distances")
        lab.rows("terms-table")
        assert lab.cloze.overflow() <= 0, model
        assert page.evaluate(HANGING) == [], model
        missing = set(page.evaluate("[...ClozeLanguage.missing]"))
        assert {text for text in missing if text.isascii()} == set(), model
        lab.cloze.write("The heart pumps blood.")
