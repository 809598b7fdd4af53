"""Which keys each query may see."""

import torch
import torch.nn.functional as F
from torch import Tensor

from core_models.batch import Batch
from core_models.network.windows import band


def content_visibility(batch: Batch, *, leftward: bool = False) -> Tensor | None:
    """Which keys each token may see, broadcastable to [B, H, L, K]; None = all.

    Args:
        batch: inputs [B, L], after the tokens that it remembers.
        leftward: whether each token sees only those before it, and itself.
    """
    visible = _visible(batch, batch.visibility)
    if not leftward:
        return visible
    earlier = _earlier(batch)
    return earlier if visible is None else visible & earlier


def target_visibility(batch: Batch, *, leftward: bool = False) -> Tensor | None:
    """Which keys each query of the query stream may see, broadcastable to [B, H, M, K]."""
    visible = _visible(batch, batch.target_visibility)
    if not leftward:
        return visible
    assert batch.targets is not None
    earlier = _earlier(batch)[batch.targets][:, None]  # [B, 1, M, K]
    return earlier if visible is None else visible & earlier


def local_visibility(batch: Batch, window: int, visible: Tensor | None) -> Tensor | None:
    """Of the keys that tokens may see those in a window around each, as in local layers.

    Args:
        batch: inputs [B, L].
        window: how many tokens on each side.
        visible: of :func:`content_visibility`; None = all.
    """
    length = batch.shape[1]
    if length <= window + 1:
        return visible
    near = band(window, torch.arange(length, device=batch.device), length)[None, None]
    return near if visible is None else visible & near


def _visible(batch: Batch, visibility: Tensor | None) -> Tensor | None:
    mask = batch.attention_mask
    if visibility is None and mask is None:
        return None
    if visibility is None:
        assert mask is not None
        visible = mask[:, None, None, :]
    else:
        visible = visibility[:, None]
        visible = visible if mask is None else visible & mask[:, None, None, :]
    if batch.memory:
        visible = F.pad(visible, (batch.memory[0].shape[1], 0), value=True)
    return visible


def _earlier(batch: Batch) -> Tensor:
    """Bool [L, K], the tokens up to each one."""
    length = batch.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool, device=batch.device).tril()
    return F.pad(earlier, (batch.memory[0].shape[1] if batch.memory else 0, 0), value=True)


def rows_at(x: Tensor, targets: Tensor) -> Tensor:
    """Rows [B, M, D] of [B or 1, L, D] at positions [B, M]."""
    wide = x.expand(targets.shape[0], -1, -1)
    return wide.gather(1, targets[..., None].expand(-1, -1, x.shape[-1]))


def visible_at(visible: Tensor | None, targets: Tensor) -> Tensor | None:
    """What the tokens at positions [B, M] may see, broadcastable to [B, H, M, K]."""
    if visible is None or (visible.dim() == 4 and visible.shape[2] == 1):
        return visible  # the same for every token
    if visible.dim() == 2:
        return visible[targets][:, None]
    return rows_at(visible.squeeze(1), targets)[:, None]
