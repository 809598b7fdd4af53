"""What the doctor looks at, and what it says. No Gradio, no PyTorch in it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["problem", "hint", "good"]
Record = Mapping[str, Any]

_PIECES = ("masked_token", "masked_diffusion", "masked_next_token", "permutation", "causal")
"""Objectives that ask for a piece of the vocabulary."""
OVER_PIECES = tuple(f"{name}_loss" for name in _PIECES)
"""Their losses, which the entropy of the pieces' frequencies can be compared with."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing seen in a run."""

    kind: str
    level: Level
    title: str
    text: str
    cure: str = ""

    def to_json(self) -> dict[str, str]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is known of a run."""

    records: Sequence[Record]
    """Reports with rising steps, as in metrics.jsonl."""
    status: Mapping[str, Any]
    """``status.json``: state, reason, baselines, data facts."""
    config: Mapping[str, Any]
    """``config.json``."""
    repeated: float = 0.0
    """Share of the lines of the visitor's texts that were there before."""

    @property
    def steps(self) -> int:
        """Updates in the whole run."""
        return int(self.config.get("steps") or self.status.get("steps") or 0)

    def part(self, name: str) -> Mapping[str, Any]:
        """An object of the config, {} where it is left out."""
        value = self.config.get(name)
        return value if isinstance(value, Mapping) else {}

    def series(self, name: str) -> list[tuple[int, float]]:
        """Step and value of every report that has this figure as a number."""
        found = []
        for record in self.records:
            value = record.get(name)
            if isinstance(value, int | float) and math.isfinite(value):
                found.append((int(record["step"]), float(value)))
        return found

    @property
    def pieces(self) -> str | None:
        """The objective whose loss is one over pieces, comparable with the frequencies' entropy."""
        losses = self.status.get("losses") or {}
        for name in _PIECES:
            if name in losses or any(f"{name}_loss" in record for record in self.records):
                return name
        return None

    @property
    def detects(self) -> bool:
        """Whether pieces are told that a generator put there."""
        return any("replaced_token_loss" in record for record in self.records)

    @property
    def hiding(self) -> str | None:
        """How pieces are hidden, as ``masking.kind`` names it."""
        return (self.status.get("masking") or {}).get("kind")

    def baseline(self, name: str) -> float | None:
        """``uniform`` or ``unigram_entropy`` in nats."""
        value = (self.status.get("baselines") or {}).get(name)
        return float(value) if isinstance(value, int | float) else None
