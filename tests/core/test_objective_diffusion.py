"""Masked diffusion and masked next token: draws, losses by hand, and what may be seen."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.batch import Batch
from core_models.errors import InputError
from core_models.masking.diffusion import LEAST, diffused
from core_models.masking.tokens import MASK, generator_for
from core_models.network.encoder import EncoderOutput
from core_models.objectives import MaskedDiffusion, MaskedNextToken, build, read_leftward
from tests.core.tiny_models import masked_batch, new, tiny, tokenizer

SCORES = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]))


class Table(torch.nn.Module):
    """Fixed scores for the hidden vector's only number."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return SCORES[hidden[:, 0].long()]


def source(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def heard(*rows: list[int]) -> EncoderOutput:
    return EncoderOutput(torch.tensor(rows, dtype=torch.float32)[..., None])


# -- what diffusion hides ------------------------------------------------------------------------


def test_every_row_hides_a_share_of_its_own_all_of_it_behind_the_mask() -> None:
    rows = 16
    ids = torch.full((rows, 4000), 9)
    open_ = torch.ones_like(ids, dtype=torch.bool)
    open_[:, :2] = False
    found = diffused(ids, open_, generator=source(), mask_id=4)
    hidden = found.labels == 9
    assert torch.equal(found.inputs == 4, hidden)
    assert torch.equal(found.cases == MASK, hidden)
    assert not hidden[:, :2].any()
    share = hidden[:, 2:].double().mean(1)
    assert torch.equal(found.weights > 0, open_)
    torch.testing.assert_close(share, 1 / found.weights[:, 2].double(), atol=0.04, rtol=0)
    # One share in each sixteenth of (0, 1), in random order.
    told = 1 / found.weights[:, 2].double()
    places = ((told - LEAST) / (1 - LEAST) * rows).long()
    assert sorted(places.tolist()) == list(range(rows))
    assert places.tolist() != list(range(rows))


def test_a_row_with_a_generator_of_its_own_depends_on_nothing_beside_it() -> None:
    ids = torch.arange(5, 35).reshape(2, 15)
    open_ = torch.ones_like(ids, dtype=torch.bool)
    both = diffused(ids, open_, generator=[generator_for(3, n) for n in (0, 1)], mask_id=4)
    alone = diffused(ids[1:], open_[1:], generator=[generator_for(3, 1)], mask_id=4)
    assert torch.equal(both.inputs[1:], alone.inputs)
    longer = torch.nn.functional.pad(ids[1:], (0, 20), value=9)
    padded = diffused(longer, longer > 9, generator=[generator_for(3, 1)], mask_id=4)
    assert torch.equal(padded.inputs[:, 5:15], alone.inputs[:, 5:15])
    with pytest.raises(ValueError, match="1 generators for 2 rows"):
        diffused(ids, open_, generator=[source()], mask_id=4)


def test_shares_are_uniform_and_the_weights_make_up_for_them() -> None:
    ids = torch.full((4000, 12), 9)
    open_ = torch.ones_like(ids, dtype=torch.bool)
    found = diffused(ids, open_, generator=[source(n) for n in range(4000)], mask_id=4)
    shares = 1 / found.weights[:, 0]
    assert shares.mean().item() == pytest.approx(0.5, abs=0.02)
    assert shares.std().item() == pytest.approx(math.sqrt(1 / 12), abs=0.01)
    # Weighted, each piece counts once on average.
    weighted = (found.weights * (found.labels == 9)).mean().item()
    assert weighted == pytest.approx(1, abs=0.1)


# -- losses by hand ------------------------------------------------------------------------------


def test_masked_diffusion_by_hand() -> None:
    batch = Batch(
        input_ids=torch.zeros(2, 3, dtype=torch.long),
        labels=torch.tensor([[0, -100, 2], [-100, -100, 1]]),
        label_weights=torch.tensor([[1.25, 1.25, 1.25], [0.0, 4.0, 4.0]]),
    )
    objective = MaskedDiffusion(Table())
    losses = objective(new(tiny("bert-mini")).encoder, batch, output=heard([0, 1, 0], [1, 1, 1]))
    by_hand = -1.25 * (math.log(0.5) + math.log(0.25)) - 4 * math.log(0.8)
    assert losses.sums["masked_diffusion"].item() == pytest.approx(by_hand)
    assert losses.total.item() == pytest.approx(by_hand / 5), "five pieces could be hidden"
    assert losses.metrics["masked_diffusion_accuracy"] == (2, 3)
    assert objective.counts(batch)["masked_diffusion"].item() == 5
    with pytest.raises(ValueError, match="needs batch"):
        objective.counts(replace(batch, label_weights=None))


def test_masked_next_token_by_hand() -> None:
    """Position 0 answers for position 1; the second row is read from left to right."""
    seen = torch.ones(2, 3, 3, dtype=torch.bool)
    seen[1] = seen[1].tril()
    batch = Batch(
        input_ids=torch.zeros(2, 3, dtype=torch.long),
        labels=torch.tensor([[-100, -100, 2], [-100, 0, 1]]),
        visibility=seen,
    )
    objective = MaskedNextToken(Table(), 0.25)
    losses = objective(new(tiny("bert-mini")).encoder, batch, output=heard([1, 0, 1], [0, 1, 0]))
    masked, causal = -math.log(0.25), -math.log(0.5) - math.log(0.8)
    assert losses.parts["masked_next_token"].item() == pytest.approx(masked)
    assert losses.parts["causal"].item() == pytest.approx(causal / 2)
    assert losses.total.item() == pytest.approx(0.75 * masked + 0.25 * causal / 2)
    assert losses.metrics["causal_accuracy"] == (2, 2)
    assert losses.metrics["masked_next_token_accuracy"] == (0, 1)
    with pytest.raises(InputError, match="share read from left to right is 1"):
        MaskedNextToken(Table(), 1.0)


def test_which_rows_are_read_from_left_to_right_does_not_hang_on_the_padding() -> None:
    """Each row's generator has drawn for every piece of its row before, and for its padding."""
    batch = masked_batch(8)
    found = []
    for width in (9, 12):
        sources = [source(seed) for seed in range(8)]
        for each in sources:
            torch.rand(3 * width, generator=each)
        left = ~read_leftward(batch, 0.5, sources).visibility[:, 0, -1]
        assert 0 < left.sum() < 8
        found.append(left)
    assert torch.equal(*found)


def test_rows_read_from_left_to_right_hide_nothing_and_see_nothing_to_the_right() -> None:
    batch = masked_batch(8)
    found = read_leftward(batch, 0.3, source())
    left = ~found.visibility[:, 0, -1]
    assert left.sum() == 2, "0.3 of 8 rows"
    originals = torch.where(batch.labels >= 0, batch.labels, batch.input_ids)
    assert torch.equal(found.input_ids[left], originals[left])
    assert torch.equal(found.input_ids[~left], batch.input_ids[~left])
    assert torch.equal(found.labels[~left], batch.labels[~left])
    real = batch.attention_mask
    assert ((found.labels[left] != -100).sum(1) == real[left].sum(1) - 1).all()
    assert torch.equal(found.visibility[left], torch.ones(2, 9, 9).bool().tril())
    assert found.visibility[~left].all()
    again = read_leftward(batch, 0.3, source())
    assert torch.equal(again.labels, found.labels)
    assert (~read_leftward(batch, 0.01, source()).visibility[:, 0, -1]).sum() == 1, "one at least"

    model = new(tiny("bert-mini"), heads=("causal",))
    objective = build("masked_next_token", model)
    row = int(left.nonzero()[0])

    def hidden(ids: torch.Tensor) -> torch.Tensor:
        return model.encoder(replace(found, input_ids=ids)).hidden[row]

    other = found.input_ids.clone()
    other[row, 5] = 5 + (other[row, 5] - 4) % 20
    same, changed = hidden(found.input_ids), hidden(other)
    torch.testing.assert_close(same[:5], changed[:5])
    assert not torch.allclose(same[5:], changed[5:])
    assert objective(model.encoder, found).total.isfinite()


def test_a_model_of_masked_next_tokens_is_saved_and_asked_from_the_place_before(
    tmp_path: Path,
) -> None:
    model = new(replace(tiny("bert-mini"), objectives=("causal",)), heads=("causal",)).eval()
    model.save(tmp_path)
    again = cm.load(tmp_path)
    assert again.config == model.config
    assert list(again.heads) == ["causal"]
    text = "red fox [MASK] small dog"
    batch = again.batch([text])
    place = batch.input_ids[0].tolist().index(tokenizer().mask_id)
    hidden = again.encoder(batch).hidden[0, place - 1]
    best = again.heads["causal"](hidden[None])[0, : tokenizer().vocabulary].argmax().item()
    assert cm.fill(again, text).predictions[0].candidates[0].id == best
    # What comes after the gap counts, unlike in a model that reads from left to right.
    assert cm.score(again, ["red fox"])[0].kind == "pseudo-log-likelihood"
