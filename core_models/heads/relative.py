"""Pretraining heads of the families with relative positions."""

from torch import Tensor, nn

from core_models.config import Config
from core_models.network.embeddings import Embeddings
from core_models.network.layer import FUNCTIONS
from core_models.network.norms import build_norm


class PermutationHead(nn.Module):
    """Vocabulary scores straight from the hidden state: tied decoder and a bias.

    XLNet's head (arXiv 1906.08237, released code): no dense layer, no norm. Pretraining applies it
    to the query stream; without one it reads the content stream.
    """

    def __init__(self, config: Config, embeddings: Embeddings) -> None:
        super().__init__()
        self.decoder = nn.Linear(config.width, config.embeddings.vocabulary)
        self.tie(embeddings)

    def tie(self, embeddings: Embeddings) -> None:
        """Share the decoder's weight with the piece table."""
        self.decoder.weight = embeddings.pieces.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]."""
        logits: Tensor = self.decoder(hidden)
        return logits


class TokenAndFirstHead(nn.Module):
    """Whether each token was replaced, seen beside the first token.

    DeBERTa v3's head (arXiv 2111.09543, released code): norm of the sum of the token and [CLS],
    dense, activation, one score. ELECTRA's has neither sum nor norm.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm = build_norm(config, config.width)
        self.dense = nn.Linear(config.width, config.width)
        self.activation = FUNCTIONS[config.feed_forward.activation]
        self.classifier = nn.Linear(config.width, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> logits [B, L]; above 0 = replaced."""
        x = self.norm(hidden[:, :1] + hidden)
        logits: Tensor = self.classifier(self.activation(self.dense(x)))
        return logits.squeeze(-1)
