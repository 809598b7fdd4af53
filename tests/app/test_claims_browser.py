"""The Claims tab in Chromium: guesses, verdicts, filters, files, links, Chinese."""

import csv
import json
from urllib.parse import quote

from app.claims.bench import Bench
from app.claims.desk import CLAIMS, measure

ROOT = ".view-claims"
LINK = "#text=" + quote("The capital of France is Paris.") + "&model=bert-mini&tab=claims"
PNG = b"\x89PNG\r\n\x1a\n"
READY = f'{ROOT}[data-state="ready"]'
FAST = "electra-fifteen"
BOTH = "bert-always-mask"


def card(page, name):
    return page.locator(f'{ROOT} [data-claim="{name}"]')


def done(page, name):
    page.wait_for_selector(f'{ROOT} [data-claim="{name}"][data-state="done"]', timeout=60_000)


def kept(**state):
    return f"{LINK}&lab-claims={quote(json.dumps(state))}"


def test_guess_measure_filter_and_save(visit, session):
    page = visit(link="?lang=en" + LINK).page
    page.wait_for_selector(READY)
    assert page.locator(f"{ROOT} .cl-card").count() == len(CLAIMS)
    assert page.locator(f"{ROOT} .cl-stamp").count() == 0

    # A guess starts the measurement; numbers and verdict are those of the core.
    card(page, BOTH).locator('[data-guess="wrong"]').click()
    done(page, BOTH)
    found = measure(CLAIMS[BOTH], Bench(session, "bert-mini", 0))
    shown = (
        card(page, BOTH)
        .locator("td")
        .evaluate_all("cells => cells.map(cell => [cell.dataset.key, Number(cell.dataset.value)])")
    )
    assert shown == [[number.key, number.value] for number in found.numbers]
    assert card(page, BOTH).get_attribute("data-verdict") == found.verdict == "half"
    score = page.locator("#cl-score")
    assert score.inner_text() == "Your guesses: 0 of 1 right."
    card(page, FAST).locator('[data-guess="partly"]').click()
    done(page, FAST)
    assert score.inner_text() == "Your guesses: 1 of 2 right."

    # Another seed draws again, and a guess that saw the answer does not count.
    card(page, FAST).locator("[data-again]").click()
    page.wait_for_function(
        f"document.querySelector('[data-claim=\"{FAST}\"] [data-again] + span')?.textContent"
        " === 'seed 1'"
    )
    assert score.inner_text() == "Your guesses: 0 of 1 right."

    # Filters.
    page.select_option("#cl-state", "partly")
    assert page.get_attribute(ROOT, "data-shown") == "2"
    page.select_option("#cl-state", "every")
    page.select_option("#cl-family", "XLNet")
    wanted = sum(claim.family == "XLNet" for claim in CLAIMS.values())
    assert page.get_attribute(ROOT, "data-shown") == str(wanted)
    page.click("#cl-clear")
    page.fill("#cl-search", "four terms")
    assert page.get_attribute(ROOT, "data-shown") == "1"
    assert card(page, "deberta-four-terms").is_visible()
    page.fill("#cl-search", "")

    # Files hold what was measured.
    files = {}
    for what in ("csv", "svg", "png"):
        with page.expect_download() as download:
            page.click(f'{ROOT} [data-save="{what}"]')
        files[what] = download.value.path().read_bytes()
    rows = list(csv.DictReader(files["csv"].decode("utf-8-sig").splitlines()))
    assert {(row["claim"], row["seed"]) for row in rows} == {(BOTH, "0"), (FAST, "1")}
    assert files["svg"].startswith(b"<svg")
    assert files["png"].startswith(PNG)

    # A link with this address shows the same in a fresh browser.
    address = page.url.split("#")[1]
    other = visit(width=390, link="#" + address)
    done(other.page, BOTH)
    done(other.page, FAST)
    again = (
        card(other.page, FAST)
        .locator("td")
        .evaluate_all("cells => cells.map(cell => cell.dataset.value)")
    )
    assert again == card(page, FAST).locator("td").evaluate_all(
        "cells => cells.map(cell => cell.dataset.value)"
    )
    assert other.overflow() <= 0


def test_a_link_of_a_stranger_opens_the_page(visit):
    state = {
        "family": {"x": 1},
        "state": "__proto__",
        "search": 7,
        "only": ["../../x", 5, None],
        "ran": ["no-such-card.1", "bert-always-mask.99999", {"a": 1}, "<b>"],
    }
    page = visit(link="?lang=en" + kept(**state)).page
    page.wait_for_selector(READY)
    assert page.get_attribute(ROOT, "data-shown") == str(len(CLAIMS))


def test_a_link_keeps_what_is_searched(visit):
    page = visit(link="?lang=en" + kept(family="ALBERT", search="xxlarge")).page
    page.wait_for_selector(READY)
    assert page.get_attribute(ROOT, "data-shown") == "1"


def test_chinese_dark_narrow_and_a_missing_model(visit, session):
    cloze = visit(width=390, dark=True, link="?lang=zh" + LINK)
    page = cloze.page
    page.wait_for_selector(READY)
    for name in (BOTH, "electra-twice", "deberta-four-terms"):
        card(page, name).locator('[data-guess="none"]').click()
        done(page, name)
    assert "半对" in card(page, BOTH).locator(".cl-stamp").inner_text()
    assert cloze.overflow() <= 0
    missing = set(page.evaluate("[...ClozeLanguage.missing]"))
    ours = {text for text in missing if text.isascii() or "“" in text}
    assert ours == set()
    heads = {head for info in session.models() for head in info.heads}
    order = card(page, "sop-order")
    assert order.locator("[data-guess]").count() == (4 if "sentence_order" in heads else 0)
    if "sentence_order" not in heads:
        assert "训练" in order.locator(".cl-missing").inner_text()


def test_cards_that_wait_can_be_stopped(visit):
    page = visit(link="?lang=en" + kept(family="SpanBERT")).page
    page.wait_for_selector(READY)
    page.click("#cl-all")
    page.wait_for_function(
        f"!document.querySelector('{ROOT}').dataset.running"
        f" && document.querySelectorAll('{ROOT} .cl-card[data-state=done]').length === 3",
        timeout=60_000,
    )
    page.click("#cl-clear")
    page.click("#cl-all")
    page.click("#cl-stop")
    page.wait_for_function(
        f"!document.querySelector('{ROOT}').dataset.running"
        f" && !document.querySelector('{ROOT} .cl-card[data-state=waiting]')",
        timeout=60_000,
    )
    measured = page.locator(f'{ROOT} .cl-card[data-state="done"]').count()
    assert 3 <= measured < len(CLAIMS)
