"""The Train tab of a page that several tests share: each chooses its form or its run there."""

import json
import re
from collections.abc import Iterator

from playwright.sync_api import expect

from tests.app.visitors import Cloze, take

EMPTY = """form => {
  for (const each of form.querySelectorAll('.view-upload li button')) each.click();
  for (const each of form.querySelectorAll('.label-wrap.open')) each.click();
}"""
TRAINS = 240_000
"""Milliseconds that a run may take to its next report: its process loads torch first, on a busy
machine for a minute."""
LISTED = """async () => {
  const { runs } = await (await fetch(`${ClozeRoot}train/runs`)).json();
  const shown = [...document.querySelectorAll('#train-runs input')].map((input) => input.value);
  return String(shown) === String(runs.map((run) => run.id));
}"""
"""The page's list of runs is the server's."""
KINDS = {"pretraining": "Pretrain", "task": "Fine-tune", "race": "Race"}


class Parts:
    """What is found by its name below ``root``."""

    def button(self, name):
        return self.root.get_by_role("button", name=name, exact=True)

    def fold(self, name: str) -> None:
        """Open what is folded."""
        button = self.root.get_by_role("button", name=name).first
        if "open" not in button.get_attribute("class").split():
            button.click()


class Form(Parts):
    """One of the three forms, by the names of what is in it."""

    def __init__(self, cloze: Cloze, kind: str):
        self.cloze, self.page = cloze, cloze.page
        self.root = self.page.locator(f"#train-forms .kind-{kind}")
        self.problem = self.root.locator(".problem:visible, .wrong p:visible")
        self.batch = self.root.get_by_role("region", name="The first batch")
        self.start = self.button(re.compile("^Start "))

    def field(self, label: str):
        # The help of a field, where it has one, stands behind its name.
        return self.root.get_by_label(re.compile(rf"^\s*{re.escape(label)}\s*($|[A-Z])"))

    def choose(self, label: str, option: str) -> None:
        """One of a list."""
        take(self.field(label), option)

    def says(self, text) -> None:
        """Wait until this stands there to be read."""
        self.root.get_by_text(text).locator("visible=true").first.wait_for()

    def shown(self, text) -> bool:
        return self.root.get_by_text(text).locator("visible=true").count() > 0

    def refuses(self, text) -> None:
        """Wait until this is told of what cannot be done."""
        self.problem.get_by_text(text).or_(self.problem.filter(has_text=text)).first.wait_for()

    def config(self) -> dict:
        """All settings, once every answer stands in them."""
        self.fold("All settings as JSON")
        self.cloze.rest()
        return json.loads(self.field("Settings").input_value())

    def use(self, config: dict) -> None:
        """Write all settings."""
        self.fold("All settings as JSON")
        self.cloze.rest()  # what is typed while Gradio mounts a fold is lost
        self.field("Settings").fill(json.dumps(config))
        self.button("Use these settings").click()
        self.cloze.rest()

    def send(self, path, label: str = "Send a file") -> None:
        """Send a file."""
        self.root.get_by_label(label).set_input_files(path)

    def paste(self, text: str, label: str = "Paste a text") -> None:
        """Paste a text and leave the field."""
        self.field(label).fill(text)
        self.field(label).blur()


