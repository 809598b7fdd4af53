"""What score terms keep between passes: never stale, never mixed, never in a graph."""

import copy
import math
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

from core_models.batch import Batch
from core_models.config import Config, Disentangled
from core_models.families import size
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise
from core_models.network.terms.cache import Cache
from core_models.network.trace import Trace

KINDS = ["deberta-base", "deberta-v3-base", "xlnet-base"]


def tiny(name: str, *, span: int = 512) -> Config:
    config = size(name)
    terms = config.attention.terms
    if isinstance(terms, Disentangled):
        terms = replace(terms, span=span)
    return replace(
        config,
        width=16,
        embeddings=replace(config.embeddings, vocabulary=40, width=16),
        attention=replace(config.attention, heads=4, head_width=4, terms=terms),
        feed_forward=replace(config.feed_forward, width=20),
        schedule=(0, 1),
    )


def built(config: Config, seed: int = 0) -> Encoder:
    encoder = Encoder(config)
    initialise(encoder, 0.3, torch.Generator().manual_seed(seed))
    return encoder.eval()


def batch(length: int, rows: int = 2) -> Batch:
    generator = torch.Generator().manual_seed(length)
    return Batch(input_ids=torch.randint(6, 40, (rows, length), generator=generator))


def fresh(encoder: Encoder, inputs: Batch) -> Tensor:
    """The result of a copy that has nothing kept."""
    return copy.deepcopy(encoder)(inputs).hidden


@pytest.mark.parametrize("name", KINDS)
def test_lengths_in_any_order_equal_a_fresh_model(name: str) -> None:
    encoder = built(tiny(name, span=200))
    with torch.no_grad():
        for length in (5, 40, 5, 210, 33, 140, 7, 210, 1):
            inputs = batch(length, 1)
            expected = fresh(encoder, inputs)
            torch.testing.assert_close(encoder(inputs).hidden, expected, atol=1e-5, rtol=0)
    with_grad = encoder(batch(33, 1)).hidden
    with torch.no_grad():
        torch.testing.assert_close(encoder(batch(33, 1)).hidden, with_grad, atol=1e-5, rtol=0)


@pytest.mark.parametrize("length", [33, 140, 200])
@pytest.mark.parametrize("name", KINDS)
def test_terms_written_in_place_equal_those_of_a_graph(name: str, length: int) -> None:
    """Long passes without gradients sum their terms in memory that all blocks share."""
    encoder = built(tiny(name))
    inputs = batch(length)
    mask = torch.ones(2, length, dtype=torch.bool)
    mask[0, -7:] = False
    mask[1, :5] = False
    halves = torch.arange(length).expand(2, -1) // (length // 2 + 1)
    inputs = replace(inputs, attention_mask=mask, segment_ids=halves)
    expected = encoder(inputs).hidden.detach()
    with torch.no_grad():
        found = encoder(inputs).hidden
        written_out = encoder(inputs, trace=Trace(["scores"])).hidden
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=0)
    torch.testing.assert_close(written_out[mask], expected[mask], atol=1e-5, rtol=0)


@pytest.mark.parametrize("training", [True, False])
def test_both_streams_share_what_they_read(training: bool) -> None:
    """Keys, values and relative rows are made once per step, the queries once per stream."""
    encoder = built(tiny("xlnet-base")).train(training)
    attention = encoder.blocks[0].attention
    parts = ["query", "key", "value", "terms.position_key"]
    calls = dict.fromkeys(parts, 0)

    def count(part: str) -> None:
        calls[part] += 1

    for part in parts:
        module = attention.get_submodule(part)
        module.register_forward_hook(lambda *_, part=part: count(part))
    encoder(replace(batch(9), targets=torch.tensor([[1, 4], [0, 8]])))
    assert calls == {"query": 2, "key": 1, "value": 1, "terms.position_key": 1}


def step(encoder: Encoder) -> None:
    encoder(batch(6)).hidden.square().sum().backward()
    torch.optim.SGD(encoder.parameters(), lr=0.1).step()


def in_place(encoder: Encoder) -> None:
    with torch.no_grad():
        for p in encoder.parameters():
            p.mul_(1.5)


def load(encoder: Encoder) -> None:
    encoder.load_state_dict(built(encoder.config, 1).state_dict())


def assign(encoder: Encoder) -> None:
    encoder.load_state_dict(built(encoder.config, 1).state_dict(), assign=True)


def swap_storage(encoder: Encoder) -> None:
    for p in encoder.parameters():
        p.data = p.data * 0.5


