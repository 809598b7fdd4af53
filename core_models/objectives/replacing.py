"""Replacing masked pieces by a generator's samples (arXiv 2003.10555, section 3.1)."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.objectives.base import IGNORED, original_ids
from core_models.objectives.masked_token import MaskedToken, labelled

if TYPE_CHECKING:
    from core_models.model import Model


@dataclass(frozen=True)
class Corrupted:
    """What a discriminator gets, and what it should say."""

    batch: Batch
    """The original pieces, but a sampled one wherever a label asked for a piece."""
    replaced: Tensor
    """Bool [B, L], True where the piece is not the original one. A sample that hits the original
    counts as original."""
    samples: Tensor
    """The generator's piece where it was asked [B, L], int64; -100 elsewhere."""


@torch.no_grad()
def corrupt(generator: "Model", batch: Batch, temperature: float = 1.0) -> Corrupted:
    """Let a generator fill the masked pieces of a batch.

    Args:
        generator: a model with the head ``masked_token``.
        batch: masked pieces, with ``labels`` and ``draws``.
        temperature: of the distribution to sample from, above 0.
    """
    scores = MaskedToken(generator.heads["masked_token"]).scores(generator.encoder, batch)
    return replace_pieces(batch, scores, temperature)


@torch.no_grad()
def replace_pieces(batch: Batch, logits: Tensor, temperature: float = 1.0) -> Corrupted:
    """The same from logits [N, V] at the labelled positions."""
    if batch.draws is None:
        raise ValueError("replacing pieces needs batch.draws")
    selected = labelled(batch)
    original = original_ids(batch)
    samples = torch.full_like(original, IGNORED)
    samples[selected] = sample(logits.detach(), batch.draws[selected], temperature)
    ids = torch.where(selected, samples, original)
    given = replace(batch, input_ids=ids, labels=None, label_weights=None, draws=None)
    return Corrupted(given, ids != original, samples)


def sample(logits: Tensor, draws: Tensor, temperature: float = 1.0) -> Tensor:
    """Pieces [N] from logits [N, V] by the inverse of the cumulative distribution.

    Piece k is taken for draws in [P(pieces before k), P(pieces up to k)), so equal draws give equal
    pieces wherever and in whatever company they are computed. Where scores are no numbers it is
    some piece: the loss says so, and the trainer refuses it.
    """
    scores = logits.float()
    # The best score becomes 0, which no temperature can lift out of the numbers.
    scores = (scores - scores.amax(-1, keepdim=True)) / temperature
    steps = scores.softmax(-1).cumsum(-1)  # [N, V]
    most = steps[:, -1:]
    # Rounding may lift a draw to the very end, where pieces without probability lie.
    most_below = most.nextafter(torch.full_like(most, -math.inf))
    wanted = torch.minimum(draws[:, None].to(steps.dtype) * most, most_below)
    found = torch.searchsorted(steps, wanted, right=True).squeeze(1)
    return found.clamp(max=logits.shape[-1] - 1)
