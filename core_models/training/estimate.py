"""How large and how slow a run will be, from a few steps on made-up text."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor, nn

from core_models.config import Config
from core_models.counting.counts import count
from core_models.data.layout import TokenBatch
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer
from core_models.training import models, optimizer, task_settings
from core_models.training.examples import Masker
from core_models.training.feed import Drawn, Place
from core_models.training.host import container_memory, on
from core_models.training.learning import Learning, size
from core_models.training.plan import Plan, plan_for
from core_models.training.precision import emulated, settled
from core_models.training.prepare import named_tokenizer
from core_models.training.pretraining import Pretraining
from core_models.training.race_cost import cost_of
from core_models.training.settings import Settings
from core_models.training.task_schema import TaskSettings

_ROWS = 8
"""Examples of a step of the calibration, at most; its time grows with them."""
_TASK_ROWS = 16
"""The same of a fine-tuning, whose examples are of all lengths."""
_SAMPLED = 5_000
"""Rows of a larger set that are read for it: to cut 150,000 into pieces took 15 seconds."""
_OPERATIONS = 1e11
"""Of a core, for a step with fewer examples than these: 2 to 4 seconds with AVX2 alone."""
_EMULATED = 16
"""How many of them an emulated one is worth."""
_STATES = 4 * 4
"""Bytes of a parameter: weight, gradient and AdamW's two averages."""
_MAPS = 5
"""Maps that a step keeps at least for its backward pass, where attention has terms of its own."""
_VECTORS = 4
"""States as wide as the model that a layer keeps at least: queries, keys, values and its result."""


@dataclass(frozen=True)
class Estimate:
    """What a run will need. Times are those of this machine as busy as it is now."""

    parameters: int
    """Of the model."""
    companions: dict[str, int]
    """Of further models that are trained with it."""
    tokens_per_step: int
    """At most: as if every example were as long as allowed."""
    seconds_per_step: float
    """For as many tokens."""
    steps: int
    seconds: float
    """For all steps."""
    device: str
    memory: int
    """Bytes of weights, gradients, the optimizer's states and what an update keeps for its backward
    pass; the program itself, and what lives for a moment, come on top."""


def estimate(
    settings: Settings | TaskSettings, beside: Path | None = None, *, seconds: float = 2.0
) -> Estimate:
    """Build the run's models, and time updates for about ``seconds``.

    No text is read for a pretraining. Measuring what is held out is not counted.

    Args:
        settings: What is asked for.
        beside: Where a checkpoint, a tokenizer or a set that it names is looked up.
        seconds: Time for the calibration; the first update is not counted, unless it alone takes
            longer.

    Raises:
        InputError: The settings cannot be used, or this machine has too little memory for them.
    """
    threads = torch.get_num_threads()
    try:
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        with torch.random.fork_rng():
            learning, whole, largest, steps = _opened(settings, beside or Path())
            with contextlib.closing(learning):
                each, tokens, memory = _tried(learning, whole, largest, seconds)
    finally:
        torch.set_num_threads(threads)
    twice = isinstance(settings, TaskSettings) and settings.compare_from_scratch
    companions = {name: size(model) for name, model in learning.models().items()}
    return Estimate(
        parameters=companions.pop("model"),
        companions=companions,
        tokens_per_step=tokens,
        seconds_per_step=each,
        steps=steps,
        seconds=each * steps * (2 if twice else 1),
        device=str(learning.device),
        memory=memory,
    )


def _tried(
    learning: Learning, whole: float, largest: float, seconds: float
) -> tuple[float, int, int]:
    """Seconds and tokens of an update whose batch is ``whole`` times as large; bytes of another."""
    optimizer.set_learning_rate(learning.optimizers, 0.0)  # as slow, and nothing can diverge
    passes: list[float] = []
    updates: list[float] = []
    tokens: list[int] = []
    most = 0
    first, ends = True, 0.0
    while not passes or time.perf_counter() < ends:
        began = time.perf_counter()
        drawn = learning.draw()
        with kept_for_backward(learning.module) as kept:
            measured = learning.gradients(drawn)
        _wait(learning.device)
        halfway = time.perf_counter()
        learning.apply(measured)
        _wait(learning.device)
        most = max(most, sum(kept.values()))
        # The first round also finds its kernels, which is little where it takes that long.
        if first and time.perf_counter() - began < seconds:
            first, ends = False, time.perf_counter() + seconds
            continue
        passes.append(halfway - began)
        updates.append(time.perf_counter() - halfway)
        tokens.append(drawn.tokens)
    return (
        fmean(passes) * whole + fmean(updates),
        round(fmean(tokens) * whole),
        held_by(learning.module, learning.optimizers) + round(most * largest),
    )


