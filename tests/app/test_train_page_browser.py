"""The Train tab in Chromium: what is shown of a run, and when; the slider; export; tables."""

import asyncio
import json
import re
import time
from time import monotonic

import pytest

from app.runs import owner as run_owner
from app.runs import scrub as run_scrub
from app.runs.texts import SHIPPED
from core_models import InputError
from tests.app.test_train_browser import CONFIG, Train
from tests.app.train_tab import legend, look_again, open_run, shared
from tests.app.visitors import PAINTED
from tests.core.tiny_models import new, tiny

DATA = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}
SENTENCE = "The capital of France is [MASK] ."


@pytest.fixture
def make(runs):
    """Makes finished runs that are only files: ``make(name, accuracy=..., **status)``."""
    made = []

    def make(name, *, accuracy="masked_token_accuracy", **status):
        run = runs.create(CONFIG | {"name": name, "data": DATA})
        folder = runs.folder(run)
        for step in (20, 40):
            report = {"step": step, "tokens": step, "seconds": 1.0, "loss": 6.0}
            folder.append_metrics(report | {"masked_token_loss": 6.0, accuracy: step / 100})
        folder.write_status({"state": "finished", "step": 40, "steps": 40} | status)
        made.append(run)
        return folder

    yield make
    for run in set(made) & set(runs.ids()):
        runs.delete(run)


@pytest.fixture
def cloze(module_page):
    """One page for these tests."""
    yield from shared(module_page)


def own(page, runs, *folders):
    page.wait_for_function("localStorage.getItem('cloze-owner')")
    for folder in folders:
        run_owner.note(folder.path, page.evaluate("localStorage.getItem('cloze-owner')"))


def change(page, pattern, edit):
    """Let an answer of the server pass through ``edit``."""

    def handle(route):
        answer = route.fetch()
        values = answer.json()
        if "error" not in values:  # a last look at a run that the test has just deleted
            edit(values)
        route.fulfill(response=answer, body=json.dumps(values))

    page.route(re.compile(pattern), handle)


def answer(page, pattern, values):
    """Answer in place of the server."""
    body = json.dumps(values)
    page.route(
        re.compile(pattern),
        lambda route: route.fulfill(body=body, content_type="application/json"),
    )


def test_a_click_shows_the_run_at_once_and_offers_only_what_is_about_it(runs, make, cloze):
    first = make("First")
    page = open_run(cloze, first.path.name)
    second = make("Second")  # whose report nobody has asked for yet
    own(page, runs, first, second)
    look_again(page)
    page.wait_for_selector("#train-delete:visible")
    page.click("#train-delete")
    assert "“First”" in page.inner_text(".train-sure")
    held = []
    pattern = re.compile(rf"/train/runs/{second.path.name}\?")
    page.route(pattern, lambda route: held.append(route))
    card = page.locator(f'.train-card[data-run="{second.path.name}"]')
    card.click()
    # Its report is not there yet: its name is, and nothing of the other run.
    assert page.inner_text(".train-head h3") == "Second"
    assert page.get_attribute(".train-run", "data-run") == second.path.name
    assert page.locator(".train-head button:visible").count() == 0
    assert page.locator(".train-run > .card:visible").count() == 1
    until = monotonic() + 2  # asked for now, and not when the clock of an idle page comes round
    while not held and monotonic() < until:
        page.evaluate(PAINTED)
    assert held
    for route in held:
        route.continue_()
    page.unroute(pattern)
    page.wait_for_selector("#train-delete:visible")
    assert not page.is_visible(".train-sure")
    page.click("#train-delete")
    assert "“Second”" in page.inner_text(".train-sure")
    # What was asked of one run is not done to another.
    page.locator(f'.train-card[data-run="{first.path.name}"]').click()
    assert page.inner_text(".train-head h3") == "First"
    assert not page.is_visible(".train-sure")
    started = time.monotonic()
    card.click()
    page.wait_for_selector(f'.train-run[data-run="{second.path.name}"]:not(.pending)')
    assert time.monotonic() - started < 3
    page.click("#train-delete")
    page.click("#train-delete-sure")
    page.get_by_role("button", name="Start training").wait_for()
    assert second.path.name not in runs.ids()
    assert first.path.name in runs.ids()
    assert "run=" not in page.url

    # A message that the server is silent goes when it answers again.
    page.locator(f'.train-card[data-run="{first.path.name}"]').click()
    page.wait_for_selector("#train-delete:visible")
    dead = re.compile(r"/train/runs/[^/]+/delete")
    page.route(dead, lambda route: route.abort())
    answers = re.compile(rf"/train/runs(/{first.path.name}\?.*)?$")
    late = []
    page.route(answers, lambda route: late.append(route))  # so that it stays until it is seen
    page.click("#train-delete")
    page.click("#train-delete-sure")
    page.wait_for_selector(".train-head .problem[role=alert]:visible")
    for route in late:
        route.continue_()
    page.unroute(answers)
    page.unroute(dead)
    look_again(page)
    page.wait_for_selector(".train-head .problem[role=alert]", state="hidden")
    cloze.problems[:] = [each for each in cloze.problems if "ERR_FAILED" not in each]


