"""The Terms tab in Chromium: maps, switches, predictions, distances, tables, links, languages."""

import csv
import json
import os
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import torch

import core_models as cm
from core_models.prediction import terms_view
from core_models.prediction.passes import seen_with
from core_models.terms.buckets import rows_of
from tests.app.one_page import SENTENCE, choose, start_over
from tests.app.terms_models import MODELS, save_tiny_models

ROOT = ".view-terms"
LINK = "#text=The+capital+of+France+is+Paris.&tab=terms&model="
READY = """() => {
  const view = document.querySelector('.view-terms').dataset;
  return view.state === 'ready' && view.rev === view.asked;
}"""
# The lab as it is without a link.
PLAIN = """() => {
  Cloze.keep('terms', {});
  document.dispatchEvent(new CustomEvent('cloze:lab', { detail: 'terms' }));
}"""


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
    for name in MODELS:
        session._loaded.pop(name, None)
    del os.environ["CLOZE_MODELS"]
    if before is not None:
        os.environ["CLOZE_MODELS"] = before


def settle(page):
    page.wait_for_function(READY)


@pytest.fixture
def open_tab(module_page):
    """Shows a model in the one page of these tests: ``open_tab("xlnet-tiny", 1)`` hides piece 1."""

    def open_tab(model, *marks):
        page = module_page.page
        page.evaluate("Cloze.openTab('Terms')")
        page.wait_for_selector(f"{ROOT}[data-asked]")
        start_over(module_page, model=model, marks=marks)
        page.evaluate(PLAIN)
        settle(page)
        return page

    yield open_tab
    assert module_page.problems == []


def value(page, name):
    text = page.inner_text(f'{ROOT} .ts-cell [data-term="{name}"]').replace("−", "-")
    return float(text.removesuffix("\xa0%"))


def test_one_cell_is_read_in_every_map_and_adds_up(open_tab, session):
    page = open_tab("deberta-tiny")
    page.select_option("#ts-layer", "1")
    settle(page)
    page.select_option("#ts-head", "1")
    settle(page)
    maps = page.locator(f"{ROOT} .ts-map")
    assert [m.get_attribute("data-map") for m in maps.all()] == [
        "content",
        "c2p",
        "p2c",
        "score",
        "softmax",
    ]
    page.locator(f"{ROOT} .ts-maps").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    model = session.model("deberta-tiny")
    (encoding,) = model.encode([SENTENCE])
    view = terms_view.look(model, encoding, step=1, head=1).view
    for name, term in zip(view.names, view.terms, strict=True):
        assert value(page, name) == pytest.approx(float(term[1, 2]), rel=1e-3)
    assert value(page, "score") == pytest.approx(float(view.scores[1, 2]), rel=1e-3)
    assert page.locator(f"{ROOT} .ts-cursor:visible").count() == 5
    assert "without any difference" in page.inner_text("#ts-about")
    # The same number under the pointer, and in the table.
    page.locator("#ts-rows summary").click()
    page.select_option("#ts-row", "1")
    cells = page.locator("#ts-rows tbody tr").nth(2).locator("td").all_inner_texts()
    assert float(cells[1].replace("−", "-")) == value(page, "content")
    canvas = page.locator(f'{ROOT} [data-map="c2p"] canvas')
    canvas.hover()
    assert page.locator(f"{ROOT} .ts-cell b").count() == 2


