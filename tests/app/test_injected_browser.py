"""Texts that would be markup or programs, in every place where somebody's text is shown.

Several in one visit: none may become an element, an attribute, a program, a request or a window
(``tests/app/injected.py``), and where a text stands whole it stands letter for letter.
"""

import csv
import json
import math
import re
import shutil
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from app.runs import shipped
from benchmarks.page import server
from tests.app.held import RACE, ROW
from tests.app.injected import PAYLOADS, harmless, shown, watch
from tests.app.one_page import SENTENCE, mark, start_over
from tests.app.test_opened_browser import unfold
from tests.app.test_walk_browser import OPEN
from tests.app.test_walk_shipped_browser import ANSWERED
from tests.app.train_tab import Run, open_form, open_run
from tests.app.visitors import new_page
from tests.core.tiny_models import new, tiny

READING = (
    *("mask", "attention", "why", "timeline", "unmasking", "spans", "pairs", "permutation"),
    *("forge", "terms", "tokenizers"),
)
SPOILT = "zz-spoilt"
CHART = " <i>inj</i><br>&lt;"  # what a chart would read; it shows most other tags as they are
SECOND = """text => document.querySelector('#pairs-verdicts .js-plotly-plot')?.layout?.meta
  ?.rows?.[0][5] === text || document.querySelector('#tab-pairs .problem')?.textContent"""


def batches(gate, size, few=None):
    """Some of the texts for each visit, all of them at full size; a few in the suite."""
    texts = list(PAYLOADS)
    gate.random().shuffle(texts)
    for _ in gate.cases(1, math.ceil(len(texts) / size)):
        yield texts[gate.case * size : (gate.case + 1) * size][: few if gate.short else None]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders of models and of runs; one model's title and every piece of it is such a text."""
    models = tmp_path_factory.mktemp("models")
    for path in (Path(__file__).resolve().parents[2] / "assets" / "models").iterdir():
        (models / path.name).symlink_to(path.resolve(), target_is_directory=True)
    new(tiny("bert-mini")).save(models / SPOILT)
    path = models / SPOILT / "tokenizer.json"
    definition = json.loads(path.read_text())
    vocabulary = definition["model"]["vocab"]
    plain = [piece for piece in vocabulary if not piece.startswith("[")]
    texts = iter(PAYLOADS)
    definition["model"]["vocab"] = {
        (next(texts, piece) if piece in plain else piece): index
        for piece, index in vocabulary.items()
    }
    path.write_text(json.dumps(definition))
    card = {"title": PAYLOADS[0], "description": " ".join(PAYLOADS[1:6]), "trained": []}
    (models / SPOILT / "cloze.json").write_text(json.dumps(card))
    return models, tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def page_of_all(browser, places):
    """One page for all tests, over all that is shipped and what is spoilt."""
    models, runs = places
    with server(runs, models / "bert-mini") as address, browser.new_context() as context:
        cloze = new_page(context, address, (1280, 900), dark=False, link="?lang=en")
        watch(cloze)
        yield cloze


@pytest.fixture
def cloze(page_of_all):
    """The page, with the usual sentence."""
    start_over(page_of_all)
    return page_of_all


def open_lab(cloze, name):
    cloze.page.wait_for_function(OPEN, arg=[name, name], polling=250)
    cloze.rest()
    cloze.page.wait_for_function(ANSWERED, arg=name)


def unfold_all(cloze, name):
    """What is folded in a lab."""
    cloze.page.evaluate(
        """name => document.querySelectorAll(
          `#tab-${name} .label-wrap:not(.open), #tab-${name} details:not([open]) > summary`)
          .forEach((each) => each.checkVisibility() && each.click())""",
        name,
    )
    cloze.rest()


def test_injected_sentences(gate, cloze):
    """In every lab that reads the sentence, with all that is folded there: code, tables, notes."""
    for texts in batches(gate, 2):
        start_over(cloze, text=SENTENCE)
        text = f"{' '.join(texts)} the cat"
        cloze.write(text)
        for name in READING:
            open_lab(cloze, name)
            mark(cloze, 1, 3)
            unfold_all(cloze, name)
            harmless(cloze, name, texts)
        expect(cloze.page.locator("#sentence-text textarea")).to_have_value(text)


def test_injected_second_texts_and_examples(gate, cloze):
    """What is written beside the sentence: a second text, sentences of a word, and the word."""
    for texts in batches(gate, 4):
        open_lab(cloze, "pairs")
        second = cloze.page.get_by_role("textbox", name=re.compile("^Second text"))
        second.fill(" ".join(texts))
        cloze.page.wait_for_function(SECOND, arg=" ".join(texts))
        unfold_all(cloze, "pairs")
        harmless(cloze, "pairs", texts)
        open_lab(cloze, "meaning")
        unfold_all(cloze, "meaning")
        box = cloze.page.get_by_role("textbox", name="Sentences, one in each line", exact=True)
        box.fill("\n".join(f"{text} the cat" for text in texts))
        cloze.page.get_by_role("textbox", name="Word", exact=True).fill("cat")
        cloze.rest()
        harmless(cloze, "meaning", texts)
        for word in texts:
            cloze.page.get_by_role("textbox", name="Word", exact=True).fill(word)
            cloze.rest()
        harmless(cloze, "word", texts)


