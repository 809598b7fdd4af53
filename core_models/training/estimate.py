"""How large and how slow a run will be, from a few steps on made-up text."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean, median

import torch
from torch import Tensor, nn

from core_models.config import Config
from core_models.data.layout import TokenBatch
from core_models.objectives import Losses
from core_models.tokenizer import Tokenizer
from core_models.training import models, optimizer
from core_models.training.examples import Masker
from core_models.training.plan import Plan, plan_for
from core_models.training.precision import settled
from core_models.training.pretraining import EncoderWithLoss
from core_models.training.settings import Settings, resolve_folder
from core_models.training.task_schema import TaskSettings

_ROWS = 8
"""Examples of a step of the calibration, at most; its time grows with them."""


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
        seconds: Time for the calibration; the first update is not counted.

    Raises:
        InputError: The settings cannot be used.
    """
    threads = torch.get_num_threads()
    try:
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        with torch.random.fork_rng():
            if isinstance(settings, TaskSettings):
                return _fine_tuning(settings, beside or Path(), seconds)
            return _pretraining(settings, beside or Path(), seconds)
    finally:
        torch.set_num_threads(threads)


def _pretraining(settings: Settings, beside: Path, seconds: float) -> Estimate:
    base = models.base_of(settings, beside)
    plan = plan_for(settings, models.published_config(settings, base))
    words = _words(settings, beside) if base is None else base.model.tokenizer
    count = words.vocabulary
    if base is None and settings.tokenizer.folder is None:
        count = max(settings.tokenizer.vocabulary, count)
    config = models.model_config(settings, plan, base, vocabulary=count, pad_id=words.pad_id)
    model = models.build_model(settings, plan, config, words, base)
    objective = models.build_objective(settings, plan, model, base, beside)
    # A CUDA build of PyTorch names "cuda" on machines without such a device, too.
    found = torch.accelerator.current_accelerator(check_available=True)
    device = found or torch.device("cpu")
    module = EncoderWithLoss(model.encoder, objective).to(device)
    names = optimizer.parameters(module)
    optimizers = optimizer.build(module, names, settings.optimizer)
    rows = min(_ROWS, settings.batch_size)
    batches = _Batches(module, settings, plan, rows, config, words)

    def apply() -> None:
        torch.nn.utils.clip_grad_norm_(names.values(), 1.0)
        for each in optimizers:
            each.step()
            each.zero_grad(set_to_none=True)

    passes, updates, kept = _timed(module, batches.learn, apply, seconds)
    whole = settings.batch_size / rows
    each = median(passes) * whole + median(updates)
    return Estimate(
        parameters=_size(model),
        companions={name: _size(other) for name, other in objective.companions().items()},
        tokens_per_step=settings.batch_size * settings.data.max_length,
        seconds_per_step=each,
        steps=settings.steps,
        seconds=each * settings.steps,
        device=str(device),
        memory=held_by(module, optimizers) + round(kept * whole),
    )


def _fine_tuning(settings: TaskSettings, beside: Path, seconds: float) -> Estimate:
    # Imported late: measuring tasks brings libraries that pretraining need not wait for.
    from core_models.training.task_run import opened  # noqa: PLC0415

    tuning = opened(settings, beside)
    optimizer.set_learning_rate(tuning.optimizers, 0.0)  # as slow, and nothing can diverge
    tokens: list[int] = []
    measured: dict[str, Tensor] = {}

    def learn() -> None:
        drawn = tuning.draw()
        tokens.append(drawn.tokens)
        measured.update(tuning.gradients(drawn))

    model = tuning.model
    passes, updates, kept = _timed(model, learn, lambda: tuning.apply(measured), seconds)
    each = fmean(passes) + fmean(updates)
    return Estimate(
        parameters=_size(model),
        companions={},
        tokens_per_step=round(fmean(tokens[1:])),
        seconds_per_step=each,
        steps=tuning.steps,
        seconds=each * tuning.steps * (2 if settings.compare_from_scratch else 1),
        device=str(tuning.device),
        memory=held_by(model, tuning.optimizers) + kept,
    )


def _size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


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
        return Tokenizer.from_folder(resolve_folder(settings.tokenizer.folder, beside))
    return Tokenizer.train(["stand-in"], vocabulary=100, kind="wordpiece")


class _Batches:
    """Made-up text of a few rows, and the passes of a model over it."""

    def __init__(
        self,
        module: EncoderWithLoss,
        settings: Settings,
        plan: Plan,
        rows: int,
        config: Config,
        words: Tokenizer,
    ) -> None:
        if plan.masking.kind == "similar_word":  # as dear, and needs no table of words
            plan = replace(plan, masking=replace(plan.masking, kind="ngram"))
        raw = _made_up(rows, settings.data.max_length, config, plan)
        batch = Masker(plan, config, words)(raw, torch.Generator().manual_seed(0))
        self._module, self._plan = module, plan
        self._device = next(module.parameters()).device
        self._batch = batch.to(self._device)
        self._memory: tuple[Tensor, ...] = ()
        self._low = settled(settings.precision) == "bf16"

    def learn(self) -> None:
        """Once forth and back."""
        batch = self._batch
        if self._plan.memory:
            batch = replace(batch, memory=self._memory, remember=self._plan.memory)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._low):
            losses: Losses = self._module(batch)
        losses.total.backward()
        self._memory = losses.memory


def _timed(
    module: nn.Module, learn: Callable[[], None], apply: Callable[[], None], seconds: float
) -> tuple[list[float], list[float], int]:
    """Seconds of each pass and of each update, and the most bytes kept for a backward pass."""
    device = next(module.parameters()).device
    passes: list[float] = []
    updates: list[float] = []
    most = 0
    ends = float("inf")
    while not passes or time.perf_counter() < ends:
        began = time.perf_counter()
        with kept_for_backward(module) as kept:
            learn()
        _wait(device)
        halfway = time.perf_counter()
        apply()
        _wait(device)
        most = max(most, sum(kept.values()))
        if ends == float("inf"):  # the first round also finds its kernels
            ends = time.perf_counter() + seconds
            continue
        passes.append(halfway - began)
        updates.append(time.perf_counter() - halfway)
    return passes, updates, most


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
