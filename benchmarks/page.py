"""The page in a real browser: first load, and a click on a word until its predictions are painted.

Starts ``app.py`` on a free port and drives Chromium. Run with ``python -m benchmarks.page``
(``CHROMIUM=/path/to/browser`` where it is not found by itself). With ``--during-run`` a run of the
classroom recipe trains meanwhile, started as the page starts one, and a second page watches it.
``--model`` takes a folder, or a published size (``bert-base-uncased``) with random weights, and
reads a sentence of 32 pieces.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import torch

import core_models as cm
from app.runs.runs import Runs
from benchmarks.measure import Report, Table, environment, percentile, run_main
from core_models.training.folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 240
ENDLESS = 10**6
"""Steps of the run that trains meanwhile; it is stopped, not finished."""
ANSWER_MS = 20_000
SHORT = "The capital of France is Paris."
LONG = (
    "In the town on the river the people go to the market in the morning and the children go "
    "to school with their books , and in the evening ."
)
"""32 pieces with the special ones."""
BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)

# Times are taken inside the page. "Painted" is the task after the next animation frame: by then
# the frame that shows the change has been produced.
WATCH_LOAD = """
const painted = (done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())));
const seen = new MutationObserver(() => {
  if (!document.querySelector('.view-chips .chip')) return;
  seen.disconnect();
  painted((now) => { window.firstChips = now; });
});
seen.observe(document, { childList: true, subtree: true });
"""
WATCH_CLICKS = """
const view = document.querySelector('.view-predictions');
const painted = (done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())));
window.clicks = [];
let start = null;
document.addEventListener('click', (event) => {
  if (event.target.closest('.chip')) start = event.timeStamp;
}, { capture: true });
new MutationObserver(() => {
  if (start === null || view.dataset.state !== 'ready' || view.dataset.rev !== view.dataset.asked) {
    return;
  }
  const from = start;
  start = null;
  painted((now) => window.clicks.push(now - from));
}).observe(view, { attributes: true });
"""


def measure(arguments: argparse.Namespace) -> Report:
    """Load the page a few times, then click."""
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloze-page-")))
        model = model_folder(arguments.model, folder) if arguments.model else None
        address = stack.enter_context(server(folder, model))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking"]
        )
        load(browser, address)  # the server's own first time is not the visitor's
        speed = None
        if arguments.during_run:
            run = stack.enter_context(training(folder))
            watch(browser, address, run)
        loads = [load(browser, address) for _ in range(arguments.loads)]
        clicks = click(browser, address, arguments.clicks, LONG if model else SHORT)
        if arguments.during_run:
            speed = statistics.median(tokens_per_second(folder / run))
        name = f"Chromium {browser.version}"
        browser.close()
    first, size = (statistics.median(item[key] for item in loads) for key in ("ms", "bytes"))
    foreign = sum(item["foreign"] for item in loads)
    requests = statistics.median(item["requests"] for item in loads)
    rows: list[tuple[str, ...]] = [
        (
            "click on a word until its predictions are painted, p50",
            f"{percentile(clicks, 0.5):.0f} ms",
        ),
        ("the same, p95", f"{percentile(clicks, 0.95):.0f} ms"),
        ("first load until the words are painted, empty cache", f"{first / 1000:.2f} s"),
        ("first load, bytes over the network", f"{size / 1e6:.2f} MB"),
        ("first load, requests", f"{requests:.0f}"),
        ("requests to other hosts", f"{foreign:.0f}"),
    ]
    title = f"The page with {arguments.model or 'bert-mini'}"
    during = ""
    if speed is not None:
        title = f"{title}, while a run trains"
        during = (
            f" A run of classroom.json trains meanwhile ({speed:,.0f} tokens/s, all but one of the "
            "cores, low priority), and a second page watches it."
        )
    pieces = " in a sentence of 32 pieces" * bool(model)
    note = (
        f"{len(clicks)} clicks{pieces}, each with a set of hidden words that was not asked before; "
        f"medians of {len(loads)} loads. Server and browser share the machine." + during
    )
    figure: dict[str, float | int | str] = {
        "click_p50_ms": percentile(clicks, 0.5),
        "click_p95_ms": percentile(clicks, 0.95),
        "load_ms": first,
        "load_bytes": size,
        "load_requests": requests,
        "foreign_requests": foreign,
    }
    if speed is not None:
        figure["training_tokens_per_second"] = speed
    table = Table(title, ("what", "figure"), rows, note)
    return Report([table], [*environment("gradio"), name], [figure])


def load(browser: Any, address: str) -> dict[str, float]:
    """One visit with an empty cache: ms until the words are painted, bytes, requests."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH_LOAD)
    hosts: list[str] = []
    page.on("request", lambda request: hosts.append(urlsplit(request.url).netloc))
    sizes: list[float] = []
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(address)
    page.wait_for_function("window.firstChips", timeout=ANSWER_MS)
    page.wait_for_timeout(1500)  # what comes after the first paint counts as bytes, not as time
    found = {
        "ms": page.evaluate("window.firstChips"),
        "bytes": sum(sizes),
        "requests": len(hosts),
        "foreign": sum(1 for host in hosts if host and host != urlsplit(address).netloc),
    }
    context.close()
    return found


