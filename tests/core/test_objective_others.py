"""Span boundary, permutation, causal and sentence order by hand, and what each must not see."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

import core_models as cm
from core_models.batch import Batch
from core_models.config import diff
from core_models.network.encoder import EncoderOutput
from core_models.objectives import Causal, Permutation, SentenceOrder, SpanBoundary
from tests.core.tiny_models import masked_batch, new, ordered_batch, tiny, tokenizer


def test_span_boundary_reads_both_neighbours_and_the_place() -> None:
    """One span at 2 and 3: its pieces are told from tokens 1 and 4 and the places 0 and 1."""
    model = new(tiny("spanbert-base"))
    head = model.heads["span_boundary"]
    objective = SpanBoundary(head)
    batch = Batch(
        input_ids=torch.tensor([[2, 7, 4, 4, 9, 3], [2, 8, 6, 5, 9, 3]]),
        boundaries=torch.tensor([[[0, 0, 0], [0, 0, 0]], [[1, 4, 0], [1, 4, 1]]]),
        boundary_labels=torch.tensor([[-100, -100], [6, 5]]),
    )
    hidden = model.encoder(batch).hidden[1]
    norm = functional.layer_norm
    total = 0.0
    for place, label in ((0, 6), (1, 5)):
        x = torch.cat([hidden[1], hidden[4], head.place.weight[place]])
        x = norm(functional.gelu(head.boundary_dense(x)), (8,), eps=1e-12)
        x = norm(functional.gelu(head.dense(x)), (8,), eps=1e-12)
        scores = model.encoder.embeddings.pieces.weight @ x + head.decoder.bias
        total -= scores.log_softmax(-1)[label].item()
    losses = objective(model.encoder, batch)
    assert losses.sums["span_boundary"].item() == pytest.approx(total, rel=1e-5)
    assert losses.parts["span_boundary"].item() == pytest.approx(total / 2, rel=1e-5)
    assert losses.counts["span_boundary"].item() == 2


def test_sentence_order_by_hand() -> None:
    class First(torch.nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return torch.stack([torch.zeros(len(hidden)), hidden[:, 0, 0]], -1)

    batch = Batch(input_ids=torch.zeros(3, 1).long(), pair_labels=torch.tensor([0, 1, -100]))
    output = EncoderOutput(torch.tensor([3.0, 3.0, 1.0])[:, None, None])
    losses = SentenceOrder(First())(new(tiny("albert-base")).encoder, batch, output=output)
    odds = torch.tensor([0.0, 3.0]).log_softmax(-1)
    assert losses.total.item() == pytest.approx(-odds.mean().item())
    assert losses.metrics["sentence_order_accuracy"] == (1, 2)


# -- permutation --------------------------------------------------------------------------------


def test_permutation_reads_the_query_stream_at_the_targets() -> None:
    model = new(tiny("xlnet-base"))
    batch = ordered_batch()
    query = model.encoder(batch).streams["query"]
    scores = query @ model.encoder.embeddings.pieces.weight.T
    scores = (scores + model.heads["permutation"].decoder.bias).log_softmax(-1)
    asked = batch.target_labels >= 0
    assert int(asked.sum()) == 10
    total = -sum(
        scores[row, at, batch.target_labels[row, at]].item() for row, at in asked.nonzero().tolist()
    )
    losses = Permutation(model.heads["permutation"])(model.encoder, batch)
    assert losses.sums["permutation"].item() == pytest.approx(total, rel=1e-5)
    assert losses.counts["permutation"].item() == 10


def test_a_target_does_not_see_its_own_piece() -> None:
    """Another piece at the last of an order changes no answer; one at the first changes them."""
    model = new(tiny("xlnet-base")).eval()
    objective = Permutation(model.heads["permutation"])
    batch = ordered_batch()

    def losses(at: int) -> torch.Tensor:
        ids = batch.input_ids.clone()
        ids[0, at] = 5 + (ids[0, at] - 4) % (tokenizer().vocabulary - 5)
        return objective(model.encoder, replace(batch, input_ids=ids)).total

    usual = objective(model.encoder, batch).total
    last = int(batch.targets[0, -1])
    others = set(range(8)) - set(batch.targets[0].tolist())
    assert losses(last).item() == usual.item()
    assert losses(min(others)).item() != usual.item()


def test_permutation_hands_memory_on() -> None:
    model = new(tiny("xlnet-base"))
    objective = Permutation(model.heads["permutation"])
    batch = replace(ordered_batch(), remember=6, reuse=5)
    first = objective(model.encoder, batch)
    assert [m.shape for m in first.memory] == [(4, 5, 8)] * 2
    assert torch.equal(first.memory[0], model.encoder.embeddings(batch)[:, :5])
    assert not any(m.requires_grad for m in first.memory)
    second = objective(model.encoder, replace(batch, memory=first.memory))
    assert second.memory[0].shape == (4, 6, 8)
    assert second.total.item() != first.total.item()


# -- causal -------------------------------------------------------------------------------------


def left(name: str = "bert-mini") -> cm.Model:
    config = tiny(name)
    return new(
        replace(config, attention=replace(config.attention, direction="left")), heads=("causal",)
    ).eval()


def test_causal_asks_every_real_token_but_the_first() -> None:
    model = left()
    batch = masked_batch()
    originals = torch.where(batch.labels >= 0, batch.labels, batch.input_ids)
    hidden = model.encoder(replace(batch, input_ids=originals)).hidden
    scores = model.heads["causal"](hidden).log_softmax(-1)
    total, count = 0.0, 0
    for row, length in enumerate(batch.attention_mask.sum(1).tolist()):
        for at in range(1, length):
            total -= scores[row, at - 1, originals[row, at]].item()
            count += 1
    losses = Causal(model.config, model.heads["causal"])(model.encoder, batch)
    assert losses.sums["causal"].item() == pytest.approx(total, rel=1e-5)
    assert losses.counts["causal"].item() == count == 5 * 8 - 3 - 1


def test_no_token_sees_what_follows() -> None:
    model = left()
    batch = masked_batch(padded=False)
    usual = model.encoder(batch).hidden
    for at in (3, 8):
        ids = batch.input_ids.clone()
        ids[:, at] = 5 + (ids[:, at] - 4) % (tokenizer().vocabulary - 5)
        hidden = model.encoder(replace(batch, input_ids=ids)).hidden
        assert torch.equal(hidden[:, :at], usual[:, :at])
        assert not torch.isclose(hidden[:, at:], usual[:, at:]).all(-1).any()
    traced = model.encoder(batch, cm.Trace(["probabilities"])).hidden
    torch.testing.assert_close(traced, usual, atol=1e-5, rtol=1e-5)


def test_padding_changes_no_causal_answer() -> None:
    model = left()
    objective = Causal(model.config, model.heads["causal"])
    ids = masked_batch(padded=False).input_ids
    short = objective(model.encoder, Batch(input_ids=ids[:, :6]))
    mask = torch.ones_like(ids).bool()
    mask[:, 6:] = False
    padded = objective(model.encoder, Batch(input_ids=ids, attention_mask=mask))
    assert padded.counts["causal"].item() == short.counts["causal"].item() == 25
    torch.testing.assert_close(padded.total, short.total, atol=1e-5, rtol=1e-5)


def test_directions_that_cannot_be() -> None:
    config = left().config
    assert config.left_to_right
    assert not tiny("bert-mini").left_to_right
    assert cm.Config.from_json(config.to_json()) == config
    assert [d.path for d in diff(tiny("bert-mini"), config)][:1] == ["attention.direction"]
    xlnet = tiny("xlnet-base")
    terms = replace(xlnet.attention.terms, direction="left")
    assert replace(xlnet, attention=replace(xlnet.attention, terms=terms)).left_to_right
    with pytest.raises(cm.InputError, match=r"attention.direction is 'up'; allowed are both, left"):
        replace(config, attention=replace(config.attention, direction="up"))
    with pytest.raises(cm.InputError, match="look to the right"):
        replace(config, mask_decoder=cm.size("deberta-base").mask_decoder)
    with pytest.raises(cm.InputError, match=r"set attention\.direction to 'left'"):
        Causal(tiny("bert-mini"), torch.nn.Identity())
