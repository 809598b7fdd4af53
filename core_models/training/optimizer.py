"""The optimizer, its learning rate over steps, and its state as named tensors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.model import Model
from core_models.network.encoder import Encoder
from core_models.training.muon import Muon
from core_models.training.schema import OptimizerSettings
from core_models.training.settings import Settings
from core_models.training.sharding import cut, whole

Names = dict[str, nn.Parameter]
_SEPARATOR = "|"
_UNREAD = ("mask_decoder", "query_start")
"""Parts of an encoder that only pretraining heads read."""


def parameters(module: nn.Module) -> Names:
    """Trainable parameters by name; a shared one appears once, under its first name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def freeze(model: Model, frozen: int) -> Names:
    """Switch off the gradients of the lowest blocks, and give the parameters that learn, by name.

    With any frozen block the embeddings are frozen, too.

    Raises:
        InputError: the model has fewer blocks.
    """
    blocks = model.config.blocks
    if not 0 <= frozen <= blocks:
        raise InputError(
            f"frozen is {frozen}; this model has {blocks} {'block' if blocks == 1 else 'blocks'}"
            + (" that every step shares." if blocks < model.config.steps else ".")
        )
    for name, parameter in model.named_parameters():
        unread = any(name.startswith(f"encoder.{part}") for part in _UNREAD)
        parameter.requires_grad_(not unread and (frozen == 0 or _depth(name, blocks) > frozen))
    found = parameters(model)
    if not found:
        raise InputError(f"frozen is {frozen}: nothing is left that could learn; freeze fewer.")
    return found


def build(
    model: nn.Module, names: Names, options: OptimizerSettings
) -> list[torch.optim.Optimizer]:
    """The optimizers that together train every parameter once.

    Matrices are decayed; biases and norms are not. With Muon the matrices of the blocks are its
    own, and AdamW keeps embeddings, heads, biases and norms, for which Muon is not meant.

    Unlike BERT's released optimizer this AdamW corrects the bias of its averages, which matters in
    the first few hundred steps only.
    """
    inner = _block_matrices(model) if options.kind == "muon" else set()
    rest = {name: p for name, p in names.items() if p not in inner}
    found: list[torch.optim.Optimizer] = [
        adamw(rest, options, lambda _: options.learning_rate, fused=True)
    ]
    if inner:
        muon = Muon(
            [p for p in names.values() if p in inner],
            lr=options.matrix_learning_rate,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
        )
        muon.param_groups[0]["peak"] = options.matrix_learning_rate
        found.append(muon)
    return found


def adamw(
    names: Names, options: OptimizerSettings, rate: Callable[[str], float], *, fused: bool = False
) -> torch.optim.AdamW:
    """AdamW with the peak rate that ``rate`` gives each parameter by its name."""
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in sorted(names.items(), key=lambda item: not _is_decayed(*item)):
        groups.setdefault((rate(name), _is_decayed(name, parameter)), []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "lr": peak,
                "peak": peak,
                "weight_decay": options.weight_decay if decayed else 0.0,
            }
            for (peak, decayed), parameters in groups.items()
        ],
        betas=(options.betas[0], options.betas[1]),
        eps=options.epsilon,
        fused=fused or None,
    )


def by_depth(blocks: int, rate: float, decay: float) -> Callable[[str], float]:
    """Peak rates that fall by ``decay`` from each block to the one below it.

    The head has the full rate, the top block ``decay`` times that, the embeddings
    ``decay ** (blocks + 1)`` (arXiv 1801.06146, section 3.2, which divides by 2.6;
    arXiv 2006.05987).
    """
    return lambda name: rate * decay ** (blocks + 1 - _depth(name, blocks))


def _depth(name: str, blocks: int) -> int:
    """0 for embeddings, 1 for the lowest block, ``blocks`` for the highest, then the head."""
    if name.startswith("encoder.blocks."):
        return int(name.split(".")[2]) + 1
    if name.startswith("encoder.convolution"):
        return 1  # stands beside the first block
    if name.startswith("encoder.final_norm."):
        return blocks  # follows the highest one
    return 0 if name.startswith("encoder.") else blocks + 1


def _is_decayed(name: str, parameter: nn.Parameter) -> bool:
    """XLNet's biases of queries have a row for each head and so look like matrices."""
    return parameter.ndim >= 2 and not name.endswith("bias")


