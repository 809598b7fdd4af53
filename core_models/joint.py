"""A generator beside its discriminator (arXiv 2003.10555, section 3; 2111.09543, section 3).

The generator fills masked tokens; the discriminator, which is the model that is kept, says of every
token whether it was replaced. How they share the embedding block:

    tied                     one block for both: tables and their norm; projections stay apart
                             (ELECTRA)
    gradient_disentangled    the discriminator's tables are E_G + E_delta, with no gradient to E_G;
                             E_delta starts as the difference of both tables, which is zero for
                             a generator from :func:`new_generator` (DeBERTa v3)
    none                     nothing
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.config import Config, Disentangled
from core_models.errors import InputError
from core_models.families.deberta_v2 import BUCKETED
from core_models.model import Model

SHARINGS = ("tied", "gradient_disentangled", "none")
_TABLES = ("pieces", "positions", "segments")


def generator_config(
    discriminator: Config,
    *,
    layers: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    inner: int | None = None,
) -> Config:
    """The generator that belongs to a discriminator, with any of its sizes given instead.

    With disentangled attention it is as wide and half as deep, with a mask decoder (DeBERTa v3).
    Else it is as deep and a quarter as wide, a third at width 768, with heads of about 64 and an
    inner width of four times the width (released code of ELECTRA). The tables are the
    discriminator's either way.

    Raises:
        InputError: a size is out of range, or the width is not a multiple of the heads.
    """
    relative = isinstance(discriminator.attention.terms, Disentangled)
    steps = layers or (max(1, discriminator.steps // 2) if relative else discriminator.steps)
    ratio = 1.0 if relative else 1 / 3 if discriminator.width == 768 else 1 / 4
    wide = width or max(1, int(ratio * discriminator.width + 1e-9))
    parts = discriminator.attention
    many = heads or (parts.heads if wide == discriminator.width else _heads(wide))
    if wide % many:
        raise InputError(f"The generator's width {wide} is not a multiple of its {many} heads.")
    shared = discriminator.blocks == 1
    return replace(
        discriminator,
        width=wide,
        attention=parts.with_heads(many, wide // many),
        feed_forward=replace(
            discriminator.feed_forward,
            width=inner or (discriminator.feed_forward.width if relative else 4 * wide),
        ),
        schedule=(0,) * steps if shared else tuple(range(steps)),
        objectives=("masked_token",),
        mask_decoder=BUCKETED.mask_decoder if relative else None,
    )


def _heads(width: int) -> int:
    """The most heads of at least 64 that divide a width."""
    return next(n for n in range(max(1, width // 64), 0, -1) if width % n == 0)


def new_generator(
    model: Model, config: Config | None = None, *, generator: torch.Generator | None = None
) -> Model:
    """A fresh generator for a discriminator, with a copy of its embedding block.

    Args:
        model: the discriminator; gives tokenizer and tables.
        config: of the generator; None = by the published rule, :func:`generator_config`.
        generator: of the random numbers for the weights.

    Raises:
        InputError: the tables of both configs differ.
    """
    config = config or generator_config(model.config)
    _check_tables(config, model.config)
    made = type(model).new(config, model.tokenizer, heads=("masked_token",), generator=generator)
    ours, theirs = made.encoder.embeddings, model.encoder.embeddings
    for name in (*_TABLES, "norm"):
        part = getattr(ours, name)
        if part is not None:
            part.load_state_dict(getattr(theirs, name).state_dict())
    return made


def share(generator: Model, discriminator: Model, sharing: str) -> "dict[str, OffsetTable]":
    """Let two models share their embedding block, in place.

    Returns:
        The discriminator's tables by name where they are ``gradient_disentangled``, else {}.

    Raises:
        InputError: no such sharing, the tables do not fit, or another head of the discriminator is
            tied to a table that would be replaced.
    """
    if sharing not in SHARINGS:
        raise InputError(f"sharing is {sharing!r}; allowed are {', '.join(SHARINGS)}.")
    if sharing == "none":
        if generator.config.embeddings.vocabulary != discriminator.config.embeddings.vocabulary:
            raise InputError("Generator and discriminator must have the same vocabulary.")
        return {}
    _check_tables(generator.config, discriminator.config)
    ours, theirs = generator.encoder.embeddings, discriminator.encoder.embeddings
    if sharing == "tied":
        for name in (*_TABLES, "norm"):
            setattr(ours, name, getattr(theirs, name))
        for head in generator.heads.values():
            if hasattr(head, "tie"):
                head.tie(ours)  # type: ignore[operator]
        return {}
    tied = [name for name, head in discriminator.heads.items() if hasattr(head, "tie")]
    if tied:
        raise InputError(
            "gradient_disentangled sharing replaces the discriminator's piece table, to which its "
            f"head {tied[0]!r} is tied; leave that head out or take another sharing."
        )
    tables = {
        name: OffsetTable(getattr(ours, name), getattr(theirs, name))
        for name in _TABLES
        if getattr(ours, name) is not None
    }
    for name, table in tables.items():
        setattr(theirs, name, table)
    return tables


def _check_tables(generator: Config, discriminator: Config) -> None:
    if generator.embeddings != discriminator.embeddings:
        raise InputError(
            "Generator and discriminator must have the same tables to share them, not "
            f"{generator.embeddings} and {discriminator.embeddings}."
        )


class OffsetTable(nn.Module):
    """A table that stands on another one without moving it: ``stop_gradient(base) + delta``.

    Takes the place of an ``nn.Embedding``. Its state holds the sum as ``weight``, so that a saved
    model needs no other; a deep copy is a plain table of the sum, which moves with nothing.
    """

    def __init__(self, base: nn.Embedding, table: nn.Embedding) -> None:
        """Stand on ``base`` [V, E], with the values of ``table`` [V, E]."""
        super().__init__()
        self._base = (base,)  # in a tuple, as it belongs to the other model
        self.num_embeddings, self.embedding_dim = base.num_embeddings, base.embedding_dim
        self.padding_idx = base.padding_idx
        self.delta = nn.Parameter(table.weight.detach() - base.weight.detach())

    @property
    def weight(self) -> Tensor:
        """The sum [V, E]; its gradient reaches ``delta`` only."""
        return self._base[0].weight.detach() + self.delta

    def forward(self, ids: Tensor) -> Tensor:
        """Rows [..., E] of ids [...]."""
        base = functional.embedding(ids, self._base[0].weight.detach())
        return base + functional.embedding(ids, self.delta, self.padding_idx)

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Embedding:
        """A table of its own with the same rows."""
        weight = self.weight.detach().clone()
        copied = nn.Embedding(
            self.num_embeddings,
            self.embedding_dim,
            padding_idx=self.padding_idx,
            _weight=weight,
        )
        memo[id(self)] = copied.train(self.training)
        return copied

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        destination[f"{prefix}weight"] = self.weight if keep_vars else self.weight.detach()

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Take a table so that the sum becomes it; the base must have its values by then."""
        missing: list[str] = args[2]
        if f"{prefix}weight" not in state_dict:
            missing.append(f"{prefix}weight")
            return
        with torch.no_grad():
            self.delta.copy_(state_dict[f"{prefix}weight"] - self._base[0].weight)
