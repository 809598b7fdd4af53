"""RoBERTa's four input formats over the first documents of the Primer. No Gradio in it."""

import itertools
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from app.labs.pairs.answers import PRIMER
from app.serving.ask import MOST_SEED, whole_number
from core_models import InputError
from core_models.data import documents
from core_models.data.corpus import Corpus
from core_models.data.formats import examples
from core_models.data.layout import Layout, Places, TokenBatch
from core_models.data.pairs import IS_NEXT, IS_RANDOM, NO_PAIR, Example
from core_models.tokenizer import Tokenizer
from viz.svg import Wording
from viz.timeline import Input, Run

FORMATS = {
    "next_sentence": "SEGMENT-PAIR",
    "sentence_pair": "SENTENCE-PAIR",
    "full_sentences": "FULL-SENTENCES",
    "doc_sentences": "DOC-SENTENCES",
}
LABELS = {IS_NEXT: Wording("next"), IS_RANDOM: Wording("random")}
DOCUMENTS = 6
CORPUS_DOCUMENTS = 60
LENGTHS = (32, 256)
"""Of an example."""
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
    length = whole_number(question.get("length", 96), "length", *LENGTHS)
    return length, whole_number(question.get("seed", 1), "seed", 0, MOST_SEED)


class Cut(NamedTuple):
    """The first documents in one format."""

    title: str
    examples: int
    mean: float
    """Pieces of an example, special ones included."""
    filled: float
    """Share of the length that is used."""
    random: float | None
    """Share of random partners among the pairs."""
    crossing: int
    """Examples that go on beyond the end of a document."""
    shown: list[Input]


def formats(tokenizer: Tokenizer, length: int, seed: int) -> dict[str, Cut]:
    """Every format's examples over the first documents.

    Args:
        tokenizer: Cuts the documents and adds its special pieces.
        length: Most pieces of an example.
        seed: Of the random partners.
    """
    return {name: _cut(name, tokenizer, length, seed) for name in FORMATS}


def _cut(name: str, tokenizer: Tokenizer, length: int, seed: int) -> Cut:
    layout, corpus = layout_and_corpus(tokenizer)
    source = random.Random(seed)
    found = list(examples(name, corpus, range(DOCUMENTS), max_length=length, generator=source))
    sizes = layout.lengths(places(found)).tolist()
    pairs = [example for example in found if example.label != NO_PAIR]
    starts = [corpus.bounds(n)[0] for n in range(DOCUMENTS)]
    shown = [
        Input(
            said=str(size)
            if example.label == NO_PAIR
            else Wording("{0} {1}", size, LABELS[example.label]),
            runs=[
                Run(
                    document=bisect_right(starts, begin) - 1,
                    pieces=end - begin,
                    second=second,
                    text=_text(tokenizer, corpus, begin, end),
                )
                for begin, end, second in _runs(example)
            ],
        )
        for example, size in zip(found[:MOST_SHOWN], sizes, strict=False)
    ]
    return Cut(
        title=FORMATS[name],
        examples=len(found),
        mean=sum(sizes) / len(sizes),
        filled=sum(sizes) / (len(sizes) * length),
        random=sum(e.label == IS_RANDOM for e in pairs) / len(pairs) if pairs else None,
        crossing=sum(bool(example.further) for example in found),
        shown=shown,
    )


def _runs(example: Example) -> list[tuple[int, int, bool]]:
    """Start and stop of every run of pieces, and whether it is of the second text."""
    runs = [(example.first_start, example.first_stop, False)]
    runs += [(begin, end, False) for begin, end in example.further]
    if example.second_stop > example.second_start:
        runs.append((example.second_start, example.second_stop, True))
    return runs


def _text(tokenizer: Tokenizer, corpus: Corpus, begin: int, end: int) -> str:
    text = tokenizer.decode(corpus.tokens[begin:end].tolist())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}…"
