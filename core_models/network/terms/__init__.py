"""Score terms: the named summands that a family adds to the content score.

Two halves belong together. The *table* lives in the encoder and works once per forward pass, on
what depends on lengths only; the *terms* live in every block, are called with the split queries and
keys, and return the queries of the content score (a family may fold a bias into them) and the
named terms, already scaled. Fused attention asks for their sum alone, which takes less memory.
"""

from typing import Protocol

from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention as AttentionConfig
from core_models.config import Config, Disentangled, Plain
from core_models.network.terms.disentangled import DisentangledTable, DisentangledTerms
from core_models.network.terms.distances import Prepared
from core_models.network.terms.plain import PlainTerms
from core_models.network.terms.transformer_xl import TransformerXLTable, TransformerXLTerms

__all__ = ["Prepared", "Table", "Terms", "build_table", "build_terms"]


class Terms(Protocol):
    """The half inside a block."""

    scale: float
    names: tuple[str, ...]
    """Names of the terms; which of them there are may depend on the batch."""

    def project(self, prepared: Prepared | None, query: nn.Module, key: nn.Module) -> Tensor | None:
        """What the block makes of the relative rows, from which every pass over them starts.

        Args:
            prepared: what the table prepared.
            query: the block's own projection of queries, which a family may share.
            key: the block's own projection of keys.
        """
        ...

    def __call__(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, relative: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Queries of the content score [B, H, Q, d] and terms broadcastable to [B, H, Q, K]."""
        ...

    def bias(
        self,
        q: Tensor,
        k: Tensor,
        prepared: Prepared | None,
        relative: Tensor | None,
        visible: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The same queries, and the terms' sum where ``visible``, else -inf; None = nothing.

        Up to a summand per query, which no softmax sees. The memory belongs to the pass: the next
        block writes there.
        """
        ...


class Table(Protocol):
    """The half in the encoder."""

    def __call__(self, batch: Batch, memory: int) -> Prepared:
        """Prepare a pass over [B, L] after ``memory`` remembered tokens."""
        ...


def build_terms(width: int, config: AttentionConfig) -> Terms:
    """The terms part that a config asks for."""
    if isinstance(config.terms, Plain):
        return PlainTerms(config)
    if isinstance(config.terms, Disentangled):
        return DisentangledTerms(width, config, config.terms)
    return TransformerXLTerms(width, config, config.terms)


def build_table(config: Config) -> Table | None:
    """The table part that a config asks for."""
    terms = config.attention.terms
    if isinstance(terms, Plain):
        return None
    if isinstance(terms, Disentangled):
        return DisentangledTable(config, terms)
    return TransformerXLTable(config, terms)
