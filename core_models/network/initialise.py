"""The values that training starts from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_SHARE = "initial_share"
_BIASES = ("content_bias", "position_bias", "segment_bias")
"""XLNet draws its attention biases like weights (released code)."""


class _Undrawn(TorchFunctionMode):
    """No tensor without memory is given values. PyTorch would do it, and import its compiler."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        arguments: Sequence[Any] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        options = options or {}
        if getattr(function, "__module__", None) == nn.init.__name__:
            tensor = options["tensor"] if "tensor" in options else arguments[0]
            if tensor.is_meta:
                return tensor
        return function(*arguments, **options)


@contextmanager
def without_values() -> Iterator[None]:
    """Modules that are made here have shapes and no memory (device "meta"); this thread's alone."""
    with torch.device("meta"), _Undrawn():
        yield


def start_smaller(layer: nn.Linear, share: float) -> None:
    """Have :func:`initialise` draw a layer's weight with this share of the standard deviation."""
    setattr(layer, _SHARE, share)


def initialise(module: nn.Module, std: float, generator: torch.Generator | None = None) -> None:
    """Published initialisation: weights from a normal of ``std``, biases 0, norms 1 and 0.

    Padding rows of embedding tables are zero. BERT's original code and ModernBERT's truncate the
    normal at two standard deviations; this follows the PyTorch releases of BERT, which do not.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding | nn.Conv1d):
            own = std * getattr(part, _SHARE, 1.0)
            nn.init.normal_(part.weight, 0.0, own, generator=generator)
        if isinstance(part, nn.Linear | nn.Conv1d) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm | nn.RMSNorm):
            nn.init.ones_(part.weight)
            if isinstance(part, nn.LayerNorm) and part.bias is not None:
                nn.init.zeros_(part.bias)
        for name, parameter in part.named_parameters(recurse=False):
            if name in ("query_start", "segment_vectors", *_BIASES):
                nn.init.normal_(parameter, 0.0, std, generator=generator)
    for part in module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            with torch.no_grad():
                part.weight[part.padding_idx].zero_()