def skippable(optimizers: Sequence[torch.optim.Optimizer]) -> bool:
    """Whether a flag on the device can make every one of them skip an update; Muon has no such."""
    return all(bool(each.defaults.get("fused")) for each in optimizers)


def _block_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Weights of the linear layers inside the blocks of every encoder."""
    encoders = [part for part in model.modules() if isinstance(part, Encoder)]
    return {
        part.weight
        for encoder in encoders
        for part in encoder.blocks.modules()
        if isinstance(part, nn.Linear) and isinstance(part.weight, nn.Parameter)
    }


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The learning rate over the updates of a run."""

    steps: int
    warmup: int
    """Updates in which it rises linearly."""
    decay: str = "linear"
    cooldown: float = 1.0
    """``stable`` only: the share of the steps in which it falls."""

    @classmethod
    def of(cls, settings: Settings) -> "Schedule":
        """That of a pretraining."""
        return cls(steps=settings.steps, **settings.schedule.model_dump())

    def share(self, step: int) -> float:
        """Share of the peak learning rate in the update that follows ``step`` finished ones.

        Rises linearly over ``warmup`` steps, then falls linearly so that it would be zero one
        update after the last; where it is stable first, it falls over the last ``cooldown`` of the
        steps.
        """
        if step < self.warmup:
            return (step + 1) / self.warmup
        if self.decay == "none":
            return 1.0
        falling = self.steps - self.warmup
        if self.decay == "stable":
            falling = min(falling, max(1, round(self.cooldown * self.steps)))
        return min(1.0, max(self.steps - step, 0) / falling)


def same_until(one: Settings, other: Settings, step: int) -> bool:
    """Whether the first ``step`` updates are the same, whichever end the two settings name.

    So a run with a stable phase can be copied at any point and cooled down (arXiv 2404.06395), or
    be given more steps. The share that is hidden must not depend on the number of steps, nor what
    an update reads.
    """
    if other.steps < step or (one.masking.last_rate is not None and one.steps != other.steps):
        return False
    if min(one.first_steps, step) != min(other.first_steps, step):
        return False
    first, second = Schedule.of(one), Schedule.of(other)
    return all(first.share(n) == second.share(n) for n in range(step))


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], share: float) -> None:
    """Give every group its peak rate times ``share``."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share


def to_tensors(
    optimizers: Sequence[torch.optim.Optimizer], names: Names, *, keep: bool = True
) -> dict[str, Tensor]:
    """The optimizers' state under ``<parameter>|<value>``, whole and on the CPU.

    Where it is cut over processes all of them must ask; what they do not ``keep`` is left out.
    """
    found = {}
    owners = _owners(optimizers)
    for name, parameter in names.items():
        values = owners[parameter].state.get(parameter, {})
        for key, value in values.items():
            tensor = whole(torch.as_tensor(value).detach())
            if keep:
                found[f"{name}{_SEPARATOR}{key}"] = tensor.cpu().contiguous()
    return found


def from_tensors(
    optimizers: Sequence[torch.optim.Optimizer], names: Names, tensors: Mapping[str, Tensor]
) -> None:
    """Put back what :func:`to_tensors` gave; InputError when it belongs to another model.

    A parameter that no loss has reached has no state.
    """
    state: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, value = key.rpartition(_SEPARATOR)
        state.setdefault(name, {})[value] = tensor
    if odd := sorted(state.keys() - names.keys())[:3]:
        raise InputError(f"The optimizer state belongs to another model: {', '.join(odd)}.")
    owners = _owners(optimizers)
    for name, values in state.items():
        parameter = names[name]
        owner = owners[parameter]
        # The fused kernel wants its step count beside the parameter, the plain one on the CPU.
        counted = parameter.device if owner.defaults.get("fused") else torch.device("cpu")
        owner.state[parameter] = {
            key: tensor.to(counted) if key == "step" else cut(tensor, parameter)
            for key, tensor in values.items()
        }


def _owners(
    optimizers: Sequence[torch.optim.Optimizer],
) -> dict[nn.Parameter, torch.optim.Optimizer]:
    return {p: each for each in optimizers for group in each.param_groups for p in group["params"]}
