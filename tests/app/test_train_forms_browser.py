"""The forms of the Train tab in Chromium: texts as parsed, tables, recipes, the first batch."""

import json

import pytest

from app.runs import preview as run_preview
from core_models.tokenizer import Tokenizer
from core_models.training import estimate
from tests.app.test_train_task_browser import ROWS
from tests.app.train_tab import open_form, shared
from tests.core.tiny_models import small_bert

TABLE = "id,title,story\n" + "".join(
    f"{n},Title {n},The cat saw dog number {n}. It ran away.\n" for n in range(40)
)
OTHER = "text\n" + "".join(f"A bird sang to child {n}.\n" for n in range(40))
DOCUMENTS = "\n\n".join(f"Document {n} begins.\nIt goes on a little." for n in range(30))
TINY = {
    "name": "Forms",
    "model": {"size": "bert-mini", "overrides": {"layers": 1, "width": 32, "heads": 2}},
    "tokenizer": {"vocabulary": 120},
    "data": {"texts": [], "max_length": 16, "duplicates": 1},
    "objectives": {"masked_token": 1.0},
    "steps": 50,
    "batch_size": 8,
    "threads": 1,
}


@pytest.fixture(scope="module")
def chinese(runs):
    """A finished run that is only a tiny model with a Chinese vocabulary."""
    lines = ["今天天气很好", "我们去公园看花", "他喜欢读书和写字", "小猫在院子里睡觉"] * 3
    tokenizer = Tokenizer.train(lines, vocabulary=120)
    run = runs.create({"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}})
    small_bert(tokenizer).save(runs.root / run / "model")
    return f"run/{run}"


@pytest.fixture
def cloze(module_page):
    """One page for these tests: each has a form of its own there."""
    yield from shared(module_page)


@pytest.fixture
def quick_trials(monkeypatch):
    """Trials of how long a run takes last a moment, and not two seconds for each model."""
    monkeypatch.setitem(estimate.estimate.__kwdefaults__, "seconds", 0.1)
    monkeypatch.setattr(run_preview, "_RACE_SECONDS", 0.1)


def settle(page):
    """Wait until the form was checked after the last change."""
    page.wait_for_timeout(350)
    page.wait_for_selector(".train-form[data-state=ready]")


def test_texts_are_shown_as_parsed_and_go_with_a_copy(cloze, runs, tmp_path):
    page = open_form(cloze)
    page.click(".train-all summary")
    page.fill(".train-json", json.dumps(TINY))
    page.click("#train-apply")
    for name, content in {"rows.csv": TABLE, "ok.csv": OTHER, "doc.txt": DOCUMENTS}.items():
        (tmp_path / name).write_text(content)
        page.set_input_files("#train-file", tmp_path / name)
        page.locator(".train-text", has_text=name).wait_for()
    card = page.locator(".train-text", has_text="rows.csv")
    assert card.locator("th.chosen").inner_text() == "story"
    assert card.locator("tbody tr").count() == 5
    card.get_by_text("80 lines in 40 documents").wait_for()
    card.locator("select").select_option(label="title")
    assert card.locator("td.chosen").first.inner_text() == "Title 0"
    card.get_by_text("40 lines in 40 documents").wait_for()
    documents = page.locator(".train-text", has_text="doc.txt").locator(".train-documents li")
    assert documents.first.locator("p").all_inner_texts() == [
        "Document 0 begins.",
        "It goes on a little.",
    ]
    settle(page)
    page.click("#train-batch")
    page.wait_for_selector('.train-piece[data-case="mask"]')
    assert "the model sees [MASK]" in page.inner_text(".train-key")
    number = page.locator(".train-example .train-id").first
    assert not number.is_visible()
    page.check(".train-ids")
    assert number.inner_text().isdigit()
    page.click("#train-start")
    page.wait_for_selector(".train-run[data-state=finished]")
    run = page.get_attribute(".train-run", "data-run")
    names = ["texts/rows-title.txt", "texts/ok-text.txt", "texts/doc.txt"]
    assert runs.config(run)["data"]["texts"] == names
    # A new run from this one names what it will read, and lets it be dropped.
    page.click("#train-again")
    page.locator(".train-own-texts", has_text="ok-text.txt: 40 lines").wait_for()
    assert page.locator(".train-own-texts li").count() == 3
    page.get_by_role("button", name="Remove ok-text.txt").click()
    page.wait_for_function("document.querySelectorAll('.train-own-texts li').length === 2")
    settle(page)
    page.click("#train-start")
    page.wait_for_function(
        "run => document.querySelector('.train-run')?.dataset.run !== run", arg=run
    )
    page.wait_for_selector(".train-run[data-state=finished]")
    again = page.get_attribute(".train-run", "data-run")
    assert runs.config(again)["data"]["texts"] == [names[0], names[2]]


def test_a_refused_table_leaves_nothing_of_the_one_before(cloze, tmp_path, chinese):
    cloze.page.set_viewport_size({"width": 390, "height": 800})
    cloze.page.emulate_media(color_scheme="dark")
    page = open_form(cloze, "task")
    assert page.input_value("#train-task-from") == "bert-mini"
    page.select_option("#train-set", "sentiment-zh")
    page.locator(".train-about", has_text="characters on average").wait_for()
    page.wait_for_selector(".train-task[data-state=ready]")
    assert page.input_value("#train-task-from") == chinese
    assert not page.is_visible(".train-task p.train-warnings")
    page.select_option("#train-task-from", "bert-mini")
    page.locator("p.train-warnings", has_text="This set is Chinese, and bert-mini").wait_for()
    page.select_option("#train-set", label="my own table …")
    assert page.is_disabled("#train-task-start")
    for name, content in {
        "lab.csv": ROWS.encode(),
        "bin.txt": b"\0\1\2",
        "x.csv": b"a,b\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    page.set_input_files("#train-set-file", tmp_path / "lab.csv")
    page.locator(".train-about", has_text="68 rows to learn from").wait_for()
    page.wait_for_selector(".train-task[data-state=ready]")
    assert page.is_enabled("#train-task-start")
    for bad, words in (("bin.txt", "control characters"), ("x.csv", "x.csv holds no rows")):
        page.set_input_files("#train-set-file", tmp_path / bad)
        page.locator(".train-end .problem", has_text=words).wait_for()
        page.wait_for_timeout(400)  # a later check does not make it good
        assert page.is_visible(".train-end .problem")
        assert page.is_disabled("#train-task-start")
        assert page.inner_text(".train-about") == ""
        assert "lab.csv" not in page.inner_text(".train-task")
    page.set_input_files("#train-set-file", tmp_path / "lab.csv")
    page.locator(".train-about", has_text="68 rows to learn from").wait_for()
    page.set_input_files("#train-set-dev", tmp_path / "bin.txt")
    page.locator(".train-end .problem", has_text="bin.txt").wait_for()
    assert page.is_disabled("#train-task-start")
    page.get_by_role("button", name="Go on without it").click()
    page.wait_for_selector(".train-task[data-state=ready]")
    assert page.is_enabled("#train-task-start")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


def test_recipes_tell_what_they_hide_and_how_long_they_take(cloze, quick_trials):
    page = open_form(cloze)
    told = {
        "causal-mini": "Nothing is hidden",
        "xlnet-mini": "in an order that is drawn",
        "electra-mini": "A generator fills 15 %",
        "macbert-mini": "gives way to similar words",
        "spanbert-mini": "At most 10 words at a time",
    }
    for name, words in told.items():
        page.click(f".train-preset[data-name={name}]")
        page.locator(".train-form .train-note", has_text=words).first.wait_for()
    card = page.locator(".train-preset[data-name=spanbert-mini] .train-preset-time")
    card.get_by_text("here").wait_for()
    gpu = page.inner_text(".train-preset[data-name=gpu-five-minutes]")
    assert "never measured on a GPU" in gpu


def test_a_race_is_weighed_before_it_starts(cloze, quick_trials):
    page = open_form(cloze, "race")
    page.fill("#train-race-overrides-width", "64")
    page.fill("#train-race-data-max_length", "16")
    rows = page.locator(".train-entrant-table tbody tr")
    page.select_option("#train-race-budget", "flops")
    page.locator(".train-race-form .train-sum", has_text="operations each").wait_for()
    assert rows.count() == 3
    page.click("#train-race-time")
    page.locator(".train-entrant-table thead th", has_text="Time").wait_for()
    page.select_option("#train-race-whose-batch", "causal")
    page.click("#train-race-batch")
    page.locator(".train-first h3", has_text="The first batch of causal").wait_for()
    config = json.loads(page.input_value(".train-race-form .train-json"))
    assert config["budget"].keys() == {"flops"}
    page.select_option("#train-race-budget", "steps")
    page.locator(".train-race-form .train-sum", has_text="steps each").wait_for()
