import numpy as np
import pytest

from viz.encoding import block_maximum, from_bytes, quantise, restore, to_base64


def test_codes_are_square_roots():
    codes = quantise(np.array([0.0, 0.25, 1.0]))
    assert codes.dtype == np.uint8
    assert codes.tolist() == [0, 128, 255]


@pytest.mark.parametrize(("bits", "furthest"), [(8, 2.0e-3), (16, 7.7e-6)])
def test_restored_weights_stay_near(bits, furthest):
    weights = np.linspace(0, 1, 5001, dtype=np.float32).reshape(1, -1)
    again = restore(quantise(weights, bits=bits))
    assert again.shape == weights.shape
    # Half a code step: |d(code^2)| = 2 * code * 0.5 / top, at most 1 / top.
    top = 2**bits - 1
    assert np.abs(again - weights).max() <= 1 / top + 1e-6
    small = weights < 0.2
    assert np.abs(again - weights)[small].max() <= furthest


def test_a_small_weight_is_not_lost():
    assert quantise(np.array([4e-4]))[0] > 0


def test_rounding_errors_outside_are_clipped():
    assert quantise(np.array([-1e-7, 1 + 1e-6])).tolist() == [0, 255]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.5])
def test_what_is_no_weight_is_refused(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantise(np.array([0.1, bad]))


def test_other_bit_counts_are_refused():
    with pytest.raises(ValueError, match="8 and 16"):
        quantise(np.array([0.1]), bits=12)


def test_block_maximum_keeps_single_links():
    weights = np.zeros((2, 7, 7), dtype=np.float32)
    weights[1, 6, 2] = 0.9
    small = block_maximum(weights, 3)
    # 7 values in 3 blocks start at 0, 2, 4.
    expected = np.zeros((2, 3, 3), dtype=np.float32)
    expected[1, 2, 1] = 0.9
    np.testing.assert_array_equal(small, expected)


def test_block_maximum_against_a_loop():
    weights = np.random.default_rng(0).random((50, 61))
    small = block_maximum(weights, 13)
    rows = [i * 50 // 13 for i in range(14)]
    columns = [i * 61 // 13 for i in range(14)]
    for i in range(13):
        for j in range(13):
            block = weights[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]
            assert small[i, j] == block.max()


def test_block_maximum_of_holes_is_what_stands_between_them():
    values = np.array([[np.nan, 0.5, np.nan, np.nan]])
    np.testing.assert_array_equal(block_maximum(values, 2), [[0.5, np.nan]])


def test_block_maximum_leaves_small_maps_alone():
    weights = np.random.default_rng(0).random((4, 4))
    np.testing.assert_array_equal(block_maximum(weights, 48), weights)
    with pytest.raises(ValueError, match="at least 1"):
        block_maximum(weights, 0)


@pytest.mark.parametrize("kind", ["u1", "<u2", "<f4"])
def test_base64_both_ways(kind):
    values = np.arange(12).reshape(3, 4).astype(kind)
    np.testing.assert_array_equal(from_bytes(to_base64(values), kind), values.ravel())
    np.testing.assert_array_equal(from_bytes(to_base64(values.T), kind), values.T.ravel())


def test_base64_is_little_endian_whatever_the_array():
    assert to_base64(np.array([1], dtype=">u2")) == to_base64(np.array([1], dtype="<u2"))
