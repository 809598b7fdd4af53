"""The forms of the Train tab in Chromium: texts as parsed, tables, recipes, the first batch."""

import re

import pytest
from playwright.sync_api import expect

from app.labs.train.pretraining import Pretraining
from app.parts.fields import fields
from app.runs.forms import preview as run_preview
from core_models.tokenizer import Tokenizer
from core_models.training import estimate
from core_models.training.schema import Settings
from tests.app.test_train_task_browser import ROWS
from tests.app.train_tab import Run, copy_run, open_form, shared
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


@pytest.mark.slow
def test_texts_are_shown_as_parsed_and_go_with_a_copy(cloze, runs, tmp_path):
    form = open_form(cloze)
    form.use(TINY)
    form.fold("Texts of your own")
    for name, content in {"rows.csv": TABLE, "ok.csv": OTHER, "doc.txt": DOCUMENTS}.items():
        (tmp_path / name).write_text(content)
        form.send(tmp_path / name)
        form.button(f"Remove {name}").wait_for()
        cloze.rest()
    form.says("The first documents, as they are read")
    form.says("Document 0 begins. It goes on a little.")
    form.choose("Look at", "rows.csv")
    form.says("story, which is read")
    reads = form.root.get_by_role("region", name="Texts of your own, as the run reads them")
    expect(reads.get_by_role("row", name="rows-story.txt")).to_contain_text("8040")
    form.choose("Column of the text", "title")
    form.says("title, which is read")
    form.says("Title 8")
    expect(reads.get_by_role("row", name="rows-title.txt")).to_contain_text("4040")
    form.button("Show the first batch").click()
    form.says("the model sees [MASK]")
    number = form.batch.locator(".train-id").first
    expect(number).to_be_hidden()
    form.field("Show the ids").check()
    expect(number).to_be_visible()
    expect(number).to_have_text(re.compile(r"^\d+$"))
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")
    run = shown.id
    names = ["texts/rows-title.txt", "texts/ok-text.txt", "texts/doc.txt"]
    assert runs.config(run)["data"]["texts"] == names
    # A new run from this one names what it will read, and lets it be dropped.
    copy_run(cloze, run)
    expect(reads.get_by_role("row")).to_have_count(4)
    expect(reads.get_by_role("row", name="ok-text.txt")).to_contain_text("40")
    form.field("ok-text.txt").uncheck()
    expect(reads.get_by_role("row")).to_have_count(3)
    form.start.click()
    cloze.page.wait_for_function("run => ![run, null].includes(Cloze.place.run)", arg=run)
    shown.state("finished")
    again = shown.id
    assert runs.config(again)["data"]["texts"] == [names[0], names[2]]


