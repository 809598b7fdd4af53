"""Masking of masked diffusion: another share of each example is hidden (arXiv 2502.09992)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.masking.tokens import IGNORED, MASK, Generators, Masked, check_count

LEAST = 1e-3
"""Smallest share, so that no piece counts more than a thousand times (as in LLaDA's code)."""


@dataclass(frozen=True)
class Diffused(Masked):
    """A masked input whose pieces count the more the fewer are hidden."""

    weights: Tensor
    """1/t wherever a piece could be hidden, hidden or not, and 0 elsewhere; float32, shape of the
    ids. t is the share of its row."""


def diffused(ids: Tensor, maskable: Tensor, *, generator: Generators, mask_id: int) -> Diffused:
    """Hide a share t ~ U(0, 1) of each row, all of it behind [MASK] (LLaDA, section 2.2).

    Each piece is hidden with probability t whatever becomes of the others, so a row may lose none
    or all. With one generator for a batch of B rows their shares are spread evenly, one in each
    B-th of (0, 1), in random order: each is still uniform, and the loss varies less (MDLM, arXiv
    2406.07524, section 5, after arXiv 2107.00630). LLaDA draws them independently, as is done here
    with a generator for each row.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape: False for [CLS], [SEP] and padding.
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].

    Raises:
        ValueError: Shapes do not agree.
    """
    if ids.shape != maskable.shape or ids.dim() not in {1, 2}:
        raise ValueError(
            f"ids {tuple(ids.shape)} and maskable {tuple(maskable.shape)} must have the same "
            "shape, [L] or [B, L]"
        )
    rows, open_ = ids.reshape(-1, ids.shape[-1]), maskable.reshape(-1, ids.shape[-1])
    drawn, coins = _draw(rows.shape, generator, rows.device)
    shares = (LEAST + (1 - LEAST) * drawn)[:, None]  # [B, 1]
    chosen = (open_ & (coins < shares)).view(ids.shape)
    return Diffused(
        inputs=ids.masked_fill(chosen, mask_id),
        labels=ids.masked_fill(~chosen, IGNORED),
        cases=(chosen * MASK).to(torch.uint8),
        weights=(open_ / shares).float().view(ids.shape),
    )


def _draw(shape: torch.Size, generator: Generators, device: torch.device) -> tuple[Tensor, Tensor]:
    """A number for each row [B] and one for each piece [B, L], in [0, 1)."""
    rows, length = shape
    if isinstance(generator, torch.Generator):
        at = generator.device
        turns = torch.randperm(rows, generator=generator, device=at)
        within = torch.rand(rows, generator=generator, device=at)
        coins = torch.rand(rows, length, generator=generator, device=at)
        return ((turns + within) / rows).to(device), coins.to(device)
    check_count(generator, rows)
    # Padding a row further does not change the draws of its real pieces.
    drawn = torch.stack(
        [torch.rand(1 + length, generator=g, dtype=torch.float64) for g in generator]
    ).to(device)
    return drawn[:, 0], drawn[:, 1:]
