"""Score terms: the named summands that a family adds to the content score.

Two halves belong together. The *table* lives in the encoder and works once per forward pass, on
what depends on lengths only; the *terms* live in every block, are called with the split queries and
keys, and return the queries of the content score (a family may fold a bias into them) and the
named terms, already scaled.
"""

from typing import Protocol

from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Attention as AttentionConfig
from core_models.config import Config, Disentangled, Plain
from core_models.terms.disentangled import DisentangledTable, DisentangledTerms
from core_models.terms.distances import Prepared
from core_models.terms.plain import PlainTerms
from core_models.terms.transformer_xl import TransformerXLTable, TransformerXLTerms

__all__ = ["Prepared", "Table", "Terms", "build_table", "build_terms"]


class Terms(Protocol):
    """The half inside a block."""

    scale: float

    def __call__(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, query: nn.Linear, key: nn.Linear
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Queries of the content score [B, H, Q, d] and terms broadcastable to [B, H, Q, K]."""
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
