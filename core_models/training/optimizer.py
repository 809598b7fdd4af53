"""The optimizer, its learning rate over steps, and its state as named tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.network.encoder import Encoder
from core_models.training.settings import Settings

Names = dict[str, nn.Parameter]
_SEPARATOR = "|"


def parameters(module: nn.Module) -> Names:
    """Trainable parameters by name; a shared one appears once, under its first name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def build(model: nn.Module, names: Names, settings: Settings) -> list[torch.optim.Optimizer]:
    """The optimizers that together train every parameter once.

    Matrices are decayed; biases and norms are not. With Muon the matrices of the blocks are its
    own, and AdamW keeps embeddings, heads, biases and norms, for which Muon is not meant.

    Unlike BERT's released optimizer this AdamW corrects the bias of its averages, which matters in
    the first few hundred steps only.
    """
    options = settings.optimizer
    if options.kind == "muon" and not hasattr(torch.optim, "Muon"):
        raise InputError(f"optimizer.kind: muon needs torch 2.9 or newer, not {torch.__version__}.")
    inner = _block_matrices(model) if options.kind == "muon" else set()
    rest = [(_is_decayed(name, p), p) for name, p in names.items() if p not in inner]
    found: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(
            [
                {"params": [p for yes, p in rest if yes], "weight_decay": options.weight_decay},
                {"params": [p for yes, p in rest if not yes], "weight_decay": 0.0},
            ],
            lr=options.learning_rate,
            betas=(options.betas[0], options.betas[1]),
            eps=options.epsilon,
            fused=True,
        )
    ]
    if inner:
        found.append(
            torch.optim.Muon(
                [p for p in names.values() if p in inner],
                lr=options.matrix_learning_rate,
                momentum=options.momentum,
                weight_decay=options.weight_decay,
                # Updates as large as AdamW's usually are, so that both rates mean the same.
                adjust_lr_fn="match_rms_adamw",
            )
        )
    for optimizer in found:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return found


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


def share_of_peak(settings: Settings, step: int) -> float:
    """Share of the peak learning rate in the update that follows ``step`` finished ones.

    Rises linearly over ``warmup`` steps, then falls linearly so that it would be zero one update
    after the last; where it is stable first, it falls over the last ``cooldown`` of the steps.
    """
    schedule = settings.schedule
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup
    if schedule.decay == "none":
        return 1.0
    falling = settings.steps - schedule.warmup
    if schedule.decay == "stable":
        falling = min(falling, max(1, round(schedule.cooldown * settings.steps)))
    return min(1.0, max(settings.steps - step, 0) / falling)


def same_until(one: Settings, other: Settings, step: int) -> bool:
    """Whether the first ``step`` updates are the same, whichever end the two settings name.

    So a run with a stable phase can be copied at any point and cooled down (arXiv 2404.06395), or
    be given more steps. The share that is hidden must not depend on the number of steps.
    """
    if one.masking.last_rate is not None and one.steps != other.steps:
        return False
    return all(share_of_peak(one, n) == share_of_peak(other, n) for n in range(step))


def set_learning_rate(optimizers: Sequence[torch.optim.Optimizer], share: float) -> None:
    """Give every group its peak rate times ``share``."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share


def to_tensors(optimizers: Sequence[torch.optim.Optimizer], names: Names) -> dict[str, Tensor]:
    """The optimizers' state under ``<parameter>|<value>``, on the CPU."""
    found = {}
    for name, parameter in names.items():
        values = _owner(optimizers, parameter).state.get(parameter, {})
        for key, value in values.items():
            found[f"{name}{_SEPARATOR}{key}"] = torch.as_tensor(value).detach().cpu().contiguous()
    return found


def from_tensors(
    optimizers: Sequence[torch.optim.Optimizer], names: Names, tensors: dict[str, Tensor]
) -> None:
    """Put back what :func:`to_tensors` gave; InputError when it belongs to another model."""
    state: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, value = key.rpartition(_SEPARATOR)
        state.setdefault(name, {})[value] = tensor
    if tensors and state.keys() != names.keys():
        odd = sorted(state.keys() ^ names.keys())[:3]
        raise InputError(f"The optimizer state belongs to another model: {', '.join(odd)}.")
    for name, values in state.items():
        parameter = names[name]
        # The step count stays where the fused kernel wants it: beside the parameter, in fp32.
        _owner(optimizers, parameter).state[parameter] = {
            key: tensor.to(parameter.device) for key, tensor in values.items()
        }


def _owner(
    optimizers: Sequence[torch.optim.Optimizer], parameter: nn.Parameter
) -> torch.optim.Optimizer:
    return next(
        optimizer
        for optimizer in optimizers
        for group in optimizer.param_groups
        if any(parameter is p for p in group["params"])
    )
