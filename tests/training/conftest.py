"""A tiny run that trains in about a second."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core_models.training.folder import RunFolder

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
