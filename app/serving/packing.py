"""Large models packed for this processor, where that is faster here. No Gradio in it."""

import time
from functools import cache

import torch
from torch import Tensor, nn

import core_models as cm
from core_models import optimize_for_inference

_TOKENS, _WIDTH, _INNER = 32, 768, 3072
_ROUNDS = 7


def packed(model: cm.Model) -> cm.Model:
    """A copy for passes without gradients, or the model itself where the copy is not faster.

    In float32, whose answers differ by rounding alone: with bfloat16 a page would show other
    figures than the code beside them.
    """
    return optimize_for_inference(model) if faster() else model


@cache
def faster() -> bool:
    """Whether packed products take less time here, measured once in some tenths of a second."""
    with torch.random.fork_rng(devices=[]):
        block = nn.Sequential(nn.Linear(_WIDTH, _INNER), nn.GELU(), nn.Linear(_INNER, _WIDTH))
        tokens = torch.randn(_TOKENS, _WIDTH)
    usual, other = block.eval(), optimize_for_inference(block)
    best = {False: float("inf"), True: float("inf")}
    with torch.inference_mode():
        for turn in range(_ROUNDS + 1):
            for is_packed in best:
                seconds = _seconds(other if is_packed else usual, tokens)
                if turn:  # the first round also finds its kernels
                    best[is_packed] = min(best[is_packed], seconds)
    return best[True] < best[False]


def _seconds(block: nn.Module, tokens: Tensor) -> float:
    began = time.perf_counter()
    block(tokens)
    return time.perf_counter() - began
