"""The Train tab in Chromium: one tiny run from the form to the Mask tab, and back to it."""

import csv

import pytest
from playwright.sync_api import expect

from app.runs import owner as run_owner
from app.runs import process as run_process
from app.runs.data.texts import SHIPPED
from tests.app.train_tab import Run, card, copy_run, legend, open_form, open_run, shared

START = run_process.start
SUBJECTS = ("cat", "dog", "bird", "fish", "child", "teacher", "doctor", "farmer")
VERBS = ("sees", "hears", "likes", "finds")
TEXT = "\n".join(
    f"The {one} {verb} the {other} .{chr(10) if other == SUBJECTS[-1] else ''}"
    for one in SUBJECTS
    for verb in VERBS
    for other in SUBJECTS
)
CONFIG = {
    "name": "Tiny",
    "model": {
        "size": "bert-mini",
        "overrides": {"layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 32},
        "dropout": 0.0,
    },
    "tokenizer": {"vocabulary": 100},
    "data": {"texts": [], "max_length": 16, "duplicates": 1, "singles": 1.0},
    "objectives": {"masked_token": 1.0},
    "optimizer": {"learning_rate": 0.003},
    "schedule": {"warmup": 5},
    "batch_size": 8,
    "steps": 100_000,
    "threads": 1,
    "report_every": 5,
    "validate_every": 20,
    "checkpoints": {"every": 10_000, "keep": 1, "snapshots": True},
}


@pytest.fixture
def cloze(module_page):
    """One page for the tests that do not open it themselves."""
    yield from shared(module_page)


def test_a_run_from_the_form_to_the_mask_tab(visit, runs, session, monkeypatch):
    cloze = visit()
    shown, page = Run(cloze), cloze.page
    form = open_form(cloze)
    form.says("parameters: ")  # the page is new: its own settings have been looked at
    form.use(CONFIG)
    form.refuses("There is nothing to read")
    form.fold("Texts of your own")
    form.paste(TEXT)
    form.says("2 layers of width 32")
    with monkeypatch.context() as real:
        real.setattr(run_process, "start", START)  # as for visitors, and not forked
        form.start.click()
        shown.state("training")
    shown.beyond(10)
    run = shown.id
    assert runs.config(run)["data"]["texts"] == ["texts/pasted.txt"]

    # Another browser finds the run by its link; a reload finds it, too, and it has gone on.
    step = shown.step
    visitor = visit(width=390, dark=True, link=f"#run={run}")
    other = Run(visitor)
    other.beyond(step)
    assert visitor.overflow() <= 0
    page.reload()
    shown.beyond(step)
    assert f"run={run}" in page.url

    shown.button("Stop").click()
    shown.state("stopped")
    other.state("stopped")
    stopped = runs.folder(run).status()["step"]
    # The page may learn of the state before the last report.
    shown.says(f"step {stopped:,} of")

    shown.button("Continue").click()
    shown.beyond(stopped)
    shown.button("Stop").click()
    shown.state("stopped")

    # Snapshots answer with the model's own probabilities.
    shown.fold("The same sentence at every snapshot")
    shown.root.get_by_label("Sentence with [MASK]").fill("The cat sees the [MASK] .")
    page.wait_for_function(
        "() => document.querySelector('.train-scrub').dataset.answered"
        " === document.querySelector('.train-scrub').dataset.step"
    )
    shown.slider.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".train-scrub[data-answered='1']")

    shown.button("Fill gaps with it").click()
    page.wait_for_selector("#sentence-model input")
    page.wait_for_function("name => Cloze.sentence.model === name", arg=f"run/{run}")
    page.fill("#sentence-text textarea", "The dog hears the bird .")
    page.wait_for_function("() => Cloze.sentence.text.includes('hears')")
    page.locator('.chip[data-position="5"]').click()
    page.wait_for_selector('.guess[data-position="5"] button.candidate')
    page.wait_for_selector(".view-predictions[data-state=ready]")
    piece = page.get_attribute('.guess[data-position="5"] button.candidate', "data-piece")
    assert session.model(f"run/{run}").tokenizer.id(piece) is not None
    # The link that is in the address now opens the run's model in a fresh browser.
    again = visit(link=page.url[page.url.index("#") :])
    again.page.wait_for_function("name => Cloze.sentence.model === name", arg=f"run/{run}")


@pytest.fixture
def finished(runs):
    """A run that is only files: reports, a held-out curve, no model."""
    data = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}
    run = runs.create(CONFIG | {"name": "Curve", "data": data})
    folder = runs.folder(run)
    for step in range(10, 310, 10):
        report = {
            "step": step,
            "tokens": step * 100,
            "seconds": step / 10.0,
            "loss": 9 - step / 100,
        }
        report |= {"masked_token_loss": 9 - step / 100, "masked_token_accuracy": step / 1000}
        if step % 50 == 0:
            report["validation_masked_token_loss"] = 9.1 - step / 100
        folder.append_metrics(report)
    folder.write_status(
        {
            "state": "finished",
            "step": 300,
            "steps": 300,
            "baselines": {"uniform": 8.7, "unigram_entropy": 6.3},
        }
    )
    yield run
    if run in runs.ids():
        runs.delete(run)


