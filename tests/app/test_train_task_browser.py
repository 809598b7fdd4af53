"""Fine-tuning and a race in Chromium: from the form to the figures, and a model to try."""

import csv
import json
import math
import re

import pytest
import torch
from playwright.sync_api import expect

import core_models as cm
from core_models.tasks.objectives import OBJECTIVES
from core_models.tokenizer import Tokenizer
from tests.app.train_tab import Run, legend, open_form, shared
from tests.core.tiny_models import small_bert

NOUNS = ("film", "meal", "room", "song", "walk", "book", "trip", "play", "soup", "game")
GOOD = ("great", "lovely", "superb", "charming")
BAD = ("awful", "boring", "bland", "shabby")
ROWS = "sentence,mood\n" + "".join(
    f"The {noun} was {word} .,{label}\n"
    for noun in NOUNS
    for label, group in (("good", GOOD), ("bad", BAD))
    for word in group
)


SENTENCES = "\n".join(
    f"The {noun} was {one} and the {other} was {two} .\n" * (1 + (noun == other))
    for noun in NOUNS
    for other in NOUNS
    for one, two in zip(GOOD, BAD, strict=True)
)


SCRATCH = "Compare with the same model without pretraining (takes as long again)"
APART = "Encode the two texts apart and compare them (bi-encoder)"


def title(runs, name: str) -> str:
    """How a list of models begins with a model of a run."""
    return re.escape(next(title for each, title in runs.models() if each == name))


@pytest.fixture(scope="module")
def tiny(runs):
    """A finished run that is only a tiny random model; its name in the pickers."""
    tokenizer = Tokenizer.train(ROWS.replace(",", " ").split("\n"), vocabulary=120)
    model = small_bert(tokenizer)
    run = runs.create({"model": {"checkpoint": "bert-mini"}, "task": {"set": "sentiment"}})
    model.save(runs.root / run / "model")
    return f"run/{run}"


@pytest.fixture
def cloze(module_page):
    """One page for these tests; who is another visitor has another."""
    yield from shared(module_page)


@pytest.mark.slow
def test_a_table_of_ones_own_becomes_a_model_that_is_tried(cloze, visit, runs, tiny):
    form = open_form(cloze, "task")
    page = cloze.page
    form.choose("Labelled set", "Sentiment of a sentence")
    form.says("680 rows to learn from")  # a shipped set
    form.choose("Labelled set", "my own table …")
    paste = "Or paste one, with a first row of column names"
    form.paste("sentence,mood\nOne row only .,good\n", paste)
    form.refuses("at least 2")
    form.paste(ROWS, paste)
    form.says("68 rows to learn from and 12 to measure on")
    expect(form.field("Column: text")).to_have_value("sentence")
    expect(form.field("Column: label")).to_have_value("mood")
    form.choose("Checkpoint", re.compile(f"^{title(runs, tiny)}"))
    for field, value in {"Learning rate": "0.01", "Epochs": "8", "Longest input": "16"}.items():
        form.field(field).fill(value)
    form.field(SCRATCH).check()
    form.says("32 steps over 68 rows")
    form.button("Show the first batch").click()
    form.says("to be answered with")
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")

    run = shown.id
    found = json.loads((runs.root / run / "evaluation.json").read_text())
    shown.says("What it reached")
    figures = dict(cloze.numbers("#cloze-reached"))
    assert figures["this model"] == pytest.approx(found["metrics"]["accuracy"])
    assert figures["always the commonest label"] == 0.5
    assert {"bag of words", "same model without pretraining"} <= set(figures)
    assert found["metrics"]["accuracy"] > 0.5
    confused = [row[1:] for row in cloze.numbers("#cloze-confusion")]
    assert confused == found["confusion"]
    assert any(text.startswith("always the commonest label: 50") for text in legend(page, 3))

    shown.ask("The song was superb .")
    shares = shown.root.get_by_text(re.compile(r"^\d+%$"))
    shares.nth(1).wait_for()
    percents = [int(share.rstrip("%")) for share in shares.all_inner_texts()]
    assert math.isclose(sum(percents), 100, abs_tol=1)

    # Another browser sees the same, and may not stop or delete it.
    visitor = visit(width=390, dark=True, link=f"#run={run}")
    other = Run(visitor)
    other.says("What it reached")
    expect(other.facts).to_contain_text("started from another browser")
    assert not other.button("Delete").is_visible()  # at once
    refused = visitor.page.evaluate(
        """async (run) => (await (await fetch(`/train/runs/${run}/delete`, {
          method: 'POST', body: JSON.stringify({ confirm: run }),
          headers: { 'x-cloze': 'train', 'x-cloze-owner': 'f'.repeat(32) } })).json()).error""",
        run,
    )
    assert "this browser" in refused
    assert visitor.overflow() <= 0
    assert run in runs.ids()
    shown.delete()
    form.start.wait_for()
    assert run not in runs.ids()


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_a_similarity_is_tried_with_two_sentences(cloze, runs, tiny, apart):
    form = open_form(cloze, "task")
    form.choose("Labelled set", "Similarity of two sentences")
    form.choose("Checkpoint", re.compile(f"^{title(runs, tiny)}"))
    form.field("Epochs").fill("1")
    form.field(SCRATCH).uncheck()
    form.field(APART).set_checked(apart)
    cloze.rest()
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")
    run = shown.id
    assert runs.folder(run).status()["task"]["paired"] is True
    shown.says("What it reached")
    shown.ask("The song was superb .", "The song was lovely .")
    said = shown.says("on a scale from 0 to 5").inner_text()
    model = cm.load(runs.folder(run).model_path)
    (head,) = [model.heads[name] for name in model.heads if name in OBJECTIVES]
    texts = ["The song was superb .", "The song was lovely ."]
    with torch.no_grad():
        if apart:
            outputs = [model.encoder(batch) for batch in map(model.batch, ([texts[0]], [texts[1]]))]
            means = [output.hidden[0].mean(0) for output in outputs]
            share = float(torch.cosine_similarity(*means, dim=0))
        else:
            share = float(head(model.encoder(model.batch([tuple(texts)])).hidden))
    assert said == f"{5 * share:.2f} on a scale from 0 to 5"
    shown.ask("The song was superb .", "")
    shown.says("write the second one")