def test_the_slider_ends_at_the_trained_model_and_shows_where_words_look(make, cloze, session):
    folder = make("Slider")
    name = folder.path.name
    model = session.model("bert-mini")
    for step in (1, 2):
        folder.save(step, model.save, kind="snapshots")
    model.save(folder.model_path)
    page = open_run(cloze, name)
    page.wait_for_selector(".train-scrub[data-answered='40'][data-looked='40']")
    assert page.get_attribute("#train-slider", "max") == "2"
    assert "step 40, the trained model" in page.inner_text(".train-slide output")
    assert page.inner_text("#train-open-step") == "Open this model in the Mask tab"
    cells = page.locator(".train-map .map-cell")
    assert cells.count() == len(model.encode([SENTENCE])[0].ids) ** 2
    # The numbers are the model's own, of the layer and head that are chosen.
    page.select_option("#train-layer", label="1")
    page.select_option("#train-head", label="2")
    page.wait_for_selector(".train-looks[data-layer='0'][data-head='1']")
    text = page.input_value("#train-sentence")
    wanted = computed(session, lambda: run_scrub.attention(model, text, 0, 1))["weights"]
    page.locator(".train-map").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert f"{wanted[1][1] * 100:.1f}" in page.inner_text(".train-map-told")
    # Every word gives a curve or a reason.
    assert [step for step, _ in cloze.numbers(".train-scrub")] == [1, 2, 40]
    page.fill("#train-word", "zzzz qq")
    page.wait_for_selector(".train-word-note:visible")
    assert "pieces here" in page.inner_text(".train-word-note")
    assert not page.is_visible(".train-scrub .figure")
    page.locator("#train-slider").focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".train-scrub[data-answered='1'][data-looked='1']")


def computed(session, work):
    """Work on the model thread, from a thread in which Playwright's loop runs."""
    return session._batcher.submit(("work", work), work).result()


def test_what_a_snapshot_is_asked_is_checked(runs, make, session):
    folder = make("Checked")
    new(tiny("bert-base-uncased")).save(folder.model_path)
    values = {"step": "last", "text": "a [MASK] .", "attention": {"layer": None, "head": 0}}

    def guess(**more):
        return asyncio.run(run_scrub.guess(session, runs, folder.path.name, values | more))

    found = guess()
    looks = found["attention"]
    assert looks["layer"] == looks["layers"] - 1
    assert [sum(row) for row in looks["weights"]] == pytest.approx(
        [1.0] * len(looks["tokens"]), abs=1e-2
    )
    assert [token["masked"] for token in looks["tokens"]].count(True) == len(found["predictions"])
    long = guess(text="a " * 80 + "[MASK]")["attention"]
    assert len(long["weights"]) == len(long["tokens"]) <= run_scrub.MOST_POSITIONS
    assert "attention" not in guess(attention=None)
    for wrong in (
        {"attention": 3},
        {"attention": {"layer": 99}},
        {"attention": {"layer": 0, "head": -1}},
        {"step": "first"},
        {"step": 7},
    ):
        with pytest.raises(InputError):
            guess(**wrong)


def test_charts_and_heads_show_what_the_run_has(make, cloze):
    known = {"uniform": 8.0, "unigram_entropy": 6.5}
    first = make("Permuted", accuracy="permutation_accuracy", baselines=known)
    second = make("Other", baselines=known | {"unigram_entropy": 6.1})
    name = first.path.name

    def wait(run):
        if run["id"] == name:
            more = {"state": "queued", "place": 1, "wait_seconds": 180.0, "step": 0, "steps": 0}
            run.update(more)
        else:
            run.update({"state": "running", "silent_seconds": 240.0})

    page = cloze.page
    change(page, r"/train/runs$", lambda values: [wait(run) for run in values["runs"]])

    def live(values):
        wait(values["summary"])
        values["export"] = {"step": 40, "bytes": 3 << 20}

    change(page, rf"/train/runs/({name}|{second.path.name})\?", live)
    Train(cloze).open()
    look_again(page)
    card = page.locator(f'.train-card[data-run="{name}"]')
    card.get_by_text("place 1 in the queue · about 3 min until it starts").wait_for()
    other = page.locator(f'.train-card[data-run="{second.path.name}"]')
    other.get_by_text("no sign of life for 4 min").wait_for()
    card.click()
    small = cloze.numbers(".train-curves .fold")
    facts = page.inner_text(".train-facts")
    assert "about 3 min until it starts" in facts
    assert "step 0" not in facts
    assert {row[0] for row in small} == {"Permutation accuracy"}
    link = page.locator("#train-export")
    assert link.get_attribute("href") == f"/train/runs/{name}/model.zip"
    assert page.inner_text(".train-export .train-note") == "step 40, 3.0 MB"
    page.locator("li", has=other).get_by_role("checkbox", name="Compare Other").check()
    page.locator(".legendtext", has_text="(Other)").wait_for(state="attached")
    names = [name for name in legend(page) if name.startswith("knows")]
    assert sorted(names) == [
        "knows nothing: 8.00",
        "knows only how frequent pieces are (Other): 6.10",
        "knows only how frequent pieces are (Permuted): 6.50",
    ]
    other.click()
    page.wait_for_selector(".train-silent:visible")
    assert "no sign of life for 4 min" in page.inner_text(".train-silent")