def cast(encoder: Encoder) -> None:
    encoder.double().float()
    in_place(encoder)


def write_behind(encoder: Encoder) -> None:
    """Writes through ``.data`` hide from the version counter; changing the mode forgets."""
    for p in encoder.parameters():
        p.data.mul_(1.5)
    encoder.eval()


CHANGES = [step, in_place, load, assign, swap_storage, cast, write_behind]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_changed_weights_are_seen(name: str, change: Callable[[Encoder], None]) -> None:
    encoder = built(tiny(name))
    with torch.no_grad():
        before = encoder(batch(9)).hidden
    change(encoder)
    with torch.no_grad():
        after = encoder(batch(9)).hidden
        torch.testing.assert_close(after, fresh(encoder, batch(9)), atol=1e-5, rtol=0)
    assert not torch.allclose(before, after)


def relative_parameters(encoder: Encoder) -> list[str]:
    names = ["table.", "position_key", "position_query"]
    shared = ["attention.key", "attention.query"]
    terms = encoder.config.attention.terms
    if isinstance(terms, Disentangled) and terms.shared_projections:
        names += shared
    return [n for n, _ in encoder.named_parameters() if any(part in n for part in names)]


@pytest.mark.parametrize("name", KINDS)
def test_a_change_to_any_one_relative_parameter_is_seen(name: str) -> None:
    encoder = built(tiny(name))
    names = relative_parameters(encoder)
    assert names
    with torch.no_grad():
        for parameter in names:
            encoder(batch(9))
            p = encoder.get_parameter(parameter)
            p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
            ours = encoder(batch(9)).hidden
            torch.testing.assert_close(
                ours, fresh(encoder, batch(9)), atol=1e-5, rtol=0, msg=parameter
            )


def test_projections_are_kept_and_shared_by_shorter_lengths() -> None:
    encoder = built(tiny("deberta-base"))
    cache = encoder.blocks[0].attention.terms.cache
    with torch.no_grad():
        encoder(batch(60))
        kept = cache._entry
        assert kept is not None
        for length in (60, 2, 64, 33):
            encoder(batch(length))
            assert cache._entry is kept
        encoder(batch(65))
        assert cache._entry is not kept
    encoder.train()
    assert cache._entry is None


def test_short_and_long_passes_may_alternate() -> None:
    """From the first pass beyond the exact buckets on, one projection serves every length."""
    encoder = built(tiny("deberta-v3-base"))
    cache = encoder.blocks[1].attention.terms.cache
    with torch.no_grad():
        encoder(batch(150, 1))
        kept = cache._entry
        for length in (9, 150, 129, 130, 300):
            inputs = batch(length, 1)
            torch.testing.assert_close(
                encoder(inputs).hidden, fresh(encoder, inputs), atol=1e-5, rtol=0
            )
            assert cache._entry is kept


def test_nothing_is_kept_in_training_or_with_gradients() -> None:
    for name in KINDS:
        encoder = built(tiny(name))
        caches = [b.attention.terms.cache for b in encoder.blocks] + [encoder.table.cache]
        encoder(batch(9))
        with torch.no_grad():
            encoder.train()(batch(9))
        assert [cache._entry for cache in caches] == [None] * 3


def test_long_xlnet_passes_keep_nothing() -> None:
    encoder = built(replace(tiny("xlnet-base"), schedule=(0,)))
    with torch.no_grad():
        encoder(batch(2100, 1))
    assert encoder.table.cache._entry is None
    assert encoder.blocks[0].attention.terms.cache._entry is None


@pytest.mark.parametrize("name", KINDS)
def test_copies_and_pickles_carry_nothing_kept(name: str) -> None:
    encoder = built(tiny(name))
    with torch.no_grad():
        expected = encoder(batch(9)).hidden
        for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
            assert other.table.cache._entry is None
            assert torch.equal(other(batch(9)).hidden, expected)
            in_place(other)
            assert not torch.allclose(other(batch(9)).hidden, expected)
        assert torch.equal(encoder(batch(9)).hidden, expected)


@pytest.mark.parametrize("name", KINDS)
def test_inference_mode_and_no_grad_share_what_is_kept(name: str) -> None:
    encoder = built(tiny(name))
    with torch.inference_mode():
        first = encoder(batch(9)).hidden.clone()
    with torch.no_grad():
        second = encoder(batch(9)).hidden
    assert torch.equal(first, second)
    hidden = encoder(batch(9)).hidden
    hidden.sum().backward()  # nothing kept under inference mode reaches a graph
    torch.testing.assert_close(hidden.detach(), second)
    with torch.inference_mode():
        born_there = built(tiny(name))
        before = born_there(batch(9)).hidden
        in_place(born_there)
        assert not torch.allclose(born_there(batch(9)).hidden, before)


