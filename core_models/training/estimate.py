"""How large and how slow a run will be, from a few steps on made-up text."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from core_models.config import Config
from core_models.data.layout import TokenBatch
from core_models.objectives import Losses
from core_models.tokenizer import Tokenizer
from core_models.training import models, optimizer
from core_models.training.examples import Masker
from core_models.training.loop import Pretraining
from core_models.training.plan import Plan, plan_for
from core_models.training.precision import settled
from core_models.training.settings import Settings, resolve_folder

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


def estimate(settings: Settings, beside: Path | None = None, *, seconds: float = 2.0) -> Estimate:
    """Build the run's models, and time updates for about ``seconds``. Reads no text.

    Args:
        settings: What is asked for.
        beside: Where a checkpoint or tokenizer that it names is looked up.
        seconds: Time for the calibration; the first update is not counted.

    Raises:
        InputError: The settings cannot be used.
    """
    beside = beside or Path()
    base = models.base_of(settings, beside)
    plan = plan_for(settings, models.published_config(settings, base))
    words = _words(settings, beside) if base is None else base.model.tokenizer
    count = words.vocabulary
    if base is None and settings.tokenizer.folder is None:
        count = max(settings.tokenizer.vocabulary, count)
    config = models.model_config(settings, plan, base, vocabulary=count, pad_id=words.pad_id)
    threads = torch.get_num_threads()
    try:
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        with torch.random.fork_rng():
            model = models.build_model(settings, plan, config, words, base)
            objective = models.build_objective(settings, plan, model, base, beside)
            # A CUDA build of PyTorch names "cuda" on machines without such a device, too.
            found = torch.accelerator.current_accelerator(check_available=True)
            device = found or torch.device("cpu")
            module = Pretraining(model.encoder, objective).to(device)
            whole, memory = _try(module, settings, plan, config, words, seconds)
    finally:
        torch.set_num_threads(threads)
    return Estimate(
        parameters=sum(p.numel() for p in model.parameters()),
        companions={
            name: sum(p.numel() for p in companion.parameters())
            for name, companion in objective.companions().items()
        },
        tokens_per_step=settings.batch_size * settings.data.max_length,
        seconds_per_step=whole,
        steps=settings.steps,
        seconds=whole * settings.steps,
        device=str(device),
        memory=memory,
    )


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


def _try(
    module: Pretraining,
    settings: Settings,
    plan: Plan,
    config: Config,
    words: Tokenizer,
    seconds: float,
) -> tuple[float, int]:
    """Seconds and bytes of one update with the whole batch."""
    names = optimizer.parameters(module)
    optimizers = optimizer.build(module, names, settings)
    device = next(module.parameters()).device
    rows = min(_ROWS, settings.batch_size)
    if plan.masking.kind == "similar_word":  # as dear, and needs no table of words
        plan = replace(plan, masking=replace(plan.masking, kind="ngram"))
    raw = _made_up(rows, settings.data.max_length, config, plan)
    batch = Masker(plan, config, words)(raw, torch.Generator().manual_seed(0)).to(device)
    chosen = settled(settings.precision)
    memory: tuple[Tensor, ...] = ()
    passes: list[float] = []
    updates: list[float] = []
    ends = float("inf")
    while not passes or time.perf_counter() < ends:
        began = time.perf_counter()
        if plan.memory:
            batch = replace(batch, memory=memory, remember=plan.memory)
        cast = torch.autocast(device.type, torch.bfloat16, enabled=chosen == "bf16")
        with cast, kept_for_backward(module) as kept:
            losses: Losses = module(batch)
        losses.total.backward()
        memory = losses.memory
        _wait(device)
        halfway = time.perf_counter()
        torch.nn.utils.clip_grad_norm_(names.values(), 1.0)
        for each in optimizers:
            each.step()
            each.zero_grad(set_to_none=True)
        _wait(device)
        if ends == float("inf"):  # the first round also finds its kernels
            ends = time.perf_counter() + seconds
            continue
        passes.append(halfway - began)
        updates.append(time.perf_counter() - halfway)
    whole = settings.batch_size / rows
    middle = len(passes) // 2
    return (
        sorted(passes)[middle] * whole + sorted(updates)[middle],
        held_by(module, optimizers) + round(sum(kept.values()) * whole),
    )


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
