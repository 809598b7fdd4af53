"""Relative distances: diagonals, blocks, targets, buckets."""

import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from core_models.config import Disentangled
from core_models.families import size
from core_models.network.terms.disentangled import DisentangledTable, bucket
from core_models.network.terms.distances import (
    BLOCK,
    along_diagonals,
    at_targets,
    by_distance,
    by_key,
    columns_of,
    distances,
    from_targets,
    reach_for,
)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (2, 5), (7, 7), (1, 4)])
def test_diagonals_hold_the_wanted_distance(queries: int, keys: int) -> None:
    columns = distances(queries, keys, torch.device("cpu"))
    assert columns.tolist() == list(range(keys - 1, -queries, -1))
    square = along_diagonals(columns.expand(2, queries, -1), keys)
    remembered = keys - queries
    for i in range(queries):
        for j in range(keys):
            assert square[1, i, j] == remembered + i - j


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (5, 9), (2 * BLOCK + 3, 2 * BLOCK + 10)])
def test_blocks_of_queries_give_the_same_square(queries: int, keys: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 3, queries, 4, generator=generator)
    rows = torch.randn(queries + keys - 1, 12, generator=generator)
    columns = columns_of(rows, 3)
    whole = along_diagonals(by_distance(x, columns), keys)
    torch.testing.assert_close(by_key(x, columns, keys), whole)
    torch.testing.assert_close(by_key(x, columns.contiguous(), keys), whole)
    products = x[1, 2] @ rows.view(-1, 3, 4)[:, 2].T
    for i, j in ((0, 0), (0, keys - 1), (queries - 1, 0), (queries - 1, keys - 1), (2, 1)):
        torch.testing.assert_close(whole[1, 2, i, j], products[i, queries - 1 - i + j])


def test_targets_pick_rows_of_the_square() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = columns_of(torch.randn(11, 12, generator=generator), 3)  # Q = 5, K = 7
    x = torch.randn(2, 3, 5, 4, generator=generator)
    targets = torch.tensor([[4, 0, 2], [1, 1, 3]])
    chosen = x.gather(2, targets[:, None, :, None].expand(-1, 3, -1, 4))
    square = by_key(x, rows, 7)
    wanted = square.gather(2, targets[:, None, :, None].expand(-1, 3, -1, 7))
    torch.testing.assert_close(at_targets(by_distance(chosen, rows), targets, 7), wanted)


def test_targets_pick_columns_of_the_square_of_keys() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = columns_of(torch.randn(9, 12, generator=generator), 3)
    k = torch.randn(2, 3, 5, 4, generator=generator)
    targets = torch.tensor([[4, 0, 2], [1, 1, 3]])
    square = by_key(k, rows, 5).transpose(-1, -2)  # [B, H, Q, K]
    wanted = square.gather(2, targets[:, None, :, None].expand(-1, 3, -1, 5))
    torch.testing.assert_close(from_targets(by_distance(k, rows), targets), wanted)


def test_reach_grows_in_powers_of_two() -> None:
    assert [reach_for(n, 0) for n in (0, 31, 32, 63, 64, 511)] == [31, 31, 63, 63, 127, 511]
    assert reach_for(5, 127) == 127


def test_published_buckets() -> None:
    far = torch.tensor([0, 1, 128, 129, 150, 200, 256, 300, 400, 500, 511])
    expected = torch.tensor([0, 1, 128, 129, 143, 169, 192, 207, 233, 254, 255])
    found = bucket(far, 256, 512)
    chosen = torch.tensor([0, 1, 2, 4, 5, 6, 7, 8, 9, 10])
    assert torch.equal(found[chosen], expected[chosen])
    assert torch.equal(bucket(-far, 256, 512), -found)


@pytest.mark.parametrize(("buckets", "span"), [(256, 512), (8, 64), (32, 128), (48, 512), (6, 20)])
def test_buckets_equal_those_of_transformers_at_every_distance(buckets: int, span: int) -> None:
    distance = torch.arange(-3000, 3001)
    theirs = make_log_bucket_position(distance, buckets, span).long()
    assert torch.equal(bucket(distance, buckets, span), theirs)


def test_table_rows_end_at_the_table() -> None:
    published = DisentangledTable(size("deberta-v3-xsmall"), Disentangled(buckets=256))
    assert published.relative.num_embeddings == 512
    distance = torch.tensor([-4000, -600, -511, 0, 511, 512, 4000])
    assert published.index(distance).tolist() == [0, 0, 1, 256, 511, 511, 511]
    first = DisentangledTable(size("deberta-v3-xsmall"), Disentangled(span=6))
    assert first.index(torch.tensor([-9, -6, -5, 0, 5, 6, 9])).tolist() == [0, 0, 1, 6, 11, 11, 11]
