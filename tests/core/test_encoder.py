"""The encoder's own promises: schedule, trace, edits, visibility, counts, config."""

import pytest
import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.config import Attention, Config, Embeddings, FeedForward, diff
from core_models.counting.counts import count
from core_models.errors import InputError
from core_models.families import size, sizes
from core_models.network.attention import attend
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from core_models.network.trace import Edit, Trace, switch_off_heads


def tiny(schedule: tuple[int, ...] = (0, 1, 2), width: int = 16, embedding: int = 16) -> Config:
    return Config(
        family="bert",
        embeddings=Embeddings(vocabulary=50, width=embedding, positions=32),
        width=width,
        attention=Attention(heads=4, head_width=width // 4),
        feed_forward=FeedForward(width=24),
        schedule=schedule,
    )


def built(config: Config) -> Encoder:
    encoder = Encoder(config)
    initialise(encoder, 0.3, torch.Generator().manual_seed(0))
    return encoder.eval()


def batch(length: int = 9) -> Batch:
    ids = torch.randint(1, 50, (2, length), generator=torch.Generator().manual_seed(1))
    return Batch(input_ids=ids)


def test_schedule_repeats_one_block_and_the_trace_keeps_every_pass() -> None:
    encoder = built(tiny(schedule=(0, 0, 0, 0)))
    assert len(encoder.blocks) == 1
    trace = Trace(["probabilities", "residual"])
    out = encoder(batch(), trace)
    maps = trace.stack("probabilities")
    assert maps.shape == (4, 2, 4, 9, 9)
    assert not torch.equal(maps[0], maps[1])
    torch.testing.assert_close(maps.sum(-1), torch.ones(4, 2, 4, 9))
    assert torch.equal(trace["residual", 3], out.hidden)


def test_traced_and_fast_paths_agree() -> None:
    encoder = built(tiny())
    fast = encoder(batch()).hidden
    trace = Trace(["content_score", "scores", "probabilities", "q", "k", "v", "head_output"])
    torch.testing.assert_close(encoder(batch(), trace).hidden, fast, atol=1e-5, rtol=0)
    weights, values = trace["probabilities", 1], trace["v", 1]
    torch.testing.assert_close(weights @ values, trace["head_output", 1])
    expected = trace["q", 1] @ trace["k", 1].transpose(-1, -2) * 4**-0.5
    torch.testing.assert_close(trace["content_score", 1], expected)


def test_embedding_summands_add_up() -> None:
    encoder = built(tiny())
    trace = Trace(["embedding:pieces", "embedding:positions", "embedding:segments", "embedding"])
    encoder(batch(), trace)
    total = (
        trace["embedding:pieces", None]
        + trace["embedding:positions", None]
        + trace["embedding:segments", None]
    )
    torch.testing.assert_close(encoder.embeddings.norm(total), trace["embedding", None])


def test_switching_heads_off_equals_zeroing_their_output_weights() -> None:
    encoder = built(tiny())
    edited = encoder(batch(), Trace(edits=[switch_off_heads(1, [2])])).hidden
    with torch.no_grad():
        encoder.blocks[1].attention.output.weight[:, 8:12] = 0
    torch.testing.assert_close(encoder(batch()).hidden, edited, atol=1e-5, rtol=0)


def test_patching_a_residual_reaches_the_output() -> None:
    encoder = built(tiny())
    plain = encoder(batch()).hidden

    def patch(x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    patched = encoder(batch(), Trace(edits=[Edit("residual", patch, step=2)])).hidden
    assert torch.equal(patched, torch.zeros_like(plain))


def test_gradients_on_demand() -> None:
    encoder = built(tiny())
    trace = Trace(["probabilities"], gradients=True)
    encoder(batch(), trace).hidden.square().sum().backward()
    assert trace["probabilities", 0].grad is not None
    assert Trace(["probabilities"]).records == {}


def test_unknown_site_is_refused() -> None:
    with pytest.raises(ValueError, match="no trace site"):
        Trace(["attention"])


def test_visibility_blocks_information_in_both_paths() -> None:
    encoder = built(tiny())
    causal = torch.ones(9, 9).tril().bool().expand(2, -1, -1)
    ids = batch().input_ids
    changed = ids.clone()
    changed[:, 8] = 3
    for sites in ([], ["scores"]):
        a = encoder(Batch(input_ids=ids, visibility=causal), Trace(sites)).hidden
        b = encoder(Batch(input_ids=changed, visibility=causal), Trace(sites)).hidden
        assert torch.equal(a[:, :8], b[:, :8])
        assert not torch.equal(a[:, 8], b[:, 8])


def test_a_query_that_sees_nothing_attends_to_nothing() -> None:
    q, k, v = (
        torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(i)) for i in (1, 2, 3)
    )
    visible = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])
    fast = attend(q, k, v, scale=0.5, visible=visible)
    written = attend(q, k, v, scale=0.5, visible=visible, sites=Trace(["scores"]).at(0))
    assert torch.equal(fast[:, :, 1], torch.zeros(1, 2, 4))
    torch.testing.assert_close(fast, written, atol=1e-5, rtol=0)
    bias = {"position": torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(4))}
    fast = attend(q, k, v, scale=0.5, terms=bias, visible=visible)
    written = attend(
        q, k, v, scale=0.5, terms=bias, visible=visible, sites=Trace(["term:position"]).at(0)
    )
    assert torch.equal(fast[:, :, 1], torch.zeros(1, 2, 4))
    torch.testing.assert_close(fast, written, atol=1e-5, rtol=0)


