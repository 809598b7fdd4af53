"""Fine-tuning heads; each is described by the config's :class:`~core_models.config.task.Task`.

Families differ in three values of the head over a whole text: which token stands for it, the
activation of the dense layer, and whether dropout also precedes that layer. Tags and answers are
read from every token by one linear layer; ModernBERT reads all three as it reads masked tokens.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core_models.batch import Batch
from core_models.config import Config
from core_models.config.task import Task
from core_models.errors import InputError
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.layer import FUNCTIONS
from core_models.network.norms import build_norm
from core_models.network.trace import Trace


class TaskHead(nn.Module):
    """What all fine-tuning heads share: their task, and one way to ask them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.task is None:
            raise InputError("A fine-tuning head needs config.task; Model.with_head sets it.")
        self.task: Task = config.task
        self.dropout = nn.Dropout(
            config.dropout if config.task.dropout is None else config.task.dropout
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the answers by number; empty where answers have no names."""
        return self.task.labels

    def answer(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """What the head says about a batch.

        Args:
            encoder: of the same model.
            batch: inputs [B, L].
            trace: listens to the pass, where one is made.
            output: what the encoder gave for the batch, where it is known already.
        """
        if output is None:
            output = encoder(batch, trace, places=self.places(batch) if trace is None else None)
        answer: Tensor = self(output.hidden)
        return answer

    def places(self, batch: Batch) -> Tensor | None:
        """Positions [B, M] of which it reads the hidden state; None = all."""
        return None


class ReadingHead(TaskHead):
    """A head that may begin with a dense layer, its activation and a norm."""

    def __init__(self, config: Config, *, always: bool = False) -> None:
        super().__init__(config)
        alike = self.task.as_masked_token
        self.reads = always or alike
        """Whether it begins so."""
        if self.reads:
            self.dense = nn.Linear(config.width, config.width, bias=config.head_bias or not alike)
            self.activation = FUNCTIONS[self.task.activation]
            self.norm = build_norm(config, config.width) if alike else nn.Identity()

    def read(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        if not self.reads:
            return x
        read: Tensor = self.norm(self.activation(self.dense(x)))
        return read


class TextHead(ReadingHead):
    """Scores of a whole text or pair: dense layer and activation over [CLS], then linear."""

    def __init__(self, config: Config, outputs: int) -> None:
        super().__init__(config, always=True)
        self.classifier = nn.Linear(config.width, outputs)

    def places(self, batch: Batch) -> Tensor | None:
        """The token that stands for the text [B, 1], unless all are pooled."""
        return _place(batch, self.task)

    def scores(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """[B, L, D] and the real tokens [B, L], None = all -> [B, outputs]."""
        late = self.task.pooling == "late"
        x = hidden if late else _text(hidden, mask, self.task)
        if self.task.dropout_before:
            x = self.dropout(x)
        scores: Tensor = self.classifier(self.dropout(self.read(x)))
        return _mean(scores, mask) if late else scores

    def answer(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """As :meth:`TaskHead.answer`."""
        if output is None:
            output = encoder(batch, trace, places=self.places(batch) if trace is None else None)
        answer: Tensor = self(output.hidden, batch.attention_mask)
        return answer


class ClassifyHead(TextHead):
    """Which of the task's labels a text or pair has."""

    def __init__(self, config: Config) -> None:
        super().__init__(config, 0 if config.task is None else len(config.task.labels))

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """[B, L, D] and the real tokens [B, L], None = all -> logits [B, labels]."""
        return self.scores(hidden, mask)


class MultilabelHead(ClassifyHead):
    """Which of the task's labels hold for a text or pair, each by itself: none, one or several.

    A label's probability is the sigmoid of its logit; the layers are those of a classification.
    """


class RegressHead(TextHead):
    """One number for a text or pair."""

    def __init__(self, config: Config) -> None:
        super().__init__(config, 1)

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """[B, L, D] and the real tokens [B, L], None = all -> [B]."""
        return self.scores(hidden, mask).squeeze(-1)


class TagHead(ReadingHead):
    """Which of the task's labels each token has."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.width, len(self.task.labels))

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> logits [B, L, labels]."""
        logits: Tensor = self.classifier(self.dropout(self.read(hidden)))
        return logits


class MixedTagHead(TaskHead):
    """Tags from a learned mix of the states before and after every step.

    ``scale * sum_j softmax(weights)_j h_j`` (arXiv 1802.05365, equation 1), at first their mean.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.width, len(self.task.labels))
        self.weights = nn.Parameter(torch.zeros(config.steps + 1))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, states: Sequence[Tensor]) -> Tensor:
        """N + 1 times [B, L, D] -> logits [B, L, labels]."""
        if len(states) != len(self.weights):
            raise ValueError(f"the mix takes {len(self.weights)} states, not {len(states)}")
        shares = self.weights.softmax(0).unbind(0)
        mix = sum(
            (share * state for share, state in zip(shares, states, strict=True)),
            start=torch.zeros_like(states[0]),
        )
        logits: Tensor = self.classifier(self.dropout(self.scale * mix))
        return logits

    def answer(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """As :meth:`TaskHead.answer`; a given output must hold the states of every step."""
        output = encoder(batch, trace, every_step=True) if output is None else output
        return self.forward(output.states)


class SpanHead(ReadingHead):
    """Where an answer starts and ends (arXiv 1810.04805, section 4.2).

    Every token is scored; an answer at the position of [CLS] means that there is none
    (section 4.3).
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.width, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, D] -> [B, L, 2]: scores as first and as last token of the answer."""
        scores: Tensor = self.classifier(self.read(hidden))
        return scores


class SimilarityHead(TaskHead):
    """A vector of a text, compared with another text's by the cosine (arXiv 1908.10084).

    It has no parameters: what is trained is the encoder.
    """

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """[B, L, D] and the real tokens, bool [B, L], None = all -> vectors [B, D]."""
        return _text(hidden, mask, self.task)

    def places(self, batch: Batch) -> Tensor | None:
        """The token that stands for the text [B, 1], unless all are pooled."""
        return _place(batch, self.task)

    @staticmethod
    def cosine(first: Tensor, second: Tensor) -> Tensor:
        """Vectors [B, D] of two texts -> similarity [B] in -1..1."""
        return F.cosine_similarity(first, second, dim=-1)

    def answer(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """Vectors [B, D]; with ``batch.second``, whose pass is not traced, similarities [B]."""
        if output is None:
            output = encoder(batch, trace, places=self.places(batch) if trace is None else None)
        vectors = self.forward(output.hidden, batch.attention_mask)
        if batch.second is None:
            return vectors
        other = encoder(batch.second, places=self.places(batch.second))
        return self.cosine(vectors, self.forward(other.hidden, batch.second.attention_mask))


def _text(hidden: Tensor, mask: Tensor | None, task: Task) -> Tensor:
    """The text's vector [B, D] of [B, L, D]: a token's, or the mean of the real ones [B, L]."""
    if task.pooling == "token":
        return hidden[:, 0 if task.token == "first" else -1]
    return _mean(hidden, mask)


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """[B, L, N] -> [B, N] over the real tokens [B, L], None = all."""
    if mask is None:
        return x.mean(1)
    kept = x.masked_fill(~mask[..., None], 0.0)
    return kept.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def _place(batch: Batch, task: Task) -> Tensor | None:
    """The position of that token [B, 1]; None where all are pooled."""
    if task.pooling != "token":
        return None
    rows, length = batch.shape
    place = 0 if task.token == "first" else length - 1
    return torch.full((rows, 1), place, device=batch.device)


def build_task_head(name: str, config: Config) -> TaskHead:
    """The head of the config's task, which must be of that name."""
    if config.task is None or config.task.head != name:
        raise InputError(
            f"The head {name} needs a config whose task is {name}; "
            "Model.with_head makes such a model."
        )
    if name == "tag" and config.task.every_step:
        return MixedTagHead(config)
    return _HEADS[name](config)


_HEADS: dict[str, type[TaskHead]] = {
    "classify": ClassifyHead,
    "multilabel": MultilabelHead,
    "regress": RegressHead,
    "tag": TagHead,
    "span": SpanHead,
    "similarity": SimilarityHead,
}
