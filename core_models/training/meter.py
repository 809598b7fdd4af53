"""Sums of the metrics since the last report, kept where the model is."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from core_models.objectives import Losses

Sums = dict[str, list[float]]
HELD_OUT = "validation_"
"""Prefix of figures on held-out documents."""


class Meter:
    """Adds up (sum, count) pairs without moving them off the device."""

    def __init__(self, device: torch.device, sums: Mapping[str, list[float]] | None = None) -> None:
        """Begin at zero, or go on from sums that were saved."""
        self._device = device
        # Metal has no double precision.
        self._dtype = torch.float32 if device.type == "mps" else torch.float64
        self._sums = {name: self._pair(values) for name, values in (sums or {}).items()}

    def _pair(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=self._dtype, device=self._device)

    def of(self, losses: Losses) -> dict[str, Tensor]:
        """The metrics of one pass as pairs [2]."""
        return {
            name: torch.stack([value.to(self._dtype) for value in pair])
            for name, pair in losses.metrics.items()
        }

    def add(self, pairs: Mapping[str, Tensor]) -> None:
        """Add pairs [2] to the sums."""
        self._sums = add(self._sums, pairs)

    def sums(self) -> Sums:
        """The sums on the host; waits for the device."""
        if not self._sums:
            return {}
        table = torch.stack(list(self._sums.values())).tolist()
        return dict(zip(self._sums, table, strict=True))


def add(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Pairs of two passes added up."""
    both = {name: first[name] + pair if name in first else pair for name, pair in second.items()}
    return {**first, **both}


def means(sums: Sums, weights: Mapping[str, float]) -> dict[str, float]:
    """Mean of each metric that has a count, and the weighted total as ``loss``."""
    found = {name: total / count for name, (total, count) in sums.items() if count}
    total = sum(weight * found.get(f"{name}_loss", 0.0) for name, weight in weights.items())
    return {"loss": total} | found


def line(record: Mapping[str, Any], steps: int) -> str:
    """A report for people, with whatever accuracies it has."""
    words = [f"step {record['step']}/{steps}", f"loss {record['loss']:.3f}"]
    words += _accuracies({k: v for k, v in record.items() if not k.startswith(HELD_OUT)})
    held_out = {k[len(HELD_OUT) :]: v for k, v in record.items() if k.startswith(HELD_OUT)}
    if held_out:
        if "loss" in held_out:
            words.append(f"held-out loss {held_out['loss']:.3f}")
        words += [f"held-out {word}" for word in _accuracies(held_out)]
    return ", ".join([*words, f"{record['tokens_per_second']:.0f} tokens/s"])


def _accuracies(record: Mapping[str, Any]) -> list[str]:
    return [
        f"{name.removesuffix('_accuracy').replace('_', ' ')} {value:.1%} right"
        for name, value in record.items()
        if name.endswith("_accuracy")
    ]


def finite(values: Any) -> Any:
    """Plain values as JSON can hold them: infinity and "not a number" become null."""
    if isinstance(values, dict):
        return {name: finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
