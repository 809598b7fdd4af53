import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from core_models.data import (
    Corpus,
    TokenStore,
    build_store,
    documents,
    next_sentence,
    segments,
)
from core_models.errors import InputError
from core_models.masking import tokens as masking
from core_models.tokenizer import Specials, Template, Tokenizer


@pytest.fixture(scope="module")
def store(
    tmp_path_factory: pytest.TempPathFactory, english: list[Path], tokenizer: Tokenizer
) -> TokenStore:
    folder = tmp_path_factory.mktemp("stores") / "primer"
    return build_store(folder, english, tokenizer, max_length=64, copies=2, held_out=0.1)


def test_batches_equal_the_tokenizer(store: TokenStore, tokenizer: Tokenizer) -> None:
    indices = [0, 7, len(store) - 1, 7]
    batch = store.batch(indices)
    assert batch.input_ids.shape == (4, int(batch.lengths.max()))
    for row, index in enumerate(indices):
        a, b, c, d, label, _ = store.example(index)
        first, second = store.corpus.tokens[a:b].tolist(), store.corpus.tokens[c:d].tolist()
        wanted = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
        size = len(wanted)
        assert batch.input_ids[row].tolist() == wanted + [0] * (batch.input_ids.shape[1] - size)
        assert batch.segment_ids[row, :size].tolist() == [0] * (b - a + 2) + [1] * (d - c + 1)
        assert not batch.segment_ids[row, size:].any()
        assert batch.attention_mask[row].sum() == size == batch.lengths[row] == store.lengths[index]
        assert batch.attention_mask[row, :size].all()
        assert batch.pair_labels[row] == label


def test_word_groups_follow_the_pieces(store: TokenStore, tokenizer: Tokenizer) -> None:
    batch = store.batch(range(200), length=64)
    for ids, words in zip(batch.input_ids.tolist(), batch.words.tolist(), strict=True):
        group, previous = -1, tokenizer.cls_id
        for index, word in zip(ids, words, strict=True):
            if index in tokenizer.special_ids:
                assert word == -1
            else:
                # A cut can leave "##ing" at the start of a segment; there it starts a group.
                group += tokenizer.starts_word(index) or previous in tokenizer.special_ids
                assert word == group
            previous = index
    assert torch.equal(batch.maskable, batch.words >= 0)


def test_text_survives_the_round_trip(
    store: TokenStore, english: list[Path], tokenizer: Tokenizer
) -> None:
    original = [s for document in documents.read(english) for s in document]
    bounds = store.corpus.sentences
    assert store.corpus.num_sentences == len(original)
    for number in range(0, len(original), 500):
        ids = store.corpus.tokens[bounds[number] : bounds[number + 1]].tolist()
        assert ids == tokenizer.encode(original[number]).ids[1:-1]


def test_a_fixed_length_pads_further(store: TokenStore) -> None:
    short = store.batch([3, 4])
    long = store.batch(torch.tensor([3, 4]), length=100)
    width = short.input_ids.shape[1]
    assert long.input_ids.shape == (2, 100)
    assert torch.equal(long.input_ids[:, :width], short.input_ids)
    assert not long.attention_mask[:, width:].any()
    with pytest.raises(InputError, match="the length asked for is 10"):
        store.batch(np.arange(20), length=10)


def test_splits_share_no_document(store: TokenStore, tokenizer: Tokenizer) -> None:
    held = TokenStore.open(store.folder, "held_out", tokenizer=tokenizer)
    ends = store.corpus.sentences[store.corpus.documents]

    def used(part: TokenStore) -> set[int]:
        found: set[int] = set()
        for index in range(len(part)):
            a, _, c, _, _, _ = part.example(index)
            found |= set((np.searchsorted(ends, [a, c], side="right") - 1).tolist())
        return found

    training, kept = used(store), used(held)
    assert not training & kept
    assert len(training) + len(kept) == 610
    assert len(kept) == 61


def test_copies_differ(store: TokenStore) -> None:
    half = len(store) // 2
    first = {store.example(i) for i in range(half)}
    assert len(first & {store.example(i) for i in range(half, len(store))}) < 0.2 * half