def test_two_traces_at_once_do_not_mix() -> None:
    encoder = built(tiny())
    a, b = Trace(["residual"]), Trace(["residual"], steps=[0])
    encoder(batch(9), a)
    encoder(batch(5), b)
    assert a["residual", 0].shape[1] == 9
    assert b.recorded_steps("residual") == [0]
    assert b["residual", 0].shape[1] == 5


def test_too_long_input_is_refused() -> None:
    with pytest.raises(InputError, match="33 tokens; this model takes at most 32"):
        built(tiny())(batch(33))


def test_narrow_embeddings_are_projected() -> None:
    encoder = built(tiny(width=16, embedding=8))
    assert encoder.embeddings.projection.weight.shape == (16, 8)
    assert encoder(batch()).hidden.shape == (2, 9, 16)


def test_config_round_trip_and_errors() -> None:
    for config in sizes().values():
        assert Config.from_json(config.to_json()) == config
    good = tiny().to_json()
    for change, match in (
        ({"widht": 3}, "no field 'widht'"),
        ({"width": "16"}, "config.width must be int"),
        ({"schedule": [0, 2]}, "schedule"),
        ({"dropout": 2.0}, "dropout is 2.0"),
    ):
        with pytest.raises(InputError, match=match):
            Config.from_json(good | change)
    with pytest.raises(InputError, match="lacks the field 'width'"):
        Config.from_json({k: v for k, v in good.items() if k != "width"})
    terms = {"attention": good["attention"] | {"terms": {"kind": "rotary"}}}
    with pytest.raises(InputError, match="rotary"):
        Config.from_json(good | terms)


def test_diff_names_exactly_what_differs() -> None:
    found = {d.path: (d.left, d.right) for d in diff(size("bert-base"), size("bert-mini"))}
    assert found["width"] == (768, 256)
    assert set(found) == {
        "embeddings.width",
        "width",
        "attention.heads",
        "feed_forward.width",
        "schedule",
    }


@pytest.mark.parametrize(
    ("name", "base", "masked", "pretraining", "block"),
    [
        ("bert-base-uncased", 109_482_240, 109_514_298, 110_106_428, 7_087_872),
        ("bert-large-cased", 333_579_264, 333_610_308, 334_661_958, 12_596_224),
        ("bert-base-chinese", 102_267_648, 102_290_312, 102_882_442, 7_087_872),
        ("bert-base-multilingual-cased", 177_853_440, 177_974_523, 178_566_653, 7_087_872),
    ],
)
def test_published_counts(name: str, base: int, masked: int, pretraining: int, block: int) -> None:
    found = count(size(name))
    assert (found.base, found.masked, found.pretraining, found.one_block) == (
        base,
        masked,
        pretraining,
        block,
    )


def test_mini_counts() -> None:
    assert count(size("bert-tiny")).base == 4_385_920
    assert count(size("bert-mini")).base == 11_170_560
    assert count(size("bert-12x256")).base == 17_488_640


def test_unknown_size_names_close_ones() -> None:
    with pytest.raises(InputError, match="bert-base-uncased"):
        size("bert-bsae")


def test_initialisation_is_seeded_and_pads_are_zero() -> None:
    a, b = built(tiny()), built(tiny())
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    assert not a.embeddings.pieces.weight[0].any()


def test_compiles_as_one_graph() -> None:
    encoder = built(tiny())
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(batch()).hidden, encoder(batch()).hidden)


def test_a_mask_of_other_numbers_is_refused() -> None:
    ids = torch.tensor([[2, 9, 3]])
    for mask in (torch.ones(1, 3), torch.full((1, 3), 2)):
        with pytest.raises(ValueError, match="give booleans"):
            Batch(input_ids=ids, attention_mask=mask)