def _opened(settings: Settings | TaskSettings, beside: Path) -> tuple[Learning, float, float, int]:
    """The run at its first update, how many times as large its batches are, and its steps.

    Batches in the mean, then the largest one.
    """
    if isinstance(settings, TaskSettings):
        # Imported late: measuring tasks brings libraries that pretraining need not wait for.
        from core_models.training.task_run import sampled  # noqa: PLC0415

        rows = min(_TASK_ROWS, settings.batch_size)
        part = settings.model_copy(update={"batch_size": rows})
        tuning, inputs = sampled(part, beside, _SAMPLED)
        times = settings.batch_size / rows
        return tuning, times, times, task_settings.steps(settings, inputs)
    base = models.base_of(settings, beside)
    plan = plan_for(settings, models.published_config(settings, base))
    words = _words(settings, beside) if base is None else base.model.tokenizer
    pieces = words.vocabulary
    if base is None and settings.tokenizer.folder is None:
        pieces = max(settings.tokenizer.vocabulary, pieces)
    config = models.model_config(settings, plan, base, vocabulary=pieces, pad_id=words.pad_id)
    precision = settled(settings.precision)
    rows = _rows(settings, config, plan, slow=precision == "bf16" and emulated())
    _check_memory(settings, config, plan, rows)
    model = models.build_model(settings, plan, config, words, base)
    chosen = {"accumulation": 1, "compile": False, "precision": precision}
    learning = Pretraining(
        settings=settings.model_copy(update=chosen),
        plan=plan,
        model=model,
        objective=models.build_objective(settings, plan, model, base, beside),
        stream=_MadeUp(rows, settings.data.max_length, config, plan, words),
        validation=None,
    )
    length = settings.data.max_length
    mean = settings.most_tokens / settings.steps / length
    early = settings.first_batch * (settings.data.first_length or length) / length
    return learning, mean / rows, max(settings.batch_size, early) / rows, settings.steps


def _rows(settings: Settings, config: Config, plan: Plan, *, slow: bool) -> int:
    """Examples of a step of the calibration: fewer of a model that takes long for each."""
    most, length = min(_ROWS, settings.batch_size), settings.data.max_length
    if on().type != "cpu":
        return most
    each = cost_of(settings, config, plan, length).flops_per_step / settings.batch_size
    affordable = torch.get_num_threads() * _OPERATIONS / each / (_EMULATED if slow else 1)
    return max(1, min(most, int(affordable)))


def _check_memory(settings: Settings, config: Config, plan: Plan, rows: int) -> None:
    """InputError where a step would fill the memory, and so end whatever else runs here."""
    if on().type != "cpu":  # a GPU that is full refuses by itself
        return
    trained = [config]
    if "replaced_token" in plan.objectives:
        trained.append(models.fresh_generator_config(settings, config))
    needed, length = 0, settings.data.max_length
    share = plan.masking.rate if plan.masks else 1.0
    for each in trained:
        maps = 0 if each.attention.terms.kind == "plain" else _MAPS * each.steps
        needed += _STATES * count(each).trained
        needed += 4 * rows * maps * each.attention.heads * length**2
        needed += 2 * rows * length * each.steps * (each.feed_forward.width + _VECTORS * each.width)
        # Of the pieces that are told: scores, probabilities and gradients.
        told = 0.0 if each is config and "replaced_token" in plan.objectives else share
        needed += round(12 * rows * length * told * each.embeddings.vocabulary)
    if needed > (there := free_memory()):
        raise InputError(
            f"A step of this training takes at least {needed / 1e6:,.0f} MB of memory; this "
            f"machine has {there / 1e6:,.0f} MB free. Choose a smaller model or vocabulary, or "
            "shorter examples."
        )


def free_memory() -> float:
    """Bytes of memory that are free, here and in this container, where the system tells."""
    _, left = container_memory()
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            facts = dict(line.split(":", 1) for line in file)
        return min(left, 1024 * int(facts["MemAvailable"].split()[0]))
    except (OSError, ValueError, LookupError):
        return left


@contextmanager
def kept_for_backward(module: nn.Module) -> Iterator[dict[int, int]]:
    """Bytes that passes inside the block keep for their backward passes, by where they lie.

    Weights are left out; what is kept of the same storage counts once.
    """
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield sizes


def held_by(module: nn.Module, optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """Bytes of weights, their gradients and the optimizers' states, after an update."""
    weights = sum(p.nbytes * (2 if p.requires_grad else 1) for p in module.parameters())
    states = (each.state.values() for each in optimizers)
    return weights + sum(
        value.nbytes
        for state in chain.from_iterable(states)
        for value in state.values()
        if isinstance(value, Tensor)
    )


def _words(settings: Settings, beside: Path) -> Tokenizer:
    """The tokenizer that is named, or a stand-in for one that is not learnt yet."""
    if settings.tokenizer.folder is not None:
        return named_tokenizer(settings.tokenizer.folder, beside)
    return Tokenizer.train(["stand-in"], vocabulary=100, kind="wordpiece")


class _MadeUp:
    """The same batch of made-up text again and again."""

    def __init__(
        self, rows: int, length: int, config: Config, plan: Plan, words: Tokenizer
    ) -> None:
        if plan.masking.kind == "similar_word":  # as dear, and needs no table of words
            plan = replace(plan, masking=replace(plan.masking, kind="ngram"))
        raw = _made_up(rows, length, config, plan)
        batch = Masker(plan, config, words)(raw, torch.Generator().manual_seed(0))
        self._drawn = Drawn(batch, rows * length, fresh=False)

    def draw(self) -> Drawn:
        """The batch."""
        return self._drawn

    def place(self) -> Place:
        """Always the same."""
        return Place(0, 0)

    def restore(self, place: Place) -> None:
        """Nothing to do."""


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize()


def _made_up(rows: int, length: int, config: Config, plan: Plan) -> TokenBatch:
    """Random pieces, each a word, in two segments between special pieces."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, config.embeddings.vocabulary, (rows, length), generator=generator)
    words = torch.arange(-1, length - 1).repeat(rows, 1)
    words[:, -1] = -1
    return TokenBatch(
        input_ids=ids,
        segment_ids=(torch.arange(length) >= length // 2).long().repeat(rows, 1),
        attention_mask=torch.ones(rows, length, dtype=torch.bool),
        words=words,
        pair_labels=torch.zeros(rows, dtype=torch.int64),
        lengths=torch.full((rows,), length),
        reuse=plan.reuse if plan.recurrent else None,
    )
