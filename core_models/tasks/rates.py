"""The optimizer of fine-tuning: which parameters learn, how fast, and its state as tensors."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.model import Model

_UNREAD = ("mask_decoder", "query_start")
"""Parts of an encoder that only pretraining heads read."""
_SEPARATOR = "|"

Names = dict[str, nn.Parameter]


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one update was made from."""

    sums: dict[str, tuple[float, float]]
    """Sum and count of each metric on the batch."""
    norm: float
    """Of the gradient, before clipping."""
    tokens: int
    """Of the batch, padding not counted."""


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
    found = {}
    for name, parameter in model.named_parameters():
        depth = _depth(name, blocks)
        unread = any(name.startswith(f"encoder.{part}") for part in _UNREAD)
        parameter.requires_grad_(not unread and (frozen == 0 or depth > frozen))
        if parameter.requires_grad:
            found[name] = parameter
    if not found:
        raise InputError(f"frozen is {frozen}: nothing is left that could learn; freeze fewer.")
    return found


def build(
    names: Names, blocks: int, *, rate: float, decay: float, weight_decay: float
) -> torch.optim.AdamW:
    """AdamW whose learning rate falls by ``decay`` from each block to the one below it.

    The head has the full rate, the top block ``decay`` times that, the embeddings
    ``decay ** (blocks + 1)`` (arXiv 1801.06146, section 3.2, which divides by 2.6;
    arXiv 2006.05987). Biases and norms have no weight decay.
    """
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, parameter in names.items():
        # XLNet's biases of queries have a row for each head and so look like matrices.
        key = _depth(name, blocks), parameter.ndim >= 2 and not name.endswith("bias")
        groups.setdefault(key, []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "peak": rate * decay ** (blocks + 1 - depth),
                "weight_decay": weight_decay if matrix else 0.0,
            }
            for (depth, matrix), parameters in sorted(groups.items(), key=lambda item: item[0])
        ],
        lr=rate,
        eps=1e-6,
    )


def set_share(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Give every group its peak rate times ``share``."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share


def share_of_peak(step: int, steps: int, warmup: float) -> float:
    """Share of the peak rate in the update after ``step`` finished ones: up, then down to 0."""
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    return (steps - step) / (steps - rising)


def to_tensors(optimizer: torch.optim.Optimizer, names: Names) -> dict[str, Tensor]:
    """The optimizer's state under ``<parameter>|<value>``, on the CPU."""
    return {
        f"{name}{_SEPARATOR}{key}": torch.as_tensor(value).detach().cpu().clone()
        for name, parameter in names.items()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def from_tensors(
    optimizer: torch.optim.Optimizer, names: Names, tensors: Mapping[str, Tensor]
) -> None:
    """Put back what :func:`to_tensors` gave; InputError where it belongs to another model."""
    for key, tensor in tensors.items():
        name, _, value = key.rpartition(_SEPARATOR)
        if name not in names:
            raise InputError(f"The optimizer state belongs to another model: {name}.")
        parameter = names[name]
        # AdamW keeps its step count on the CPU.
        place = "cpu" if value == "step" else parameter.device
        optimizer.state[parameter][value] = tensor.to(place, copy=True)


def _depth(name: str, blocks: int) -> int:
    """0 for embeddings, 1 for the lowest block, ``blocks`` for the highest, then the head."""
    if name.startswith("encoder.blocks."):
        return int(name.split(".")[2]) + 1
    if name.startswith("encoder.convolution"):
        return 1  # stands beside the first block
    return 0 if name.startswith("encoder.") else blocks + 1