def test_injected_guesses_and_names_of_models(gate, cloze):
    """What is refused is told in words that hold what was written."""
    open_lab(cloze, "mask")
    mark(cloze, 6)
    cloze.settle()
    word = cloze.page.get_by_label("Your word for Paris")
    for texts in batches(gate, 6, few=3):
        for text in texts:
            word.fill(text)
            word.press("Enter")
            cloze.rest()
        harmless(cloze, "own word", texts)
        box = unfold(cloze.page)
        for text in texts:
            box.fill(text)
            box.press("Enter")
            problem = cloze.page.locator("#open-problem")
            problem.get_by_text(re.compile("is no folder|are opened only|has no model")).wait_for()
            cloze.rest()
        unfold(cloze.page)
        harmless(cloze, "name of a model", texts)


def test_injected_links(gate, cloze):
    """Every value that a link holds: text, model, marks, seed, lab, and all that a lab keeps."""
    labs = (*READING, "meaning", "budget", "claims", "ladder")
    for texts in batches(gate, 8, few=3):
        for number, text in enumerate(texts, 8 * gate.case):
            lab = labs[number % len(labs)]
            open_lab(cloze, lab)
            kept = cloze.page.evaluate("name => Object.keys(Cloze.kept(name) ?? {})", lab)
            values = json.dumps(dict.fromkeys((*kept, "word", "second", "sentences", text), text))
            link = {"text": text, "tab": lab, f"lab-{lab}": values}
            for others in ({}, {"model": text, "marks": text, "seed": text, "lang": text}):
                address = cloze.page.url.partition("?")[0].partition("#")[0]
                query = urlencode({"n": f"{number} {len(others)}"} | others)
                cloze.open(f"{address}?lang=en&{query}#{urlencode(link | others)}")
                harmless(cloze, lab, text)
        cloze.open(f"{address}?lang=en")  # charts name their parts by the page's address


def test_injected_pieces(gate, cloze):
    """A model of which every piece, title and description is such a text."""
    for _ in gate.cases(1, 1):
        cloze.write("the cat sees a dog")
        cloze.page.evaluate("name => Cloze.chooseModel(name)", SPOILT)
        cloze.page.wait_for_function("name => Cloze.sentence.model === name", arg=SPOILT)
        mark(cloze, 1, 2)
        open_lab(cloze, "mask")
        cloze.settle()
        pieces = cloze.page.locator("button.candidate").evaluate_all(
            "all => all.map((each) => [each.dataset.piece, each.textContent])"
        )
        assert [piece for piece, _ in pieces if piece in PAYLOADS], pieces
        assert all(
            piece in said for piece, said in pieces if piece in PAYLOADS and "\0" not in piece
        )
        for name in READING:
            open_lab(cloze, name)
            unfold_all(cloze, name)
            harmless(cloze, name, "pieces")
        cloze.unfold("Model")
        shown(cloze, "body", [PAYLOADS[0], " ".join(PAYLOADS[1:6])])
        harmless(cloze, "card")


def put_runs(root, texts):
    """A run, a fine-tuning and a race of which all that is free is such a text; their ids."""
    one, other, more, *others = texts
    shipped.install(root)
    rest = " ".join(others)

    def change(run, name, values):
        path = root / run / name
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | values))

    for source, run in (("classroom", "zz-one"), ("names", "zz-two"), ("classroom", "zz-three")):
        shutil.copytree(root / source, root / run)
        change(run, "config.json", {"name": f"{one} {run}", "description": f"{other} {rest}"})
        (root / run / "log.txt").write_text("\n".join(texts))
    environment = {"torch": one, "python": other, "machine": more, "cpu": rest, "device": one}
    failed = {"state": "failed", "reason": rest, "environment": environment, "name": one}
    change("zz-three", "status.json", failed)
    task = json.loads((root / "zz-two" / "status.json").read_text())["task"]
    labels = ["O", *(f"{kind}-{text}" for text in texts for kind in "BI")]
    named = {"task": task | {"labels": labels}, "environment": environment}
    change("zz-two", "status.json", named)
    seen = json.loads((root / "zz-one" / "validation.json").read_text())
    for each in seen["worst"] + seen["best"]:
        each["pieces"] = [
            [text, *piece[1:]] for piece, text in zip(each["pieces"], texts * 99, strict=False)
        ]
        each["asked"] = [
            asked | {"right": one, "shown": other, "said": more} for asked in each["asked"]
        ]
    change("zz-one", "validation.json", seen)
    rows = [
        ROW | {"name": re.sub(r"[/\0]", "", f"{number}{text}"), "state": "failed", "reason": text}
        for number, text in enumerate(texts)
    ]
    (root / "zz-race").mkdir()
    entrants = [{"name": row["name"], "size": "bert-mini"} for row in rows]
    change("zz-race", "experiment.json", RACE | {"name": f"{more} race", "entrants": entrants})
    status = {"state": "finished", "table": rows, "probe_baselines": {text: {} for text in texts}}
    change("zz-race", "race.json", status)