@pytest.mark.slow
def test_a_refused_table_leaves_nothing_of_the_one_before(cloze, tmp_path, chinese):
    cloze.page.set_viewport_size({"width": 390, "height": 800})
    cloze.page.emulate_media(color_scheme="dark")
    form = open_form(cloze, "task")
    base = form.field("Checkpoint")
    expect(base).to_have_value(re.compile("^bert-mini "))
    form.choose("Labelled set", "Sentiment, Chinese")
    form.says("characters on average")
    expect(base).not_to_have_value(re.compile("^bert-mini "))
    form.fold("All settings as JSON")
    expect(form.field("Settings")).to_have_value(re.compile(f'"checkpoint": "{chinese}"'))
    assert not form.shown("This set is Chinese")
    form.choose("Checkpoint", "bert-mini ·")
    form.says("This set is Chinese, and bert-mini")
    form.choose("Labelled set", "my own table …")
    expect(form.start).to_be_disabled()
    for name, content in {
        "lab.csv": ROWS.encode(),
        "bin.txt": b"\0\1\2",
        "x.csv": b"a,b\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    table, dev = "Send a table (.csv, .tsv, .jsonl, .parquet)", "Rows to measure on (optional)"
    form.send(tmp_path / "lab.csv", table)
    form.says("68 rows to learn from")
    expect(form.start).to_be_enabled()
    for bad, words in (("bin.txt", "control characters"), ("x.csv", "x.csv holds no rows")):
        form.send(tmp_path / bad, table)
        form.refuses(words)
        cloze.rest()  # a later check does not make it good
        expect(form.problem.filter(has_text=words)).not_to_have_count(0)
        expect(form.start).to_be_disabled()
        assert not form.shown("rows to learn from")
        assert not form.shown("lab.csv")
    form.send(tmp_path / "lab.csv", table)
    form.says("68 rows to learn from")
    form.send(tmp_path / "bin.txt", dev)
    form.refuses("bin.txt")
    expect(form.start).to_be_disabled()
    form.button("Go on without it").click()
    expect(form.start).to_be_enabled()
    assert cloze.overflow() <= 0


@pytest.mark.slow
def test_columns_of_any_name_hold_two_texts_or_tags(cloze):
    """What the table asks went back to one label as soon as a column for it was not found."""
    form = open_form(cloze, "task")
    form.choose("Labelled set", "my own table …")
    paste = "Or paste one, with a first row of column names"
    rows = "".join(f"A bird {n},A fish swims {n},{'ab'[n % 2]}\n" for n in range(20))
    form.paste(f"one,two,same\n{rows}", paste)
    form.says("a label of a text.")
    form.choose("What it asks", "a label of two texts")
    form.refuses("no column for text_b")
    form.choose("Column: second text", "one")
    form.says("a label of two texts.")
    # What was guessed besides stands in its box.
    expect(form.field("Column: text")).to_have_value("two")
    expect(form.field("Column: label")).to_have_value("same")
    rows = "".join(f"Anna saw {n},B-PER O O\n" for n in range(20))
    form.paste(f"Satz,Marken\n{rows}", paste)
    expect(form.field("Column: text")).to_have_value("Satz")
    form.choose("What it asks", "a tag for each word")
    form.choose("Column: words", "Satz")
    form.refuses("no column for tags")
    form.choose("Column: tags", "Marken")
    form.says("a tag for each word.")
    assert form.config()["task"] == {"kind": "tag", "columns": {"tokens": "Satz", "tags": "Marken"}}


@pytest.mark.slow
def test_recipes_tell_what_they_hide_and_how_long_they_take(cloze, quick_trials):
    form = open_form(cloze)
    told = {
        "Causal mini": "Nothing is hidden",
        "XLNet mini": "in an order that is drawn",
        "ELECTRA mini": "A generator fills 15",
        "MacBERT mini": "gives way to similar words",
        "SpanBERT mini": "At most 10 words at a time",
    }
    for name, words in told.items():
        form.field(name).check()
        form.says(words)
    form.says(re.compile("At most about .* here"))
    form.field("Five minutes on a GPU").check()
    form.says("It needs a GPU; this machine has none.")
    cloze.rest()
    assert not form.shown(re.compile("At most about"))  # nobody asked for minutes of a busy CPU


@pytest.mark.slow
def test_a_race_is_weighed_before_it_starts(cloze, quick_trials):
    form = open_form(cloze, "race")
    form.field("Width").fill("64")
    form.field("Longest example").fill("16")
    form.field("the same number of operations").check()
    form.says("operations each")
    rows = form.root.get_by_role("region", name="What each entrant comes to").get_by_role("row")
    expect(rows).to_have_count(4)
    form.button("How long will it take?").click()
    form.root.get_by_role("columnheader", name="Time").wait_for()
    form.choose("Whose first batch", "causal")
    form.button("Show the first batch").click()
    form.says("The first batch of causal")
    assert form.config()["budget"].keys() == {"flops"}
    form.field("Operations of each (trillions)").fill("")
    form.refuses(re.compile(r"^Operations of each \(trillions\) is empty; write a number from "))
    form.field("the same number of steps").check()
    form.says("steps each")
    form.field("Steps of each").fill("")
    form.refuses("Steps of each is empty; write a whole number from 1 to 10,000,000 there.")


def test_a_setting_is_a_field_of_the_schema(cloze):
    """What is labelled there has a control here, with its bounds; an error names the field."""
    form = open_form(cloze)
    form.field("Classroom").check()
    form.fold("More settings")
    for field in fields(Settings, Pretraining.offered).values():
        expect(form.root.get_by_text(field.label), field.path).not_to_have_count(0)
    assert "DeBERTa" in form.config()["description"]
    form.field("Steps").fill("0")
    form.refuses(re.compile("^Steps = 0: Input should be greater than or equal to 1.$"))
    form.field("Steps").fill("")
    form.refuses("Steps is empty; write a whole number from 1 to 10,000,000 there.")
    form.field("Steps").fill("200")
    form.field("Seed").fill("9007199254740993")  # the page makes ...992 of it
    form.refuses(
        re.compile("^Seed is [0-9,]+; choose a whole number from 0 to 9,007,199,254,740,991")
    )
    form.field("Seed").fill("1")
    form.field("Warm-up steps").fill("200")
    form.refuses("Warm-up steps (200) must be below steps (200).")
    form.field("Warm-up steps").fill("10")
    form.field("Share predicted").fill("0.3")
    form.says("Hides 30")
    assert form.config()["masking"]["rate"] == 0.3
    assert "description" not in form.config()  # it speaks of the recipe as it was
    form.field("Share predicted").fill("")
    form.says("Hides 15")
    assert "rate" not in form.config()["masking"]
