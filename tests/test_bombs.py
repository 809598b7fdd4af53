"""Bombs: files small on the disk that would fill the memory, or never end, when they are read."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bombs import BOMBS
from tests.gate import Gate

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 3.0
"""Most processor time for one way to read a bomb: a busy machine does not lengthen it."""
MEGABYTES = 100
LETTERS = 2_100
"""Most of a message, whatever a file calls itself."""
FOUND = (
    "model: endless config",
    "model: piped weights",
    "model: sparse spare",
    "vocabulary: sparse merges",
    "vocabulary: many sentence pieces",
    "text: text then zeros",
    "text: columns",
    "text: same long cell",
    "run: piped reports",
    "run: sparse reports",
)
"""Some that have exploded: tried at each run of the suite."""

Try = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module", name="explode")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Try]:
    """Reads a bomb by its name, in a process that has loaded all that is needed."""
    root = tmp_path_factory.mktemp("bombs")
    with (root / "errors").open("wb") as errors:
        command = [sys.executable, "-m", "tests.bombs.reading", str(root / "folders")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
            whole = [json.loads(process.stdout.readline()) for _ in range(4)]

            def explode(name: str) -> dict[str, Any]:
                process.stdin.write(f"{name}\n")
                process.stdin.flush()
                return dict(json.loads(process.stdout.readline()))

            explode.whole = whole
            yield explode
            process.stdin.close()


def harmless(found: dict[str, Any]) -> None:
    """Read or refused in words, soon and in little room."""
    assert found["error"] is None, found
    assert found["seconds"] <= SECONDS, found
    assert found["megabytes"] <= MEGABYTES, found
    assert found["longest"] <= LETTERS, found


def test_bombs(gate: Gate, explode: Try) -> None:
    names = sorted(BOMBS)
    gate.random().shuffle(names)
    for _ in gate.cases(10, len(names)):
        harmless(explode(names[gate.case]))


@pytest.mark.parametrize("name", FOUND)
def test_a_bomb_that_exploded_does_so_no_more(name: str, explode: Try) -> None:
    harmless(explode(name))


def test_the_unspoiled_ones_are_read(explode: Try) -> None:
    """Else the gate would look at nothing."""
    read = {found["kind"]: found for found in explode.whole}
    for kind in ("model", "vocabulary", "text", "run"):
        harmless(read[kind])
        *said, last = read[kind]["said"]
        assert set(said) == {"read"}, read[kind]
        assert last == "read" or "has finished" in last
