"""Results that depend on parameters only, kept from one forward pass to the next.

Relative projections never change between passes of a finished model, and computing them is a large
share of a short pass. They are kept only on a CPU and where no gradient is recorded
(:func:`keeping`), and every use checks that the parameters are still the same objects with the same
contents, so a training step, a load or a cast makes them stale.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook


class _Counter:
    """Steps of all optimizers of this process."""

    def __init__(self) -> None:
        self.value = 0

    def __call__(self, *_: object) -> None:
        self.value += 1


_optimizer_steps = _Counter()
register_optimizer_step_post_hook(_optimizer_steps)


@dataclass(frozen=True)
class _Entry:
    key: Hashable
    basis: Tensor | None
    parameters: tuple[Tensor, ...]
    states: tuple[tuple[int, int], ...]
    samples: tuple[NDArray[Any], ...]
    seen: tuple[bytes, ...]
    results: tuple[Tensor, ...]


class Cache:
    """One remembered result.

    Readers and writers of several threads may meet: the entry is one object, replaced whole. A step
    of any optimizer makes it stale: fused ones write without the version counter. So does an
    in-place write through ``parameter.data``, which hides from that counter too: a sample of every
    parameter's values is compared.
    """

    def __init__(self) -> None:
        self._entry: _Entry | None = None

    def get(
        self,
        key: Hashable,
        basis: Tensor | None,
        parameters: Sequence[Tensor],
        compute: Callable[[], tuple[Tensor, ...]],
    ) -> tuple[Tensor, ...]:
        """The kept result of ``compute``, or a fresh one.

        Args:
            key: plain values that the result depends on.
            basis: a tensor it depends on that is never written to, compared by identity.
            parameters: parameters it depends on.
            compute: makes the result.
        """
        key = (key, _optimizer_steps.value)
        states = tuple(_state(p) for p in parameters)
        entry = self._entry
        if (
            entry is not None
            and entry.key == key
            and entry.basis is basis
            and entry.states == states
            and all(a is b for a, b in zip(entry.parameters, parameters, strict=True))
            and all(a.tobytes() == b for a, b in zip(entry.samples, entry.seen, strict=True))
        ):
            return entry.results
        results = compute()
        if all(isinstance(p, nn.Parameter) and not p.is_inference() for p in parameters):
            samples = tuple(_sample(p) for p in parameters)
            seen = tuple(sample.tobytes() for sample in samples)
            self._entry = _Entry(key, basis, tuple(parameters), states, samples, seen, results)
        return results

    def clear(self) -> None:
        """Forget."""
        self._entry = None

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A copied module starts with nothing kept."""
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        """A serialised module carries nothing kept."""
        return type(self), ()


def keeping(device: torch.device) -> bool:
    """Whether results may be kept now: no gradient is recorded and no graph is compiled.

    And on a CPU alone: elsewhere whoever looked at the parameters would have to wait for them.
    """
    idle = not torch.is_grad_enabled() and not torch.compiler.is_compiling()
    return idle and device.type == "cpu"


def casting(device: torch.device) -> bool:
    """Whether autocast is on for a device, which results kept under it depend on."""
    kind = device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _state(parameter: Tensor) -> tuple[int, int]:
    """What changes when a parameter is written to, or its storage is replaced (a cast, a move)."""
    if not isinstance(parameter, nn.Parameter) or parameter.is_inference():
        return -1, -1  # neither has a version counter of its own; such results are not kept
    return parameter._version, parameter.data_ptr()


def _sample(parameter: Tensor) -> NDArray[Any]:
    """Some values of a parameter where they lie in memory: of a matrix one in nearly every row.

    Each is a column further than the one before, so that whoever writes to a row, a column or all
    of a matrix writes to one of them.
    """
    values = parameter.detach()
    if not values.is_contiguous():
        return np.empty(0)
    flat = values.view(-1)[:: values.shape[-1] + 1 if values.dim() > 1 else 1]
    found: NDArray[Any] = flat.view(_INTEGERS[flat.element_size()]).numpy()
    return found
