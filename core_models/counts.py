"""Exact parameter counts, taken from the built module on the meta device."""

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from core_models.config import Config
from core_models.encoder import Encoder
from core_models.heads import build_head


@dataclass(frozen=True)
class Count:
    """Parameters by part; a tensor shared by several uses is counted once."""

    pieces: int
    positions: int
    segments: int
    embedding_norm: int
    projection: int
    attention: int
    feed_forward: int
    norms: int
    pooler: int
    heads: dict[str, int] = field(default_factory=dict)
    """Each pretraining head without pooler and without the tied table."""
    one_block: int = 0
    """Parameters of the first block."""

    @property
    def embedding_block(self) -> int:
        """Tables and their norm; the projection is not part of it."""
        return self.pieces + self.positions + self.segments + self.embedding_norm

    @property
    def encoder(self) -> int:
        """Everything but pooler and heads."""
        blocks = self.attention + self.feed_forward + self.norms
        return self.embedding_block + self.projection + blocks

    @property
    def base(self) -> int:
        """The encoder with its pooler, where the family trains one."""
        return self.encoder + self.pooler

    @property
    def masked(self) -> int:
        """The encoder with its masked-token head, without the pooler."""
        return self.encoder + self.heads.get("masked_token", 0)

    @property
    def pretraining(self) -> int:
        """The encoder with every pretraining head."""
        return self.base + sum(self.heads.values())

    def to_json(self) -> dict[str, Any]:
        """Parts, sums and bytes as plain values."""
        sums = ("embedding_block", "encoder", "base", "masked", "pretraining")
        return (
            asdict(self)
            | {name: getattr(self, name) for name in sums}
            | {"bytes_float32": 4 * self.pretraining, "bytes_bfloat16": 2 * self.pretraining}
        )


def count(config: Config) -> Count:
    """Count a model of this config without allocating it."""
    with torch.device("meta"):
        encoder = Encoder(config)
        heads = {name: build_head(name, config, encoder.embeddings) for name in config.objectives}
    e = encoder.embeddings
    blocks = list(encoder.blocks)
    sizes = {name: _size(head) for name, head in heads.items()}
    poolers = {
        name: _size(head.get_submodule("pooler"))
        for name, head in heads.items()
        if hasattr(head, "pooler")
    }
    tied = {name: e.pieces.weight.numel() for name, head in heads.items() if _ties(head, e.pieces)}
    return Count(
        pieces=_size(e.pieces),
        positions=_size(e.positions),
        segments=_size(e.segments),
        embedding_norm=_size(e.norm),
        projection=_size(e.projection),
        attention=sum(_size(b.get_submodule("attention")) for b in blocks),
        feed_forward=sum(_size(b.get_submodule("feed_forward")) for b in blocks),
        norms=sum(
            _size(b.get_submodule(norm))
            for b in blocks
            for norm in ("attention_norm", "feed_forward_norm")
        ),
        pooler=max(poolers.values(), default=0),
        heads={name: n - poolers.get(name, 0) - tied.get(name, 0) for name, n in sizes.items()},
        one_block=_size(blocks[0]),
    )


def _size(module: nn.Module | None) -> int:
    return 0 if module is None else sum(p.numel() for p in module.parameters())


def _ties(head: nn.Module, pieces: nn.Embedding) -> bool:
    return any(p is pieces.weight for p in head.parameters())
