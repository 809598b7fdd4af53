"""The Train tab of a page that several tests share: each chooses its form or its run there."""

import json
import re
from collections.abc import Iterator

from tests.app.visitors import Cloze, take

EMPTY = """form => {
  for (const each of form.querySelectorAll('.view-upload li button')) each.click();
  for (const each of form.querySelectorAll('.label-wrap.open')) each.click();
}"""
KINDS = {"pretraining": "Pretrain", "task": "Fine-tune", "race": "Race"}


class Form:
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

    def button(self, name):
        return self.root.get_by_role("button", name=name, exact=True)

    def fold(self, name: str) -> None:
        """Open what is folded."""
        button = self.root.get_by_role("button", name=name).first
        if "open" not in button.get_attribute("class").split():
            button.click()

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
        """All settings."""
        self.fold("All settings as JSON")
        return json.loads(self.field("Settings").input_value())

    def use(self, config: dict) -> None:
        """Write all settings."""
        self.fold("All settings as JSON")
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


def shared(cloze: Cloze) -> Iterator[Cloze]:
    """What a fixture yields: a window as a new visitor has it, and at the end no run in it.

    What a test lets the server answer ends with it.
    """
    cloze.page.set_viewport_size({"width": 1280, "height": 800})
    cloze.page.emulate_media(color_scheme="light")
    cloze.page.set_default_timeout(60_000)
    yield cloze
    cloze.page.unroute_all(behavior="ignoreErrors")
    cloze.page.evaluate("document.querySelector('#train-new')?.click()")
    assert cloze.problems == []


def _open(cloze: Cloze):
    page = cloze.page
    page.evaluate("Cloze.openTab('Train')")
    page.wait_for_selector(".view-train[data-state=ready]")
    return page


def open_form(cloze: Cloze, kind: str = "pretraining") -> Form:
    """The form for a new run without the texts of an earlier test; its settings are there."""
    page = _open(cloze)
    if page.get_attribute("#train-new", "aria-current") != "true":
        page.click("#train-new")
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
    """A run, by a click on its card."""
    page = _open(cloze)
    look_again(page)
    page.click(f".train-card[data-run='{run}']")
    page.wait_for_selector(f":is(.train-run, .train-race)[data-run='{run}']:not(.pending)")
    return page


def look_again(page) -> None:
    """Let the page ask for the list of runs now, and not when its clock comes round."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def legend(page, least: int = 1) -> list[str]:
    """What the lines of the chart are called, as soon as there are so many."""
    texts = page.locator(".train-curves [data-picture] .legendtext")
    texts.nth(least - 1).wait_for(state="attached")
    return texts.all_text_contents()


def copy_run(cloze: Cloze, run: str, kind: str = "pretraining") -> Form:
    """The form with the settings of the run that is shown."""
    cloze.page.click("#train-again")
    form = Form(cloze, kind)
    form.says(f"These are the settings of {run}.")
    cloze.rest()
    return form
