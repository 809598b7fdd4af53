import sys

import numpy as np
import pytest
import torch

from core_models.data import chinese_words
from core_models.data.corpus import Corpus
from core_models.errors import InputError
from core_models.masking import tokens as masking
from core_models.tokenizer import Tokenizer

TEXT = "我们昨天去北京大学看朋友。"
WORDS = ["我们", "昨天", "去", "北京大学", "看", "朋友", "。"]


@pytest.fixture(scope="module")
def chinese() -> Tokenizer:
    return Tokenizer.train([TEXT, "He saw 北京 in 2020."], vocabulary=120)


def test_characters_of_a_word_belong_together(chinese: Tokenizer) -> None:
    corpus = Corpus.encode([[TEXT]], chinese, chinese_words.segmenter())
    begins = np.flatnonzero(corpus.starts)
    assert [TEXT[a:b] for a, b in zip(begins, [*begins[1:], len(TEXT)], strict=True)] == WORDS
    alone = Corpus.encode([[TEXT]], chinese)
    assert alone.starts.all()
    assert (alone.tokens == corpus.tokens).all()


def test_english_words_stay_as_they_are(chinese: Tokenizer) -> None:
    text = "He saw 北京 in 2020."
    (_, plain), (_, found) = (
        chinese.encode_plain([text], segment)[0] for segment in (None, chinese_words.segmenter())
    )
    assert plain.sum() - found.sum() == 1  # 京 joins 北


def test_whole_words_of_chinese_are_hidden_together(chinese: Tokenizer) -> None:
    corpus = Corpus.encode([[TEXT]], chinese, chinese_words.segmenter())
    ids = torch.from_numpy(corpus.tokens.astype(np.int64))[None]
    groups = torch.from_numpy(corpus.starts.cumsum() - 1)[None]
    seen = set()
    for seed in range(40):
        hidden = masking.whole_word(
            ids,
            torch.ones_like(ids, dtype=torch.bool),
            groups,
            generator=torch.Generator().manual_seed(seed),
            mask_id=chinese.mask_id,
            vocabulary=chinese.vocabulary,
            rate=0.35,
        )
        places = (hidden.labels >= 0)[0]
        for word in range(len(WORDS)):
            inside = places[groups[0] == word]
            assert inside.all() or not inside.any()
            if inside.all():
                seen.add(WORDS[word])
    assert "北京大学" in seen


def test_without_the_library_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    chinese_words.segmenter.cache_clear()
    with pytest.raises(InputError, match="pip install jieba"):
        chinese_words.segmenter()
    chinese_words.segmenter.cache_clear()
