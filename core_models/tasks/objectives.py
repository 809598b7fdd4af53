"""Losses of fine-tuning, as sums and counts, so that parts of a batch add up to the whole."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import Losses

IGNORED = -100


class TaskObjective(nn.Module):
    """A fine-tuning head with its loss."""

    name = ""

    def __init__(self, head: nn.Module) -> None:
        """Own a head whose ``answer`` gives what it says about a batch."""
        super().__init__()
        self.head = head

    def answer(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Tensor:
        """What the head says, in fp32."""
        answer: Callable[..., Tensor] = self.head.answer  # type: ignore[assignment]
        return answer(encoder, batch, trace, output).float()

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels."""
        return {self.name: self.labelled(batch).sum().float()}

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses of one batch; 0 with a gradient of zero where nothing is labelled."""
        return self.losses(self.answer(encoder, batch, trace, output), batch)

    def labelled(self, batch: Batch) -> Tensor:
        """Bool, which rows or tokens have a label."""
        raise NotImplementedError

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Losses of what :meth:`answer` gave."""
        raise NotImplementedError


class Classify(TaskObjective):
    """Cross-entropy over the classes of a text or pair (arXiv 1810.04805, section 4.1)."""

    name = "classify"

    def labelled(self, batch: Batch) -> Tensor:
        """Rows [B]."""
        return _given(batch.class_labels, "class_labels") != IGNORED

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Of logits [B, C]."""
        return _choice(self.name, answer, _given(batch.class_labels, "class_labels"))


class Multilabel(TaskObjective):
    """Mean of the binary cross-entropies of all labels, each of which holds or not.

    That of transformers' "multi_label_classification". A label that is not known (NaN) is left
    out of its row's mean.
    """

    name = "multilabel"

    def labelled(self, batch: Batch) -> Tensor:
        """Rows [B] of which some label is known."""
        return ~_given(batch.label_sets, "label_sets").isnan().all(1)

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Of logits [B, C]; right are the rows of which every known label is."""
        labels = _given(batch.label_sets, "label_sets")
        rows = self.labelled(batch)
        logits, labels = answer[rows], labels[rows]
        known = ~labels.isnan()
        wanted = labels.nan_to_num()
        each = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        total = ((each * known).sum(1) / known.sum(1)).sum()
        right = (((logits.detach() > 0) == (wanted > 0.5)) | ~known).all(1)
        return Losses.of_one(self.name, total, rows.sum().float(), right.sum().float())


class Tag(TaskObjective):
    """Cross-entropy over the tags of the labelled pieces (arXiv 1810.04805, section 5.3)."""

    name = "tag"

    def labelled(self, batch: Batch) -> Tensor:
        """Pieces [B, L]."""
        return _given(batch.tag_labels, "tag_labels") != IGNORED

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Of logits [B, L, T]."""
        labels = _given(batch.tag_labels, "tag_labels")
        return _choice(self.name, answer.flatten(0, 1), labels.flatten())


class Regress(TaskObjective):
    """Squared error of a score in 0..1."""

    name = "regress"

    def labelled(self, batch: Batch) -> Tensor:
        """Rows [B]."""
        return ~_given(batch.score_labels, "score_labels").isnan()

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Of scores [B]."""
        labelled = self.labelled(batch)
        labels = _given(batch.score_labels, "score_labels")
        total = functional.mse_loss(answer[labelled], labels[labelled], reduction="sum")
        return _plain(self.name, total, labelled.sum().float())


class Similarity(Regress):
    """Squared error of the cosine of two vectors against a score in 0..1.

    The regression objective of arXiv 1908.10084 (section 3.1, scores divided by their largest as
    in the released code). Losses that rank the pairs of a batch against each other (CoSENT) would
    depend on how a batch is cut, and could not be summed over its parts.
    """

    name = "similarity"


class Span(TaskObjective):
    """Mean of the cross-entropies of an answer's first and last token (arXiv 1810.04805, 4.2).

    "No answer" is the span of [CLS] alone (section 4.3). Padding takes no part in the softmax, so
    that the loss does not depend on what a row is batched with; the released code leaves it in.
    """

    name = "span"

    def labelled(self, batch: Batch) -> Tensor:
        """Rows [B]."""
        return _given(batch.answer_starts, "answer_starts") != IGNORED

    def losses(self, answer: Tensor, batch: Batch) -> Losses:
        """Of logits [B, L, 2]."""
        starts = _given(batch.answer_starts, "answer_starts")
        ends = _given(batch.answer_ends, "answer_ends")
        logits = without_padding(answer, batch)
        labelled = starts != IGNORED
        total = logits.new_zeros(())
        correct = labelled.clone()
        for side, places in enumerate((starts, ends)):
            scores = logits[labelled, :, side]
            total = total + functional.cross_entropy(scores, places[labelled], reduction="sum") / 2
            correct &= logits.detach()[..., side].argmax(-1) == places
        return Losses.of_one(self.name, total, labelled.sum().float(), correct.sum().float())


OBJECTIVES: dict[str, type[TaskObjective]] = {
    objective.name: objective
    for objective in (Classify, Multilabel, Tag, Regress, Similarity, Span)
}
"""By the name of their head."""


def build(head: str, module: nn.Module) -> TaskObjective:
    """The objective of a head."""
    return OBJECTIVES[head](module)


def without_padding(logits: Tensor, batch: Batch) -> Tensor:
    """Logits [B, L, 2] with minus infinity at padding."""
    if batch.attention_mask is None:
        return logits
    return logits.masked_fill(~batch.attention_mask[..., None], -torch.inf)


def _choice(name: str, logits: Tensor, labels: Tensor) -> Losses:
    """Cross-entropy of logits [N, C] at labels [N]."""
    labelled = labels != IGNORED
    logits, labels = logits[labelled], labels[labelled]
    total = functional.cross_entropy(logits, labels, reduction="sum")
    correct = (logits.detach().argmax(-1) == labels).sum().float()
    return Losses.of_one(name, total, labelled.sum().float(), correct)


def _plain(name: str, total: Tensor, count: Tensor) -> Losses:
    return Losses(
        sums={name: total},
        counts={name: count},
        weights={name: 1.0},
        metrics={f"{name}_loss": (total.detach(), count)},
    )


def _given(labels: Tensor | None, field: str) -> Tensor:
    if labels is None:
        raise ValueError(f"this objective needs batch.{field}")
    return labels
