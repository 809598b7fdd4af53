"""What every test shares: the marks' conditions, and an environment without surprises."""

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gate import Gate, table

# What an assertion outside the files of tests has found is told as well.
pytest.register_assert_rewrite("tests.app", "tests.core")

gc.disable()  # until all tests are collected: nearly all that is made before that, stays

# Before any library is imported: no reports to other hosts, no hub look-ups unless asked for.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Tiny models are quicker on one thread, and two threads on a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if os.environ.get("CLOZE_NETWORK") != "1":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30
# Runs wait for the disk after every file they write, and those of the tests write thousands. In
# memory that takes no time.
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

_GATE = pytest.StashKey[Gate]()

LONG = ("_browser.py", "accessibility.py", "test_zoo.py", "test_project.py", "/training/")
"""Parts of the names of files that take long: begun last, one of them would end alone."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--backwards`` and ``--late``, and what the gates take (``tests/gate.py``)."""
    gates = parser.getgroup("gates")
    gates.addoption(
        "--soak", type=float, metavar="SHARE", help="the gates at full size, or at a share of it"
    )
    gates.addoption("--seed", type=int, default=1, help="draws other cases of the gates")
    gates.addoption("--case", type=int, metavar="NUMBER", help="one case of a gate alone")
    parser.addoption(
        "--backwards",
        action="store_true",
        help="each file's tests from the last to the first: none may live on what another left",
    )
    parser.addoption(
        "--late",
        type=int,
        default=0,
        metavar="MILLISECONDS",
        help="half of the kinds of answers of the page's server come so much later; another number "
        "draws other kinds",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the long files first; skip tests whose condition does not hold here, with the reason."""
    if config.getoption("--backwards"):
        items.reverse()
    items.sort(key=lambda item: not any(part in item.path.as_posix() for part in LONG))
    for item in items:
        if "gate" in getattr(item, "fixturenames", ()):
            item.add_marker("gate")
        if item.get_closest_marker("network") and os.environ.get("CLOZE_NETWORK") != "1":
            item.add_marker(pytest.mark.skip(reason="needs the network: set CLOZE_NETWORK=1"))
        if item.get_closest_marker("container") and os.environ.get("CLOZE_CONTAINER") != "1":
            item.add_marker(pytest.mark.skip(reason="builds an image: set CLOZE_CONTAINER=1"))
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_collection_finish() -> None:
    """Spare the garbage collector the libraries, which stay: a look at them takes a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> Gate:
    """How many cases there are, and where their choices come from."""
    option = request.config.getoption
    gate = Gate(request.node.name, option("--soak"), option("--seed"), option("--case"))
    request.node.stash[_GATE] = gate
    return gate


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say how the failed case of a gate is run again."""
    report = yield
    gate = item.stash.get(_GATE, None)
    if report.when == "call" and gate is not None:
        report.user_properties += [("asked", gate.asked), ("run", gate.done)]
        if report.failed:
            report.sections.append(("To run this case again", gate.replay(item.nodeid)))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell what the gates of a soak ran."""
    if config.getoption("--soak") is not None:
        stats = terminalreporter.stats
        for line in table([*stats.get("passed", ()), *stats.get("failed", ())]):
            terminalreporter.write_line(line)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture
def in_process() -> Iterator[None]:
    """Put back what a training process takes for itself: signals, threads, random state."""
    import torch
    from accelerate.state import AcceleratorState, PartialState

    threads, random = torch.get_num_threads(), torch.get_rng_state()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    PartialState._reset_state()
    torch.set_num_threads(threads)
    torch.set_rng_state(random)
    for number, handler in handlers.items():
        signal.signal(number, handler)
