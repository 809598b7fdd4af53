"""Every family's forward pass is one graph: it compiles whole, and never asks a device for values.

On the meta device tensors have shapes and no values, so a pass that turned one into a number or a
condition, or that made a tensor on another device, would fail there.
"""

from dataclasses import replace

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from core_models.batch import Batch
from core_models.config import Config
from core_models.families import size
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from tests.core.test_relative_cache import KINDS

NAMES = [
    "bert-base-uncased",
    "roberta-base",
    "albert-base",
    "spanbert-base-cased",
    "electra-small-discriminator",
    "chinese-macbert-base",
    "xlnet-base",
    "deberta-base",
    "deberta-v2-xlarge",
    "deberta-v3-base",
    "modernbert-base",
    "eurobert-210m",
]


def tiny(name: str) -> Config:
    config = size(name)
    own_width = config.embeddings.width == config.width
    return replace(
        config,
        width=16,
        embeddings=replace(
            config.embeddings,
            vocabulary=40,
            width=16 if own_width else 8,
            pad_id=min(config.embeddings.pad_id, 5),
        ),
        attention=config.attention.with_heads(4, 4),
        feed_forward=replace(config.feed_forward, width=20),
        schedule=(0, 0) if config.blocks == 1 else (0,),
    )


def batch(config: Config, length: int, device: str = "cpu") -> Batch:
    ids = (torch.arange(2 * length).view(2, length) % 30 + 6).to(device)
    mask = torch.ones(2, length, dtype=torch.bool, device=device)
    two = config.embeddings.segments != 1
    return Batch(input_ids=ids, attention_mask=mask, segment_ids=ids % 2 if two else None)


# The others: tests/core/test_relative_cache.py, over more lengths.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in KINDS])
def test_compiles_whole_and_once_for_all_lengths(name: str) -> None:
    config = tiny(name)
    encoder = Encoder(config).eval()
    initialise(encoder, 0.3, torch.Generator().manual_seed(0))
    counter = CompileCounter()
    compiled = torch.compile(encoder, fullgraph=True, backend=counter)
    with torch.no_grad():
        for length in (9, 12, 17, 30):
            expected = encoder(batch(config, length)).hidden
            found = compiled(batch(config, length)).hidden
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.compiler.reset()
    assert counter.frame_count <= 2  # the first length, then any


@pytest.mark.parametrize("length", [9, 300])
@pytest.mark.parametrize("name", NAMES)
def test_asks_the_device_for_nothing(name: str, length: int) -> None:
    config = tiny(name)
    with torch.device("meta"):
        encoder = Encoder(config)
    inputs = batch(config, length, "meta")
    targets = torch.zeros(2, 3, dtype=torch.int64, device="meta")
    for mode in (encoder.train(), encoder.eval()):
        out = mode(inputs)
        mode.decode(inputs, out)
        mode.decode(inputs, out, targets=targets)
        out.hidden.sum().backward()
        with torch.no_grad():
            assert mode(inputs).hidden.shape == (2, length, 16)


def test_streams_and_memory_ask_the_device_for_nothing() -> None:
    config = tiny("xlnet-base")
    with torch.device("meta"):
        encoder = Encoder(config).train()
    inputs = replace(
        batch(config, 9, "meta"),
        targets=torch.zeros(2, 3, dtype=torch.int64, device="meta"),
        memory=(torch.zeros(2, 5, 16, device="meta"),),
        remember=6,
        reversed=torch.zeros(2, dtype=torch.bool, device="meta"),
    )
    out = encoder(inputs)
    assert out.streams["query"].shape == (2, 3, 16)
    assert out.memory[0].shape == (2, 6, 16)
