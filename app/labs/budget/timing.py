"""How long one forward pass of a size takes on this machine. No Gradio in it."""

import os
import time
from threading import Lock

import torch

import core_models as cm
from app.labs.budget.answers import counted
from core_models import Config, InputError
from core_models.network.initialise import without_values

MOST_BYTES = 2 << 30
"""Largest encoder that is built to be timed, float32."""
MOST_OPERATIONS = 150e9
"""Dearest forward pass that is timed."""
SECONDS = 1.0
RUNS = 15


_ONE_AT_A_TIME = Lock()


def measure(config: Config, length: int) -> float:
    """Milliseconds of the fastest pass of one sequence; one measurement at a time.

    Raises:
        InputError: the encoder does not fit in memory, or one pass would take too long.
    """
    found = counted(config)
    needed = 4 * found.encoder
    if needed > (most := min(MOST_BYTES, free_bytes() // 2)):
        raise InputError(
            f"Its weights take {needed / 2**30:.1f} GiB; here up to {most / 2**30:.1f} GiB are "
            "built for a measurement."
        )
    if (operations := found.flops(length).encoder) > MOST_OPERATIONS:
        raise InputError(
            f"One pass takes {operations / 1e9:.0f} billion operations; up to "
            f"{MOST_OPERATIONS / 1e9:.0f} are measured here. Choose fewer tokens."
        )
    with _ONE_AT_A_TIME, torch.inference_mode():
        return _time(_random_encoder(config), config, length)


def _random_encoder(config: Config) -> cm.Encoder:
    """Weights from a uniform distribution: drawing normal ones takes longer than measuring."""
    with without_values():
        encoder = cm.Encoder(config).eval()
    encoder.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(0)
    for weight in encoder.parameters():
        weight.uniform_(-0.05, 0.05, generator=generator)
    return encoder


def _time(encoder: cm.Encoder, config: Config, length: int) -> float:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(
        min(5, config.embeddings.vocabulary - 1),
        config.embeddings.vocabulary,
        (1, length),
        generator=generator,
    )
    batch = cm.Batch(input_ids=ids)
    encoder(batch)
    times: list[float] = []
    while len(times) < 5 or (sum(times) < SECONDS and len(times) < RUNS):
        start = time.perf_counter()
        encoder(batch)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def free_bytes() -> int:
    """Memory that the system can give away now; a gibibyte where it does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 1 << 30
