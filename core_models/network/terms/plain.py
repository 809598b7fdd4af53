"""BERT's attention: the content score alone."""

from torch import Tensor, nn

from core_models.config import Attention
from core_models.network.terms.distances import Prepared


class PlainTerms(nn.Module):
    """No terms; scale ``1 / sqrt(d)`` (arXiv 1706.03762, section 3.2.1)."""

    names: tuple[str, ...] = ()

    def __init__(self, config: Attention) -> None:
        super().__init__()
        self.scale = config.head_width**-0.5

    def project(self, prepared: Prepared | None, query: nn.Module, key: nn.Module) -> None:
        """There is nothing relative."""

    def forward(
        self, q: Tensor, k: Tensor, prepared: Prepared | None, relative: Tensor | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The queries unchanged and no terms."""
        return q, {}

    def bias(
        self,
        q: Tensor,
        k: Tensor,
        prepared: Prepared | None,
        relative: Tensor | None,
        visible: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The queries and the visibility unchanged."""
        return q, visible
