"""The traps of ModernBERT's layers: windows, padding, blocks, the first norm, turns by kind."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core_models.batch import Batch
from core_models.config import Rotary
from core_models.network.encoder import Encoder
from core_models.network.trace import Trace
from core_models.network.windows import block_length
from tests.core import parity
from tests.core.modernbert import HEADS, WINDOW, built, inputs, theirs, tiny
from tests.core.parity import batch_of


@pytest.mark.parametrize("length", [12, 38])
def test_a_local_layer_does_not_see_beyond_its_window_on_any_path(length: int) -> None:
    """One local layer alone: what a token gives reaches the window and no further."""
    config = replace(tiny(), schedule=(0,), layer_kinds=("local",))
    encoder = built(config)
    ids = torch.arange(length)[None] % 60 + 7
    other = ids.clone()
    place = length // 2
    other[0, place] = 5
    near = (torch.arange(length) - place).abs() <= WINDOW
    for trace in (None, Trace(["probabilities"])):
        with torch.no_grad():
            before = encoder(Batch(input_ids=ids), trace).hidden[0]
            after = encoder(Batch(input_ids=other), trace).hidden[0]
        moved = (before - after).abs().amax(-1)
        assert bool((moved[near] > 1e-4).all())
        assert bool((moved[~near] == 0).all())
        if trace is not None:
            seen = trace["probabilities", 0][0].sum(0) > 0
            assert torch.equal(seen[place], near)


def test_padding_inside_a_window_has_no_say() -> None:
    encoder = built(tiny())
    ids = torch.arange(38)[None] % 60 + 7
    mask = torch.ones(1, 38, dtype=torch.bool)
    mask[0, [4, 5, 17, 30]] = False
    other = torch.where(mask, ids, 5)
    with torch.no_grad():
        before = encoder(Batch(input_ids=ids, attention_mask=mask)).hidden[mask]
        after = encoder(Batch(input_ids=other, attention_mask=mask)).hidden[mask]
    assert torch.equal(before, after)


def test_a_row_of_padding_alone_gives_no_gradient_that_is_not_a_number() -> None:
    encoder = built(tiny()).train()
    mask = torch.ones(2, 38, dtype=torch.bool)
    mask[1, 3:] = False  # most queries of the second row see no key
    out = encoder(Batch(input_ids=torch.full((2, 38), 7), attention_mask=mask))
    assert bool(out.hidden.isfinite().all())
    out.hidden[mask].square().mean().backward()
    assert all(bool(p.grad.isfinite().all()) for p in encoder.parameters() if p.grad is not None)


def test_blocks_give_what_the_whole_square_gives() -> None:
    encoder = built(tiny(window=8))
    length = 3 * block_length(8) + 5
    mask = torch.rand(3, length, generator=torch.Generator().manual_seed(2)) < 0.8
    batch = Batch(input_ids=torch.arange(3 * length).view(3, -1) % 60 + 7, attention_mask=mask)
    with torch.no_grad():
        fast = encoder(batch).hidden
        whole = encoder(batch, Trace(["scores"])).hidden
        places = torch.tensor([[0, 12, length - 1]]).expand(3, -1)
        local_last = built(replace(tiny(window=8), layer_kinds=("global", "local")))
        every = local_last(batch).hidden
        some = local_last(batch, places=places).hidden
    torch.testing.assert_close(fast[mask], whole[mask], atol=1e-5, rtol=0)
    row = torch.arange(3)[:, None]
    kept = mask[row, places]
    torch.testing.assert_close(some[row, places][kept], every[row, places][kept], atol=1e-5, rtol=0)


def test_the_first_attention_alone_has_no_norm() -> None:
    encoder = built(tiny())
    assert [type(block.attention_norm).__name__ for block in encoder.blocks] == [
        "Identity",
        *["LayerNorm"] * 4,
    ]
    shared = Encoder(replace(tiny(), schedule=(0, 0, 0)))  # its block stands further on, too
    assert type(shared.blocks[0].attention_norm).__name__ == "LayerNorm"
    bare = Encoder(replace(tiny(), embeddings=replace(tiny().embeddings, normed=False)))
    assert type(bare.blocks[0].attention_norm).__name__ == "LayerNorm"


def test_the_base_of_the_turns_is_the_kinds_own(tmp_path: Path) -> None:
    thetas = {"global_rope_theta": 500.0, "local_rope_theta": 20.0}
    reference = theirs(thetas)
    model = parity.written(reference, tmp_path)
    rotary = model.config.attention.rotary
    assert rotary == Rotary(theta=500.0, local_theta=20.0, positions=64)
    parity.check_outputs(model, reference, inputs(38, "left"), HEADS)
    with torch.no_grad():
        given = batch_of(inputs(38, "none"))
        expected = model.encoder(given).hidden
        for own in ({"theta": 20.0}, {"local_theta": 500.0}):
            attention = replace(model.config.attention, rotary=replace(rotary, **own))
            other = Encoder(replace(model.config, attention=attention)).eval()
            other.load_state_dict(model.encoder.state_dict())
            assert float((other(given).hidden - expected).abs().max()) > 1e-3


def test_scores_depend_on_distances_alone_and_a_trace_shows_the_turn() -> None:
    encoder = built(tiny())
    trace = Trace(["q", "k", "q_unturned", "k_unturned", "content_score"])
    with torch.no_grad():
        encoder(Batch(input_ids=torch.full((1, 9), 7)), trace)  # one piece everywhere
    q, k = trace["q", 1][0], trace["k", 1][0]
    torch.testing.assert_close(trace["content_score", 1][0], q @ k.mT / 8**0.5, atol=1e-6, rtol=0)
    before = trace["q_unturned", 1][0]
    torch.testing.assert_close(before, before[:, :1].expand_as(before), atol=1e-6, rtol=0)
    torch.testing.assert_close(q.norm(dim=-1), before.norm(dim=-1), atol=1e-5, rtol=0)
    assert float((q - before)[:, 1:].abs().max()) > 0.1
    scores = trace["content_score", 1][0]
    for distance in range(-8, 9):
        along = scores.diagonal(distance, 1, 2)
        torch.testing.assert_close(along, along[:, :1].expand_as(along), atol=1e-5, rtol=0)
    assert float((scores[:, 0, 3] - scores[:, 3, 0]).abs().max()) > 1e-3


def test_moving_a_text_moves_nothing() -> None:
    """Left padding shifts every position; rotary scores see distances alone."""
    encoder = built(tiny())
    ids = torch.arange(14)[None] + 9
    padded = torch.cat([torch.zeros(1, 11, dtype=torch.long), ids], 1)
    with torch.no_grad():
        alone = encoder(Batch(input_ids=ids)).hidden[0]
        shifted = encoder(Batch(input_ids=padded, attention_mask=padded > 0)).hidden[0, 11:]
    torch.testing.assert_close(alone, shifted, atol=1e-5, rtol=0)


def test_segments_are_not_read() -> None:
    encoder = built(tiny())
    ids = torch.arange(9)[None] + 9
    with torch.no_grad():
        one = encoder(Batch(input_ids=ids)).hidden
        two = encoder(Batch(input_ids=ids, segment_ids=torch.ones_like(ids))).hidden
    assert torch.equal(one, two)
