import json

import numpy as np
import pytest

import viz


def attention(steps, heads, length, seed=0):
    scores = np.random.default_rng(seed).normal(size=(steps, heads, length, length)) * 2
    weights = np.exp(scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def special(length):
    return [position in (0, length - 1) for position in range(length)]


def maps_of(overview):
    cells = overview.layers * (overview.heads + 1) + 1
    flat = viz.from_bytes(overview.maps, "u1")
    return flat.reshape(cells, overview.side, overview.side)


def test_cells_are_heads_then_mean_then_the_mean_of_all():
    weights = attention(2, 3, 6)
    maps = maps_of(viz.overview(weights, special(6)))
    assert len(maps) == 2 * 4 + 1
    np.testing.assert_array_equal(maps[1], viz.quantise(weights[0, 1]))
    np.testing.assert_array_equal(maps[3], viz.quantise(weights[0].mean(0)))
    np.testing.assert_array_equal(maps[6], viz.quantise(weights[1, 2]))
    np.testing.assert_array_equal(maps[8], viz.quantise(weights.mean((0, 1))))


def test_strongest_links_of_each_cell():
    weights = np.full((1, 2, 4, 4), 0.1, dtype=np.float32)
    weights[0, 0, 2, 0] = 0.7
    weights[0, 0, 1, 2] = 0.4
    weights[0, 1, 3, 3] = 0.6
    found = viz.overview(weights, special(4))
    assert found.strongest[0] == viz.Pair(source=2, target=0, weight=pytest.approx(0.7))
    assert (found.strongest[1].source, found.strongest[1].target) == (3, 3)
    plain = viz.overview(weights, special(4), hide=True).strongest
    assert plain[0] == viz.Pair(source=1, target=2, weight=pytest.approx(0.4))


def test_of_a_sentence_of_special_tokens_none_is_left_out():
    found = viz.overview(attention(1, 1, 2), [True, True], hide=True)
    assert None not in found.strongest
    assert found.side == 2


def test_each_map_can_run_to_its_own_strongest_link():
    weights = np.full((1, 2, 4, 4), 0.01, dtype=np.float32)
    weights[0, 0, 2, 0], weights[0, 1, 1, 1] = 0.04, 0.64
    maps = maps_of(viz.overview(weights, special(4), own=True))
    assert list(maps.max((1, 2))) == [255] * 4
    assert maps[0, 0, 0] == pytest.approx(255 * 0.5, abs=1)
    assert maps[1, 0, 0] == pytest.approx(255 * 0.125, abs=1)


def test_the_staring_head_gives_most_to_special_tokens():
    weights = np.full((2, 2, 4, 4), 0.25, dtype=np.float32)
    weights[1, 0, :, 0] = 0.7
    assert viz.staring_head(weights, special(4)) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "heads", "length"),
    [(4, 4, 512), (12, 12, 32), (12, 12, 256), (12, 12, 512), (24, 16, 60)],
)
def test_the_payload_stays_under_a_megabyte(steps, heads, length):
    weights = attention(steps, heads, length)
    answer = {
        **viz.overview(weights, special(length)).to_json(),
        **viz.head_numbers(weights[0, 0]),
    }
    assert len(json.dumps(answer)) < 1_000_000 - 100 * length  # the tokens travel with them
    assert 16 <= answer["side"] <= min(length, 48)


def test_512_tokens_of_one_head_stay_under_a_megabyte():
    weights = attention(1, 1, 512)[0, 0]
    answer = viz.head_numbers(weights)
    assert answer["kind"] == "sqrt16"
    assert len(answer["data"]) < 1_000_000
    again = viz.restore(viz.from_bytes(answer["data"], "<u2")).reshape(512, 512)
    assert np.abs(again - weights).max() < 1.6e-5


def test_numbers_of_short_sentences_are_exact():
    weights = attention(1, 1, 9)[0, 0]
    answer = viz.head_numbers(weights)
    assert (answer["kind"], answer["length"]) == ("float32", 9)
    np.testing.assert_array_equal(viz.from_bytes(answer["data"], "<f4").reshape(9, 9), weights)


def test_hiding_leaves_special_tokens_out():
    short = viz.overview(attention(1, 1, 8), special(8), hide=True)
    assert short.side == 6
    weights = attention(1, 1, 60)
    long = viz.overview(weights, special(60), hide=True)
    assert long.side == 48
    expected = viz.quantise(viz.block_maximum(weights[0, 0, 1:-1, 1:-1], 48))
    np.testing.assert_array_equal(maps_of(long)[0], expected)


def test_hiding_can_leave_fewer_rows_than_the_largest_side():
    flags = [position >= 5 for position in range(60)]
    found = viz.overview(attention(1, 1, 60), flags, hide=True)
    assert found.side == 5


def test_shapes_must_fit():
    with pytest.raises(ValueError, match="equal"):
        viz.overview(attention(1, 1, 5), special(4))


def test_broken_weights_are_refused():
    weights = attention(1, 1, 5)
    weights[0, 0, 1, 1] = np.nan
    with pytest.raises(ValueError, match="between 0 and 1"):
        viz.overview(weights, special(5))


def test_weights_of_a_place():
    weights = attention(2, 3, 5)
    np.testing.assert_array_equal(viz.head_weights(weights, 1, 2), weights[1, 2])
    np.testing.assert_allclose(viz.head_weights(weights, 1, viz.MEAN), weights[1].mean(0))
    np.testing.assert_allclose(viz.head_weights(weights, None, None), weights.mean((0, 1)))


@pytest.mark.parametrize(("layer", "head"), [(2, 0), (0, 3), (-1, 0), (0, -1), (None, 0)])
def test_places_that_do_not_exist(layer, head):
    with pytest.raises(ValueError, match="0 to"):
        viz.head_weights(attention(2, 3, 5), layer, head)


def test_the_clearest_head_has_the_strongest_link_between_words():
    weights = np.full((2, 2, 4, 4), 0.1, dtype=np.float32)
    weights[0, 0, 1, 1] = 0.9  # a token looking at itself
    weights[0, 1, 1, 3] = 0.9  # a word looking at [SEP]
    weights[1, 1, 2, 1] = 0.5  # a word looking at another
    before = weights.copy()
    assert viz.clearest_head(weights, special(4)) == (1, 1)
    np.testing.assert_array_equal(weights, before)
    assert viz.clearest_head(weights, [True, False, True, True]) == (0, 0)


def test_strongest_is_sorted_and_stable():
    weights = np.array([[0.2, 0.5], [0.5, 0.1]])
    found = [(pair.source, pair.target) for pair in viz.strongest(weights, 3)]
    assert found == [(0, 1), (1, 0), (0, 0)]
    assert len(viz.strongest(weights, 99)) == 4
    assert viz.strongest(weights, 2, keep=[]) == []
    (only,) = viz.strongest(weights, 2, keep=[1])
    assert (only.source, only.target) == (1, 1)
