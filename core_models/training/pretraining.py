"""Pretraining: batches of a stream, over several processes and parts, with a memory.

What makes a resume bit-identical on the CPU: everything random comes from generators whose state
is in the checkpoint (data order, masking, and PyTorch's own generator for dropout), the sums of an
unfinished report and the memory of earlier segments are saved too, and the number of threads is
pinned, because sums over another number of threads round differently.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.model import Model
from core_models.objectives import Losses, Objective
from core_models.training import optimizer
from core_models.training.checkpoint import Saved, State
from core_models.training.examples import rows
from core_models.training.extremes import Extremes
from core_models.training.feed import Drawn, Feed, Place, Stream
from core_models.training.host import on, sharded
from core_models.training.learning import EncoderWithLoss, Learning
from core_models.training.memory import Memory, whole_memory
from core_models.training.meter import add, line
from core_models.training.plan import Plan
from core_models.training.settings import Settings
from core_models.training.sharding import cut, shard, whole, whole_model
from core_models.training.validation import Validation, measure

if TYPE_CHECKING:
    from accelerate import Accelerator

_STREAM = ("order", "masking")
"""Names of the states that belong to the stream of batches."""
_DECODED = {"masked_token", "masked_diffusion", "distillation"}
"""Objectives that ask an enhanced mask decoder."""


class Pretraining(Learning):
    """One pretraining, of this process or shared by several."""

    _rank = 0
    _processes = 1
    _sharded = False

    def __init__(
        self,
        *,
        settings: Settings,
        plan: Plan,
        model: Model,
        objective: Objective,
        stream: Stream,
        validation: Validation | None,
        accelerator: "Accelerator | None" = None,
    ) -> None:
        """Build optimizer and generators at step 0; None: this process is the only one."""
        self.settings, self.plan = settings, plan
        self.accelerator, self.objective, self.validation = accelerator, objective, validation
        self.validates = validation is not None
        self._extremes = Extremes(objective, model.tokenizer)
        if settings.compile:
            for each in (model, *objective.companions().values()):
                each.encoder.compile(dynamic=True)
        low = settings.precision == "bf16"
        bare = EncoderWithLoss(model.encoder, objective, low=low)
        if accelerator is not None:
            self._rank, self._processes = accelerator.process_index, accelerator.num_processes
            self._sharded = sharded()
            if not _DECODED & plan.objectives.keys() and model.encoder.mask_decoder is not None:
                # Nothing asks it, and processes wait for the gradients of all that learns.
                model.encoder.mask_decoder.requires_grad_(False)
        self.module = self._placed(bare)
        self.main = self._rank == 0
        names = optimizer.parameters(bare)
        super().__init__(
            model,
            names=names,
            optimizers=optimizer.build(bare, names, settings.optimizer),
            options=settings.optimizer,
            schedule=optimizer.Schedule.of(settings),
            weights=objective.loss_weights(),
        )
        self._feed = Feed(stream)
        self._memory: Memory = ()
        torch.manual_seed(settings.seed + 3 + self._rank)

    def _placed(self, bare: nn.Module) -> nn.Module:
        """The module on its device: cut over the processes, or whole in each."""
        if self.accelerator is None:
            return bare.to(on())
        if self._sharded:
            shard(bare, self.accelerator)
            return bare
        prepared: nn.Module = self.accelerator.prepare(bare.to(on()))
        return prepared

    def agreed(self, stop: bool) -> bool:
        """Whether any process wants to stop."""
        if self.accelerator is None:
            return stop
        wish = torch.tensor(float(stop), device=self.device)
        return bool(self.accelerator.reduce(wish, reduction="sum") > 0)

    def close(self) -> None:
        """End the thread that makes batches."""
        self._feed.close()

    # -- an update --------------------------------------------------------------------------------

    def draw(self) -> Drawn:
        """The next batch of the stream."""
        drawn = next(self._feed)
        if drawn.fresh:
            self._memory = ()
        return drawn

    def gradients(self, drawn: Drawn) -> dict[str, Tensor]:
        """Those of all parts and processes together."""
        counts = {
            name: count.to(self.device, non_blocking=True)
            for name, count in self.objective.counts(drawn.batch).items()
        }
        self.module.train()
        measured: dict[str, Tensor] = {}
        remembered: list[Memory] = []
        parts = self._parts(drawn.batch)
        for number, part in enumerate(parts):
            waiting: AbstractContextManager[None] = nullcontext()
            # Where the model is cut there is no room for gradients that wait: they would be whole.
            if self.accelerator is not None and number < len(parts) - 1 and not self._sharded:
                waiting = self.accelerator.no_sync(self.module)
            with waiting:
                losses: Losses = self.module(part)
                # Gradients are averaged over processes, the loss is meant to be summed over them.
                (losses.total_over(counts) * self._processes).backward()
            measured = add(measured, self._meter.of(losses))
            remembered.append(losses.memory)
        self._memory = tuple(torch.cat(pieces) for pieces in zip(*remembered, strict=True))
        if self.accelerator is not None:
            measured = self.accelerator.reduce(measured, reduction="sum")
        return measured

    def _parts(self, batch: Batch) -> list[Batch]:
        """This process's share of the rows on the device, cut for accumulation."""
        count = batch.shape[0]
        shares = [batch]
        if self._processes > 1 or self.settings.accumulation > 1:
            own = torch.arange(count)[self._rank :: self._processes]
            parts = self.settings.accumulation
            if self._sharded:  # a pass needs the shares of all processes: all pass as often
                parts = min(parts, count // self._processes)
            split = own.tensor_split(parts)
            shares = [rows(batch, share.to(batch.device)) for share in split if len(share)]
        moved = []
        begin = 0
        for part in shares:
            here = part.to(self.device, non_blocking=True)
            end = begin + here.shape[0]
            if self.plan.memory:
                memory = tuple(old[begin:end] for old in self._memory)
                here = replace(here, memory=memory, remember=self.plan.memory)
            begin = end
            moved.append(here)
        return moved

    # -- looking ----------------------------------------------------------------------------------

    def measure(self) -> dict[str, float]:
        """Means on the held-out documents, with the same hidden tokens each time.

        The hardest and the easiest examples are kept for ``validation.json``.
        """
        if self.validation is None:
            return {}
        watched = self._extremes if self.main else None
        found = measure(
            self.module,
            self.validation,
            weights=self.weights,
            device=self.device,
            remember=self.plan.memory,
            extremes=watched,
        )
        self.examples = (watched.found() or {}) if watched else {}
        return found

    def line(self, record: Mapping[str, Any]) -> str:
        """With whatever accuracies there are."""
        return line(record, self.steps)

    # -- state ------------------------------------------------------------------------------------

    def models(self) -> dict[str, Model]:
        """The models that are trained with it, and the model; whole ones, for the first process."""
        found = {**self.objective.companions(), "model": self.model}
        if self._sharded:
            return {name: whole_model(model, keep=self.main) for name, model in found.items()}
        return found

    def state(self) -> State:
        """Optimizer, generators, memory and what the objective has; for the first process."""
        memory = self._memory
        if self.accelerator is not None:
            memory = whole_memory(memory, self.accelerator)
        if not (self.main or self._sharded):
            return State(models={}, tensors={}, values={})
        random = {"dropout": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["dropout_cuda"] = torch.cuda.get_rng_state()
        place = self._feed.place()
        return State(
            models=self.models(),
            tensors={
                "optimizer": optimizer.to_tensors(self.optimizers, self.names, keep=self.main),
                "random": random | place.states,
                "own": {name: whole(t) for name, t in self.objective.own_state().items()},
                "memory": {f"{step:03}": tensor for step, tensor in enumerate(memory)},
            },
            values={
                "epoch": place.epoch,
                "batch": place.batch,
                "companions": list(self.objective.companions()),
            },
        )

    def _load(self, saved: Saved) -> None:
        """The models' weights are already in place."""
        tensors, random = saved.tensors, saved.tensors["random"]
        own = self.objective.own_state()
        given = tensors.get("own", {})
        self.objective.load_own_state({k: cut(v, own.get(k, v)) for k, v in given.items()})
        optimizer.from_tensors(self.optimizers, self.names, tensors.get("optimizer", {}))
        states = {name: tensor for name, tensor in random.items() if name in _STREAM}
        self._feed.restore(Place(saved.values["epoch"], saved.values["batch"], states))
        memory = tuple(tensor for _, tensor in sorted(tensors.get("memory", {}).items()))
        self._memory = tuple(rows[self._rank :: self._processes].to(self.device) for rows in memory)
        if self._processes == 1:
            torch.set_rng_state(random["dropout"])
            if "dropout_cuda" in random and torch.cuda.is_available():
                torch.cuda.set_rng_state(random["dropout_cuda"])
        else:
            torch.manual_seed(hash((self.settings.seed, saved.progress.step, self._rank)))
