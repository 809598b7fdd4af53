"""The Train tab of a page that several tests share: each chooses its form or its run there."""

from collections.abc import Iterator

from tests.app.visitors import Cloze

EMPTY = """form => {
  for (const each of document.querySelectorAll(`${form} details[open]`)) each.open = false;
  for (const each of document.querySelectorAll(`${form} .train-sent button`)) each.click();
  for (const each of document.querySelectorAll(`${form} .train-reads textarea`)) {
    if (!each.value) continue;
    each.value = '';
    each.dispatchEvent(new Event('change'));
  }
}"""
FORMS = {"pretraining": ".train-form", "task": ".train-task", "race": ".train-race-form"}


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


def open_form(cloze: Cloze, kind: str = "pretraining"):
    """The form for a new run without the texts of an earlier test; its settings are there."""
    page = _open(cloze)
    if page.get_attribute("#train-new", "aria-current") != "true":
        page.click("#train-new")
    page.click(f"#train-kind-{kind}")
    page.evaluate(EMPTY, FORMS[kind])
    # A form of texts that went with the last run has nothing to read.
    page.wait_for_selector(f"{FORMS[kind]}:is([data-state=ready], [data-state=error])")
    return page


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


def copy_run(page, run: str) -> None:
    """The form with the settings of the run that is shown."""
    page.click("#train-again")
    page.locator(".train-form .train-note", has_text=f"These are the settings of {run}.").wait_for()
