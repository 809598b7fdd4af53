"""The overview of 144 heads in a real browser: from the server's answer until it is drawn.

A random model of 12 layers with 12 heads, short and long sentences. A time begins when the last
byte of an answer is there and ends with the frame that shows the last change of the tab; the size
is that of the largest answer, as it is parsed. Run with ``python -m benchmarks.overview``
(``CHROMIUM=/path/to/browser`` where it is not found by itself).
"""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import core_models as cm
from benchmarks.labs import LONGEST_MS, WATCH
from benchmarks.measure import Report, Table, environment, percentile, run_main
from benchmarks.page import ANSWER_MS, chromium, server

WORDS = "the old farmer went to the river and saw a small boat under the tall tree near the house"
LENGTHS = (8, 32, 128, 512)
"""Pieces, [CLS] and [SEP] included."""
STILL_MS = 1500
"""Longer than the model takes for the longest sentence."""
DRAWN = WATCH.replace(
    "const took = last - start;",
    "const took = last - performance.getEntriesByType('resource')"
    ".filter((entry) => entry.name.includes('predict')).at(-1).responseEnd;",
)


def new_model(folder: Path) -> None:
    """A random model with as many layers and heads as BERT base, of half its width."""
    words = cm.load("bert-mini").tokenizer
    size = cm.size("bert-base-uncased").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    config = replace(
        size,
        width=384,
        embeddings=replace(size.embeddings, width=384),
        attention=replace(size.attention, head_width=32),
        feed_forward=replace(size.feed_forward, width=768),
    )
    generator = torch.Generator().manual_seed(1)
    cm.Model.new(config, words, generator=generator).save(folder / "twelve")


def measure(arguments: argparse.Namespace) -> Report:
    """Hide and show words of one sentence after the other."""
    from playwright.sync_api import sync_playwright

    rows: list[tuple[str, ...]] = []
    figures: list[dict[str, float | int | str]] = []
    with (
        tempfile.TemporaryDirectory(prefix="cloze-overview-") as folder,
        tempfile.TemporaryDirectory(prefix="cloze-overview-") as models,
    ):
        new_model(Path(models))
        with (
            patch.dict(os.environ, {"CLOZE_MODELS": models}),  # which the server inherits
            server(Path(folder)) as address,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking"]
            )
            for length in LENGTHS:
                times, size = use(browser, address, length, arguments.clicks)
                middle, worst = percentile(times, 0.5), percentile(times, 0.95)
                rows.append((str(length), f"{middle:.0f} ms", f"{worst:.0f} ms", f"{size:,}"))
                figures.append({"length": length, "p50_ms": middle, "p95_ms": worst, "bytes": size})
            name = f"Chromium {browser.version}"
            browser.close()
    table = Table(
        "Drawing 12 x 12 heads",
        ("tokens", "drawn after the answer, p50", "p95", "bytes of the answer"),
        rows,
        f"{arguments.clicks} clicks each; a click renews the overview, the lines and the map of one"
        " head. Server and browser share the machine.",
    )
    return Report([table], [*environment("gradio"), name], figures)


def use(browser: Any, address: str, length: int, number: int) -> tuple[list[float], int]:
    """Milliseconds of drawing after each click, and the bytes of the largest answer."""
    text = " ".join((WORDS.split() * length)[: length - 2])
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/#text={text.replace(' ', '+')}&model=twelve&marks=3&tab=attention")
    page.wait_for_function("Cloze.sentence?.marks?.size === 1", timeout=ANSWER_MS)
    page.wait_for_timeout(8000)  # modules, styles and the first answer
    page.evaluate("performance.setResourceTimingBufferSize(5000)")
    sizes = [0]
    page.on("response", lambda answer: sizes.append(_size(answer)))
    page.evaluate(DRAWN, [STILL_MS, LONGEST_MS])
    chips = page.locator(".view-chips .chip[aria-pressed]:visible")
    times = []
    for turn in range(1, number + 1):
        # A Gray code over five words: no set of hidden words comes twice soon.
        chips.nth((turn & -turn).bit_length() % 5).click()
        took = page.evaluate("window.settled()")
        if took is not None:
            times.append(took)
    page.close()
    return times, max(sizes)


def _size(answer: Any) -> int:
    """Bytes of an answer to an event; 0 for other requests, and where the page was closed."""
    from playwright.sync_api import Error

    if "predict" not in answer.url:
        return 0
    try:
        return len(answer.body())
    except Error:
        return 0


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overview", description=__doc__)
    parser.add_argument("--clicks", type=int, default=20)
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