@pytest.mark.parametrize("name", KINDS)
def test_autocast_and_full_precision_do_not_mix(name: str) -> None:
    encoder = built(tiny(name))
    with torch.no_grad():
        full = encoder(batch(9)).hidden
        with torch.autocast("cpu", torch.bfloat16):
            half = encoder(batch(9)).hidden
        assert torch.equal(encoder(batch(9)).hidden, full)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(encoder(batch(9)).hidden, half)
        low = encoder.bfloat16()(batch(9)).hidden
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), full, atol=0.2, rtol=0.1)


@pytest.mark.parametrize("name", KINDS)
def test_threads_share_one_model(name: str) -> None:
    encoder = built(tiny(name))
    lengths = [5, 70, 9, 33, 130, 64, 12, 200] * 3
    with torch.no_grad():
        expected = {n: fresh(encoder, batch(n, 1)) for n in set(lengths)}

    def run(length: int) -> Tensor:
        with torch.no_grad():
            return encoder(batch(length, 1)).hidden

    with ThreadPoolExecutor(8) as pool:
        for length, hidden in zip(lengths, pool.map(run, lengths), strict=True):
            torch.testing.assert_close(hidden, expected[length], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", KINDS)
def test_replaced_parameters_are_used(name: str) -> None:
    encoder, other = built(tiny(name)), built(tiny(name), 1)
    with torch.no_grad():
        expected = other(batch(9)).hidden
        before = encoder(batch(9)).hidden
        called = torch.func.functional_call(encoder, dict(other.named_parameters()), (batch(9),))
        assert torch.equal(called.hidden, expected)
        assert torch.equal(encoder(batch(9)).hidden, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_compiles_as_one_graph_for_all_lengths(name: str) -> None:
    encoder = built(replace(tiny(name), schedule=(0,)))
    counter = CompileCounter()
    compiled = torch.compile(encoder, fullgraph=True, backend=counter)
    with torch.no_grad():
        for length in (9, 12, 140, 150, 200):
            expected = encoder(batch(length)).hidden
            torch.testing.assert_close(compiled(batch(length)).hidden, expected)
    assert counter.frame_count <= 3  # the first length, any length, any past the exact buckets
    compiled(batch(9)).hidden.sum().backward()
    torch.compiler.reset()


def test_the_relative_table_is_dropped_out_in_every_block_for_itself() -> None:
    """As in the released code; XLNet drops its sinusoids once per pass."""
    config = replace(tiny("deberta-base"), dropout=0.5, schedule=(0, 0))
    encoder = Encoder(config).train()
    seen: list[Tensor] = []
    layer = encoder.blocks[0].attention.terms.position_key
    assert isinstance(layer, nn.Linear)
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    torch.manual_seed(0)
    encoder(batch(9))
    share = [float((rows == 0).float().mean()) for rows in seen]
    assert all(math.isclose(x, 0.5, abs_tol=0.15) for x in share)
    assert not torch.equal(seen[0] == 0, seen[1] == 0)


@pytest.mark.parametrize("name", KINDS)
def test_a_fused_step_in_eval_mode_is_seen(name: str) -> None:
    """Fused optimizers write parameters without their version counter."""
    encoder = built(tiny(name))
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.05, fused=True)
    with torch.no_grad():
        before = encoder(batch(9)).hidden
    encoder(batch(6)).hidden.square().sum().backward()
    optimizer.step()
    with torch.no_grad():
        after = encoder(batch(9)).hidden
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, fresh(encoder, batch(9)).detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", [(128, 128), (100, 128), (128,)])
def test_a_row_or_a_column_that_is_written_behind_makes_it_stale(shape: tuple[int, ...]) -> None:
    weight = nn.Parameter(torch.zeros(shape))
    cache = Cache()

    def total() -> float:
        with torch.no_grad():
            (found,) = cache.get("", None, [weight], lambda: (weight.sum(),))
        return float(found)

    for row in (5, 64, 99):  # as who takes a neuron out does
        before = total()
        weight.data[row] += 1.0
        assert total() > before
    for column in (3, 90):
        before = total()
        weight.data[..., column] += 1.0
        assert total() > before
    assert total() == float(weight.detach().sum())
