"""A narrow copy of every family with all that belongs to it, and what it says about a batch."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

import core_models as cm
from core_models.batch import Batch
from core_models.config import Config, Disentangled
from core_models.families import FAMILIES
from core_models.families import size as size_of
from core_models.heads.pretraining import SpanBoundaryHead
from core_models.network.trace import INPUT_SITES, STEP_SITES, Trace
from core_models.tokenizer.files import Template

SIZES = {
    "bert": "bert-base-uncased",
    "bert, Chinese": "bert-base-chinese",
    "bert, whole words": "chinese-roberta-wwm-ext",
    "bert, left to right": "bert-base-uncased",
    "roberta": "roberta-base",
    "distilbert": "distilbert-base-uncased",
    "albert": "albert-base",
    "spanbert": "spanbert-base-cased",
    "electra, discriminator": "electra-base-discriminator",
    "electra, narrow": "electra-small-discriminator",
    "electra, generator": "electra-base-generator",
    "macbert": "chinese-macbert-base",
    "xlnet": "xlnet-base-cased",
    "deberta": "deberta-base",
    "deberta v2": "deberta-v2-xlarge",
    "deberta v3": "deberta-v3-base",
    "deberta v3, generator": "deberta-v3-base-generator",
    "modernbert": "modernbert-base",
    "eurobert": "eurobert-610m",
    "neobert": "neobert",
}
"""The published size that each case is a narrow copy of."""

LENGTH, PADDING, ROWS = 13, 5, 3
EVERYTHING = (*STEP_SITES, *INPUT_SITES, "term:*")
TEXTS = ["The red fox sees the small dog.", "A dog likes the old house.", "Birds sing in the tree."]
LABELS = {
    "classify": ("good", "bad", "neither"),
    "multilabel": ("good", "bad", "neither", "long"),
    "tag": ("O", "PERSON"),
}


@cache
def tokenizer(family: str) -> cm.Tokenizer:
    about = FAMILIES[family]
    smallest = 300 if about.tokenizer == "byte_bpe" else 120
    plain = cm.Tokenizer.train(TEXTS * 5, vocabulary=smallest, kind=about.tokenizer)
    template = getattr(Template, about.template)(plain.specials)
    return cm.Tokenizer.train(
        TEXTS * 5, vocabulary=smallest, kind=about.tokenizer, template=template
    )


def narrow(case: str) -> Config:
    """The case's config at width 32, three steps, everything of its family kept."""
    config = size_of(SIZES[case])
    words, parts, terms = tokenizer(config.family), config.embeddings, config.attention.terms
    if isinstance(terms, Disentangled):
        terms = replace(terms, span=6, buckets=terms.buckets and 4)  # shorter than the input
    widths = {-1: 12, 0: 32, 1: 48}  # tables narrower than the model, as wide, or wider
    table = widths[(parts.width > config.width) - (parts.width < config.width)]
    first = words.pad_id + 1 if parts.first_position else 0
    left = case.endswith("left to right")
    return replace(
        config,
        embeddings=replace(
            parts,
            vocabulary=words.vocabulary,
            pad_id=words.pad_id,
            width=table,
            positions=parts.positions and 40 + first,
            first_position=first,
        ),
        width=32,
        attention=replace(
            config.attention,
            heads=4,
            head_width=8,
            key_heads=config.attention.key_heads and 2,
            terms=terms,
            window=config.attention.window and 2,  # long inputs: attention is computed in blocks
            direction="left" if left else "both",
        ),
        feed_forward=replace(config.feed_forward, width=48),
        schedule=(0, 0, 0) if config.blocks == 1 else (0, 1, 2),
        initial_std=0.2,
        mask_decoder=config.mask_decoder and replace(config.mask_decoder, positions=40),
        objectives=("causal",) if left else config.objectives,
    )


def new(case: str, seed: int = 1, dropout: float | None = None) -> cm.Model:
    """A model whose biases and norms, too, are away from their initial values."""
    config = narrow(case)
    config = config if dropout is None else config.with_dropout(dropout)
    generator = torch.Generator().manual_seed(seed)
    model = cm.Model.new(config, tokenizer(config.family), generator=generator).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(torch.randn(p.shape, generator=generator) * 0.2)
    return model


def inputs(model: cm.Model, *, rows: int = ROWS, pad: str = "") -> Batch:
    """A batch with two segments and, in XLNet, with targets; the second row may be padded."""
    config = model.config
    generator = torch.Generator().manual_seed(7)
    vocabulary = config.embeddings.vocabulary
    ids = torch.randint(5, vocabulary, (rows, LENGTH), generator=generator)
    mask = torch.ones(rows, LENGTH, dtype=torch.bool)
    if pad:
        mask[1, slice(0, PADDING) if pad == "left" else slice(LENGTH - PADDING, LENGTH)] = False
    segments = (torch.arange(LENGTH) >= 6).long().expand(rows, -1)
    targets = visible = None
    if config.query_stream:
        targets = torch.tensor([[6, 7]]).expand(rows, -1)  # real in every row
        visible = torch.ones(rows, 2, LENGTH, dtype=torch.bool)
        visible[:, 0, 6:8] = False  # neither itself nor the other
        visible[:, 1, 7] = False
    return Batch(
        input_ids=ids,
        attention_mask=mask if pad else None,
        segment_ids=segments if config.embeddings.segments != 1 else None,
        targets=targets,
        target_visibility=visible,
    )


def task(case: str, head: str) -> cm.Model:
    """The case's encoder under a new head of fine-tuning."""
    generator = torch.Generator().manual_seed(2)
    return new(case, dropout=0.0).with_head(head, LABELS.get(head, ()), generator=generator)


def answers(model: cm.Model, batch: Batch, trace: Trace | None = None) -> dict[str, Tensor]:
    """Everything that a model says about a batch, by name."""
    out = model.encoder(batch, trace)
    found = {"hidden": out.hidden, **out.streams}
    for name, head in model.heads.items():
        hidden = out.hidden
        if isinstance(head, SpanBoundaryHead):
            spans = torch.tensor([[0, 5, 8, 0], [0, 5, 8, 1], [2, 6, 8, 0]])
            hidden = head.boundaries(hidden, spans[: 2 if batch.shape[0] < 3 else 3])
        elif name == "masked_token":
            hidden = model.encoder.decode(batch, out, trace)
        elif name == "permutation":
            hidden = out.streams["query"]
        found[name] = head(hidden)
    return found


def close(ours: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=0)


def storages(model: cm.Model) -> Iterator[int]:
    for tensor in (*model.parameters(), *model.buffers()):
        yield tensor.untyped_storage().data_ptr()
