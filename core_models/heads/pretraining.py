"""Heads by name: pretraining heads, and those of fine-tuning from :mod:`core_models.heads.task`.

They are called on the encoder's output, outside the encoder.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core_models.config import Config
from core_models.config.task import TASKS
from core_models.errors import InputError
from core_models.heads.relative import PermutationHead, TokenAndFirstHead
from core_models.heads.task import build_task_head
from core_models.network.embeddings import Embeddings
from core_models.network.layer import FUNCTIONS
from core_models.network.norms import build_norm


class Pooler(nn.Module):
    """``tanh(W h[CLS] + b)`` (arXiv 1810.04805, released code)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> [B, D]."""
        return torch.tanh(self.dense(hidden[:, 0]))


class _Transform(nn.Module):
    """Dense layer to width E, activation and norm: what comes before the scores of pieces."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.embeddings.width
        self.dense = nn.Linear(config.width, width, bias=config.head_bias)
        self.activation = FUNCTIONS[config.head_activation or config.feed_forward.activation]
        self.norm = build_norm(config, width)

    def transform(self, hidden: Tensor) -> Tensor:
        """[..., D] -> [..., E]."""
        transformed: Tensor = self.norm(self.activation(self.dense(hidden)))
        return transformed


class MaskedTokenHead(_Transform):
    """Vocabulary scores: dense to width E, activation, norm, tied decoder and a bias.

    The decoder's weight *is* the piece table (arXiv 1810.04805, released code).
    """

    def __init__(self, config: Config, embeddings: Embeddings) -> None:
        super().__init__(config)
        width, vocabulary = config.embeddings.width, config.embeddings.vocabulary
        self.decoder = nn.Linear(width, vocabulary, bias=config.score_bias)
        self.tie(embeddings)

    def tie(self, embeddings: Embeddings) -> None:
        """Share the decoder's weight with the piece table."""
        self.decoder.weight = embeddings.pieces.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]; give it selected positions [N, D] where few are needed."""
        logits: Tensor = self.decoder(self.transform(hidden))
        return logits


class UntiedTokenHead(_Transform):
    """The same with a matrix of its own in place of the piece table."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        width, vocabulary = config.embeddings.width, config.embeddings.vocabulary
        self.scores = nn.Linear(width, vocabulary, bias=config.score_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]."""
        logits: Tensor = self.scores(self.transform(hidden))
        return logits


class LinearTokenHead(nn.Module):
    """Vocabulary scores by one layer of its own, which shares nothing with the piece table."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.scores = nn.Linear(config.width, config.embeddings.vocabulary, bias=config.score_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [..., V]."""
        logits: Tensor = self.scores(hidden)
        return logits


class SpanBoundaryHead(MaskedTokenHead):
    """Pieces of a span from the two tokens around it (arXiv 1907.10529, section 3.2).

    One more dense layer, activation and norm lead from both boundary tokens and a place embedding
    to the width D; what follows is a masked-token head of its own. In the released code places are
    counted from 0 where the paper writes p_1, and spans take part up to :attr:`places` tokens.
    """

    places = 15
    place_width = 200

    def __init__(self, config: Config, embeddings: Embeddings) -> None:
        super().__init__(config, embeddings)
        self.place = nn.Embedding(self.places, self.place_width)
        self.boundary_dense = nn.Linear(2 * config.width + self.place_width, config.width)
        self.boundary_norm = build_norm(config, config.width)

    def boundaries(self, hidden: Tensor, spans: Tensor) -> Tensor:
        """What the head starts from, for each token of each span.

        Args:
            hidden: the encoder's output [B, L, D].
            spans: int64 [N, 4], per target: row of the batch, position of the token before the
                span, position of the token after it, place inside the span from 0.

        Returns:
            [N, 2 D + 200].
        """
        row, before, after, place = spans.unbind(1)
        return torch.cat([hidden[row, before], hidden[row, after], self.place(place)], -1)

    def forward(self, hidden: Tensor) -> Tensor:
        """:meth:`boundaries` [N, 2 D + 200] -> logits [N, V]."""
        return super().forward(self.boundary_norm(self.activation(self.boundary_dense(hidden))))


class PairHead(nn.Module):
    """Two-way answer about a pair of segments, from the pooled [CLS].

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


class NextSentenceHead(PairHead):
    """Whether the second segment follows the first: 0 = next, 1 = random."""


class SentenceOrderHead(PairHead):
    """Whether two neighbours stand in their order: 0 = in order, 1 = swapped.

    (arXiv 1909.11942, section 3.1; like the released code without the dropout that transformers
    puts before the classifier.)
    """


class ReplacedTokenHead(nn.Module):
    """Whether each token was replaced: dense, activation, one score (arXiv 2003.10555)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.activation = FUNCTIONS[config.feed_forward.activation]
        self.classifier = nn.Linear(config.width, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        """[..., D] -> logits [...]; above 0 = replaced."""
        logits: Tensor = self.classifier(self.activation(self.dense(hidden)))
        return logits.squeeze(-1)


_MASKED_TOKEN: dict[str, Callable[[Config, Embeddings], nn.Module]] = {
    "tied": MaskedTokenHead,
    "untied": lambda config, _: UntiedTokenHead(config),
    "linear": lambda config, _: LinearTokenHead(config),
}


def _masked_token(config: Config, embeddings: Embeddings) -> nn.Module:
    return _MASKED_TOKEN[config.masked_token_style](config, embeddings)


_REPLACED_TOKEN: dict[str, Callable[[Config], nn.Module]] = {
    "token": ReplacedTokenHead,
    "token_and_first": TokenAndFirstHead,
}

HEADS: dict[str, Callable[[Config, Embeddings], nn.Module]] = {
    "masked_token": _masked_token,
    "causal": _masked_token,
    "next_sentence": lambda config, _: NextSentenceHead(config),
    "sentence_order": lambda config, _: SentenceOrderHead(config),
    "replaced_token": lambda config, _: _REPLACED_TOKEN[config.replaced_token_style](config),
    "span_boundary": SpanBoundaryHead,
    "permutation": lambda config, embeddings: (
        PermutationHead(config, embeddings)
        if config.masked_token_style == "tied"
        else LinearTokenHead(config)
    ),
}
"""Constructors by head name."""


def build_head(name: str, config: Config, embeddings: Embeddings) -> nn.Module:
    """The head of a name; InputError lists the known ones."""
    if name in TASKS:
        return build_task_head(name, config)
    try:
        constructor = HEADS[name]
    except KeyError:
        known = ", ".join([*HEADS, *TASKS])
        raise InputError(f"No head {name!r}; known are {known}.") from None
    return constructor(config, embeddings)
