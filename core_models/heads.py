"""Pretraining heads; called on the encoder's output, outside the encoder."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core_models.config import Config
from core_models.embeddings import Embeddings
from core_models.errors import InputError
from core_models.layer import FUNCTIONS


class Pooler(nn.Module):
    """``tanh(W h[CLS] + b)`` (arXiv 1810.04805, released code)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> [B, D]."""
        return torch.tanh(self.dense(hidden[:, 0]))


class MaskedTokenHead(nn.Module):
    """Vocabulary scores: dense to width E, activation, norm, tied decoder and a bias.

    The decoder's weight *is* the piece table (arXiv 1810.04805, released code).
    """

    def __init__(self, config: Config, embeddings: Embeddings) -> None:
        super().__init__()
        width = config.embeddings.width
        self.dense = nn.Linear(config.width, width)
        self.activation = FUNCTIONS[config.feed_forward.activation]
        self.norm = nn.LayerNorm(width, eps=config.norm_epsilon)
        self.decoder = nn.Linear(width, config.embeddings.vocabulary)
        self.tie(embeddings)

    def tie(self, embeddings: Embeddings) -> None:
        """Share the decoder's weight with the piece table."""
        self.decoder.weight = embeddings.pieces.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]; give it selected positions [N, D] where few are needed."""
        logits: Tensor = self.decoder(self.norm(self.activation(self.dense(hidden))))
        return logits


class NextSentenceHead(nn.Module):
    """Whether the second segment follows the first: 0 = next, 1 = random.

    Owns the pooler, as only this objective trains it.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.pooler = Pooler(config.width)
        self.classifier = nn.Linear(config.width, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> logits [B, 2]."""
        logits: Tensor = self.classifier(self.pooler(hidden))
        return logits


HEADS: dict[str, Callable[[Config, Embeddings], nn.Module]] = {
    "masked_token": MaskedTokenHead,
    "next_sentence": lambda config, _: NextSentenceHead(config),
}
"""Constructors by head name."""


def build_head(name: str, config: Config, embeddings: Embeddings) -> nn.Module:
    """The head of a name; InputError lists the known ones."""
    try:
        constructor = HEADS[name]
    except KeyError:
        raise InputError(f"No head {name!r}; known are {', '.join(HEADS)}.") from None
    return constructor(config, embeddings)
