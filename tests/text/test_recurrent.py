"""XLNet's aligned rows, against the procedure written out piece by piece."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from core_models.data import Corpus, TokenStore
from core_models.data.formats import examples
from core_models.data.pairs import IS_NEXT, IS_RANDOM
from core_models.data.recurrent import Recurrent, _split
from core_models.errors import InputError
from core_models.tokenizer import Specials, Template, Tokenizer

LENGTH, REUSE = 24, 10


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> TokenStore:
    """Documents whose pieces have ids from 500 on, each id once; words of one to three pieces."""
    template = Template.trailing(Specials(pad="<pad>", unknown="<unk>"))
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram", template=template)
    draw = random.Random(5)
    at = iter(range(500, 100_000))
    documents = [
        [[next(at) for _ in range(draw.randint(1, 9))] for _ in range(draw.randint(1, 8))]
        for _ in range(60)
    ]
    plain = Corpus.from_ids(documents)
    starts = np.array([draw.random() < 0.5 for _ in plain.tokens])
    starts[plain.sentences[:-1]] = True
    corpus = Corpus(plain.tokens, starts, plain.sentences, plain.documents)
    chosen = examples("recurrent", corpus, range(50), max_length=LENGTH, generator=random.Random(0))
    folder = tmp_path_factory.mktemp("recurrent") / "store"
    TokenStore.build(folder, corpus, {"train": chosen}, tok)
    return TokenStore.open(folder)


def made(store: TokenStore, **options: object) -> Recurrent:
    values = {"batch_size": 4, "length": LENGTH, "reuse": REUSE, "seed": 3}
    return Recurrent(store, **values | options)  # type: ignore[arg-type]


def test_rows_continue_those_of_the_step_before(store: TokenStore) -> None:
    data = made(store)
    seen: list[list[int]] = [[] for _ in range(4)]
    upcoming: list[int] = []
    for step in range(data.steps):
        batch = data.batch(0, step)
        assert batch.reuse == REUSE
        ids = batch.input_ids
        # A began where the reused text of the next step begins.
        assert not step or ids[:, 0].tolist() == upcoming
        upcoming = ids[:, REUSE].tolist()
        for row in range(4):
            seen[row] += ids[row, :REUSE].tolist()
    part = int(store.lengths.sum() - 2 * 50) // 2  # two special pieces in each of 50 documents
    assert data.steps == (part - LENGTH) // REUSE + 1
    tokens, bounds = store.corpus.tokens, store.corpus.sentences
    first = set(tokens[bounds[store.corpus.documents[:-1]]].tolist())
    for row, way in enumerate((1, 1, -1, -1)):
        # Documents whole, one after the other, in the direction of reading.
        jumps = np.flatnonzero(np.diff(seen[row]) != way)
        assert all(seen[row][j + (way > 0)] in first for j in jumps)
    for row in range(2):
        # A backward row is the part of a forward row from its other end.
        shift = part - len(seen[row])
        assert seen[row + 2][::-1][: len(seen[row]) - shift] == seen[row][shift:]


def test_a_row_is_reused_text_two_segments_and_their_special_pieces(store: TokenStore) -> None:
    data = made(store)
    sep, cls = (store.layout.ids[name] for name in ("[SEP]", "[CLS]"))
    labels = []
    for step in range(data.steps):
        batch = data.batch(1, step)
        assert batch.input_ids.shape == (4, LENGTH)
        assert batch.attention_mask.all()
        assert batch.reversed is not None
        assert batch.reversed.tolist() == [False, False, True, True]
        for row, ids in enumerate(batch.input_ids.tolist()):
            places = [i for i, piece in enumerate(ids) if piece == sep]
            assert len(places) == 2
            assert (places[1], ids[-1]) == (LENGTH - 2, cls)
            assert places[0] > REUSE
            assert places[1] > places[0] + 1
            segments = batch.segment_ids[row].tolist()
            second = LENGTH - 1 - (places[0] + 1)
            assert segments == [0] * (places[0] + 1) + [1] * second + [2]
            special = (batch.words[row] < 0).nonzero().squeeze(1).tolist()
            assert special == [*places, LENGTH - 1]
            labels.append(int(batch.pair_labels[row]))
    assert set(labels) == {IS_NEXT, IS_RANDOM}


def _by_hand(
    cuts: list[int], begin: int, room: int, size: int, draws: random.Random
) -> tuple[tuple[int, int], tuple[int, int], int]:
    """The published loops: walk to the end of the sentence past the room, then shorten by one."""
    ends = set(cuts)
    stop, inside = begin + 1, []
    while stop < size:
        if stop in ends:
            if stop - begin >= room:
                break
            inside.append(stop)
        stop += 1
    if not inside or draws.random() < 0.5:
        label = IS_RANDOM
        end = draws.choice(inside) if inside else stop
        count = max(1, room - (end - begin))
        left = draws.randint(0, size - 1 - count)
        right = left + count
        while left > 0 and left not in ends:
            left -= 1
        while right < size and right not in ends:
            right += 1
    else:
        label = IS_NEXT
        end = draws.choice(inside)
        left, right = end, stop
    while (end - begin) + (right - left) > room:
        if end - begin > right - left:
            end -= 1
        else:
            right -= 1
    return (begin, end), (left, right), label


@pytest.mark.parametrize("seed", range(200))
def test_segments_equal_the_published_procedure(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randint(40, 200)
    cuts = sorted(draw.sample(range(1, size), draw.randint(0, size // draw.choice([3, 8, 30]))))
    room = draw.randint(2, 25)
    begin = draw.randint(1, size - room)
    found = _split(cuts, begin, room, size, random.Random(seed))
    assert found == _by_hand(cuts, begin, room, size, random.Random(seed))
    (a, b), (c, d), _ = found
    assert (b - a) + (d - c) == room
    assert b > a
    assert d > c


def test_half_of_the_pairs_are_random() -> None:
    cuts = list(range(0, 2000, 5))
    labels = [_split(cuts, 7, 60, 2000, random.Random(n))[2] for n in range(2000)]
    assert abs(sum(labels) / 2000 - 0.5) < 0.04  # standard deviation 0.011


@pytest.mark.parametrize("end_id", [None, 7])
def test_words_are_groups_of_pieces_in_both_directions(
    store: TokenStore, end_id: int | None
) -> None:
    begins = dict(zip(store.corpus.tokens.tolist(), store.corpus.starts.tolist(), strict=True))
    data = made(store, end_id=end_id)
    ended = 0
    for step in range(data.steps):
        batch = data.batch(0, step)
        for row in range(4):
            ids, words = batch.input_ids[row].tolist(), batch.words[row].tolist()
            backwards = row >= 2
            for i in range(1, LENGTH):
                if words[i] < 0 or words[i - 1] < 0:
                    continue
                ended += ids[i] == 7
                neighbours = ids[i] - ids[i - 1] == (-1 if backwards else 1)
                inside = neighbours and not begins.get(ids[i - 1] if backwards else ids[i], True)
                assert words[i] - words[i - 1] == (0 if inside else 1)
    assert (ended > 0) == (end_id is not None)


def test_a_saved_position_goes_on_alike_also_over_the_end_of_an_epoch(store: TokenStore) -> None:
    whole = made(store)
    batches, fresh = [], []
    for _ in range(2 * whole.steps + 3):
        fresh.append(whole.fresh)
        batches.append(next(whole))
    assert [i for i, flag in enumerate(fresh) if flag] == [0, whole.steps, 2 * whole.steps]
    for cut in (0, 1, whole.steps - 1, whole.steps, whole.steps + 1, 2 * whole.steps):
        first = made(store)
        for _ in range(cut):
            next(first)
        second = made(store)
        second.restore(first.position())
        assert second.fresh == fresh[cut]
        for n in range(cut, cut + 3):
            assert torch.equal(next(second).input_ids, batches[n].input_ids)
    assert not torch.equal(batches[0].input_ids, batches[whole.steps].input_ids)


def test_processes_make_their_rows_only(store: TokenStore) -> None:
    data = made(store)
    whole = data.batch(2, 4)
    for rows in ([0, 1], [2, 3], [3]):
        part = data.batch(2, 4, rows)
        for name in ("input_ids", "segment_ids", "words", "pair_labels", "reversed", "lengths"):
            assert torch.equal(getattr(part, name), getattr(whole, name)[rows]), name


def test_one_direction(store: TokenStore) -> None:
    data = made(store, batch_size=3, both_directions=False)
    batch = next(data)
    assert batch.reversed is not None
    assert not batch.reversed.any()
    part = int(store.lengths.sum() - 2 * 50) // 3
    assert data.steps == (part - LENGTH) // REUSE + 1


def test_sizes_that_do_not_fit_are_refused(store: TokenStore) -> None:
    for options, message in (
        ({"batch_size": 3}, "batch_size 3 must be at least 1, and even"),
        ({"reuse": 20}, "reuse 20 must lie between 1 and 19"),
        ({"reuse": 0}, "reuse 0"),
        ({"batch_size": 400}, "use more text, fewer rows"),
    ):
        with pytest.raises(InputError, match=message):
            made(store, **options)
    with pytest.raises(InputError, match="step 999 must lie"):
        made(store).batch(0, 999)


def test_documents_of_the_split_only(store: TokenStore, tmp_path: Path) -> None:
    last = int(store.corpus.sentences[store.corpus.documents[50]]) + 500
    data = made(store)
    assert max(int(data.batch(0, s).input_ids.max()) for s in range(data.steps)) < last
