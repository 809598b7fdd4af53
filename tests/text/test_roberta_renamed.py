"""Vocabularies of XLM-R and CamemBERT, read from the files that transformers writes."""

from pathlib import Path

import pytest
from transformers import CamembertTokenizer, XLMRobertaTokenizer

from core_models.tokenizer import Tokenizer

WORDS = [
    "▁the",
    "▁cap",
    "ital",
    "▁of",
    "▁France",
    "▁is",
    "▁Paris",
    ".",
    "▁",
    ",",
    "a",
    "b",
    "c",
    "d",
    "e",
    "t",
    "h",
    "▁Bon",
    "jour",
]
HEADS = {
    XLMRobertaTokenizer: ["<s>", "<pad>", "</s>", "<unk>"],
    CamembertTokenizer: [
        *("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"),
    ],
}


@pytest.mark.parametrize("kind", HEADS, ids=lambda kind: kind.__name__)
def test_the_same_pieces(tmp_path: Path, kind: type) -> None:
    scored = [(word, -1.0 - n / 10) for n, word in enumerate(WORDS)]
    theirs = kind(vocab=[*((name, 0.0) for name in HEADS[kind]), *scored, ("<mask>", 0.0)])
    theirs.save_pretrained(tmp_path)
    ours = Tokenizer.from_folder(tmp_path)
    for text in ("the capital of France is <mask>.", "Bonjour,  the cab", "Paris"):
        assert list(ours.encode(text).ids) == theirs(text)["input_ids"]
    assert list(ours.encode("the cab", "Paris").ids) == theirs("the cab", "Paris")["input_ids"]
    assert (ours.mask_id, ours.pad_id) == (theirs.mask_token_id, theirs.pad_token_id)