def test_the_chart_its_table_and_its_files_hold_the_reports(finished, runs, cloze):
    page = open_run(cloze, finished)
    shown = Run(cloze)
    shown.state("finished")
    rows = cloze.numbers("#train-run [data-picture]")
    assert legend(page, 4) == [
        "training text",
        "held-out text",
        "knows nothing: 8.70",
        "knows only how frequent pieces are: 6.30",
    ]
    reports = runs.folder(finished).metrics()
    assert [row[1:] for row in rows if row[0] == "training text"] == [
        [record["step"], record["masked_token_loss"]] for record in reports
    ]
    assert len([row for row in rows if row[0] == "held-out text"]) == 6
    shown.says("Step 300: 6 in training. Step 300: 6.1 on held-out text.")
    with page.expect_download() as file:
        shown.root.get_by_role("link", name="All reports as CSV").click()
    table = list(csv.DictReader(file.value.path().read_text().splitlines()))
    assert [float(row["masked_token_loss"]) for row in table] == pytest.approx(
        [record["masked_token_loss"] for record in runs.folder(finished).metrics()]
    )
    shown.choose("Show", "Masked-token accuracy")
    shown.says("30.0 % in training")
    shown.choose("By", "tokens")
    page.locator("#train-run .xtitle", has_text="Tokens").first.wait_for(state="attached")


def test_the_form_shows_the_first_batch_and_refuses_what_is_no_text(cloze, tmp_path):
    form = open_form(cloze)
    form.use(CONFIG)
    form.fold("Texts of your own")
    binary = tmp_path / "picture.txt"
    binary.write_bytes(b"\x89PNG\x00\x01")
    form.send(binary)
    form.refuses("picture")
    text = tmp_path / "sentences.txt"
    text.write_text(TEXT)
    form.send(text)
    form.says("sentences.txt")
    table = tmp_path / "rows.csv"
    table.write_text("id,body\n1,The cat sees the dog.\n2,The dog hears the bird.\n")
    form.send(table)
    form.says("body, which is read")
    form.says("The cat sees the dog.")
    form.button("Remove rows.csv").click()
    cloze.rest()
    form.button("Show the first batch").click()
    form.batch.locator('.train-piece[data-case="mask"]').first.wait_for()
    expect(form.batch.locator(".train-example")).to_have_count(8)


# The second is clicked while what the first has brought is on its way to the list.
BOTH = """([one, other]) => {
  const box = (run) => document.querySelector(`#train-runs input[value='${run}']`);
  const { choose } = Cloze.runs;
  Cloze.runs.choose = (id) => {
    Cloze.runs.choose = choose;
    choose(id);
    box(other).click();
  };
  box(one).click();
}"""


def test_of_two_runs_chosen_quickly_the_second_is_shown(finished, runs, cloze):
    other = runs.create(runs.as_form(finished) | {"name": "Quickly", "seed": 8}, source=finished)
    page = open_run(cloze, finished)
    open_form(cloze)
    page.evaluate(BOTH, [finished, other])
    Run(cloze).shows("Quickly")
    expect(card(page, other).get_by_role("radio")).to_be_checked()
    assert page.evaluate("Cloze.place.run") == other
    runs.delete(other)


def test_runs_are_compared_copied_and_deleted_after_asking_twice(finished, runs, cloze):
    other = runs.create(runs.as_form(finished) | {"name": "Other", "seed": 7}, source=finished)
    runs.folder(other).append_metrics({"step": 10, "loss": 5.0, "masked_token_loss": 5.0})
    page = open_run(cloze, finished)
    shown = Run(cloze)
    page.wait_for_function("localStorage.getItem('cloze-owner')")
    for run in (finished, other):
        run_owner.note(runs.root / run, page.evaluate("localStorage.getItem('cloze-owner')"))
    shown.compare("Other")
    page.locator(".legendtext", has_text="Other").first.wait_for(state="attached")
    assert shown.rows("How the settings differ") == [["seed", "1", "7"]]
    form = copy_run(cloze, finished)
    expect(form.field("Steps")).to_have_value("100000")
    open_run(cloze, other)
    shown.shows("Other")
    shown.button("Delete").click()
    assert other in runs.ids()
    shown.button("Keep it").click()
    shown.delete()
    form.start.wait_for()
    assert other not in runs.ids()


@pytest.mark.slow
def test_a_link_to_a_snapshot_opens_it_in_a_fresh_page_without_the_tab(visit, runs, session):
    """It stands in no list of models, so the page asks for it; the tab loads when it is seen."""
    data = CONFIG["data"] | {"texts": list(SHIPPED)[:1]}
    run = runs.create(CONFIG | {"name": "Snapshot", "data": data})
    folder = runs.folder(run)
    folder.save(4, session.model("bert-mini").save, kind="snapshots")
    name = f"run/{run}/step-4"
    page = visit(link=f"#text=A+cat+sleeps.&model={name}&marks=2").page
    page.wait_for_function("name => Cloze.sentence.model === name", arg=name)
    page.wait_for_selector('.chip[data-position="2"][data-case="mask"]')
    loaded = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    own = [name.rsplit("/", 1)[-1] for name in loaded if "/train" in name]
    assert own == ["index.js"]
    gone = visit(link=f"#text=A+cat+sleeps.&model=run/{run}/step-5").page
    gone.wait_for_function("Cloze.sentence.notes.some((note) => note.includes('step-5'))")
    assert gone.evaluate("Cloze.sentence.text") == "A cat sleeps."
    runs.delete(run)
