"""Replaced token: sampling, labels, losses, sharing and parameter counts."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import core_models as cm
from core_models.batch import Batch
from core_models.families.deberta_v3 import PAIRS as V3_PAIRS
from core_models.families.electra import PAIRS
from core_models.joint import generator_config, new_generator, share
from core_models.model import Model
from core_models.objectives import ReplacedToken, corrupt
from core_models.objectives.replacing import replace_pieces, sample
from tests.core.tiny_models import masked_batch, new, tiny, tokenizer


def pair(name: str = "electra-small", sharing: str = "tied", **values: float) -> ReplacedToken:
    model = new(tiny(name))
    objective = ReplacedToken(
        model,
        new_generator(model, generator=torch.Generator().manual_seed(2)),
        sharing=sharing,
        **values,
    )
    objective.model = model  # so that tests can reach it
    return objective


# -- sampling -----------------------------------------------------------------------------------


def test_a_draw_picks_the_piece_whose_share_it_falls_into() -> None:
    logits = torch.tensor([0.5, 0.0, 0.125, 0.375]).log().expand(7, -1)
    draws = torch.tensor([0.0, 0.499, 0.5, 0.624, 0.626, 0.9999999, 1.0])
    assert sample(logits, draws).tolist() == [0, 0, 2, 2, 3, 3, 3]
    flat = torch.tensor([[0.0, 3.0, -math.inf]])
    assert sample(flat, torch.tensor([1.0])).item() == 1  # never what has no probability


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_scores_that_overflow_give_a_piece_of_the_vocabulary(odd: float) -> None:
    logits = torch.tensor([[0.0, odd, 1.0], [odd, odd, odd]])
    assert set(sample(logits, torch.tensor([0.5, 0.5])).tolist()) <= {0, 1, 2}


def test_a_generator_that_diverges_gives_a_loss_that_is_no_number() -> None:
    """The trainer refuses such an update with a sentence; a piece beyond the table stopped it."""
    objective = pair()
    with torch.no_grad():
        for weight in objective.generator.heads["masked_token"].parameters():
            weight.fill_(math.inf)
    losses = objective(objective.model.encoder, masked_batch())
    assert not bool(losses.parts["masked_token"].isfinite())


def test_samples_follow_the_softmax_and_the_temperature() -> None:
    logits = torch.tensor([2.0, 0.0, -1.0, 1.0, -9.0])
    draws = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    for temperature in (1.0, 0.5, 3.0):
        wanted = (logits / temperature).softmax(-1)
        found = sample(logits.expand(len(draws), -1), draws, temperature).bincount(minlength=5)
        expected = wanted * len(draws)
        chi_square = ((found - expected) ** 2 / expected).sum().item()
        assert chi_square < 20  # 4 degrees of freedom: p = 0.0005


def test_corrupting_writes_samples_at_labels_and_originals_elsewhere() -> None:
    batch = Batch(
        input_ids=torch.tensor([[2, 9, 4, 4, 3, 0]]),
        attention_mask=torch.tensor([[1, 1, 1, 1, 1, 0]]).bool(),
        segment_ids=torch.tensor([[0, 0, 0, 1, 1, 0]]),
        labels=torch.tensor([[-100, 9, 7, 8, -100, -100]]),  # 9 was drawn and left as it is
        draws=torch.tensor([[0.9, 0.1, 0.1, 0.9, 0.9, 0.9]]),
    )
    logits = torch.full((3, 12), -1e9)
    logits[0, [9, 5]] = math.log(0.5)
    logits[1, [7, 10]] = math.log(0.5)
    logits[2, [8, 11]] = math.log(0.5)
    result = replace_pieces(batch, logits)
    assert result.batch.input_ids.tolist() == [[2, 5, 7, 11, 3, 0]]
    assert result.samples.tolist() == [[-100, 5, 7, 11, -100, -100]]
    assert result.replaced.tolist() == [[False, True, False, True, False, False]]  # 7 is lucky
    assert result.batch.labels is None
    assert torch.equal(result.batch.segment_ids, batch.segment_ids)


def test_corrupt_uses_the_generator_and_keeps_no_gradient() -> None:
    objective = pair()
    batch = masked_batch()
    result = corrupt(objective.generator, batch)
    scores = objective.filling.scores(objective.generator.encoder, batch)
    assert scores.requires_grad
    again = replace_pieces(batch, scores)
    assert torch.equal(result.batch.input_ids, again.batch.input_ids)
    alone = corrupt(objective.generator, replace(batch, label_weights=None))
    assert torch.equal(result.replaced, alone.replaced)
    assert 0 < int(result.replaced.sum()) <= int((batch.labels >= 0).sum())


# -- labels and losses --------------------------------------------------------------------------


def test_a_generator_that_is_always_right_leaves_nothing_to_find() -> None:
    class Right(torch.nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return functional.one_hot(originals, tokenizer().vocabulary) * 100.0 + 0 * hidden.sum()

    objective = pair()
    batch = masked_batch()
    originals = batch.labels[batch.labels >= 0]
    objective.filling.head = Right()
    metrics = objective(objective.model.encoder, batch).metrics
    assert metrics["replaced_token_share"][0] == 0
    assert metrics["replaced_token_lucky"] == (len(originals), len(originals))
    assert metrics["replaced_token_found"] == (0, 0)


@pytest.mark.parametrize("name", ["electra-small", "deberta-v3-small"])
def test_losses_by_hand_over_every_real_token(name: str) -> None:
    objective = pair(name)
    encoder = objective.model.encoder
    batch = masked_batch()
    losses = objective(encoder, batch)
    given = corrupt(objective.generator, batch)
    hidden = encoder(given.batch).hidden
    total, said, found = 0.0, 0, 0
    head = objective.head
    for row, column in batch.attention_mask.nonzero().tolist():
        x = hidden[row, column]
        if name.startswith("deberta"):  # sees itself beside the first token, after a norm
            y = x + hidden[row, 0]
            y = (y - y.mean()) / (y.var(correction=0) + 1e-7).sqrt()
            x = y * head.norm.weight + head.norm.bias
        x = functional.gelu(head.dense.weight @ x + head.dense.bias)
        score = (head.classifier.weight @ x + head.classifier.bias).item()
        fake = bool(given.replaced[row, column])
        total -= math.log(1 / (1 + math.exp(-score if fake else score)))
        said += (score > 0) == fake
        found += score > 0 and fake
    real = int(batch.attention_mask.sum())
    assert losses.sums["replaced_token"].item() == pytest.approx(total, rel=1e-5)
    assert losses.counts["replaced_token"].item() == real < batch.attention_mask.numel()
    assert losses.metrics["replaced_token_accuracy"] == (said, real)
    assert losses.metrics["replaced_token_found"] == (found, int(given.replaced.sum()))
    assert losses.metrics["replaced_token_share"] == (int(given.replaced.sum()), real)
    filled = objective.filling(objective.generator.encoder, batch)
    assert losses.sums["masked_token"].item() == filled.sums["masked_token"].item()
    expected = filled.parts["masked_token"] + 50 * losses.parts["replaced_token"]
    torch.testing.assert_close(losses.total, expected)


def test_the_joint_loss_starts_at_its_known_value() -> None:
    """ln V + 50 ln 2, the discriminator undecided and the generator uniform."""
    config = replace(tiny("electra-small", width=32), initial_std=0.02)
    model = new(config)
    objective = ReplacedToken(model, new_generator(model))
    total = objective(model.encoder, masked_batch(64, 16)).total.item()
    assert total == pytest.approx(math.log(tokenizer().vocabulary) + 50 * math.log(2), abs=0.2)
    objective = ReplacedToken(model, new_generator(model), weight=10.0)
    total = objective(model.encoder, masked_batch(64, 16)).total.item()
    assert total == pytest.approx(math.log(tokenizer().vocabulary) + 10 * math.log(2), abs=0.1)


def test_the_discriminator_moves_the_generator_through_shared_tables_only() -> None:
    objective = pair()
    losses = objective(objective.model.encoder, masked_batch())
    losses.sums["replaced_token"].backward()
    shared = set(objective.model.encoder.embeddings.pieces.parameters())
    shared |= set(objective.model.encoder.embeddings.positions.parameters())
    shared |= set(objective.model.encoder.embeddings.segments.parameters())
    shared |= set(objective.model.encoder.embeddings.norm.parameters())
    for name, p in objective.generator.named_parameters():
        assert (p.grad is not None) == (p in shared), name
    losses = objective(objective.model.encoder, masked_batch())
    losses.sums["masked_token"].backward()
    for name, p in objective.model.encoder.blocks.named_parameters():
        q = objective.generator.encoder.blocks.get_parameter(name)
        assert q.grad is not None, name
        assert q.grad is not p.grad


# -- sharing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "total", "untied"),
    [
        ("electra-small-paper", 14_196_219, 18_169_083),
        ("electra-small", 23_122_875, 27_095_739),
        ("electra-base", 119_386_427, 143_223_611),
        ("electra-large", 354_655_291, 386_438_203),
    ],
)
def test_unique_parameters_of_the_published_pairs(name: str, total: int, untied: int) -> None:
    generator, discriminator = (cm.size(size) for size in PAIRS[name])

    def built(sharing: str) -> int:
        with torch.device("meta"):
            model = Model(discriminator, tokenizer(), ("replaced_token",))
            other = Model(generator, tokenizer(), ("masked_token",))
        objective = ReplacedToken(model, other, sharing=sharing)
        both = torch.nn.ModuleList([model.encoder, objective])
        return sum(p.numel() for p in both.parameters())

    assert built("tied") == total
    assert built("none") == untied


def test_tied_models_move_together_and_apart_where_they_should(tmp_path: Path) -> None:
    objective = pair()
    ours, theirs = objective.generator.encoder.embeddings, objective.model.encoder.embeddings
    for name in ("pieces", "positions", "segments", "norm"):
        assert getattr(ours, name) is getattr(theirs, name)
    assert ours.projection is not theirs.projection
    head = objective.generator.heads["masked_token"]
    assert head.decoder.weight is theirs.pieces.weight
    objective.generator.save(tmp_path / "generator")
    objective.model.save(tmp_path / "model")
    again = cm.load(tmp_path / "generator")
    rest = cm.load(tmp_path / "model")
    batch = masked_batch()
    joined = ReplacedToken(rest, again)
    before, after = (
        o(m.encoder, batch).total for o, m in ((objective, objective.model), (joined, rest))
    )
    assert before.item() == after.item()
    copied = objective.generator.clone()
    table = copied.encoder.embeddings.pieces.weight
    assert copied.heads["masked_token"].decoder.weight is table
    assert table is not theirs.pieces.weight


def test_tables_that_do_not_fit_are_refused() -> None:
    model = new(tiny("electra-small"))
    other = new(replace(tiny("electra-base"), objectives=("masked_token",)))
    for sharing in ("tied", "gradient_disentangled"):
        with pytest.raises(cm.InputError, match="the same tables"):
            share(other, model, sharing)
    ReplacedToken(model, other, sharing="none")  # only the vocabulary matters
    small = replace(other.config, embeddings=replace(other.config.embeddings, vocabulary=99))
    with pytest.raises(cm.InputError, match="same vocabulary"):
        share(new(small), model, "none")


# -- the generator's sizes ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["electra-small-paper", "electra-base", "electra-large"])
def test_the_published_ratio(name: str) -> None:
    generator, discriminator = PAIRS[name]
    assert generator_config(cm.size(discriminator)) == cm.size(generator)


def test_the_released_small_generator_is_as_wide() -> None:
    generator, discriminator = PAIRS["electra-small"]
    assert generator_config(cm.size(discriminator), width=256) == cm.size(generator)


@pytest.mark.parametrize("name", V3_PAIRS)
def test_half_the_depth_in_v3(name: str) -> None:
    made = generator_config(cm.size(name))
    published = cm.size(V3_PAIRS[name][0])
    assert replace(made, replaced_token_style="token") == replace(
        published, replaced_token_style="token"
    )
    assert made.steps == {"xsmall": 6, "small": 3, "base": 6, "large": 12}[name.split("-")[-1]]


def test_own_sizes_and_shared_blocks() -> None:
    made = generator_config(cm.size("albert-base"), layers=3, width=96, heads=3, inner=100)
    assert (made.width, made.attention.heads, made.attention.head_width) == (96, 3, 32)
    assert (made.schedule, made.feed_forward.width) == ((0, 0, 0), 100)
    assert made.embeddings == cm.size("albert-base").embeddings
    with pytest.raises(cm.InputError, match="multiple of its 5 heads"):
        generator_config(cm.size("electra-small"), heads=5)


def test_a_new_generator_starts_from_the_models_tables() -> None:
    model = new(tiny("electra-small"))
    made = new_generator(model, generator=torch.Generator().manual_seed(1))
    same = new_generator(model, generator=torch.Generator().manual_seed(1))
    assert all(torch.equal(a, b) for a, b in zip(made.parameters(), same.parameters(), strict=True))
    ours, theirs = made.encoder.embeddings, model.encoder.embeddings
    assert torch.equal(ours.pieces.weight, theirs.pieces.weight)
    assert ours.pieces.weight is not theirs.pieces.weight
    assert made.heads["masked_token"].decoder.weight is ours.pieces.weight