def held_out_losses(race) -> dict[str, float]:
    """The hardest held-out example of each entrant; no two are equally hard."""
    losses = {
        row["name"]: json.loads((race.run(row["name"]).path / "validation.json").read_text())
        for row in race.table()
    }
    found = {name: each["worst"][0]["loss"] for name, each in losses.items()}
    assert len({f"{loss:.2f}" for loss in found.values()}) == 2
    return found


@pytest.mark.slow
def test_a_race_of_two_ends_with_one_chart_and_a_table(cloze, visit, runs):
    form = open_form(cloze, "race")
    page = cloze.page
    form.says("3 models, ")
    config = form.config()
    config["entrants"] = [e for e in config["entrants"] if e["name"] in ("masked", "causal")]
    config |= {
        "name": "Tiny race",
        "budget": {"steps": 12},
        "overrides": {"layers": 1, "width": 32, "heads": 2},
        "tokenizer": {"vocabulary": 300},
        "data": {"texts": [], "max_length": 16, "held_out": 0.1},
        "batch_size": 4,
        "schedule": {"warmup": 2},
        "report_every": 3,
        "validate_every": 6,
        "measures": {"probes": ["sentiment"], "words": 0, "minimal_pairs": False},
    }
    form.use(config)
    form.refuses("There is nothing to read")
    form.fold("Texts of your own")
    form.paste(SENTENCES)
    form.says("2 models, 12 steps each")
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")
    run = shown.id
    assert runs.config(run)["data"]["texts"] == ["texts/pasted.txt"]
    rows = runs.folder(run).table()
    cells = shown.rows("What each model reached")
    assert [each[0] for each in cells[:2]] == ["masked", "causal"]
    for row, each in zip(rows, cells, strict=False):
        assert f"{row['probes']['sentiment']['value'] * 100:.1f}\xa0%" in each
    assert cells[2][0] == "without any model: majority"
    assert "50.0\xa0%" in cells[2]
    names = [name for name in legend(page, 2) if "held out" not in name]
    assert [name.partition(" (")[0] for name in names if name.startswith(("masked", "causal"))] == [
        "masked",
        "causal",
    ]
    with page.expect_download() as file:
        shown.button("Save as CSV").last.click()
    table = list(csv.DictReader(file.value.path().read_text().splitlines()))
    assert [row["Model"] for row in table][:2] == ["masked", "causal"]
    saved = [float(row["probe: sentiment"]) for row in table][:2]
    assert saved == [row["probes"]["sentiment"]["value"] for row in rows]
    shown.choose("By", "operations")
    page.locator("#train-run .xtitle", has_text="Operations").first.wait_for(state="attached")
    shown.fold("Held-out examples")
    for name, loss in held_out_losses(runs.folder(run)).items():
        shown.choose("Model of the race", name)
        shown.examples.get_by_text(f"Loss {loss:.2f} nats").first.wait_for()
        left_to_right = shown.examples.get_by_text("predicted from those to its left")
        expect(left_to_right).to_have_count(int(name == "causal"))
    # A link finds the race again, and its models can be opened.
    visitor = visit(link=f"#run={run}")
    Run(visitor).button("Fill gaps with it").click()
    visitor.page.wait_for_function("name => Cloze.sentence.model === name", arg=f"run/{run}/masked")


@pytest.mark.slow
def test_bert_mini_learns_sentiment_better_than_the_majority(visit, runs):
    cloze = visit()
    page = cloze.page
    page.set_default_timeout(240_000)
    form = open_form(cloze, "task")
    form.field("Epochs").fill("1")
    form.says("42 steps")
    form.start.click()
    shown = Run(cloze)
    shown.state("finished")
    found = json.loads((runs.root / shown.id / "evaluation.json").read_text())
    assert found["metrics"]["accuracy"] >= 0.6  # half of the rows are positive
