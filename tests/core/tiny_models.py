"""Tiny models of every family, and batches that ask them everything."""

import functools
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from core_models.batch import Batch

WORDS = "red fox sees small dog likes old house birds sing in the tree and river"


@functools.cache
def tokenizer() -> cm.Tokenizer:
    return cm.Tokenizer.train([WORDS] * 5, vocabulary=100)


def narrow(
    config: cm.Config, *, width: int, inner: int, layers: int = 2, **values: Any
) -> cm.Config:
    """Few and narrow layers with two heads; what a config has besides stays."""
    tables = config.embeddings
    return replace(
        config,
        width=width,
        embeddings=replace(tables, width=width if tables.width == config.width else 3 * width // 4),
        attention=config.attention.with_heads(2, width // 2),
        feed_forward=replace(config.feed_forward, width=inner),
        schedule=(0,) * layers if config.blocks == 1 else tuple(range(layers)),
        **values,
    )


def tiny(
    name: str, *, layers: int = 2, width: int = 8, inner: int = 12, **values: Any
) -> cm.Config:
    """A published size shrunk: two heads, no dropout, weights large enough to matter."""
    config = cm.size(name).with_vocabulary(tokenizer().vocabulary, pad_id=0).with_dropout(0.0)
    config = narrow(config, width=width, inner=inner, layers=layers, initial_std=0.3, **values)
    tables = config.embeddings
    places = None if tables.positions is None else 20
    return replace(config, embeddings=replace(tables, positions=places))


def new(config: cm.Config, *, seed: int = 1, heads: tuple[str, ...] | None = None) -> cm.Model:
    """A model of random weights."""
    generator = torch.Generator().manual_seed(seed)
    return cm.Model.new(config, tokenizer(), heads=heads, generator=generator)


def small_bert(words: cm.Tokenizer) -> cm.Model:
    """A random BERT of width 32 that reads 64 pieces; with dropout, so that training draws."""
    size = cm.size("bert-tiny").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    config = narrow(size, width=32, inner=64, initial_std=0.1)
    config = replace(config, embeddings=replace(config.embeddings, positions=64))
    return cm.Model.new(config, words, generator=torch.Generator().manual_seed(5))


def masked_batch(rows: int = 5, length: int = 9, *, seed: int = 3, padded: bool = True) -> Batch:
    """Pieces of which some are hidden, with what every objective but permutation needs."""
    source = torch.Generator().manual_seed(seed)
    pieces = tokenizer().vocabulary
    ids = torch.randint(5, pieces, (rows, length), generator=source)
    mask = torch.ones(rows, length, dtype=torch.bool)
    if padded:
        mask[1, -3:] = False
        mask[2, -1:] = False
    chosen = (torch.rand(rows, length, generator=source) < 0.4) & mask
    chosen[:, 0] = False
    labels = torch.where(chosen, ids, -100)
    inputs = torch.where(chosen, torch.tensor(tokenizer().mask_id), ids)
    before = torch.randint(0, 3, (rows, 2, 1), generator=source)
    boundaries = torch.cat([before, before + 3, torch.tensor([[[0], [1]]] * rows)], -1)
    boundary_labels = torch.randint(5, pieces, (rows, 2), generator=source)
    boundary_labels[2:, 1] = -100
    return Batch(
        input_ids=inputs.masked_fill(~mask, 0),
        attention_mask=mask,
        labels=labels,
        label_weights=torch.where(chosen, torch.randint(1, 3, ids.shape, generator=source), 0),
        boundaries=boundaries,
        boundary_labels=boundary_labels,
        pair_labels=torch.randint(0, 2, (rows,), generator=source),
        draws=torch.rand(rows, length, generator=source),
    )


def ordered_batch(rows: int = 4, length: int = 8, *, seed: int = 4) -> Batch:
    """Rows whose last three pieces of a random order are asked; the last row asks for one only."""
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, tokenizer().vocabulary, (rows, length), generator=source)
    orders = torch.stack([torch.randperm(length, generator=source) for _ in range(rows)])
    rank = orders.argsort(1)
    seen = rank[:, None, :] < rank[:, :, None]
    targets = orders[:, -3:]
    labels = ids.gather(1, targets)
    labels[-1, 1:] = -100
    return Batch(
        input_ids=ids,
        visibility=seen | torch.eye(length, dtype=torch.bool),
        targets=targets,
        target_visibility=seen.gather(1, targets[..., None].expand(-1, -1, length)),
        target_labels=labels,
    )


def part(batch: Batch, rows: slice) -> Batch:
    """Some rows of a batch."""
    return replace(batch, **{n: v[rows] for n, v in vars(batch).items() if isinstance(v, Tensor)})
