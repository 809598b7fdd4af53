"""Masked diffusion: from any share of hidden pieces to the text (arXiv 2502.09992, 2406.07524)."""

import torch
from torch import Tensor
from torch.nn import functional

from core_models.batch import Batch
from core_models.objectives.base import Losses
from core_models.objectives.masked_token import MaskedToken, labelled


class MaskedDiffusion(MaskedToken):
    """Cross-entropy of the hidden pieces, where each row hides a share t ~ U(0, 1) of its own.

    The loss is that of LLaDA (equation 3), the sum over the hidden pieces of a row times 1/t. MDLM
    (equation 10, with the log-linear schedule: a piece is still there at time t with probability
    1 - t) comes to the same. In expectation it bounds -log p(text) from above, by the model that
    uncovers pieces in random order; so a model that is trained with it can write text from nothing
    but [MASK].

    The mean is over the pieces that could have been hidden, in nats per piece; LLaDA's code divides
    by the length of the row, which differs by its special pieces. The accuracy is that of the
    hidden pieces, each counted once.

    ``batch.label_weights`` holds 1/t wherever a piece could be hidden and 0 elsewhere
    (:func:`core_models.masking.diffusion.diffused`).
    """

    name = "masked_diffusion"

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of pieces that could be hidden."""
        return {self.name: (_weights(batch) > 0).sum().float()}

    def losses(self, batch: Batch, logits: Tensor) -> Losses:
        """Losses of the logits [N, V] at the hidden pieces."""
        selected, weights = labelled(batch), _weights(batch)
        assert batch.labels is not None
        targets = batch.labels[selected]  # [N]
        each = functional.cross_entropy(logits, targets, reduction="none")
        total = (each * weights[selected].float()).sum()
        count = self.counts(batch)[self.name]
        hits = (logits.detach().argmax(-1) == targets).sum().float()
        return Losses(
            sums={self.name: total},
            counts={self.name: count},
            weights={self.name: 1.0},
            metrics={
                f"{self.name}_loss": (total.detach(), count),
                f"{self.name}_accuracy": (hits, selected.sum().float()),
            },
        )


def _weights(batch: Batch) -> torch.Tensor:
    if batch.label_weights is None:
        raise ValueError("masked_diffusion needs batch.label_weights")
    return batch.label_weights
