"""Muon, an optimizer for the matrices inside the blocks."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, distributed, nn

from core_models.training.precision import emulated
from core_models.training.sharding import cut, whole

_STEPS = 5
_COEFFICIENTS = 3.4445, -4.775, 2.0315
_TINY = 1e-7
_LIKE_ADAMW = 0.2
"""Root of the mean square that AdamW's updates usually have."""


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal, with updates as large as AdamW's (arXiv 2502.16982, equation 4).

    So both optimizers' rates mean the same. Momentum is an average (as in ``torch.optim.Muon``,
    whose steps these are to the last bit), not a sum as in the paper; orthogonalization takes away
    the difference. A ``"momentum_buffer"`` of a parameter's shape is all its state.

    Args:
        matrices: Of two dimensions each.
        lr: Rate, on AdamW's scale.
        momentum: Share of the average that stays at each step, 0 to 1; Nesterov's.
        weight_decay: Decoupled, times the rate.
    """

    def __init__(
        self, matrices: Iterable[nn.Parameter], *, lr: float, momentum: float, weight_decay: float
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient; nothing is evaluated again.

        Of several processes, all of which must ask, each makes its share of the updates.
        """
        assert closure is None
        for group in self.param_groups:
            rate = group["lr"]
            learning = [matrix for matrix in group["params"] if matrix.grad is not None]
            own, count = _place()
            for first in range(0, len(learning), count):
                some = learning[first : first + count]
                steps = [whole(self._averaged(matrix, group["momentum"])) for matrix in some]
                for matrix, update in zip(some, _orthogonal(steps, own), strict=True):
                    matrix.mul_(1 - rate * group["weight_decay"])
                    factor = _LIKE_ADAMW * max(matrix.shape) ** 0.5
                    matrix.add_(cut(update, matrix), alpha=-rate * factor)

    def _averaged(self, matrix: nn.Parameter, kept: float) -> Tensor:
        """The gradient with Nesterov's momentum, which is brought up to date."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix.grad)
        average: Tensor = state["momentum_buffer"].lerp_(matrix.grad, 1 - kept)
        return matrix.grad.lerp(average, kept)


def _place() -> tuple[int, int]:
    """Number of this process and how many there are."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _orthogonal(steps: Sequence[Tensor], own: int) -> list[Tensor]:
    """:func:`orthogonal` of one matrix for each process at most, of which each makes its own."""
    dtype = precision(steps[0].device.type)
    if len(steps) == 1:
        return [orthogonal(steps[0], dtype)]
    found = [torch.empty_like(step, dtype=dtype) for step in steps]
    if own < len(steps):
        found[own].copy_(orthogonal(steps[own], dtype))
    for process, update in enumerate(found):
        distributed.broadcast(update, process)
    return found


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix with singular values of about 1 (0.7 to 1.2), by five steps of Newton-Schulz.

    The quintic's coefficients are those of Keller Jordan's Muon (2024), which raise small values
    fast and never settle.

    Args:
        matrix: (rows, columns).
        dtype: What the products are computed in, and what comes back.
    """
    linear, cubic, quintic = _COEFFICIENTS
    tall = matrix.size(0) > matrix.size(1)
    found = matrix.to(dtype, copy=True)
    found = found.T if tall else found
    found.div_(found.norm().clamp(min=_TINY))
    for _ in range(_STEPS):
        gram = found @ found.T
        found = torch.addmm(
            found, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), found, beta=linear
        )
    return found.T if tall else found


@lru_cache
def precision(device: str) -> torch.dtype:
    """What :func:`orthogonal` computes in there: bfloat16, which is enough for it.

    float32 on a processor that emulates bfloat16 products (docs/experiments.md).
    """
    return torch.float32 if device == "cpu" and emulated() else torch.bfloat16
