"""Word groups of Chinese text under every kind of vocabulary, and special pieces in a corpus."""

import pytest
import torch

from core_models import InputError
from core_models.masking import tokens as masking
from core_models.tokenizer import Tokenizer

CHINESE = [
    "北京是中国的首都，也是政治文化中心。我们今天去公园散步吧",
    "天气很好所以大家都出来晒太阳了",
]
ENGLISH = ["The quick brown fox jumps over the lazy dog.", "Tokenizers are interesting."]
KINDS = ("wordpiece", "byte_bpe", "unigram")


@pytest.fixture(scope="module", params=KINDS)
def mixed(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.train([*CHINESE, *ENGLISH] * 30, vocabulary=400, kind=request.param)


def test_a_clause_of_chinese_is_no_word(mixed: Tokenizer) -> None:
    text = CHINESE[1]
    found = mixed.encode(text)
    groups: dict[int, str] = {}
    for (start, stop), word in zip(found.offsets, found.words, strict=True):
        if word is not None:
            groups[word] = groups.get(word, "") + text[start:stop]
    if mixed.kind == "byte_bpe":
        # Pieces may hold parts of two characters, which then share a word; the library finds one.
        assert len(groups) > 1
    else:
        assert max(map(len, groups.values())) <= 2, groups


def test_a_chinese_piece_alone_starts_a_word_where_it_does_in_a_sentence(mixed: Tokenizer) -> None:
    found = mixed.encode(f"a{CHINESE[1]}")
    for before, after, index in zip(found.words, found.words[1:], found.ids[1:], strict=False):
        if "\u4e00" <= mixed.display(index)[0] <= "\u9fff":
            assert mixed.starts_word(index)
            assert before != after
    assert not mixed.starts_word(mixed.encode("jumpsover").ids[-2])


@pytest.mark.parametrize("text", CHINESE)
def test_whole_words_of_chinese_can_be_masked(mixed: Tokenizer, text: str) -> None:
    found = mixed.encode(text)
    words = torch.tensor([[-1 if word is None else word for word in found.words]])
    masked = masking.whole_word(
        torch.tensor([found.ids]),
        words >= 0,
        words,
        generator=masking.generator_for(0),
        mask_id=mixed.mask_id,
        vocabulary=mixed.vocabulary,
        rate=0.3,
    )
    asked = masking.quota(len(found), 0.3)
    assert asked - 2 <= int((masked.labels >= 0).sum()) <= asked


def test_words_of_chinese_in_a_corpus_are_those_of_a_sentence(mixed: Tokenizer) -> None:
    for text in [*CHINESE, *ENGLISH, "我爱hello世界abc。", "a中b"]:
        ids, starts = mixed.encode_plain([text])[0]
        full = mixed.encode(text)
        inner = [
            (i, w) for i, w, s in zip(full.ids, full.words, full.special, strict=True) if not s
        ]
        assert [i for i, _ in inner] == ids.tolist()
        assert [w for _, w in inner] == (starts.cumsum() - 1).tolist()


def grouped(tokenizer: Tokenizer, text: str, pair: str | None = None) -> list[str]:
    """What each word of the last text holds, from the offsets of its pieces."""
    found = tokenizer.encode(text, pair)
    last = text if pair is None else pair
    first = 0 if pair is None else found.special.index(True, 1)
    groups: dict[int, list[int]] = {}
    for (start, stop), word in zip(found.offsets[first:], found.words[first:], strict=True):
        if word is not None:
            groups.setdefault(word, []).extend((start, stop))
    return [last[min(ends) : max(ends)].strip() for ends in groups.values()]


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram"])
def test_words_beside_chinese_by_hand(kind: str) -> None:
    """Rare characters, too; a word of letters begins behind the last of them."""
    tokenizer = Tokenizer.train([*CHINESE, *ENGLISH, "㐀 㐁 ab"], vocabulary=300, kind=kind)
    for text, words in {
        "㐀㐁": ["㐀", "㐁"],
        "ab中国ab": ["ab", "中", "国", "ab"],
    }.items():
        assert grouped(tokenizer, text) == words
        assert grouped(tokenizer, "The lazy dog", text) == words


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram"])
def test_a_segmenter_joins_characters_to_words(kind: str) -> None:
    tokenizer = Tokenizer.train([*CHINESE, *ENGLISH], vocabulary=300, kind=kind)
    text = "中国首都"
    _, alone = tokenizer.encode_plain([text])[0]
    _, joined = tokenizer.encode_plain([text], lambda _: frozenset({0, 2}))[0]
    assert alone.sum() == 4
    assert joined.sum() == 2


def test_english_words_stay_as_they_were(mixed: Tokenizer) -> None:
    found = mixed.encode("The lazy dog.")
    assert found.words[-2] == 3
    assert sorted({word for word in found.words if word is not None}) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_that_writes_special_pieces_gets_none(kind: str) -> None:
    text = "a [MASK] b </s> c <pad> <mask> [SEP] [PAD] <s> [CLS] <unk>"
    tokenizer = Tokenizer.train([text, "abc d"] * 5, vocabulary=300, kind=kind, lowercase=False)
    special = {*tokenizer.special_ids, tokenizer.mask_id}
    assert special & set(tokenizer.encode(text).ids[1:-1])  # where people ask, a gap is a gap
    ids, _ = tokenizer.encode_plain([text])[0]
    assert not special & set(ids.tolist())
    if kind == "byte_bpe":
        assert tokenizer.decode(ids.tolist()) == text


def test_nothing_to_learn_from_is_said() -> None:
    for kind, texts in (("wordpiece", []), ("wordpiece", ["", "  "]), ("unigram", [])):
        with pytest.raises(InputError, match="There is no text to learn"):
            Tokenizer.train(texts, vocabulary=200, kind=kind)
    rare = "".join(chr(0x4E00 + n) for n in range(500))
    with pytest.raises(InputError, match="No vocabulary of 200 pieces"):
        Tokenizer.train([rare], vocabulary=200, kind="unigram")
