"""From a source of documents to a token store in one call."""

import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core_models.data import documents as text
from core_models.data.corpus import Corpus
from core_models.data.formats import FIXED, examples
from core_models.data.pairs import Example
from core_models.data.sources import fingerprint, read_documents
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer


def build_store(
    folder: str | Path,
    source: Any,
    tokenizer: Tokenizer,
    *,
    format: str = "next_sentence",
    max_length: int,
    seed: int = 0,
    copies: int = 1,
    held_out: float = 0.05,
    short_probability: float = 0.1,
    random_for_lone: bool = True,
) -> TokenStore:
    """Build (or find finished) a store of examples and open its "train" split.

    Args:
        folder: Of the store. An existing one is used if everything below is the same.
        source: Paths, a `Source` or a dataset object, see `sources.read_documents`.
        tokenizer: The vocabulary.
        format: How documents are cut into examples, one of `formats.FORMATS`.
        max_length: Most pieces of an example, special pieces included.
        seed: Of the held-out split and of the pairs.
        copies: Passes over the training documents with other pairs each (BERT's dupe_factor, 10).
        held_out: Share of documents for the split "held_out"; 0 = none. Documents of equal pieces
            stay together.
        short_probability: See `formats.examples`.
        random_for_lone: See `formats.examples`.

    Returns:
        The split "train"; examples of one copy follow those of the copy before.

    Raises:
        InputError: The source is unreadable or too short, the format is unknown or gives equal
            copies, or the folder holds another store.
    """
    if copies < 1:
        raise InputError(f"copies {copies} must be at least 1.")
    if copies > 1 and format in FIXED:
        raise InputError(f"copies {copies}: {format} cuts documents always alike; use 1.")
    settings = {
        "format": format,
        "source": fingerprint(source),
        "max_length": max_length,
        "seed": seed,
        "copies": copies,
        "held_out": held_out,
        "short_probability": short_probability,
    }
    if not random_for_lone:
        settings["random_for_lone"] = False
    if Path(folder).exists():
        TokenStore.check(Path(folder), tokenizer, settings)
        return TokenStore.open(folder, "train", tokenizer=tokenizer)
    corpus = Corpus.encode(read_documents(source), tokenizer)
    training, held = text.split_held_out(
        corpus.num_documents, held_out, seed, _contents(corpus) if held_out else None
    )

    def draw(documents: Sequence[int], stream: str) -> Iterator[Example]:
        return examples(
            format,
            corpus,
            documents,
            max_length=max_length,
            generator=random.Random(f"{seed},{stream}"),
            short_probability=short_probability,
            random_for_lone=random_for_lone,
            specials=tokenizer.template.extra(pair=True),
        )

    passes = (draw(training, f"train,{copy}") for copy in range(copies))
    splits = {"train": itertools.chain.from_iterable(passes)}
    if held:
        splits["held_out"] = itertools.chain(draw(held, "held_out"))
    TokenStore.build(folder, corpus, splits, tokenizer, settings=settings)
    return TokenStore.open(folder, "train", tokenizer=tokenizer)


def _contents(corpus: Corpus) -> list[bytes]:
    """A hash of the pieces of each document."""
    ends = [corpus.bounds(document) for document in range(corpus.num_documents)]
    return [hashlib.sha256(corpus.tokens[end[0] : end[-1]].tobytes()).digest() for end in ends]
