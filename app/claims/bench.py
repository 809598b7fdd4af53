"""Tools with which the measurements of the Claims tab are made. No Gradio in it."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

import core_models as cm
from app.labs.timeline import answers as timeline
from app.labs.timeline.formats import layout_and_corpus, pack
from app.labs.tokenizers.answers import shipped
from core_models import Config, InputError
from core_models.data.pairs import segments
from core_models.masking.tokens import Masked, generator_for
from core_models.network.initialise import without_values
from core_models.prediction.judge import PAIR_HEADS

SECONDS = 20.0
"""A measurement that takes longer stops with an error."""
TIMING_SECONDS, LEAST_ROUNDS = 4.0, 6
ROWS, LENGTH = 48, 128
PLAIN = 5
"""First id of the random inputs: those below stand for special pieces."""
T = TypeVar("T")
Ask = Callable[[Callable[[], Any]], Any]
Rows = tuple[Tensor, Tensor, Tensor, Tensor]
"""Ids, maskable and words, each [B, L], and lengths [B]."""


class Models(Protocol):
    """Where installed models come from (:class:`app.serving.session.Session`)."""

    def models(self) -> list[cm.ModelInfo]:
        """What is installed."""

    def model(self, name: str) -> cm.Model:
        """A model by name."""

    def card(self, name: str) -> dict[str, Any]:
        """What is known of a model."""


class Bench:
    """What one measurement may use: a seed, installed models and a limit of time.

    Args:
        models: installed models.
        chosen: the model of the sentence bar; it is used where it can answer.
        seed: of everything that is drawn.
        ask: runs a short piece of work with an installed model where such work belongs.
        seconds: after them :meth:`check` stops the measurement.
    """

    def __init__(
        self,
        models: Models,
        chosen: str = "",
        seed: int = 0,
        *,
        ask: Ask | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self.models, self.chosen, self.seed = models, chosen, seed
        self._ask = ask or (lambda work: work())
        self._end = time.monotonic() + seconds
        self._seconds = seconds

    def check(self) -> None:
        """Stop when the time is over; every loop of a measurement calls it."""
        if time.monotonic() > self._end:
            raise InputError(
                f"This measurement took longer than {self._seconds:g} seconds and was stopped. "
                "The machine may be busy; try again later."
            )

    def ask(self, work: Callable[[], T]) -> T:
        """Run a short piece of work with an installed model, without gradients."""
        self.check()

        def quietly() -> T:
            with torch.inference_mode():
                return work()

        found: T = self._ask(quietly)
        return found

    def generator(self, *counters: int) -> torch.Generator:
        """A generator of the seed."""
        return generator_for(self.seed, *counters)

    def with_head(self, head: str) -> cm.Model:
        """An installed model that has a head; the chosen one where it can."""
        name = answering(self.models, self.chosen, head)
        if name is None:
            raise InputError(missing(head))
        return self.models.model(name)

    def ids(self, rows: int, length: int, *counters: int) -> Tensor:
        """Random pieces, int64 [B, L]."""
        return torch.randint(
            PLAIN, vocabulary(), (rows, length), generator=self.generator(7, *counters)
        )


def answering(models: Models, chosen: str, head: str) -> str | None:
    """The model that a measurement with this head uses; None where none is installed."""
    # Whoever has both heads for pairs is asked by the first (judge_pair).
    heads = PAIR_HEADS if head in PAIR_HEADS else (head,)
    able = [
        info.name
        for info in models.models()
        if next((each for each in heads if each in info.heads), None) == head
    ]
    return chosen if chosen in able else next(iter(able), None)


def missing(head: str) -> str:
    """What to do where no model has a head."""
    return (
        f"No installed model has the head {head}. Put a checkpoint that has it into the folder of "
        "models."
    )


# --- models with random weights -------------------------------------------------------------------


def shrunk(name: str, *, layers: int = 4, width: int = 64, heads: int = 4) -> Config:
    """A published size made small: its parts and its objectives stay, its widths do not."""
    config = cm.size(name).with_vocabulary(vocabulary(), pad_id=0).with_dropout(0.0)
    tables = config.embeddings
    return replace(
        config,
        width=width,
        embeddings=replace(tables, width=width if tables.width == config.width else width // 4),
        attention=config.attention.with_heads(heads, width // heads),
        feed_forward=replace(config.feed_forward, width=4 * width),
        schedule=(0,) * layers if config.blocks == 1 else tuple(range(layers)),
        initial_std=0.15,
    )


def random_model(config: Config, seed: int, heads: Sequence[str] | None = None) -> cm.Model:
    """A model with random weights; equal seeds give equal weights."""
    tokenizer, generator = shipped("wordpiece"), generator_for(seed, 3)
    return cm.Model.new(config, tokenizer, heads=heads, generator=generator).eval()


def vocabulary() -> int:
    """Pieces of the vocabulary that random models and random inputs use."""
    return shipped("wordpiece").vocabulary


def filled(config: Config) -> cm.Encoder:
    """Uniform random weights: quick to draw, and as dear to compute with as trained ones."""
    with without_values():
        encoder = cm.Encoder(config).eval()
    encoder.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(0)
    for weight in encoder.parameters():
        with torch.no_grad():
            weight.uniform_(-0.05, 0.05, generator=generator)
    return encoder


def interleaved(
    bench: Bench, tasks: dict[str, Callable[[], object]], *, rounds: int = 40
) -> dict[str, float]:
    """Milliseconds of the fastest run of each task, run in turns on a machine others use too."""
    spent: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    end = time.monotonic() + TIMING_SECONDS
    for turn in range(rounds):
        if turn >= LEAST_ROUNDS and time.monotonic() > end:
            break
        names = list(tasks) if turn % 2 else list(reversed(tasks))
        for name in names:
            bench.check()
            start = time.perf_counter()
            tasks[name]()
            spent[name].append(1000 * (time.perf_counter() - start))
    return {name: min(times) for name, times in spent.items()}


# --- text of the Primer ---------------------------------------------------------------------------


@lru_cache(maxsize=2)
def primer_rows(count: int = ROWS, length: int = LENGTH) -> Rows:
    """Rows of the Primer in WordPiece pieces."""
    layout, corpus = layout_and_corpus(shipped("wordpiece"))
    found = itertools.islice(segments(corpus, max_length=length), count)
    batch = pack(layout, corpus, list(found))
    return batch.input_ids, batch.maskable, batch.words, batch.lengths


def masked_rows(bench: Bench, kind: str, *counters: int) -> tuple[Rows, Masked]:
    """Rows of the Primer masked as the family of a kind does (``KINDS`` of the Timeline)."""
    rows = primer_rows()
    bench.check()
    sources = [bench.generator(n, *counters) for n in range(len(rows[0]))]
    return rows, timeline.draw(kind, shipped("wordpiece"), rows, sources)


def percent(part: float, whole: float) -> float:
    """A share of 0 to 100; 0 of nothing."""
    return 100 * part / whole if whole else 0.0


def moved(first: Tensor, second: Tensor) -> float:
    """How far two tensors are apart, in percent of the first one's length."""
    return percent(float((first - second).norm()), float(first.norm()))