def test_an_equal_store_is_found_again(
    store: TokenStore, english: list[Path], tokenizer: Tokenizer
) -> None:
    before = (store.folder / "tokens.npy").stat().st_mtime_ns
    options = {"max_length": 64, "copies": 2, "held_out": 0.1}
    again = build_store(store.folder, english, tokenizer, **options)
    assert (store.folder / "tokens.npy").stat().st_mtime_ns == before
    assert torch.equal(again.batch([5]).input_ids, store.batch([5]).input_ids)
    with pytest.raises(InputError, match="another folder"):
        build_store(store.folder, english, tokenizer, **options | {"seed": 1})
    with pytest.raises(InputError, match="another folder"):
        build_store(store.folder, english[:2], tokenizer, **options)
    assert not [p for p in store.folder.parent.iterdir() if p.name.endswith(".part")]


def test_building_is_repeatable(
    store: TokenStore, english: list[Path], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    build_store(tmp_path / "again", english, tokenizer, max_length=64, copies=2, held_out=0.1)
    for file in store.folder.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_another_tokenizer_is_refused(store: TokenStore, sentences: list[str]) -> None:
    other = Tokenizer.train(sentences[:300], vocabulary=500)
    with pytest.raises(InputError, match="was built with tokenizer"):
        TokenStore.open(store.folder, tokenizer=other)


def test_what_is_no_store_is_refused(
    store: TokenStore, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"no metadata\.json"):
        TokenStore.open(tmp_path)
    with pytest.raises(InputError, match="it has train, held_out"):
        TokenStore.open(store.folder, "test")
    (tmp_path / "metadata.json").write_text(json.dumps({"format": 99, "examples": {}}))
    with pytest.raises(InputError, match="format 99"):
        TokenStore.open(tmp_path)
    corpus = Corpus.from_ids([[[5]]])
    with pytest.raises(InputError, match="No examples for split 'train'"):
        TokenStore.build(tmp_path / "empty", corpus, {"train": []}, tokenizer)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["metadata.json"]


def test_blank_documents_leave_no_trace(tokenizer: Tokenizer) -> None:
    corpus = Corpus.encode([["The river."], ["\u200b"], ["\u200b", "It rains."]], tokenizer)
    assert (corpus.num_documents, corpus.num_sentences) == (2, 2)
    assert corpus.tokens.dtype == np.uint16
    with pytest.raises(InputError, match="holds no text"):
        Corpus.encode([["\u200b"]], tokenizer)


def test_singles_and_pairs_mix(tokenizer: Tokenizer, english: list[Path], tmp_path: Path) -> None:
    corpus = Corpus.encode(documents.read(english[:1]), tokenizer)
    pairs = list(next_sentence(corpus, max_length=32, generator=random.Random(0)))[:5]
    singles = list(segments(corpus, max_length=32))[:5]
    TokenStore.build(tmp_path / "mix", corpus, {"train": [*singles, *pairs]}, tokenizer)
    store = TokenStore.open(tmp_path / "mix")
    assert store.longest <= 32
    batch = store.batch([0, 5, 1, 6])
    assert (batch.input_ids == tokenizer.sep_id).sum(1).tolist() == [1, 2, 1, 2]
    assert (batch.pair_labels == -100).tolist() == [True, False, True, False]
    assert batch.segment_ids.amax(1).tolist() == [0, 1, 0, 1]


def test_left_padding_is_a_value(english: list[Path], sentences: list[str], tmp_path: Path) -> None:
    template = Template.trailing(Specials(pad="<pad>", unknown="<unk>"))
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram", template=template)
    store = build_store(tmp_path / "left", english[:1], tok, max_length=48)
    batch = store.batch(range(6), length=50)
    assert (batch.input_ids[:, -1] == tok.cls_id).all()
    assert (batch.segment_ids[:, -1] == 2).all()
    for row in range(6):
        size = int(batch.lengths[row])
        assert batch.attention_mask[row].tolist() == [False] * (50 - size) + [True] * size
        assert (batch.segment_ids[row, : 50 - size] == 3).all()
        assert batch.maskable[row].sum() == size - 3


def test_masked_batches_are_inputs_of_the_encoder(store: TokenStore, tokenizer: Tokenizer) -> None:
    found = store.batch(range(16))
    masked = masking.whole_word(
        found.input_ids,
        found.maskable,
        found.words,
        lengths=found.lengths,
        generator=masking.generator_for(0),
        mask_id=tokenizer.mask_id,
        vocabulary=tokenizer.vocabulary,
    )
    batch = found.masked(masked)
    assert batch.labels is not None
    assert batch.pair_labels is not None
    chosen = batch.labels != masking.IGNORED
    budget = [masking.quota(int(length), 0.15) for length in found.lengths]
    assert all(a <= b for a, b in zip(chosen.sum(1).tolist(), budget, strict=True))
    assert not (chosen & ~found.maskable).any()