def test_injected_runs(gate, cloze, places):
    """Names, notes, reasons, logs, labels, examples, entrants: listed, shown, and beside others."""
    root = places[1]
    for texts in batches(gate, 10):
        texts[0] += CHART
        put_runs(root, texts)
        told = {
            "zz-one": [f"{texts[0]} zz-one", texts[1], texts[-1]],
            "zz-two": [f"{texts[0]} zz-two", texts[1]],
            "zz-three": [" ".join(texts[3:])],
            "zz-race": [f"{texts[2]} race", *texts],
        }
        for run in ("zz-one", "zz-two", "zz-three", "zz-race"):
            open_run(cloze, run)
            cloze.rest()
            unfold_all(cloze, "train")
            harmless(cloze, run, texts)
            shown(cloze, "#train-run", told[run])
        open_run(cloze, "zz-one")
        shown(cloze, "#train-runs", [f"{texts[0]} zz-one", f"{texts[2]} race"])
        shown(cloze, "#train-run", [f"{texts[0]} zz-one"])
        Run(cloze).compare(re.compile("zz-three"))
        cloze.rest()
        names = cloze.page.locator("#train-run .legendtext").all_text_contents()
        name = texts[0].replace("\0", "\ufffd")  # no file of a picture could hold it
        assert {f"{name} zz-one", f"{name} zz-three"} <= set(names), "in the chart, too"
        harmless(cloze, "compared", texts)
        cloze.page.evaluate("Cloze.runs?.fresh()")
        for run in ("zz-one", "zz-two", "zz-three", "zz-race"):
            shutil.rmtree(root / run)


def test_injected_uploads(gate, cloze, tmp_path):
    """Names of files, their texts, columns and labels, settings as JSON, and what is refused."""
    for texts in batches(gate, 3):
        texts = [text.replace("\0", "") for text in texts]  # no text file has one
        names = [re.sub(r"[/\0]", "", text)[:80] or "a" for text in texts]
        form = open_form(cloze)
        form.fold("Texts of your own")
        for name in names:
            (tmp_path / f"{name}.txt").write_text(
                "\n\n".join([*texts, "a cat sees."]) + "\n", "utf-8"
            )
            form.send(tmp_path / f"{name}.txt")
        cloze.rest()
        harmless(cloze, "files", texts)
        with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
            rows = [[text, texts[n % 2], text] for n, text in enumerate(texts * 10)]
            csv.writer(file).writerows([["text", "label", texts[0]], *rows])
        form.send(tmp_path / "a.csv")
        cloze.rest()
        harmless(cloze, "table", texts)
        form = open_form(cloze, "task")
        form.choose("Labelled set", "my own table …")
        form.send(tmp_path / "a.csv", "Send a table")
        form.says("rows to learn from")
        form.fold("Rows and labels of the set")
        cloze.rest()
        harmless(cloze, "labels", texts)
        form = open_form(cloze)
        known = form.config()
        for text in texts:
            form.use(known | {"name": text, text: text, "model": {"size": text}})
            harmless(cloze, "settings", text)
        form.use(known)


def test_injected_pictures(gate, cloze):
    """What is saved: a drawing, a chart and a table have the texts as texts."""
    for texts in batches(gate, 3):
        start_over(cloze, text=" ".join(texts) + " the cat")
        mark(cloze, 1)
        saved = []
        open_lab(cloze, "attention")
        saved.append(save(cloze, cloze.page.get_by_role("button", name="All heads, SVG")))
        open_lab(cloze, "permutation")
        unfold_all(cloze, "permutation")
        for button in (
            cloze.page.locator("#tab-permutation").get_by_role("button", name="SVG").all()
        ):
            if button.is_visible():
                saved.append(save(cloze, button))
        open_lab(cloze, "mask")
        unfold_all(cloze, "mask")
        for button in cloze.page.locator("#tab-mask [data-title='Save as SVG']").all():
            if button.is_visible():
                saved.append(save(cloze, button))
        assert len(saved) > 1
        for text in saved:
            for node in ElementTree.fromstring(text).iter():
                tag = str(node.tag).rpartition("}")[2]
                assert tag.lower() not in ("script", "foreignobject", "iframe", "img", "a"), tag
                assert "inj" not in tag
                acting = [name for name in node.attrib if re.match("on", name.rpartition("}")[2])]
                assert acting == []
        harmless(cloze, "saved", texts)


def save(cloze, button):
    """What a button saves."""
    with cloze.page.expect_download() as download:
        button.click()
    return download.value.path().read_text("utf-8")
