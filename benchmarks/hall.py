"""A lecture hall: many visitors who ask, and many pages that stay open, beside one training run.

``python -m benchmarks.hall`` starts the server and drives it by HTTP as pages do, from one process:
300 visitors with three seconds to think, first all with the same sentence and other words hidden,
then each with a sentence of their own. ``--pages 1000 --minutes 10`` opens pages that stay: each
loads, keeps its connection as browsers do and asks now and then; some watch the run.
The process that asks shares the cores with the server.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.measure import Report, Table, environment, percentile, run_main
from benchmarks.page import server, training

SENTENCE = (
    "The capital of France is Paris and the capital of Italy is Rome , as every child knows ."
)
WORDS = (
    *("red", "old", "big", "small", "king", "city", "bird", "tree", "water", "house", "river"),
    *("child", "music", "stone", "summer", "market"),
)
MODEL = "bert-mini"
PATIENCE = 30.0
WATCHERS = 20
"""Open pages that look at the run; each asks every 1.5 s."""


@dataclass
class Asked:
    """What visitors met."""

    seconds: list[float] = field(default_factory=list)
    """Of each answer, from the first time it was asked for."""
    refusals: list[float] = field(default_factory=list)
    """Seconds until each refusal came."""
    errors: list[str] = field(default_factory=list)


class Visitor:
    """One open page."""

    def __init__(self, client: httpx.AsyncClient, number: int, endpoint: int) -> None:
        self.client, self.endpoint = client, endpoint
        self.draw = random.Random(number)
        self.session = f"hall{number}"
        self.revision = 0

    async def open(self) -> None:
        """Load the page."""
        (await self.client.get("/")).raise_for_status()

    async def ask(self, asked: Asked, text: str) -> None:
        """Hide some words and wait for the candidates, and ask again when there were too many."""
        self.revision += 1
        words = len(text.split())
        places = sorted(self.draw.sample(range(1, words + 1), self.draw.randint(1, 3)))
        question = {
            "rev": self.revision,
            "text": text,
            "model": MODEL,
            "marks": [{"position": place} for place in places],
            "words": [],
            "top_k": 10,
        }
        body = {
            "data": [],
            "event_data": question,
            "fn_index": self.endpoint,
            "session_hash": self.session,
            "trigger_id": None,
        }
        began = time.perf_counter()
        while True:
            sent = time.perf_counter()
            try:
                answer = await self.client.post("/gradio_api/run/predict", json=body)
                (found,) = answer.json()["data"] if answer.status_code == 200 else [{}]
                told = found["error"]
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                asked.errors.append(repr(error)[:200])
                return
            if told is None:
                asked.seconds.append(time.perf_counter() - began)
                return
            if "questions wait" not in told:
                asked.errors.append(told)
                return
            asked.refusals.append(time.perf_counter() - sent)
            await asyncio.sleep(self.draw.uniform(1.5, 2.5))

    def sentence(self) -> str:
        """One that nobody else has asked about."""
        return f"The {' '.join(self.draw.choices(WORDS, k=9))} is {self.draw.randrange(10**6)} ."


async def ask_for(
    visitors: list[Visitor], seconds: float, think: float, text: Callable[[Visitor], str]
) -> Asked:
    """Let visitors ask for a while, each after thinking; they begin one after the other."""
    asked = Asked()
    end = time.perf_counter() + seconds

    async def stay(visitor: Visitor) -> None:
        await asyncio.sleep(visitor.draw.uniform(0, think))
        while time.perf_counter() < end:
            await visitor.ask(asked, text(visitor))
            await asyncio.sleep(visitor.draw.uniform(0.5, 1.5) * think)

    await asyncio.gather(*map(stay, visitors))
    return asked


async def predicting(client: httpx.AsyncClient) -> int:
    """The number of the function that answers the predictions view."""
    config = (await client.get("/config")).json()
    (view,) = [
        c["id"] for c in config["components"] if c["props"].get("elem_id") == "cloze-predictions"
    ]
    return next(d["id"] for d in config["dependencies"] if [view, "ask"] in d["targets"])


async def figures(client: httpx.AsyncClient) -> dict[str, float]:
    """Memory (MB), open files and threads of the server."""
    lines = (await client.get("/metrics")).text.splitlines()
    read = dict(line.split() for line in lines if not line.startswith("#"))
    return {
        "megabytes": float(read["process_resident_memory_bytes"]) / 1e6,
        "files": float(read["process_open_fds"]),
        "threads": float(read["cloze_threads"]),
    }


async def keep_open(
    visitors: list[Visitor], minutes: float, client: httpx.AsyncClient, run: str
) -> list[dict[str, float]]:
    """Pages that stay open, each asking once a minute; the server's figures every half minute."""
    asked = Asked()
    end = time.perf_counter() + 60 * minutes

    async def stay(visitor: Visitor) -> None:
        await asyncio.sleep(visitor.draw.uniform(0, min(60.0, 30 * minutes)))
        await visitor.open()
        while time.perf_counter() < end:
            await visitor.ask(asked, visitor.sentence())
            await asyncio.sleep(visitor.draw.uniform(30, 90))

    async def watch() -> None:
        seen: dict[str, int] = {}
        while time.perf_counter() < end:
            answer = await client.post(
                "/train/shown", json={"run": run, "seen": seen}, headers={"x-cloze": "train"}
            )
            seen = answer.json().get("seen", seen)
            await asyncio.sleep(1.5)

    async def look() -> list[dict[str, float]]:
        found = []
        while time.perf_counter() < end:
            found.append(await figures(client) | {"answers": float(len(asked.seconds))})
            await asyncio.sleep(30)
        return found

    work: list[Awaitable[Any]] = [look(), *map(stay, visitors), *(watch() for _ in range(WATCHERS))]
    found: list[dict[str, float]] = (await asyncio.gather(*work))[0]
    if asked.errors:
        found[-1]["errors"] = len(asked.errors)
    return found