class Run(Parts):
    """The run that is shown, by the names of what stands there."""

    def __init__(self, cloze: Cloze):
        self.cloze, self.page = cloze, cloze.page
        self.page.set_default_timeout(60_000)
        self.root = self.page.locator("#train-run")
        self.facts = self.root.locator(".facts").get_by_role("status")
        self.problem = self.page.locator("#train-list").locator(".problem")
        self.examples = self.root.locator(".view-passages")
        self.slider = self.root.get_by_role("slider", name="Snapshot")

    def open(self) -> "Run":
        """The lab, with whatever it shows."""
        _open(self.cloze)
        return self

    @property
    def id(self) -> str:
        return self.page.evaluate("Cloze.place.run")

    def shows(self, name: str) -> None:
        """Wait until this run is shown, with its own report."""
        self.root.get_by_role("heading", name=name, exact=True).wait_for()
        self.page.wait_for_selector("#train-lab[data-shows=run]")

    def state(self, *states: str) -> None:
        """Wait until it is in one of these states."""
        self.page.wait_for_selector("#train-lab[data-shows=run]")
        expect(self.facts).to_have_text(re.compile(f"^({'|'.join(states)})"), timeout=TRAINS)

    @property
    def step(self) -> int:
        found = re.search(r"step ([\d,]+) of", self.facts.inner_text())
        return int(found[1].replace(",", "")) if found else 0

    def beyond(self, step: int) -> None:
        """Wait until it has gone on, and its curve is drawn."""
        self.page.wait_for_function(
            """step => Number(/step ([\\d,]+) of/.exec(
              document.querySelector('#train-run .facts')?.textContent)?.[1].replace(/,/g, ''))
              > step""",
            arg=step,
            timeout=TRAINS,
        )
        self.root.locator("[data-picture] .js-plotly-plot").wait_for()

    def choose(self, label: str, option) -> None:
        """One of a list."""
        take(self.root.get_by_label(label, exact=True), option)

    def compare(self, name: str) -> None:
        """Draw another run beside it."""
        self.choose("Compare with", name)
        self.page.keyboard.press("Escape")

    def says(self, text):
        """Wait until this stands there to be read."""
        found = self.root.get_by_text(text).locator("visible=true").first
        found.wait_for()
        return found

    def shown(self, text) -> bool:
        return self.root.get_by_text(text).locator("visible=true").count() > 0

    def rows(self, table) -> list[list[str]]:
        """The cells of a table, as soon as it is there."""
        region = self.root.get_by_role("region", name=table)
        region.wait_for()
        rows = region.locator("tbody").get_by_role("row").all()
        return [row.locator("th, td").all_inner_texts() for row in rows]

    def delete(self) -> None:
        """Delete it, and be sure."""
        self.button("Delete").click()
        self.button("Delete it for good").click()

    def ask(self, text: str, pair: str | None = None) -> None:
        """Try a fine-tuned model."""
        self.root.get_by_role("textbox", name=re.compile("^A (sentence|text)")).fill(text)
        if pair is not None:
            self.root.get_by_role("textbox", name=re.compile("^A (second|question)")).fill(pair)
        self.button("Ask the model").click()


def shared(cloze: Cloze) -> Iterator[Cloze]:
    """What a fixture yields: a window as a new visitor has it, and at the end no run in it.

    What a test lets the server answer ends with it.
    """
    cloze.page.set_viewport_size({"width": 1280, "height": 800})
    cloze.page.emulate_media(color_scheme="light")
    cloze.page.set_default_timeout(60_000)
    yield cloze
    cloze.page.unroute_all(behavior="ignoreErrors")
    cloze.page.evaluate("Cloze.runs?.fresh()")
    assert cloze.problems == []


def _open(cloze: Cloze):
    page = cloze.page
    page.evaluate("Cloze.openTab('Train')")
    page.wait_for_selector("#train-lab[data-shows]")
    return page


def card(page, run: str):
    """A run in the list."""
    box = page.locator(f"input[value='{run}']")
    return page.locator("#train-runs").locator("label", has=box)


def open_form(cloze: Cloze, kind: str = "pretraining") -> Form:
    """The form for a new run without the texts of an earlier test; its settings are there."""
    page = _open(cloze)
    if not page.locator("#train-lab[data-shows=form]").count():
        page.get_by_role("button", name="New run", exact=True).click()
    page.get_by_role("radio", name=KINDS[kind], exact=True).check()
    form = Form(cloze, kind)
    form.start.wait_for()
    if kind != "task":
        form.fold("Texts of your own")
        form.paste("")
    cloze.rest()
    form.root.evaluate(EMPTY)
    cloze.rest()
    return form


def open_run(cloze: Cloze, run: str):
    """A run, chosen from the list.

    Gradio gives the lines of a list new names where they stand: what is pressed while another run
    comes in on top would be the neighbour.
    """
    page = _open(cloze)
    look_again(page)
    page.wait_for_function(LISTED)
    card(page, run).click()
    page.wait_for_function("run => Cloze.place.run === run", arg=run)
    page.wait_for_selector("#train-lab[data-shows=run]")
    return page


def look_again(page) -> None:
    """Let the page ask for the list of runs now, and not when its clock comes round."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def legend(page, least: int = 1) -> list[str]:
    """What the lines of the chart are called, as soon as there are so many."""
    texts = page.locator("#train-run [data-picture] .legendtext")
    texts.nth(least - 1).wait_for(state="attached")
    return texts.all_text_contents()


def copy_run(cloze: Cloze, run: str, kind: str = "pretraining") -> Form:
    """The form with the settings of the run that is shown."""
    cloze.page.get_by_role("button", name=re.compile("from this one$")).click()
    form = Form(cloze, kind)
    form.says(f"These are the settings of {run}.")
    cloze.rest()
    return form
