"""From text files to a token store in one call."""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from core_models.data import documents as text
from core_models.data.corpus import Corpus
from core_models.data.pairs import Example, next_sentence
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer


def next_sentence_store(
    folder: str | Path,
    paths: Sequence[str | Path],
    tokenizer: Tokenizer,
    *,
    max_length: int,
    seed: int = 0,
    copies: int = 1,
    held_out: float = 0.05,
    short_probability: float = 0.1,
    paragraphs: bool = False,
) -> TokenStore:
    """Build (or find finished) a store of sentence pairs and open its "train" split.

    Args:
        folder: Of the store. An existing one is used if everything below is the same.
        paths: Text files or folders, see `documents.read`.
        tokenizer: The vocabulary.
        max_length: Most pieces of an example, special pieces included.
        seed: Of the held-out split and of the pairs.
        copies: Passes over the training documents with other pairs each (BERT's dupe_factor, 10).
        held_out: Share of documents for the split "held_out"; 0 = none.
        short_probability: See `pairs.next_sentence`.
        paragraphs: Lines are paragraphs to be split into sentences.

    Returns:
        The split "train"; examples of one copy follow those of the copy before.

    Raises:
        InputError: Files are unreadable or too short, or the folder holds another store.
    """
    if copies < 1:
        raise InputError(f"copies {copies} must be at least 1.")
    settings = {
        "objective": "next_sentence",
        "source": text.fingerprint(paths, paragraphs=paragraphs),
        "max_length": max_length,
        "seed": seed,
        "copies": copies,
        "held_out": held_out,
        "short_probability": short_probability,
    }
    if Path(folder).exists():
        TokenStore.check(Path(folder), tokenizer, settings)
        return TokenStore.open(folder, "train", tokenizer=tokenizer)
    corpus = Corpus.encode(text.read(paths, paragraphs=paragraphs), tokenizer)
    training, held = text.split_held_out(corpus.num_documents, held_out, seed)

    def draw(documents: Sequence[int], stream: str) -> Iterator[Example]:
        return next_sentence(
            corpus,
            documents,
            max_length=max_length,
            generator=random.Random(f"{seed},{stream}"),
            short_probability=short_probability,
        )

    passes = (draw(training, f"train,{copy}") for copy in range(copies))
    examples = {"train": itertools.chain.from_iterable(passes)}
    if held:
        examples["held_out"] = itertools.chain(draw(held, "held_out"))
    TokenStore.build(folder, corpus, examples, tokenizer, settings=settings)
    return TokenStore.open(folder, "train", tokenizer=tokenizer)
