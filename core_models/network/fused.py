"""Attention by PyTorch's fused kernels."""

import torch
import torch.nn.functional as F
from torch import Tensor


def attend_fused(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """Weighted values [B, H, Q, d]; a query that sees no key gets zeros.

    On a CPU bfloat16 is trained in fp32 here: the kernel's way back is several times slower in
    bfloat16 (PyTorch 2.13, also with AMX), the way forth is not.

    Args:
        q: Queries [B, H, Q, d].
        k: Keys [B, H, K, d].
        v: Values [B, H, K, d].
        bias: What is added to the scores, or bool, True = the query may see the key; broadcastable
            to [B, H, Q, K].
        scale: Factor of the products.
        dropout: Rate on the probabilities.
    """
    inside = torch.is_autocast_enabled("cpu")
    used = torch.get_autocast_dtype("cpu") if inside else q.dtype
    slow = q.device.type == "cpu" and used is torch.bfloat16 and torch.is_grad_enabled()
    if not slow:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=bias, dropout_p=dropout, scale=scale
        )
    if bias is not None and bias.is_floating_point():
        bias = bias.float()
    with torch.autocast("cpu", enabled=False):
        context = F.scaled_dot_product_attention(
            q.float(), k.float(), v.float(), attn_mask=bias, dropout_p=dropout, scale=scale
        )
    return context.to(used)
