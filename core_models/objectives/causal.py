"""Causal objective: the next piece, from left to right (arXiv 1810.04805, section 5.1, "LTR")."""

from dataclasses import replace

from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.config import Config
from core_models.errors import InputError
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import Losses, Objective, original_ids, real_tokens


class Causal(Objective):
    """Cross-entropy of each piece, told from those to its left.

    Every real token but the first is predicted, separators too. The encoder reads the pieces as
    they were before any masking, so a batch made for other objectives serves as well.
    """

    name = "causal"
    own_pass = True

    def __init__(self, config: Config, head: nn.Module) -> None:
        """Own a head [N, D] -> logits [N, V].

        Raises:
            InputError: the model reads both ways, so it would see what it is asked.
        """
        super().__init__()
        if not config.left_to_right:
            raise InputError(
                "causal needs a model that reads from left to right: set attention.direction to "
                f"'left'; this one has {config.attention.direction!r}."
            )
        self.head = head

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of tokens that have a token before them."""
        return {self.name: _followers(batch).sum().float()}

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over all real tokens but the first of each row."""
        ids = original_ids(batch)
        if output is None:
            output = encoder(replace(batch, input_ids=ids), trace)
        selected = _followers(batch)  # [B, L - 1]
        targets = ids[:, 1:][selected]  # [N]
        logits = self.head(output.hidden[:, :-1][selected]).float()  # [N, V]
        total = functional.cross_entropy(logits, targets, reduction="sum")
        count = selected.sum().float()
        correct = (logits.detach().argmax(-1) == targets).sum().float()
        losses = Losses.of_one(self.name, total, count, correct)
        return replace(losses, memory=output.memory)


def _followers(batch: Batch) -> Tensor:
    """Bool [B, L - 1], whether a token and the one before it are both real."""
    real = real_tokens(batch)
    return real[:, 1:] & real[:, :-1]
