"""Tiny runs that train in about a second: one on plain text, one on labelled sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_models.tokenizer import Tokenizer
from core_models.training.folder import RunFolder
from tests.core.tiny_models import small_bert

WORDS = "the a cat dog bird fish sees hears likes finds red old small big house tree".split()  # noqa: SIM905


def text(documents: int) -> str:
    """Sentences of a toy grammar, the same each time."""
    state = 1
    lines = []
    for _ in range(documents):
        for _ in range(4):
            sentence = []
            for _ in range(5):
                state = (state * 1103515245 + 12345) % 2**31
                sentence.append(WORDS[(state >> 16) % len(WORDS)])
            lines.append(" ".join(sentence) + ".")
        lines.append("")
    return "\n".join(lines)


def settings(**changes: Any) -> dict[str, Any]:
    """A config that every part of a run takes part in: dropout, pairs, singles, three epochs."""
    return {
        "model": {
            "size": "bert-mini",
            "overrides": {"layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 32},
        },
        "tokenizer": {"vocabulary": 120},
        "data": {
            "texts": ["text.txt"],
            "held_out": 0.1,
            "max_length": 24,
            "duplicates": 1,
            "singles": 0.3,
            "bucketing": 2,
        },
        "optimizer": {"learning_rate": 0.003},
        "schedule": {"warmup": 5},
        "batch_size": 16,
        "steps": 30,
        "threads": 1,
        "report_every": 4,
        "validate_every": 10,
        "checkpoints": {"every": 7, "keep": 2},
    } | changes


def quiet(line: str) -> None:
    """Say nothing: the place of what would print a report."""
    del line


@pytest.fixture
def toy() -> Callable[..., dict[str, Any]]:
    """``toy(**changes)``: the config of the tiny run as plain values."""
    return settings


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., RunFolder]:
    """Make a run folder with the toy text: ``make_run(name, **changed_settings)``."""

    def make(name: str = "run", documents: int = 40, **changes: Any) -> RunFolder:
        run = RunFolder.create(tmp_path / name, settings(**changes))
        (run.path / "text.txt").write_text(text(documents))
        return run

    return make


def forget_accelerator() -> None:
    """Let the next run in this process begin anew."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


SENTENCES = [line for line in text(60).split("\n") if line]


def labelled(count: int = 48) -> str:
    """Sentences as CSV with the label that their first word gives them."""
    rows = [
        f"{s},{'animal' if s.split()[0] in ['cat', 'dog', 'bird', 'fish'] else 'other'}"
        for s in SENTENCES
    ]
    return "\n".join(["text,label", *rows[:count]]) + "\n"


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of a tiny BERT with dropout."""
    tokenizer = Tokenizer.train(SENTENCES, vocabulary=120)
    model = small_bert(tokenizer)
    folder = tmp_path_factory.mktemp("base") / "model"
    model.save(folder)
    return folder


@pytest.fixture
def make_task(tmp_path: Path, base: Path) -> Callable[..., RunFolder]:
    """Make a run folder with a labelled file: ``make_task(name, **changed_settings)``."""

    def make(name: str = "run", content: str | None = None, **changes: Any) -> RunFolder:
        values = {
            "model": {"checkpoint": str(base)},
            "task": {"set": "rows.csv"},
            "learning_rate": 5e-3,
            "epochs": 4,
            "batch_size": 8,
            "max_length": 24,
            "threads": 1,
            "report_every": 2,
            "validate_every": 3,
            "checkpoints": {"every": 3, "keep": 2},
        }
        run = RunFolder.create(tmp_path / name, values | changes)
        (run.path / "rows.csv").write_text(labelled() if content is None else content)
        return run

    return make
