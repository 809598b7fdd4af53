"""ELECTRA's masking: positions drawn with replacement, 85% [MASK], 15% left (arXiv 2003.10555)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.masking.tokens import Generators, Masked, prepare, quota, replace_pieces


@dataclass(frozen=True)
class Drawn(Masked):
    """A masked input whose pieces may have been drawn more than once."""

    times: Tensor
    """How often each piece was drawn, int64, shape of the ids: its weight in the generator's
    loss."""


def with_replacement(
    ids: Tensor,
    maskable: Tensor,
    *,
    generator: Generators,
    mask_id: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    kept: float = 0.15,
    slots: int | None = None,
) -> Drawn:
    """Mask the pieces that ELECTRA's generator fills in (google-research/electra, mask).

    ``min(slots, max(1, round(rate * n)))`` positions of a row of n pieces are drawn independently,
    so fewer are masked: on average 17.7 of 128, 71.5 of 512. Every draw tosses the 85% coin anew,
    and a piece stays only if none of its draws replaced it. There is no random replacement.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape: False for [CLS], [SEP] and padding.
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].
        lengths: Pieces per row without padding but with [CLS] and [SEP], [B]; None = no padding.
        rate: Share to draw, of `lengths` (0.25 in the large models).
        kept: Share of draws that leave the piece.
        slots: Most draws per row; None = ``int((rate + 0.005) * L)``, and at least what a row
            without padding asks for, so that a row's draws do not depend on those beside it. The
            released code takes L from the longest input of the whole run.

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    if slots is None:
        width = ids.shape[-1]
        slots = max(quota(width, rate), int((rate + 0.005) * width))
    split = (1.0 - kept, 0.0, kept)
    rows, open_, counts = prepare(ids, maskable, lengths, rate, split, slots)
    where, coin = _draws(rows.shape[0], slots, generator)
    available = open_.sum(1)
    # A stable sort of the flags puts the maskable positions first, in the order of the text.
    places = (~open_).to(torch.uint8).argsort(dim=1, stable=True)
    index = (where.to(rows.device) * available[:, None]).long()
    positions = places.gather(1, index)
    real = torch.arange(slots, device=rows.device) < counts[:, None]
    real &= available[:, None] > 0
    replaced = real & (coin.to(rows.device) < split[0])
    times = torch.zeros_like(rows).scatter_add_(1, positions, real.long())
    masks = torch.zeros_like(rows).scatter_add_(1, positions, replaced.long())
    # `replace_pieces` takes a number per position: 0 stands for [MASK], 1 for kept.
    case = (masks == 0).double()
    masked = replace_pieces(ids, times > 0, case, rows, mask_id, split)
    return Drawn(masked.inputs, masked.labels, masked.cases, times.view(ids.shape))


def _draws(rows: int, slots: int, generator: Generators) -> tuple[Tensor, Tensor]:
    """Place and coin of each draw, uniform in [0, 1), each float64 [B, slots], on the CPU."""
    if isinstance(generator, torch.Generator):
        drawn = torch.rand(
            (rows, slots, 2), generator=generator, device=generator.device, dtype=torch.float64
        ).cpu()
    elif len(generator) != rows:
        raise ValueError(f"{len(generator)} generators for {rows} rows: give one, or one per row")
    else:
        drawn = torch.stack(
            [torch.rand((slots, 2), generator=g, dtype=torch.float64) for g in generator]
        )
    return drawn[..., 0], drawn[..., 1]
