"""Models for inference alone: faster linear layers, no gradients.

Most of a forward pass is products with weights that never change. Brought once into the order that
oneDNN's kernels read, they may be much faster than from the usual order, or no faster: that depends
on the processor and the length (docs/benchmarks.md). And the activation of a feed-forward network
is applied while its result is still in the cache.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.network.layer import FUNCTIONS, FeedForward

M = TypeVar("M", bound=nn.Module)

_ACTIVATIONS = {
    "gelu": ("gelu", "none"),
    "gelu_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
    "silu": ("swish", ""),
    "tanh": ("tanh", ""),
}
"""oneDNN's names of the activations that it applies together with a linear layer."""


@dataclass(frozen=True)
class Optimization:
    """What :func:`optimize_for_inference` did to a model."""

    dtype: torch.dtype
    """What the packed layers compute in."""
    packed: tuple[str, ...]
    """Linear layers that were packed, by their names in the model."""
    left: dict[str, str]
    """Linear layers that were left as they were, and why."""

    def __str__(self) -> str:
        """One sentence for people."""
        name = str(self.dtype).removeprefix("torch.")
        text = f"{len(self.packed)} linear layers packed in {name}, {len(self.left)} left"
        return f"{text}: {'; '.join(sorted(set(self.left.values())))}" if self.left else text


class PackedLinear(nn.Module):
    """A linear layer whose weight only oneDNN can read, and the activation after it."""

    offset: Tensor | None

    def __init__(self, layer: nn.Linear, dtype: torch.dtype, activation: str | None) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.dtype = dtype
        self.activation = ("none", "") if activation is None else _ACTIVATIONS[activation]
        weight = layer.weight.detach().to(dtype).contiguous()
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
        bias = dict(layer.named_parameters()).get("bias")
        self.offset = None if bias is None else bias.detach().to(dtype, copy=True)

    @property
    def weight(self) -> Tensor:
        """The layer's weight [out, in], unpacked, in float32: for what reads it and multiplies."""
        return self.packed.to_dense().float()

    @property
    def bias(self) -> Tensor | None:
        """The layer's bias [out], likewise."""
        return None if self.offset is None else self.offset.float()

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out] in the type of ``x``.

        Raises:
            InputError: a gradient is asked for, or ``x`` is not on the CPU.
        """
        if x.device.type != "cpu":
            raise InputError(
                f"A model that is optimized for inference runs on the CPU, not on {x.device.type}; "
                "move the model that it was made from."
            )
        if x.requires_grad and torch.is_grad_enabled():
            raise InputError(
                "A model that is optimized for inference has no gradients; use the model that it "
                "was made from."
            )
        name, algorithm = self.activation
        y: Tensor = torch.ops.mkldnn._linear_pointwise(
            x.to(self.dtype), self.packed, self.offset, name, [], algorithm
        )
        return y.to(x.dtype)

    def extra_repr(self) -> str:
        """Sizes and type."""
        return f"{self.in_features}, {self.out_features}, {self.dtype}, {self.activation[0]}"

    def _save_to_state_dict(self, *arguments: object) -> None:
        raise InputError(
            "A model that is optimized for inference cannot be saved; save the model that it was "
            "made from."
        )

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Nothing here is ever written to, so copies share it."""
        return self


class InferenceOnly(nn.Module):
    """What the class of an optimized model has besides."""

    optimization: Optimization

    def train(self, mode: bool = True) -> Self:
        """Refuses to train."""
        if mode:
            raise InputError(
                "A model that is optimized for inference cannot be trained; train the model that "
                "it was made from."
            )
        return super().train(mode)


def optimize_for_inference(model: M, dtype: torch.dtype = torch.float32) -> M:
    """A copy of a model whose linear layers are packed for this CPU's kernels.

    Hidden states and everything that callers see stay float32. In float32 outputs differ by
    rounding (5e-6 at most at 12 layers of 768, where the spread of a normed state is 1). With
    bfloat16, inputs and weights of each product are rounded to 8 bits; outputs differ by 0.5 % of
    their spread in the mean and by 2.5 % at most. ``tests/core/test_inference.py`` holds both. The
    copy shares no memory with the model: it needs as much again, and a tied table twice.

    Args:
        model: a :class:`~core_models.model.Model`, an encoder or any other module in float32.
        dtype: what linear layers compute in, ``torch.float32`` or ``torch.bfloat16``.

    Returns:
        A model in eval mode that traces and predicts as before, but cannot be trained, saved,
        compiled or moved from the CPU. :func:`optimization` tells what was packed, and what was
        not and why.

    Raises:
        InputError: optimized already, another type, or bfloat16 on a processor that is not made
            for it.
    """
    if dtype not in (torch.float32, torch.bfloat16):
        raise InputError(f"dtype is {dtype}; allowed are torch.float32 and torch.bfloat16.")
    available = torch.backends.mkldnn.is_available()
    if dtype == torch.bfloat16 and not (available and torch.ops.mkldnn._is_mkldnn_bf16_supported()):
        raise InputError("This processor has no bfloat16 products; use torch.float32.")
    if isinstance(model, InferenceOnly):
        raise InputError("This model is optimized for inference already.")
    copied = copy.deepcopy(model).requires_grad_(False)
    packed: list[str] = []
    left: dict[str, str] = {}
    for prefix, parent, name, layer in list(_linear_layers(copied)):
        path = f"{prefix}.{name}" if prefix else name
        reason = _obstacle(layer, available)
        if reason:
            left[path] = reason
            continue
        activation = None
        if isinstance(parent, FeedForward) and name == "up":
            activation = next(n for n, f in FUNCTIONS.items() if f is parent.activation)
            parent.activation = _as_it_is
        setattr(parent, name, PackedLinear(layer, dtype, activation))
        packed.append(path)
    kind = type(copied)
    object.__setattr__(copied, "__class__", type(kind.__name__, (InferenceOnly, kind), {}))
    copied.eval()
    vars(copied)["optimization"] = Optimization(dtype, tuple(packed), left)
    return copied


def optimization(model: nn.Module) -> Optimization | None:
    """What was done to a model of :func:`optimize_for_inference`; None for any other."""
    return model.optimization if isinstance(model, InferenceOnly) else None


def _linear_layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, nn.Linear]]:
    """Path of the parent, parent, name and layer, once for each place that has one."""
    for prefix, parent in model.named_modules():
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Linear):
                yield prefix, parent, name, layer


def _obstacle(layer: nn.Linear, available: bool) -> str | None:
    """Why a layer cannot be packed; None = it can."""
    weight = layer.weight
    if not available:
        return "this build of PyTorch has no oneDNN"
    if weight.device.type != "cpu":
        return f"on {weight.device.type}, and only a CPU has packed layers"
    if weight.dtype != torch.float32:
        return f"of type {weight.dtype}, and only torch.float32 is packed"
    return None


def _as_it_is(x: Tensor) -> Tensor:
    return x
