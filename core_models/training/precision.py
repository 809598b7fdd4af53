"""Which arithmetic a run uses when it may choose: the one that is faster on this machine."""

import time
from functools import lru_cache

import torch
from torch import nn

AUTO = "auto"
_ROWS, _WIDTH, _INNER = 1024, 256, 1024
_ROUNDS = 5


def settled(asked: str, before: str | None = None) -> str:
    """``fp32`` or ``bf16`` for a precision that may be ``auto``.

    Args:
        asked: Of the settings.
        before: What the run was trained in so far. It stays: a run that goes on, be it on another
            machine, must not change its arithmetic on the way.
    """
    if asked != AUTO:
        return asked
    return before or faster(torch.get_num_threads())


@lru_cache
def faster(threads: int) -> str:
    """The faster of ``fp32`` and ``bf16`` here, measured on a CPU in some tenths of a second.

    CPUs differ by more than a factor of three: with AMX, or on AMD's Zen 4, bfloat16 products take
    half the time of fp32's, with AVX-512 BF16 alone on some Intel machines nearly twice the time
    (docs/training.md). Where they are emulated, nothing is measured: fp32 it is, and measuring
    would take long. A CUDA device gets bf16 where it has the instructions.
    """
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    if torch.accelerator.is_available():
        return "fp32"  # Metal's bfloat16 is emulated on most machines
    if emulated():
        return "fp32"
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            return min(times := _times(), key=times.__getitem__)
    finally:
        torch.set_num_threads(before)


def emulated() -> bool:
    """Whether this machine's CPU has no bfloat16 products of its own."""
    # The module's own flag: MKL-DNN may be there on a processor that has none of its fast paths.
    has = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return not has


def _times() -> dict[str, float]:
    """Seconds of a feed-forward block, forth and back, the best of a few rounds in turn."""
    block = nn.Sequential(nn.Linear(_WIDTH, _INNER), nn.GELU(), nn.Linear(_INNER, _WIDTH))
    vectors = torch.randn(_ROWS, _WIDTH, requires_grad=True)
    best = {"fp32": float("inf"), "bf16": float("inf")}
    with torch.inference_mode(False), torch.enable_grad():
        for turn in range(_ROUNDS + 1):
            for name in best:
                began = time.perf_counter()
                with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
                    loss = block(vectors).float().square().mean()
                loss.backward()
                if turn:  # the first round also finds its kernels
                    best[name] = min(best[name], time.perf_counter() - began)
    return best
