"""RoBERTa's four input formats over the first documents of the Primer. No Gradio in it."""

import itertools
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from app.labs.pairs.answers import PRIMER
from app.serving.ask import MOST_SEED, whole_number
from core_models import InputError
from core_models.data import documents
from core_models.data.corpus import Corpus
from core_models.data.formats import examples
from core_models.data.layout import Layout, Places, TokenBatch
from core_models.data.pairs import IS_RANDOM, NO_PAIR, Example
from core_models.tokenizer import Tokenizer

FORMATS = {
    "next_sentence": "SEGMENT-PAIR",
    "sentence_pair": "SENTENCE-PAIR",
    "full_sentences": "FULL-SENTENCES",
    "doc_sentences": "DOC-SENTENCES",
}
DOCUMENTS = 6
CORPUS_DOCUMENTS = 60
LEAST_LENGTH, MOST_LENGTH = 32, 256
MOST_SHOWN = 12
_EXCERPT = 160


def layout_and_corpus(tokenizer: Tokenizer) -> tuple[Layout, Corpus]:
    """The tokenizer's template, and the first documents of the Primer in its pieces."""
    return _prepared(tokenizer)


@lru_cache(maxsize=8)
def _prepared(tokenizer: Tokenizer) -> tuple[Layout, Corpus]:
    files = sorted(PRIMER.glob("english-*.txt"))
    if not files:
        raise InputError("The Primer's English files are not installed, so no document is there.")
    first = itertools.islice(documents.read(files), CORPUS_DOCUMENTS)
    return Layout.of(tokenizer), Corpus.encode(first, tokenizer)


def places(found: Sequence[Example]) -> Places:
    """Examples as arrays."""
    further = [example.further for example in found]
    return Places(
        np.array([example[:5] for example in found], dtype=np.int64).reshape(-1, 5),
        np.concatenate([[0], np.cumsum([len(runs) for runs in further])]).astype(np.int64),
        np.array([run for runs in further for run in runs], dtype=np.int64).reshape(-1, 2),
    )


def pack(layout: Layout, corpus: Corpus, found: Sequence[Example]) -> TokenBatch:
    """Examples as padded rows."""
    return layout.pack(corpus, places(found), None)


def read_formats(question: Mapping[str, Any]) -> tuple[int, int]:
    """Length and seed in an event of the page."""
    length = whole_number(question.get("length", 96), "length", LEAST_LENGTH, MOST_LENGTH)
    return length, whole_number(question.get("seed", 1), "seed", 0, MOST_SEED)


def formats(tokenizer: Tokenizer, length: int, seed: int) -> dict[str, Any]:
    """Every format's examples over the first documents.

    Args:
        tokenizer: Cuts the documents and adds its special pieces.
        length: Most pieces of an example.
        seed: Of the random partners.
    """
    layout, corpus = layout_and_corpus(tokenizer)
    bounds = [corpus.bounds(n) for n in range(DOCUMENTS)]
    return {
        "length": length,
        "documents": [
            {
                "pieces": marks[-1] - marks[0],
                "sentences": len(marks) - 1,
                "text": _text(tokenizer, corpus, marks[0], marks[1]),
            }
            for marks in bounds
        ],
        "formats": [
            _format(name, tokenizer, layout, corpus, length, seed, [m[0] for m in bounds])
            for name in FORMATS
        ],
    }


def _format(
    name: str,
    tokenizer: Tokenizer,
    layout: Layout,
    corpus: Corpus,
    length: int,
    seed: int,
    starts: Sequence[int],
) -> dict[str, Any]:
    found = list(
        examples(
            name,
            corpus,
            range(DOCUMENTS),
            max_length=length,
            generator=random.Random(seed),
        )
    )
    sizes = layout.lengths(places(found)).tolist()
    pairs = [example for example in found if example.label != NO_PAIR]
    shown = [
        {
            "length": size,
            "label": None if example.label == NO_PAIR else example.label,
            "parts": [
                {
                    "document": bisect_right(starts, begin) - 1,
                    "pieces": end - begin,
                    "segment": segment,
                    "text": _text(tokenizer, corpus, begin, end),
                }
                for begin, end, segment in _runs(example)
            ],
        }
        for example, size in zip(found[:MOST_SHOWN], sizes, strict=False)
    ]
    return {
        "name": name,
        "title": FORMATS[name],
        "examples": len(found),
        "mean": sum(sizes) / len(sizes),
        "filled": sum(sizes) / (len(sizes) * length),
        "random": sum(e.label == IS_RANDOM for e in pairs) / len(pairs) if pairs else None,
        "crossing": sum(bool(example.further) for example in found),
        "shown": shown,
    }


def _runs(example: Example) -> list[tuple[int, int, int]]:
    """Start, stop and segment of every run of pieces."""
    runs = [(example.first_start, example.first_stop, 0)]
    runs += [(begin, end, 0) for begin, end in example.further]
    if example.second_stop > example.second_start:
        runs.append((example.second_start, example.second_stop, 1))
    return runs


def _text(tokenizer: Tokenizer, corpus: Corpus, begin: int, end: int) -> str:
    text = tokenizer.decode(corpus.tokens[begin:end].tolist())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"
