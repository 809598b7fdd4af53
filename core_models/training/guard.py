"""No update from a loss or gradient that is not finite, without asking the device at each step."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from core_models.errors import InputError


class DivergenceError(InputError):
    """Loss or gradient are no longer finite; the message is for people."""


def divergence(
    step: int, losses: Mapping[str, float], *, rate: float, warmup: int
) -> DivergenceError:
    """What happened, and what to change.

    Args:
        step: Number of the update that was not made.
        losses: Summed losses by the names of their metrics.
        rate: Peak learning rate.
        warmup: Steps in which it rises.
    """
    odd = [name.removesuffix("_loss") for name, v in losses.items() if not math.isfinite(v)]
    what = f"the loss of {odd[0]} is not a number" if odd else "the gradient is not finite"
    return DivergenceError(
        f"Training diverged at step {step}: {what}. The update was not made. Usual cures: a lower "
        f"learning rate (now {rate:g}), a longer warm-up (steps now: {warmup}), or fp32 precision."
    )


class Guard:
    """Keeps count of good updates on the device, and lets no update through after a bad one.

    On the CPU asking costs nothing, so the first bad update is refused on the spot. Elsewhere an
    answer would make the host wait for the device at every step; there a flag on the device makes
    the fused optimizer skip this update and all that follow (the hook that gradient scalers use),
    and the host looks at the flag before it reports, validates or saves anything.
    """

    def __init__(self, device: torch.device, *, immediate: bool | None = None) -> None:
        """Begin with no bad update.

        Args:
            device: Where losses and gradients are.
            immediate: Whether every update is looked at; None = on the CPU.
        """
        self.immediate = device.type == "cpu" if immediate is None else immediate
        self._broken = torch.zeros((), device=device)
        self._good = torch.zeros((), dtype=torch.int64, device=device)

    def watch(self, losses: list[Tensor], norm: Tensor) -> bool:
        """Note an update before it is made; whether it is known to be bad.

        Args:
            losses: Summed losses, scalars.
            norm: Norm of the gradient, scalar.
        """
        finite = torch.stack([value.detach().float() for value in [*losses, norm]]).isfinite()
        self._broken = torch.maximum(self._broken, (~finite.all()).float())
        self._good = self._good + (self._broken == 0)
        return self.immediate and bool(self._broken)

    def apply(self, optimizers: list[torch.optim.Optimizer]) -> None:
        """Make the optimizers skip the update where the flag is set."""
        if self.immediate:
            return
        for optimizer in optimizers:
            optimizer.found_inf = self._broken  # type: ignore[attr-defined]

    def settle(self) -> tuple[int, bool]:
        """Good updates since the last call; whether a bad one followed. Waits for the device."""
        good, broken = int(self._good), bool(self._broken)
        self._good.zero_()
        return good, broken
