"""Masked next token, with a share of each batch read from left to right (arXiv 2410.24159)."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.masking.tokens import Generators, check_count
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.trace import Trace
from core_models.objectives.base import IGNORED, Losses, Objective, original_ids, real_tokens


class MaskedNextToken(Objective):
    """Cross-entropy of labelled pieces, each told from the position before its own.

    GPT-BERT (section 2): where a hidden piece is answered one position earlier, masked and causal
    language modelling differ in what is hidden and in what may be seen, and one model learns both.
    Most rows hide pieces and are seen both ways; the others (:func:`read_leftward`) hide none and
    every token sees those before it only.

    Two losses, ``masked_next_token`` and ``causal``, each the mean over its own labels, weighted by
    the shares of the rows: the released code averages over processes, each of which reads its rows
    in one of the two ways, whatever the number of their labels. A label at the first position, or
    behind padding, is not asked.
    """

    name = "masked_next_token"

    def __init__(self, head: nn.Module, share: float = 1 / 16) -> None:
        """Own a head [N, D] -> logits [N, V].

        Args:
            head: of a model that is seen both ways.
            share: weight of the rows that are read from left to right, between 0 and 1.

        Raises:
            InputError: the share is out of range.
        """
        super().__init__()
        if not 0 < share < 1:
            raise InputError(f"The share read from left to right is {share}; allowed is 0 to 1.")
        self.head, self.share = head, share

    def loss_weights(self) -> dict[str, float]:
        """The shares of the rows."""
        return {self.name: 1 - self.share, "causal": self.share}

    def counts(self, batch: Batch) -> dict[str, Tensor]:
        """Number of labels in the rows of each kind."""
        asked, leftward = _asked(batch), read_leftward_rows(batch)[:, None]
        return {
            self.name: (asked & ~leftward).sum().float(),
            "causal": (asked & leftward).sum().float(),
        }

    def reads(self, encoder: Encoder, batch: Batch) -> Tensor:
        """The positions before the labels."""
        return functional.pad(_asked(batch), (0, 1), value=False)

    def forward(
        self,
        encoder: Encoder,
        batch: Batch,
        trace: Trace | None = None,
        output: EncoderOutput | None = None,
    ) -> Losses:
        """Losses over ``batch.labels`` [B, L], in rows of both kinds."""
        if output is None:
            output = self.run(encoder, batch, trace)
        assert batch.labels is not None
        asked = _asked(batch)  # [B, L - 1]
        targets = batch.labels[:, 1:][asked]  # [N]
        logits = self.head(output.hidden[:, :-1][asked]).float()  # [N, V]
        each = functional.cross_entropy(logits, targets, reduction="none")
        hits = (logits.detach().argmax(-1) == targets).float()
        leftward = read_leftward_rows(batch)[:, None].expand_as(asked)[asked].float()  # [N]
        return Losses.merge(
            [
                (weight, Losses.of_one(name, (each * of).sum(), of.sum(), (hits * of).sum()))
                for (name, weight), of in zip(
                    self.loss_weights().items(), (1 - leftward, leftward), strict=True
                )
            ]
        )


def read_leftward(batch: Batch, share: float, generator: Generators) -> Batch:
    """The batch with a share of its rows read from left to right: nothing hidden, all asked.

    Args:
        batch: Masked rows [B, L].
        share: Of the rows, between 0 and 1. With one generator there are ``round(share * B)`` of
            them, at least one of each kind where B > 1; with one per row each is drawn by itself.
        generator: One for the batch, or one per row.

    Returns:
        The batch with ``visibility``; in rows read from left to right the pieces as they were, and
        labels at every real token but the first.
    """
    rows, length = batch.shape
    chosen = _draw(rows, share, generator).to(batch.device)
    ids, real = original_ids(batch), real_tokens(batch)
    asked = real & functional.pad(real[:, :-1], (1, 0), value=False)
    assert batch.labels is not None
    assert batch.input_ids is not None
    earlier = torch.ones(length, length, dtype=torch.bool, device=batch.device).tril()
    column = chosen[:, None]
    return replace(
        batch,
        input_ids=torch.where(column, ids, batch.input_ids),
        labels=torch.where(column, ids.masked_fill(~asked, IGNORED), batch.labels),
        visibility=earlier | ~chosen[:, None, None],
    )


def read_leftward_rows(batch: Batch) -> Tensor:
    """Bool [B], which rows are read from left to right: their first token does not see the last."""
    if batch.visibility is None or batch.shape[1] == 1:
        return torch.zeros(batch.shape[0], dtype=torch.bool, device=batch.device)
    return ~batch.visibility[:, 0, -1]


def _draw(rows: int, share: float, generator: Generators) -> Tensor:
    if isinstance(generator, torch.Generator):
        keys = torch.rand(rows, generator=generator, device=generator.device)
        if rows == 1:
            return keys < share
        return keys.argsort().argsort() < min(rows - 1, max(1, round(share * rows)))
    check_count(generator, rows)
    # Draws of their own: those before hung on the padding, which changes with the rows beside it.
    own = [torch.Generator().manual_seed(each.initial_seed() ^ 1) for each in generator]
    return torch.cat([torch.rand(1, generator=each) for each in own]) < share


def _asked(batch: Batch) -> Tensor:
    """Bool [B, L - 1], whether the token after each one is labelled, and it is real itself."""
    if batch.labels is None:
        raise ValueError("masked_next_token needs batch.labels")
    return (batch.labels[:, 1:] != IGNORED) & real_tokens(batch)[:, :-1]
