"""Objectives against sums done by hand and against transformers."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.batch import Batch
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.objectives import MaskedToken, NextSentence, Weighted
from tests.core.tiny_models import narrow


@pytest.fixture
def config() -> cm.Config:
    config = cm.size("bert-mini").with_vocabulary(30).with_dropout(0.0)
    return replace(
        config,
        width=8,
        embeddings=replace(config.embeddings, width=8, positions=16),
        attention=config.attention.with_heads(2, 4),
        feed_forward=replace(config.feed_forward, width=16),
        schedule=(0, 1),
    )


@pytest.fixture
def encoder(config: cm.Config) -> Encoder:
    torch.manual_seed(0)
    return Encoder(config).eval()


class Table(torch.nn.Module):
    """A head that gives fixed scores for the hidden vector's first number."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__()
        self.scores = scores
        self.seen: list[torch.Size] = []

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.seen.append(hidden.shape)
        if hidden.dim() == 3:
            hidden = hidden[:, 0]
        return self.scores[hidden[:, 0].long()]


def output(values: list[list[float]]) -> EncoderOutput:
    return EncoderOutput(torch.tensor(values)[..., None])


def test_masked_token_by_hand(encoder: Encoder) -> None:
    scores = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]))
    head = Table(scores)
    batch = Batch(
        input_ids=torch.zeros(2, 3, dtype=torch.long),
        labels=torch.tensor([[0, -100, 2], [-100, -100, 1]]),
    )
    losses = MaskedToken(head)(encoder, batch, output=output([[0, 1, 0], [1, 1, 1]]))
    by_hand = -(math.log(0.5) + math.log(0.25) + math.log(0.8))
    assert head.seen == [torch.Size([3, 1])]
    assert losses.sums["masked_token"].item() == pytest.approx(by_hand)
    assert losses.total.item() == pytest.approx(by_hand / 3)
    correct, count = losses.metrics["masked_token_accuracy"]
    assert (correct.item(), count.item()) == (2, 3)


def test_a_weighted_label_counts_as_often_as_its_weight_says(encoder: Encoder) -> None:
    head = Table(torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])))
    batch = Batch(
        input_ids=torch.zeros(2, 3, dtype=torch.long),
        labels=torch.tensor([[0, -100, 2], [-100, -100, 1]]),
        label_weights=torch.tensor([[2.0, 9.0, 1.0], [9.0, 9.0, 3.0]]),
    )
    objective = MaskedToken(head)
    losses = objective(encoder, batch, output=output([[0, 1, 0], [1, 1, 1]]))
    by_hand = -(2 * math.log(0.5) + math.log(0.25) + 3 * math.log(0.8))
    assert objective.counts(batch)["masked_token"].item() == 6
    assert losses.sums["masked_token"].item() == pytest.approx(by_hand)
    assert losses.total.item() == pytest.approx(by_hand / 6)
    correct, count = losses.metrics["masked_token_accuracy"]
    assert (correct.item(), count.item()) == (5, 6)


def test_next_sentence_by_hand_ignores_examples_without_a_pair(encoder: Encoder) -> None:
    scores = torch.log(torch.tensor([[0.9, 0.1], [0.4, 0.6]]))
    batch = Batch(
        input_ids=torch.zeros(4, 1, dtype=torch.long), pair_labels=torch.tensor([0, 1, -100, 0])
    )
    losses = NextSentence(Table(scores))(encoder, batch, output=output([[0], [1], [1], [1]]))
    by_hand = -(math.log(0.9) + math.log(0.6) + math.log(0.4))
    assert losses.parts["next_sentence"].item() == pytest.approx(by_hand / 3)
    correct, count = losses.metrics["next_sentence_accuracy"]
    assert (correct.item(), count.item()) == (2, 3)


def test_a_batch_without_any_label_costs_nothing(config: cm.Config, encoder: Encoder) -> None:
    objective = Weighted(
        [(1.0, MaskedToken.build(config, encoder)), (0.5, NextSentence.build(config))]
    )
    batch = Batch(
        input_ids=torch.randint(5, 30, (2, 6)),
        labels=torch.full((2, 6), -100),
        pair_labels=torch.full((2,), -100),
    )
    losses = objective(encoder, batch)
    losses.total.backward()
    assert losses.total.item() == 0.0
    for parameter in [*encoder.parameters(), *objective.parameters()]:
        assert parameter.grad is None or not parameter.grad.any()


