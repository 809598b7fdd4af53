"""Every lab in a real browser: from a click until its view stands still again.

Starts ``app.py`` on a free port and drives Chromium: in each lab words are hidden and shown one
after another, or its own control is moved. A time ends with the last change of the open tab before
it stays as it is for a while, and with the frame that shows it. Run with ``python -m
benchmarks.labs`` (``CHROMIUM=/path/to/browser`` where it is not found by itself).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import core_models as cm
from benchmarks.measure import Report, Table, environment, percentile, run_main
from benchmarks.page import ANSWER_MS, chromium, server

TEXT = "The capital of France is Paris."
STILL_MS = 500
"""A view that does not change for so long has been drawn."""

LONGEST_MS = 10_000
"""An answer that takes longer counts as that."""

WATCH = """([stillFor, longest]) => {
let awaited = 0; // answers that are not there yet, and changes that are not painted
let arrived = 0; // when the last answer came: what it changes follows
const { fetch } = window;
window.fetch = async (...question) => {
  awaited += 1;
  try { return await fetch(...question); } finally {
    awaited -= 1;
    arrived = performance.now();
  }
};
const panels = [...document.querySelectorAll('#tabs [role=tabpanel]')];
let start = null;
let last = null;
const begin = (event) => { start ??= event.timeStamp; };
for (const kind of ['click', 'input']) document.addEventListener(kind, begin, { capture: true });
new MutationObserver(() => {
  if (start === null) return;
  awaited += 1;
  requestAnimationFrame(() => setTimeout(() => {
    awaited -= 1;
    last = performance.now();
  }));
}).observe(panels.find((panel) => panel.offsetParent), {
  subtree: true, childList: true, attributes: true, characterData: true,
});
window.settled = async () => {
  const began = performance.now();
  while (awaited || last === null || performance.now() - Math.max(last, arrived) < stillFor) {
    const now = performance.now();
    if (now - began > longest) {
      start = last = null;
      return longest;
    }
    if (!awaited && last === null && now - began > 2000) {
      start = last = null;
      return null;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  const took = last - start;
  start = null;
  last = null;
  return took;
};
}"""


class Lab(NamedTuple):
    """What is done in a tab."""

    tab: str
    what: str
    models: tuple[str, ...] = ("bert-mini",)
    """The first one installed is asked."""
    control: str | None = None
    """An input that is moved by arrow keys instead of hiding words."""
    keys: tuple[str, str] = ("ArrowLeft", "ArrowRight")
    address: str = ""
    """What the lab keeps in the address: opens a section, chooses a mode."""


WORDS = "hide or show a word"
TYPED = "type a letter"
SENTENCE = "#sentence-text textarea"
LETTER = ("s", "Backspace")
CHOICE = "input[type=radio]"
DEBERTA = ("deberta-mini", "deberta-v3-mini")
LABS = (
    Lab("mask", WORDS),
    *(
        Lab("mask", f"{WORDS}, with {title}", address=f'lab-mask-{name}={{"open":true}}')
        for name, title in (
            ("together", "several gaps together"),
            ("layers", "layer by layer"),
            ("models", "several models"),
        )
    ),
    *(
        Lab("attention", f"{WORDS}, {title}", address=f'lab-attention={{"m":"{mode}"}}')
        for mode, title in (
            ("heads", "one head"),
            ("rollout", "rollout and flow"),
            ("norms", "norms"),
            ("products", "q·k"),
        )
    ),
    Lab("forge", WORDS, ("electra-mini", "deberta-v3-mini")),
    Lab("permutation", "move a slider", ("xlnet-mini",), "input[type=range]"),
    Lab("terms", WORDS, DEBERTA),
    Lab("spans", WORDS, ("spanbert-mini",)),
    Lab("why", f"{WORDS}, all four methods"),
    Lab("pairs", TYPED, control=SENTENCE, keys=LETTER),
    Lab("meaning", "step through the layers", control="#meaning-layer input[type=range]"),
    Lab("tokenizers", TYPED, control=SENTENCE, keys=LETTER),
    Lab("timeline", "move a slider", control="input[type=range]"),
    Lab("unmasking", "more or fewer steps", control="input[type=range]"),
    Lab("budget", "choose a preset", control=CHOICE),
    Lab("ladder", "choose a figure", control=CHOICE),
)


def measure(arguments: argparse.Namespace) -> Report:
    """Use one lab after the other."""
    from playwright.sync_api import sync_playwright

    installed = {info.name for info in cm.models()}
    rows: list[tuple[str, ...]] = []
    figures: list[dict[str, float | int | str]] = []
    with (
        tempfile.TemporaryDirectory(prefix="cloze-labs-") as folder,
        server(Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking"]
        )
        for lab in LABS:
            if arguments.tab not in (None, lab.tab):
                continue
            model = next((name for name in lab.models if name in installed), None)
            if model is None:
                rows.append((lab.tab, lab.what, "-", f"no {lab.models[0]}", ""))
                continue
            times = use(browser, address, lab, model, arguments.clicks)
            if not times:
                rows.append((lab.tab, lab.what, model, "the view never changed", ""))
                continue
            middle, worst = percentile(times, 0.5), percentile(times, 0.95)
            rows.append((lab.tab, lab.what, model, f"{middle:.0f} ms", f"{worst:.0f} ms"))
            figures.append(
                {
                    "lab": lab.tab,
                    "model": model,
                    "p50_ms": middle,
                    "p95_ms": worst,
                    "times": len(times),
                }
            )
        name = f"Chromium {browser.version}"
        browser.close()
    table = Table(
        "From a click until the lab stands still",
        ("lab", "what is done", "model", "p50", "p95"),
        rows,
        f"{arguments.clicks} times each; a key at the end of a slider changes nothing and is not "
        "counted. Server and browser share the machine.",
    )
    return Report([table], [*environment("gradio"), name], figures)


def use(browser: Any, address: str, lab: Lab, model: str, number: int) -> list[float]:
    """Milliseconds from each click, or step of the control, until the view stands still."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    link = f"text={TEXT.replace(' ', '+')}&model={model}&marks=6&tab={lab.tab}&{lab.address}"
    page.goto(f"{address}/#{link}")
    page.wait_for_function("Cloze.sentence?.marks?.size === 1", timeout=ANSWER_MS)
    page.wait_for_function(
        "tab => document.getElementById(`tab-${tab}`)?.offsetParent", arg=lab.tab, timeout=ANSWER_MS
    )
    page.wait_for_timeout(9000)  # modules, styles, the first answer, and what is fetched ahead
    page.evaluate(WATCH, [STILL_MS, LONGEST_MS])
    chips = page.locator(".view-chips .chip[aria-pressed]:visible")
    words = min(5, chips.count())
    times = []
    for turn in range(1, number + 1):
        if lab.control is None:
            # A Gray code over all words but the one that stays hidden: no set comes twice soon.
            chips.nth((turn & -turn).bit_length() % words).click()
        elif (
            lab.control == CHOICE
        ):  # each button of Gradio 6.31 is a group of its own: no arrow keys
            page.locator(f"#tab-{lab.tab} {CHOICE}").nth(turn % 4).click()
        else:
            where = lab.control if lab.control == SENTENCE else f"#tab-{lab.tab} {lab.control}"
            page.locator(where).first.focus()
            page.keyboard.press(lab.keys[turn % 8 < 4])
        took = page.evaluate("window.settled()")
        if took is not None:
            times.append(took)
    page.close()
    return times


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labs", description=__doc__)
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--tab", help="measure this one alone")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