MISTAKES = [
    {
        "text": "Anna saw Lake Como .",
        "said": "B-PER O O B-LOC O",
        "expected": "B-PER O B-LOC I-LOC O",
    },
    {"text": "Two words", "said": "O", "expected": "O O O"},
]
ANSWERS = [
    {"text": "Boats go.", "pair": "Who?", "said": "", "expected": "Boats"},
    {"text": "A dog.", "pair": "What?", "said": "a cat", "expected": "A dog"},
    {"text": "Boats go.", "pair": "What?", "said": "Who", "expected": "go"},
]
SHOW = """async (kind) => {
  const { makeResult } = await import('/cloze/app/labs/train/result.js');
  const result = makeResult();
  document.body.append(result.root);
  const task = { kind, labels: [], baselines: [], dev: { rows: 3 } };
  await result.fill(`stub-${kind}`, { evaluated: true, summary: { updated: 1 }, task });
  const shown = [...result.root.querySelectorAll('.train-examples > li')];
  const texts = shown.map((each) => each.innerText);
  result.root.remove();
  return texts;
}"""


def test_mistakes_stand_over_their_tags_and_below_their_text(cloze):
    page = Train(cloze).open().page
    result = {"main": "f1", "metrics": {"f1": 0.5}, "best_epoch": 1, "confusion": [], "labels": {}}
    for kind, worst in (("tag", MISTAKES), ("answer", ANSWERS)):
        answer(page, rf"/train/runs/stub-{kind}/result", result | {"worst": worst, "best": []})
    tags = page.evaluate(SHOW, "tag")
    flat = [re.sub(r"\s+", " ", text) for text in tags]
    assert flat[0] == "Anna B-PER saw Lake no name B-LOC Como B-LOC I-LOC ."
    assert flat[1] == "Two words the model says: O · right: O O O"  # tags that fit no word
    answers = page.evaluate(SHOW, "answer")
    assert len(answers) == 2
    assert answers[0].count("Boats go.") == 1
    assert [text in answers[0] for text in ("Who?", "What?", "no answer", "right: go")] == [
        True
    ] * 4


ROW = {
    "state": "finished",
    "title": "BERT",
    "objectives": {"masked_token": 1.0},
    "parameters": 142_480,
    "generator_parameters": 0,
    "tokens": 3_360,
    "step": 30,
    "steps": 30,
    "held_out": {"masked_token_loss": 3.4, "replaced_token_loss": 0.5},
    "probes": {"sentiment": {"value": 0.6}, "inference": {"value": 0.5}},
    "words": {"accuracy": 0.3},
    "minimal_pairs": {"accuracy": 0.5},
    "flops_per_step": 1.0,
}


def test_a_race_shows_every_column_on_a_narrow_page(make, cloze):
    name = make("Race").path.name
    page = cloze.page
    page.set_viewport_size({"width": 390, "height": 800})

    def race(run):
        run.update({"kind": "race", "model": {"race": 2}})

    change(page, r"/train/runs$", lambda values: [race(run) for run in values["runs"]])
    change(page, rf"/train/runs/{name}(\?|$)", lambda values: race(values["summary"]))
    rows = [ROW | {"name": "masked"}, ROW | {"name": "a-long-name-of-a-model"}]
    found = {"rows": rows, "series": {}, "baselines": {}, "models": [], "probe_baselines": {}}
    answer(page, rf"/train/runs/{name}/race", found)
    open_run(cloze, name)
    page.wait_for_selector('.train-results tr[data-entrant="masked"]')
    row = page.locator('.train-results tr[data-entrant="masked"]')
    labels = row.locator("td:visible").evaluate_all("all => all.map((each) => each.dataset.label)")
    assert labels[-1] == "Held-out loss"
    assert len(labels) == 8
    assert row.evaluate("row => row.getBoundingClientRect().right <= innerWidth")
    assert cloze.overflow() <= 0
    # With columns, those without room are a scroll away, and the page says so.
    page.set_viewport_size({"width": 900, "height": 800})
    box = page.locator(".train-reached .train-scroll")
    hidden = box.evaluate("box => box.scrollWidth > box.clientWidth + 1")
    assert page.is_visible(".train-more") == hidden
