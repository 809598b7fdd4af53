"""Losses of every objective that transformers has, over the same weights and inputs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    BertLMHeadModel,
    ElectraConfig,
    ElectraForPreTraining,
    XLNetConfig,
    XLNetLMHeadModel,
)

from benchmarks.parity_models import (
    VOCABULARY,
    Bare,
    batch_of,
    inputs,
    randomised,
    two_streams,
    written,
)
from core_models.batch import Batch
from core_models.objectives import (
    Causal,
    MaskedToken,
    NextSentence,
    Permutation,
    SentenceOrder,
    Weighted,
)
from core_models.objectives.replaced_token import judge
from core_models.objectives.replacing import Corrupted

SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
PADS = ["none", "right", "left"]


def labelled(values: dict[str, Tensor]) -> dict[str, Tensor]:
    source = torch.Generator().manual_seed(1)
    chosen = torch.rand(values["input_ids"].shape, generator=source) < 0.3
    chosen &= values["attention_mask"].bool()
    return {
        "labels": torch.where(chosen, values["input_ids"], -100),
        "pair": torch.randint(0, 2, (3,), generator=source),
    }


def close(ours: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def check_pair(model: Bare, theirs: torch.nn.Module, kind: type, label: str, pad: str) -> None:
    values = inputs(12, pad)
    labels = labelled(values)
    objective = Weighted(
        [
            (1.0, MaskedToken(model.heads["masked_token"])),
            (1.0, kind(model.heads[kind.name])),
        ]
    )
    batch = replace(batch_of(values), labels=labels["labels"], pair_labels=labels["pair"])
    expected = theirs(**values, labels=labels["labels"], **{label: labels["pair"]}).loss
    close(objective(model.encoder, batch).total, expected)


@pytest.mark.parametrize("pad", PADS)
def test_bert_for_pretraining(tmp_path: Path, pad: str) -> None:
    theirs = randomised(BertForPreTraining(BertConfig(**SMALL)))
    check_pair(written(theirs, tmp_path), theirs, NextSentence, "next_sentence_label", pad)


@pytest.mark.parametrize("pad", PADS)
def test_albert_for_pretraining(tmp_path: Path, pad: str) -> None:
    theirs = randomised(AlbertForPreTraining(AlbertConfig(**SMALL, embedding_size=12)))
    check_pair(written(theirs, tmp_path), theirs, SentenceOrder, "sentence_order_label", pad)


@pytest.mark.parametrize("pad", PADS)
def test_electra_for_pretraining(tmp_path: Path, pad: str) -> None:
    """Their loss takes the labels that our objective makes, so only the second half compares."""
    theirs = randomised(ElectraForPreTraining(ElectraConfig(**SMALL, embedding_size=12)))
    model = written(theirs, tmp_path)
    values = inputs(12, pad)
    replaced = torch.rand(3, 12, generator=torch.Generator().manual_seed(2)) < 0.4
    batch = batch_of(values)
    scores = model.heads["replaced_token"](model.encoder(batch).hidden)
    losses = judge(scores, Corrupted(batch, replaced, torch.full((3, 12), -100)))
    expected = theirs(**values, labels=replaced.float())
    close(losses.parts["replaced_token"], expected.loss)
    said = torch.sigmoid(expected.logits) > 0.5
    right = ((said == replaced) & batch.attention_mask).sum()
    assert losses.metrics["replaced_token_accuracy"][0] == right


@pytest.mark.parametrize("pad", PADS)
def test_xlnet_with_a_target_mapping(tmp_path: Path, pad: str) -> None:
    config = XLNetConfig(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48)
    theirs = randomised(XLNetLMHeadModel(config))
    model = written(theirs, tmp_path)
    values, batch = two_streams(12, pad, pad_id=5)
    labels = values["input_ids"].gather(1, batch.targets)
    labels[~values["attention_mask"].bool().gather(1, batch.targets)] = -100
    expected = theirs(**values, labels=labels, use_mems=False).loss
    objective = Permutation(model.heads["permutation"])
    close(objective(model.encoder, replace(batch, target_labels=labels)).total, expected)


@pytest.mark.parametrize("pad", ["none", "right"])
def test_bert_as_a_decoder(tmp_path: Path, pad: str) -> None:
    theirs = randomised(BertLMHeadModel(BertConfig(**SMALL, is_decoder=True)))
    model = written(theirs, tmp_path)
    values = inputs(12, pad)
    labels = values["input_ids"].masked_fill(values["attention_mask"] == 0, -100)
    expected = theirs(**values, labels=labels).loss
    objective = Causal(model.config, model.heads["causal"])
    close(objective(model.encoder, batch_of(values)).total, expected)


def test_an_empty_batch_has_a_loss_unlike_theirs(tmp_path: Path) -> None:
    theirs = randomised(BertForPreTraining(BertConfig(**SMALL)))
    model = written(theirs, tmp_path)
    ids = torch.full((1, 3), 7)
    none = torch.full((1, 3), -100)
    assert theirs(ids, labels=none, next_sentence_label=torch.zeros(1).long()).loss.isnan()
    objective = MaskedToken(model.heads["masked_token"])
    assert objective(model.encoder, Batch(input_ids=ids, labels=none)).total.item() == 0