def test_switching_terms_changes_map_and_prediction(open_tab, session):
    page = open_tab("deberta-tiny")
    page.click(f'{ROOT} [data-try="0"]')
    page.wait_for_selector(f'{ROOT} [data-map="change"]')
    page.wait_for_selector(f"{ROOT} #ts-prediction td.after")
    settle(page)
    assert page.get_attribute('[data-switch="c2p"]', "aria-checked") == "false"
    assert page.get_attribute('[data-scope="model"]', "aria-checked") == "true"
    model = session.model("deberta-tiny")
    (encoding,) = model.encode([page.evaluate("Cloze.sentence.text")])
    gaps = page.evaluate("[...Cloze.sentence.marks.keys()].sort((a, b) => a - b)")
    seen = seen_with(encoding, dict.fromkeys(gaps, model.tokenizer.mask_id))
    chances = []
    for off in ((), ("c2p", "p2c")):
        edits = terms_view.switched_off(model.config, off, "model")
        found = terms_view.look(model, seen, gaps, edits=edits)
        chances.append(terms_view.distribution(model, found.answers)[0].exp())
    for row in page.locator("#ts-prediction tbody tr").all():
        index = model.tokenizer.id(row.get_attribute("data-piece"))
        for name, expected in zip(("before", "after"), chances, strict=True):
            shown = float(row.locator(f"td.{name}").get_attribute("data-chance"))
            assert shown == pytest.approx(float(expected[index]), abs=1e-5)
    page.locator('[data-switch="c2p"]').focus()
    page.keyboard.press("Enter")
    settle(page)
    page.locator('[data-switch="p2c"]').click()
    settle(page)
    assert page.locator(f'{ROOT} [data-map="change"]').count() == 0
    assert page.locator("#ts-prediction td.after").count() == 0


def test_a_text_that_is_cut_is_told_with_its_numbers(open_tab, session):
    page = open_tab("deberta-tiny")
    assert not page.locator("#ts-long").is_visible()
    text = "A lake is cold. " * 80
    whole = len(session.model("deberta-tiny").tokenizer.encode(text, max_length=99_999).ids)
    page.fill("#sentence-text textarea", text)
    page.locator("#ts-long", has_text=f"reads 512 of its {whole:,} pieces").wait_for()
    assert "The maps show 40 of 512 pieces" in page.inner_text("#ts-long")


def test_a_plain_model_says_so_and_opens_another(open_tab):
    page = open_tab("bert-mini")
    assert "one product q·k" in page.inner_text("#ts-plain")
    assert page.locator(f"{ROOT} [data-switch]:visible").count() == 0
    page.click('[data-reader="deberta-v2-tiny"]')
    settle(page)
    page.wait_for_selector(f'{ROOT} [data-map="p2c"]')
    assert "in place of bert-mini" in page.inner_text("#ts-other")
    address = page.evaluate("location.hash")
    assert "deberta-v2-tiny" in address
    page.click("#ts-back")
    settle(page)
    assert page.locator("#ts-plain").is_visible()


def test_without_models_with_terms_training_is_explained(open_tab, session, monkeypatch):
    plain = [info for info in session.models() if info.name not in MODELS]
    monkeypatch.setattr(session, "models", lambda: plain)
    page = open_tab("bert-mini")
    assert page.locator("#ts-plain .code").is_visible()
    assert "deberta-mini" in page.inner_text("#ts-plain .code")
    page.get_by_role("group", name="1024 rows; each distance").wait_for()


def test_distances_tables_and_the_mask_decoder(open_tab, module_page):
    page = open_tab("deberta-tiny", 6)
    assert len(module_page.numbers("#ts-distances")) == 33
    page.select_option("#ts-reach", "640")
    settle(page)
    assert "2 ticks" in page.inner_text("#ts-distances")
    page.select_option("#ts-size", "deberta-v3-base")
    page.wait_for_function(
        "() => document.querySelector('#ts-table .code').textContent.includes('ceil')"
    )
    page.fill("#ts-distance", "200")
    page.keyboard.press("Enter")
    rows = rows_of(cm.size("deberta-v3-base").attention.terms, torch.tensor([200]))
    page.wait_for_function(
        f"() => document.querySelector('#ts-table .ts-cell').textContent.includes('{int(rows)}')"
    )
    assert page.locator("#ts-decoder tbody tr").count() >= 5
    assert page.locator("#ts-decoder thead th").count() == 4


