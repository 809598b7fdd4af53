"""Narrow ModernBERTs, ours and theirs, and batches with padding everywhere."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import ModernBertConfig, ModernBertForMaskedLM

import core_models as cm
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from tests.core import parity
from tests.core.parity import VOCABULARY

WINDOW = 3
"""Tokens on each side that local layers see."""
SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "local_attention": 2 * WINDOW,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
HEADS = {"masked_token": "logits"}


def theirs(shape: dict[str, Any], kind: type = ModernBertForMaskedLM, scale: float = 1.0) -> Any:
    return parity.randomised(kind(ModernBertConfig(**SHAPE | shape)), scale=scale)


def inputs(length: int, pad: str) -> dict[str, Tensor]:
    """Three rows, of which the second has padding where ``pad`` says."""
    source = torch.Generator().manual_seed(length)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=source)
    mask = torch.ones(3, length, dtype=torch.long)
    if pad == "everywhere":
        mask = (torch.rand(3, length, generator=source) < 0.6).long()
        mask[:, 0] = 1
    third = length // 3
    places = {
        "left": slice(0, third),
        "right": slice(length - third, length),
        "middle": slice(third, third + 2),
        "wide gap": slice(2, max(2, length - 2)),  # some padding sees no token in its window
    }
    if pad in places:
        mask[1, places[pad]] = 0
    ids[mask == 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


def words() -> cm.Tokenizer:
    text = "red fox sees small dog likes old house birds sing in the tree and river"
    return cm.Tokenizer.train([text] * 5, vocabulary=300, kind="byte_bpe")


def tiny(window: int = WINDOW) -> cm.Config:
    """A narrow ModernBERT of five layers."""
    config = cm.size("modernbert-base").with_vocabulary(300, pad_id=words().pad_id)
    return replace(
        config,
        width=32,
        embeddings=replace(config.embeddings, width=32),
        attention=replace(config.attention, heads=4, head_width=8, window=window),
        feed_forward=replace(config.feed_forward, width=48),
        schedule=tuple(range(5)),
        initial_std=0.3,
    )


def built(config: cm.Config) -> Encoder:
    encoder = Encoder(config).eval()
    initialise(encoder, 0.3, torch.Generator().manual_seed(1))
    return encoder