def measure(arguments: argparse.Namespace) -> Report:
    """Start the server and a run, and let the visitors in."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloze-hall-")))
        address = stack.enter_context(server(folder))
        run = stack.enter_context(training(folder)) if not arguments.alone else ""
        rows, found = asyncio.run(_visit(arguments, address, run))
    title = (
        f"{arguments.visitors} visitors, {arguments.think:g} s to think, {arguments.seconds} s each"
    )
    columns = ("what is asked", "answers", "a second", "p50", "p95", "errors", "refused", "within")
    note = (
        "Hiding one to three words until their candidates are there, retries included; the process "
        "that asks shares the cores with the server"
    )
    note += "." if arguments.alone else " and with a run of classroom.json at low priority."
    tables = [Table(title, columns, rows, note)] if rows else []
    if found:
        tables.append(_open_table(arguments, found))
    return Report("python -m benchmarks.hall", tables, environment("gradio"), [*found])


async def _visit(
    arguments: argparse.Namespace, address: str, run: str
) -> tuple[list[tuple[str, ...]], list[dict[str, float | int | str]]]:
    # A server closes what is idle for five seconds; unlike browsers, httpx does not ask once more.
    limits = httpx.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=3.0
    )
    rows: list[tuple[str, ...]] = []
    found: list[dict[str, float]] = []
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE, limits=limits) as client:
        endpoint = await predicting(client)
        count = max(arguments.visitors, arguments.pages)
        visitors = [Visitor(client, number, endpoint) for number in range(count)]
        await visitors[0].ask(Asked(), SENTENCE)  # the model's first pass is not the visitors'
        kinds: dict[str, Callable[[Visitor], str]] = {
            "the same sentence, other words": lambda _: SENTENCE,
            "other sentences": Visitor.sentence,
        }
        for name, text in kinds.items() if arguments.visitors else ():
            some = visitors[: arguments.visitors]
            asked = await ask_for(some, arguments.seconds, arguments.think, text)
            rows.append(_row(name, asked, arguments.seconds))
        if arguments.pages:
            some = visitors[: arguments.pages]
            found = await keep_open(some, arguments.minutes, client, run)
    return rows, json.loads(json.dumps(found))


def _row(name: str, asked: Asked, seconds: float) -> tuple[str, ...]:
    times = sorted(asked.seconds) or [float("nan")]
    return (
        name,
        f"{len(asked.seconds):,}",
        f"{len(asked.seconds) / seconds:.0f}",
        f"{1000 * statistics.median(times):.0f} ms",
        f"{1000 * percentile(times, 0.95):.0f} ms",
        f"{len(asked.errors)}",
        f"{len(asked.refusals)}",
        f"{max(asked.refusals):.2f} s" if asked.refusals else "none",
    )


def _open_table(arguments: argparse.Namespace, found: list[dict[str, float | int | str]]) -> Table:
    rows = [
        (
            f"{number / 2:g} min",
            f"{each['megabytes']:.0f} MB",
            f"{each['threads']:.0f}",
            f"{each['files']:.0f}",
            f"{each['answers']:,.0f}",
        )
        for number, each in enumerate(found)
    ]
    title = f"{arguments.pages:,} pages open for {arguments.minutes:g} minutes"
    note = f"Each asks about once a minute; {WATCHERS} more watch a run."
    return Table(title, ("after", "memory", "threads", "files", "answers"), rows, note)


def build_parser() -> argparse.ArgumentParser:
    """Arguments of the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hall", description=__doc__)
    parser.add_argument("--visitors", type=int, default=300, help="0 leaves this part out")
    parser.add_argument("--think", type=float, default=3.0, help="seconds between two questions")
    parser.add_argument("--seconds", type=int, default=60, help="for each kind of question")
    parser.add_argument("--pages", type=int, default=0, help="pages that stay open; 1000 in a hall")
    parser.add_argument("--minutes", type=float, default=10.0, help="for which they do")
    parser.add_argument("--alone", action="store_true", help="without a training run")
    return parser


if __name__ == "__main__":
    run_main(measure, build_parser())
