"""A lecture hall: many visitors who ask, and many pages that stay open, beside one training run.

``python -m benchmarks.hall`` starts the server and drives it by HTTP as pages do, from one process:
300 visitors with three seconds to think, first all with the same sentence and other words hidden,
then each with a sentence of their own. ``--pages 1000 --minutes 10`` opens pages that stay: each
loads, keeps its connection as browsers do and asks now and then; some watch the run.
The process that asks shares the cores with the server; what each of both computes for an answer is
told beside the times.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import brotli

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


class Line:
    """A connection to the server that costs little: the cores are the server's, too."""

    IDLE = 3.0
    """Seconds after which a new one is opened: a server closes what is idle for five."""

    def __init__(self, address: str) -> None:
        self.host, self.port = urlsplit(address).hostname, urlsplit(address).port
        self.head = (
            f"Host: {self.host}:{self.port}\r\nX-Cloze: train\r\nAccept-Encoding: gzip, br\r\n"
        )
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def get(self, path: str) -> bytes:
        """The body of an answer; OSError where it is none."""
        return await asyncio.wait_for(self._sent(f"GET {path} HTTP/1.1\r\n", b""), PATIENCE)

    async def post(self, path: str, value: object) -> Any:
        """The value of an answer to a value."""
        body = json.dumps(value).encode()
        first = f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n"
        found = await asyncio.wait_for(self._sent(first, body), PATIENCE)
        return json.loads(found)

    async def _sent(self, first: str, body: bytes) -> bytes:
        if self._ends is None or time.monotonic() - self._used > self.IDLE:
            self.close()
            self._ends = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._ends
        try:
            writer.write(f"{first}{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            found = await reader.readexactly(int(head.split("content-length:")[1].split()[0]))
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        if head.split()[1] != "200":
            raise OSError(f"{first.split()[1]}: {head.split()[1]} {found[:200]!r}")
        return brotli.decompress(found) if "content-encoding: br" in head else found

    def close(self) -> None:
        """Hang up."""
        if self._ends is not None:
            self._ends[1].close()
        self._ends = None


class Visitor:
    """One open page."""

    def __init__(self, address: str, number: int, endpoint: int) -> None:
        self.address, self.line, self.endpoint = address, Line(address), endpoint
        self.draw = random.Random(number)
        self.session = f"hall{number}"
        self.revision = 0

    async def open(self) -> None:
        """Load the page."""
        await self.line.get("/")

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
                (found,) = (await self.line.post("/gradio_api/run/predict", body))["data"]
                told = found["error"]
            except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
                asked.errors.append(repr(error)[:200])
                return
            if told is None:
                asked.seconds.append(time.perf_counter() - began)
                return
            if "again" not in found:
                asked.errors.append(told)
                return
            asked.refusals.append(time.perf_counter() - sent)
            await asyncio.sleep(found["again"] * self.draw.uniform(0.75, 1.25))

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


async def predicting(line: Line) -> int:
    """The number of the function that answers the predictions view."""
    config = json.loads(await line.get("/config"))
    (view,) = [
        c["id"] for c in config["components"] if c["props"].get("elem_id") == "cloze-predictions"
    ]
    return next(d["id"] for d in config["dependencies"] if [view, "ask"] in d["targets"])


async def figures(line: Line) -> dict[str, float]:
    """Memory (MB), open files, threads and seconds of processor of the server."""
    lines = (await line.get("/metrics")).decode().splitlines()
    read = dict(each.rsplit(" ", 1) for each in lines if not each.startswith("#"))
    return {
        "megabytes": float(read["process_resident_memory_bytes"]) / 1e6,
        "files": float(read["process_open_fds"]),
        "threads": float(read["cloze_threads"]),
        "cpu": float(read["process_cpu_seconds_total"]),
    }


async def keep_open(
    visitors: list[Visitor], minutes: float, line: Line, run: str
) -> list[dict[str, float]]:
    """Pages that stay open, each asking once a minute; the server's figures twenty times."""
    asked = Asked()
    end = time.perf_counter() + 60 * minutes

    async def pause(seconds: float) -> bool:
        left = end - time.perf_counter()
        await asyncio.sleep(max(0.0, min(seconds, left)))
        return seconds < left

    async def stay(visitor: Visitor) -> None:
        await pause(visitor.draw.uniform(0, min(60.0, 30 * minutes)))
        try:
            await visitor.open()
        except (OSError, EOFError, ValueError) as error:
            asked.errors.append(repr(error)[:200])
        while await pause(visitor.draw.uniform(30, 90)):
            await visitor.ask(asked, visitor.sentence())

    async def watch(line: Line) -> None:
        seen: dict[str, int] = {}
        while await pause(1.5):
            try:
                seen = (await line.post("/train/shown", {"run": run, "seen": seen})).get("seen", {})
            except (OSError, EOFError, ValueError) as error:
                asked.errors.append(repr(error)[:200])

    async def look() -> list[dict[str, float]]:
        found = []
        go_on = True
        while go_on:
            go_on = await pause(3 * minutes)
            found.append(
                await figures(line)
                | {
                    "minutes": minutes - (end - time.perf_counter()) / 60,
                    "answers": float(len(asked.seconds)),
                    "errors": float(len(asked.errors)),
                }
            )
        return found

    watchers = [Line(visitors[0].address) for _ in range(WATCHERS if run else 0)]
    work: list[Awaitable[Any]] = [look(), *map(stay, visitors), *map(watch, watchers)]
    found: list[dict[str, float]] = (await asyncio.gather(*work))[0]
    _tell(asked.errors)
    return found


def _tell(errors: list[str]) -> None:
    """Say on the error stream what went wrong, and how often."""
    for error, times in Counter(errors).most_common(5):
        sys.stderr.write(f"{times} x {error}\n")


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
    columns = (
        *("what is asked", "answers", "a second", "p50", "p95", "errors", "refused", "within"),
        *("server", "visitors"),
    )
    note = (
        "Hiding one to three words until their candidates are there, retries included; the last "
        "two columns are what an answer costs of the processor. Visitors share it with the server"
    )
    note += "." if arguments.alone else " and with a run of classroom.json at low priority."
    tables = [Table(title, columns, rows, note)] if rows else []
    if found:
        tables.append(_open_table(arguments, found))
    return Report(tables, environment("gradio"), [*found])


async def _visit(
    arguments: argparse.Namespace, address: str, run: str
) -> tuple[list[tuple[str, ...]], list[dict[str, float | int | str]]]:
    rows: list[tuple[str, ...]] = []
    found: list[dict[str, float]] = []
    line = Line(address)
    endpoint = await predicting(line)
    count = max(arguments.visitors, arguments.pages)
    visitors = [Visitor(address, number, endpoint) for number in range(count)]
    kinds: dict[str, Callable[[Visitor], str]] = {
        "the same sentence, other words": lambda _: SENTENCE,
        "other sentences": Visitor.sentence,
    }
    for name, text in kinds.items() if arguments.visitors else ():
        some = visitors[: arguments.visitors]
        before, ours = await figures(line), time.process_time()
        asked = await ask_for(some, arguments.seconds, arguments.think, text)
        ours = time.process_time() - ours
        theirs = (await figures(line))["cpu"] - before["cpu"]
        rows.append(_row(name, asked, arguments.seconds, theirs, ours))
        _tell(asked.errors)
    if arguments.pages:
        some = visitors[: arguments.pages]
        found = await keep_open(some, arguments.minutes, line, run)
    for each in (line, *(visitor.line for visitor in visitors)):
        each.close()
    return rows, json.loads(json.dumps(found))


def _row(name: str, asked: Asked, seconds: float, server: float, ours: float) -> tuple[str, ...]:
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
        f"{1000 * server / len(times):.1f} ms",
        f"{1000 * ours / len(times):.1f} ms",
    )


def _open_table(arguments: argparse.Namespace, found: list[dict[str, float | int | str]]) -> Table:
    rows = [
        (
            f"{each['minutes']:.1f} min",
            f"{each['megabytes']:.0f} MB",
            f"{each['threads']:.0f}",
            f"{each['files']:.0f}",
            f"{each['answers']:,.0f}",
            f"{each['errors']:.0f}",
        )
        for each in found
    ]
    title = f"{arguments.pages:,} pages open for {arguments.minutes:g} minutes"
    note = f"Each asks about once a minute; {WATCHERS} more watch a run."
    columns = ("after", "memory", "threads", "files", "answers", "errors")
    return Table(title, columns, rows, note)


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