def test_xlnet_has_its_own_terms_and_a_query_stream(open_tab):
    page = open_tab("xlnet-tiny", 1)
    keys = page.locator(f"{ROOT} .ts-map").evaluate_all("maps => maps.map(m => m.dataset.map)")
    assert keys == ["content", "position", "segment", "score", "softmax"]
    page.select_option("#ts-stream", "query")
    settle(page)
    page.locator("#ts-rows summary").click()
    page.wait_for_function("() => document.querySelectorAll('#ts-row option').length === 1")
    assert "Grey cells" in page.inner_text("#ts-about")


def test_a_link_restores_the_lab_and_files_open(open_tab, visit):
    page = open_tab("deberta-tiny", 6)
    page.select_option("#ts-layer", "1")
    page.select_option("#ts-stream", "mask_decoder")
    settle(page)
    page.click('[data-switch="p2c"]')
    settle(page)
    page.click('[data-scope="layer"]')
    settle(page)
    for what in ("csv", "svg", "png"):
        with page.expect_download() as download:
            page.click(f'{ROOT} [data-save="{what}"]')
        path = download.value.path()
        if what == "csv":
            with path.open(encoding="utf-8") as file:
                assert {row["p2c"] for row in csv.DictReader(file)} <= {"0.0", "-0.0"}
        elif what == "svg":
            ElementTree.parse(path)
        else:
            assert path.read_bytes()[:4] == b"\x89PNG"
    other = visit(link=page.evaluate("location.hash")).page
    settle(other)
    other.wait_for_selector(f"{ROOT} #ts-prediction td.after")
    for control in ("#ts-layer", "#ts-stream"):
        assert other.input_value(control) == page.input_value(control)
    assert other.get_attribute('[data-switch="p2c"]', "aria-checked") == "false"
    assert other.get_attribute('[data-scope="layer"]', "aria-checked") == "true"
    assert other.inner_text("#ts-prediction") == page.inner_text("#ts-prediction")


def test_strange_links_and_long_texts_are_answered(visit):
    state = {
        "layer": "x",
        "off": [{}],
        "scope": 3,
        "reader": [],
        "reach": 17,
        "size": {},
        "gap": -1,
    }
    cloze = visit(link=f"{LINK}deberta-tiny&lab-terms={quote(json.dumps(state))}")
    page = cloze.page
    settle(page)
    assert page.locator(f"{ROOT} .ts-map").count() == 5
    cloze.write("word " * 700)
    settle(page)
    page.wait_for_function("() => !document.querySelector('#ts-later').closest('[hidden]')")
    page.click("#ts-later")
    settle(page)
    page.wait_for_function("() => document.querySelector('#ts-earlier').disabled === false")
    cloze.write("   ")
    page.wait_for_selector(f'{ROOT}[data-state="error"]')
    assert page.get_by_role("group", name="1024 rows; each distance").is_visible()
    cloze.write("<img src=x onerror=alert(1)> ${alert(2)}")
    settle(page)
    assert page.locator(f"{ROOT} img").count() == 0


def test_narrow_in_chinese_nothing_sticks_out_or_stays_english(visit):
    cloze = visit(width=390, dark=True, link=f"?lang=zh{LINK}deberta-v3-tiny")
    page = cloze.page
    for model, light in (("deberta-v3-tiny", "dark"), ("xlnet-tiny", "light")):
        page.evaluate("light => Cloze.setTheme(light)", light)
        choose(cloze, model)
        settle(page)
        page.click(f'{ROOT} [data-try="2"]')
        settle(page)
        page.wait_for_selector(f'{ROOT} [data-map="change"]')
        settle(page)
        page.evaluate(
            "document.querySelectorAll('.view-terms details').forEach(d => d.open = true)"
        )
        page.locator(f"{ROOT} .ts-maps").focus()
        cloze.numbers("#ts-distances")
        cloze.numbers("#ts-table")
        assert cloze.overflow() <= 0, model
        missing = set(page.evaluate("[...ClozeLanguage.missing]"))
        assert {text for text in missing if text.isascii()} == set(), model