def test_weights_and_one_encoder_pass(config: cm.Config, encoder: Encoder) -> None:
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    encoder.register_forward_hook(count)
    parts = MaskedToken.build(config, encoder), NextSentence.build(config)
    batch = random_batch(4, 7)
    losses = Weighted([(1.0, parts[0]), (0.25, parts[1])])(encoder, batch)
    assert passes == 1
    alone = [part(encoder, batch).total for part in parts]
    torch.testing.assert_close(losses.total, alone[0] + 0.25 * alone[1])


def test_parts_of_a_batch_add_up_to_the_whole(config: cm.Config, encoder: Encoder) -> None:
    objective = Weighted(
        [(1.0, MaskedToken.build(config, encoder)), (0.5, NextSentence.build(config))]
    )
    batch = random_batch(5, 9)
    whole = objective(encoder, batch)
    counts = objective.counts(batch)
    assert {k: v.item() for k, v in counts.items()} == {
        k: v.item() for k, v in whole.counts.items()
    }
    total = torch.zeros(())
    for some in (slice(0, 1), slice(1, 5)):
        part = Batch(
            input_ids=batch.input_ids[some],
            labels=batch.labels[some],
            pair_labels=batch.pair_labels[some],
        )
        total = total + objective(encoder, part).total_over(counts)
    torch.testing.assert_close(total, whole.total)


def test_two_objectives_of_one_name_are_refused(config: cm.Config) -> None:
    with pytest.raises(ValueError, match="different names"):
        Weighted([(1.0, NextSentence.build(config)), (1.0, NextSentence.build(config))])


def test_losses_equal_those_of_transformers(config: cm.Config, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.BertForPreTraining(
        transformers.BertConfig(
            vocab_size=30,
            hidden_size=8,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=16,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    ).eval()
    theirs.save_pretrained(tmp_path, safe_serialization=True)
    cm.Tokenizer.train(["a b c d e f g"], vocabulary=100).save(tmp_path)
    model = cm.load(tmp_path)
    objective = Weighted(
        [
            (1.0, MaskedToken(model.heads["masked_token"])),
            (1.0, NextSentence(model.heads["next_sentence"])),
        ]
    )
    batch = random_batch(4, 9)
    mask = torch.ones(4, 9, dtype=torch.bool)
    mask[2, 5:] = False
    batch.labels[2, 5:] = -100
    ours = objective(model.encoder, replace(batch, attention_mask=mask))
    result = theirs(
        input_ids=batch.input_ids,
        attention_mask=mask.long(),
        labels=batch.labels,
        next_sentence_label=batch.pair_labels,
    )
    torch.testing.assert_close(ours.total, result.loss, atol=1e-5, rtol=1e-5)


def random_batch(rows: int, length: int) -> Batch:
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, 30, (rows, length), generator=generator)
    chosen = torch.rand(rows, length, generator=generator) < 0.4
    return Batch(
        input_ids=ids,
        labels=torch.where(chosen, ids, -100),
        pair_labels=torch.randint(0, 2, (rows,), generator=generator),
    )


def test_masked_tokens_are_predicted_from_the_mask_decoder_where_there_is_one() -> None:
    base = cm.size("deberta-base").with_dropout(0.0).with_vocabulary(30)
    config = narrow(base, width=8, inner=16)
    torch.manual_seed(0)
    encoder = Encoder(config)
    objective = MaskedToken.build(config, encoder)
    labels = torch.tensor([[-100, 7, -100, 9]])
    batch = Batch(input_ids=torch.tensor([[3, 4, 5, 6]]), labels=labels)
    out = encoder(batch)
    decoded = objective.head(encoder.decode(batch, out))[0, [1, 3]]
    expected = torch.nn.functional.cross_entropy(decoded, torch.tensor([7, 9]))
    assert objective(encoder, batch).total.item() == pytest.approx(expected.item(), abs=1e-5)
    traced = objective(encoder, batch, cm.Trace([]))  # decodes every position, with the same loss
    assert traced.total.item() == pytest.approx(expected.item(), abs=1e-5)
    last = torch.nn.functional.cross_entropy(
        objective.head(out.hidden)[0, [1, 3]], labels[0, [1, 3]]
    )
    assert abs(expected.item() - last.item()) > 1e-3
