"""Pairs of texts: topic or order."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

import core_models as cm
from core_models.errors import InputError
from core_models.evaluation import text_pairs
from core_models.evaluation.text_pairs import TextPair, choose_text_pairs, evaluate_text_pairs
from core_models.prediction import judge_pair
from core_models.prediction.results import PairResult
from tests.core.tiny_models import new, tiny

DOCUMENTS = [[f"{name} {n}." for n in range(11)] for name in ("red fox", "old house", "dog")]


def test_neighbours_and_strangers() -> None:
    pairs = choose_text_pairs(DOCUMENTS, seed=3)
    assert len(pairs) == 6  # eleven sentences hold two times four
    assert len({pair.first for pair in pairs}) == 6
    for first, second, other in pairs:
        name, number = first.rsplit(" ", 1)[0], int(first.rsplit(" ", 1)[1][:-1])
        name = name.split(" 0")[0].split(" 4")[0]
        assert number in (1, 5)
        assert second == f"{name} {number + 1}. {name} {number + 2}."
        assert not other.startswith(name)
    assert pairs == choose_text_pairs(DOCUMENTS, seed=3)
    assert len(choose_text_pairs(DOCUMENTS, most=4)) == 4


def test_chinese_sentences_stand_without_a_blank() -> None:
    documents = [[f"\u7b2c{n}\u53e5\u3002" for n in range(4)], ["\u72d7\u3002"] * 4]
    assert {pair.first for pair in choose_text_pairs(documents)} == {
        "\u7b2c0\u53e5\u3002\u7b2c1\u53e5\u3002",
        "\u72d7\u3002\u72d7\u3002",
    }


def test_one_document_has_no_stranger() -> None:
    with pytest.raises(InputError, match="two documents of four sentences"):
        choose_text_pairs([DOCUMENTS[0], ["short", "ones"]])
    with pytest.raises(InputError, match="most is -1"):
        choose_text_pairs(DOCUMENTS, most=-1)


@pytest.mark.parametrize(("head", "own"), [("next_sentence", 0.25), ("sentence_order", 1.0)])
def test_shares_by_hand(monkeypatch: pytest.MonkeyPatch, head: str, own: float) -> None:
    """Of four pairs three are believed, one stranger is found, every swap is."""
    pairs = [TextPair(f"a{n}", f"b{n}", f"c{n}") for n in range(4)]
    doubted = {("a0", "b0"), ("a2", "c2"), *((f"b{n}", f"a{n}") for n in range(4))}

    def judge(model: Any, asked: Sequence[tuple[str, str]]) -> list[PairResult]:
        return [
            PairResult(
                first=first,
                second=second,
                head=head,
                labels=("x", "y"),
                probabilities=(0.2, 0.8) if (first, second) in doubted else (0.8, 0.2),
                truncated=False,
            )
            for first, second in asked
        ]

    monkeypatch.setattr(text_pairs, "judge_pairs", judge)
    found = evaluate_text_pairs(new(tiny("bert-mini")), pairs)
    assert (found.head, found.pairs) == (head, 4)
    assert (found.followed, found.random, found.swapped) == (0.75, 0.25, 1.0)
    assert found.accuracy == (0.75 + own) / 2


def test_a_model_says_what_its_head_says() -> None:
    model: cm.Model = new(tiny("albert-base"), heads=("sentence_order",)).eval()
    pairs = [TextPair("red fox", "sees", "old house"), TextPair("a dog", "likes it", "birds sing")]
    found = evaluate_text_pairs(model, pairs)
    with torch.no_grad():
        swapped = [
            judge_pair(model, second, first).probabilities[1] > 0.5 for first, second, _ in pairs
        ]
    assert found.swapped == sum(swapped) / 2
    assert found.head == "sentence_order"


def test_a_head_is_needed() -> None:
    with pytest.raises(InputError, match="next-sentence or sentence-order head"):
        evaluate_text_pairs(new(tiny("roberta-base")).eval(), [TextPair("a dog", "it", "birds")])
