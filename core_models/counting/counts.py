"""Exact parameter counts, taken from the built module on the meta device."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import nn

from core_models.checkpoints.formats import BY_FAMILY
from core_models.config import Config
from core_models.counting.flops import Flops, flops
from core_models.errors import InputError
from core_models.heads.pretraining import build_head
from core_models.network.encoder import Encoder
from core_models.network.initialise import without_values


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
    """Of every block, and the one after the last step where norms come before."""
    pooler: int
    heads: dict[str, int] = field(default_factory=dict)
    """Each pretraining head without pooler and without the tied table."""
    one_block: int = 0
    """Parameters of the first block."""
    query_start: int = 0
    """The vector that the query stream starts from (XLNet)."""
    relative: int = 0
    """The relative-position table and its norm, shared by all blocks (DeBERTa)."""
    terms: int = 0
    """Of the attention: what relative terms have in every block (XLNet, DeBERTa v1)."""
    convolution: int = 0
    """The part beside the first block."""
    mask_decoder: int = 0
    """Absolute positions of the mask decoder; published figures leave them out, and so do the
    sums below, but for ``trained``."""
    gap_head: int = 0
    """The head that fills gaps, without the tied table; XLNet's stands for its query stream."""
    untrained_pooler: int = 0
    """A pooler that the released classes carry although no objective trains it (RoBERTa)."""
    config: Config | None = field(default=None, repr=False, compare=False)
    """What was counted."""
    name: str = field(default="", repr=False, compare=False)
    """What it was counted by."""

    def flops(self, length: int) -> Flops:
        """Floating-point operations of one sequence of ``length`` tokens.

        Raises:
            InputError: the model does not take as many tokens.
        """
        assert self.config is not None
        return flops(self.config, length, self.name)

    @property
    def embedding_block(self) -> int:
        """Tables, their norm and the start of the query stream, without the projection."""
        tables = self.pieces + self.positions + self.segments
        return tables + self.embedding_norm + self.query_start

    @property
    def encoder(self) -> int:
        """Everything but pooler, mask decoder and heads."""
        return self.embedding_block + self.projection + self.all_blocks

    @property
    def all_blocks(self) -> int:
        """Every block, and what stands beside the blocks."""
        blocks = self.attention + self.feed_forward + self.norms
        return blocks + self.relative + self.convolution

    @property
    def base(self) -> int:
        """The encoder with its pooler, trained or not, where the released classes have one."""
        return self.encoder + self.pooler + self.untrained_pooler

    @property
    def masked(self) -> int:
        """The encoder with the head that fills gaps, trained or not, without the pooler."""
        return self.encoder + self.gap_head

    @property
    def pretraining(self) -> int:
        """The encoder with every pretraining head, and the poolers that they train."""
        return self.encoder + self.pooler + sum(self.heads.values())

    @property
    def trained(self) -> int:
        """All that a pretraining holds and moves: as above, with the mask decoder's positions."""
        return self.pretraining + self.mask_decoder

    def to_json(self) -> dict[str, Any]:
        """Parts, sums and bytes as plain values."""
        sums = ("embedding_block", "all_blocks", "encoder", "base", "masked", "pretraining")
        told = ("config", "name")
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in told}
        return (
            parts
            | {name: getattr(self, name) for name in sums}
            | {"bytes_float32": 4 * self.pretraining, "bytes_bfloat16": 2 * self.pretraining}
        )


@dataclass(frozen=True)
class JointCount:
    """Generator and discriminator as they are trained together (arXiv 2003.10555, section 3.2)."""

    generator: Count
    discriminator: Count

    @property
    def shared(self) -> int:
        """The embedding block, which both use; projections stay apart."""
        return self.discriminator.embedding_block

    @property
    def untied(self) -> int:
        """Both models with their heads, nothing shared."""
        return self.generator.pretraining + self.discriminator.pretraining

    @property
    def total(self) -> int:
        """Both models with their heads, the embedding block once."""
        return self.untied - self.shared

    @property
    def without_heads(self) -> int:
        """Both encoders, the embedding block once."""
        return self.generator.encoder + self.discriminator.encoder - self.shared

    def to_json(self) -> dict[str, Any]:
        """Both counts and the sums as plain values."""
        sums = ("shared", "total", "untied", "without_heads")
        return {
            "generator": self.generator.to_json(),
            "discriminator": self.discriminator.to_json(),
        } | {name: getattr(self, name) for name in sums}


def joint(generator: Config, discriminator: Config) -> JointCount:
    """Count a generator and a discriminator that share the embedding block.

    Raises:
        InputError: their tables differ, so they cannot be shared.
    """
    if generator.embeddings != discriminator.embeddings:
        raise InputError(
            "Generator and discriminator must have the same tables to share them, not "
            f"{generator.embeddings} and {discriminator.embeddings}."
        )
    return JointCount(count(generator), count(discriminator))


def count(config: Config) -> Count:
    """Count a model of this config without allocating it."""
    # Blocks after the second are like it (Layer): with them, counting takes three times as long.
    few = replace(config, schedule=tuple(block for block in config.schedule if block < 2))
    with without_values():
        encoder = Encoder(few)
        heads = {name: build_head(name, config, encoder.embeddings) for name in config.objectives}
        gaps = "permutation" if config.query_stream else "masked_token"
        gap_head = build_head(gaps, config, encoder.embeddings)
    e = encoder.embeddings
    blocks = list(encoder.blocks)
    blocks += blocks[-1:] * (config.blocks - len(blocks))
    sizes = {name: _size(head) for name, head in heads.items()}
    poolers = {
        name: _size(head.get_submodule("pooler"))
        for name, head in heads.items()
        if hasattr(head, "pooler")
    }
    tied = {name: e.pieces.weight.numel() for name, head in heads.items() if _ties(head, e.pieces)}
    pooler = sum(poolers.values())  # every head that reads pairs has its own
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
        )
        + _size(encoder.final_norm),
        pooler=pooler,
        heads={name: n - poolers.get(name, 0) - tied.get(name, 0) for name, n in sizes.items()},
        one_block=_size(blocks[0]),
        query_start=0 if encoder.query_start is None else encoder.query_start.numel(),
        relative=_size(encoder.table if isinstance(encoder.table, nn.Module) else None),
        terms=sum(_size(b.get_submodule("attention.terms")) for b in blocks),
        convolution=_size(encoder.convolution),
        mask_decoder=_size(encoder.mask_decoder),
        gap_head=_size(gap_head) - (e.pieces.weight.numel() if _ties(gap_head, e.pieces) else 0),
        untrained_pooler=0 if pooler else _idle_pooler(config),
        config=config,
    )


def _idle_pooler(config: Config) -> int:
    """Size of the pooler that the family's file format knows, whether or not a file holds it."""
    form = BY_FAMILY.get(config.family)
    if form is None:
        return 0
    known = [row.theirs for row in form.rows] + [entry.theirs for entry in form.ignored]
    has_pooler = any(name.startswith(form.prefix + "pooler.") for name in known)
    return config.width * config.width + config.width if has_pooler else 0


def _size(module: nn.Module | None) -> int:
    return 0 if module is None else sum(p.numel() for p in module.parameters())


def _ties(head: nn.Module, pieces: nn.Embedding) -> bool:
    return any(p is pieces.weight for p in head.parameters())
