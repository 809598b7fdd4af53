"""Plain sentences: what the file holds, and counts by hand."""

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.evaluation.language import language_of
from core_models.evaluation.plain import (
    PlainResult,
    PlainSentence,
    evaluate_plain_sentences,
    read_plain_sentences,
)
from core_models.tokenizer import Tokenizer
from tests.core.tiny_models import new, tiny

ASSETS = Path(__file__).resolve().parents[2] / "assets"
SENTENCES = read_plain_sentences()


def test_sixty_english_and_thirty_chinese_sentences() -> None:
    assert Counter(each.language for each in SENTENCES) == {"en": 60, "zh": 30}
    assert len({each.text for each in SENTENCES}) == 90
    topics = Counter((each.language, each.topic) for each in SENTENCES)
    assert len(topics) == 16
    assert min(topics.values()) >= 3
    for each in SENTENCES:
        assert len(set(each.words)) == len(each.words)
        if each.language == "zh":
            assert {len(word) for word in each.words} == {1}, "one piece is one character"
        else:
            assert not each.text.startswith("[MASK]"), "the list is written in small letters"


def test_no_sentence_stands_in_the_texts_that_all_models_have_read() -> None:
    files = [*(ASSETS / "primer").rglob("*"), *(ASSETS / "atlas").rglob("*")]
    read = [_plain(path.read_text("utf-8")) for path in files if path.is_file()]
    assert len(read) > 6
    for each in SENTENCES:
        for word in each.words:
            sentence = _plain(each.text.replace("[MASK]", word)).rstrip(".\u3002")
            assert not any(sentence in text for text in read), sentence


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


@pytest.mark.parametrize("folder", sorted((ASSETS / "models").iterdir()), ids=lambda p: p.name)
def test_a_shipped_vocabulary_can_say_a_word_of_nearly_every_sentence(folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(folder)
    mute = [
        each.text
        for each in read_plain_sentences(language_of(tokenizer))
        if not any(_whole(tokenizer, word) for word in each.words)
    ]
    assert len(mute) <= 2, mute


def _whole(tokenizer: Tokenizer, word: str) -> bool:
    pieces = tokenizer.pieces_of(word)
    return len(pieces) == 1 and pieces[0] != tokenizer.unknown_id


class _Ranked(torch.nn.Module):
    """A head that has words in an order, whatever it reads."""

    def __init__(self, tokenizer: Tokenizer, words: list[str]) -> None:
        super().__init__()
        self.logits = torch.zeros(tokenizer.vocabulary)
        for rank, word in enumerate(words):
            self.logits[tokenizer.pieces_of(word)[0]] = 20.0 - rank

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(hidden), -1)


def test_ranks_are_counted_by_hand() -> None:
    model = new(tiny("bert-mini")).eval()
    model.heads["masked_token"] = _Ranked(
        model.tokenizer, ["fox", "dog", "tree", "house", "river", "old"]
    )
    lists = {
        ("fox",): 1,
        ("small", "fox"): 1,
        ("tree", "old"): 3,
        ("river",): 5,
        ("old",): 6,
        ("foxdog",): None,  # two pieces
        ("foxdog", "dog"): 2,
        ("\u9f98",): None,  # unknown
    }
    asked = [PlainSentence("en", "a", "red fox [MASK] old house", words) for words in lists]
    long = PlainSentence("en", "a", f"{'red ' * 30}[MASK]", ("fox",))
    assert evaluate_plain_sentences(model, [*asked, long]) == PlainResult(
        asked=9, first=2, in_first_five=5, unsayable=3
    )


def test_a_model_that_predicts_nothing_is_refused() -> None:
    judge = new(tiny("bert-mini"), heads=["replaced_token"]).eval()
    with pytest.raises(InputError):
        evaluate_plain_sentences(judge, SENTENCES[:2])


def test_a_language_is_read_alone(tmp_path: Path) -> None:
    assert {each.language for each in read_plain_sentences("zh")} == {"zh"}
    row = {"language": "en", "topic": "a", "text": "A [MASK].", "words": ["dog"]}
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(row))
    assert read_plain_sentences(None, str(path)) == [
        PlainSentence("en", "a", "A [MASK].", ("dog",))
    ]
    for wrong in (
        {"text": "A dog."},
        {"words": []},
        {"words": "dog"},
        {"words": [None]},
        {"topic": 3},
        {"language": None},
    ):
        values = {k: v for k, v in (row | wrong).items() if v is not None}
        path.write_text(f"{json.dumps(row)}\n{json.dumps(values)}\n")
        with pytest.raises(InputError, match=r"some\.jsonl, line 2: needs a JSON object"):
            read_plain_sentences(None, path)


def test_the_shipped_figures_are_what_the_models_answer() -> None:
    """Of one English and the Chinese model; `measure NAME --only plain_sentences` writes them."""
    for name in ("bert-mini", "bert-mini-chinese"):
        model = cm.load(ASSETS / "models" / name)  # by its folder, whatever ran before
        known = json.loads((ASSETS / "models" / name / "evaluation.json").read_text())
        some = read_plain_sentences(language_of(model.tokenizer))
        result = evaluate_plain_sentences(model, some)
        assert vars(result) == known["plain_sentences"]