def click(browser: Any, address: str, number: int, text: str) -> list[float]:
    """Milliseconds from each click to the painted answer, in a text with nothing hidden."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/#{urlencode({'text': text})}")
    page.wait_for_function(
        "text => window.Cloze?.sentence?.text === text", arg=text, timeout=ANSWER_MS
    )
    page.wait_for_selector(".view-chips .chip[aria-pressed]", timeout=ANSWER_MS)
    page.wait_for_selector(".view-predictions[data-state]", state="attached", timeout=ANSWER_MS)
    page.evaluate(f"() => {{ {WATCH_CLICKS} }}")
    chips = page.locator(".view-chips .chip[aria-pressed]:visible")
    words = min(6, chips.count())
    for turn in range(1, min(number, 2**words - 1) + 1):
        # A Gray code: every click gives a set of hidden words that was not there before.
        chips.nth((turn & -turn).bit_length() - 1).click()
        page.wait_for_function("n => window.clicks.length >= n", arg=turn, timeout=ANSWER_MS)
    found: list[float] = page.evaluate("window.clicks")
    page.close()
    return found


@contextmanager
def training(folder: Path) -> Iterator[str]:
    """A run of the classroom recipe that trains as long as this lasts; gives its id."""
    config = json.loads((ROOT / "assets/recipes/classroom.json").read_text("utf-8"))
    runs = Runs(folder, seconds=0.2)
    run = runs.create(config | {"name": "benchmark", "steps": ENDLESS})
    runs.start(run)
    try:
        end = time.monotonic() + START_SECONDS
        while not runs.folder(run).metrics():
            if runs.state(run) not in ("queued", "starting", "running"):
                raise RuntimeError(f"the run is {runs.state(run)}: {runs.folder(run).status()}")
            if time.monotonic() > end:
                raise RuntimeError(f"the run did not train within {START_SECONDS} seconds")
            time.sleep(0.2)
        yield run
    finally:
        if runs.state(run) in ("queued", "starting", "running"):
            runs.stop(run)
        while runs.state(run) in ("starting", "running", "stopping"):
            time.sleep(0.2)
        runs.close()


def watch(browser: Any, address: str, run: str) -> None:
    """Open a page that polls the run, as its owner's does."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/#run={run}")
    page.wait_for_selector("#train-run [data-picture] .js-plotly-plot", timeout=ANSWER_MS)


def tokens_per_second(run: Path) -> list[float]:
    """Of every report of a run."""
    return [record["tokens_per_second"] for record in RunFolder(run).metrics()]


def model_folder(name: str, beside: Path) -> Path:
    """A folder as it is; of a published size one with random weights, pieces of bert-mini."""
    if Path(name).is_dir():
        return Path(name).resolve()
    made = cm.Model.new(
        cm.size(name),
        cm.load("bert-mini").tokenizer,
        generator=torch.Generator().manual_seed(1),
    )
    made.save(beside / "models" / name)
    return beside / "models" / name


@contextmanager
def server(runs: Path, model: Path | None = None) -> Iterator[str]:
    """The page on a free port of this machine, over a folder of runs; gives its address.

    ``model``: the folder of the model that it opens with; None = as the page does by itself.
    """
    chosen = {"CLOZE_MODELS": str(model.parent), "CLOZE_MODEL": model.name} if model else {}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=os.environ | {"PORT": str(port), "CLOZE_RUNS": str(runs)} | chosen,
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"app.py ended with code {process.returncode}")
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the page did not open within {START_SECONDS} seconds")


def chromium() -> str:
    """The path of the browser that ``CHROMIUM`` names, else of the first one that is found."""
    named = os.environ.get("CHROMIUM")
    for name in (named,) if named else BROWSERS:
        if path := shutil.which(name):
            return path
    raise RuntimeError(
        f"No browser found (looked for {named or ', '.join(BROWSERS)}). .ci/chromium installs one "
        "and prints its path; or name yours: CHROMIUM=/path/to/chromium."
    )


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--clicks", type=int, default=40)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--model", help="a folder, or a published size with random weights")
    parser.add_argument("--during-run", action="store_true", help="while a run trains")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
