"""A tokenised corpus: one long row of pieces, and where sentences and documents begin.

Every later stage names pieces by their place in that row, so examples are a few integers each
however long they are, and ten copies of a corpus cost ten lists of integers, not ten corpora.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core_models.data.chinese_words import Segmenter
from core_models.errors import InputError
from core_models.tokenizer import Tokenizer

_CHUNK = 256
"""Documents encoded at a time."""


@dataclass(frozen=True)
class Corpus:
    """Pieces of all documents in a row, without special pieces."""

    tokens: NDArray[Any]
    """Piece ids [T], uint16 where the vocabulary allows it, else int32."""
    starts: NDArray[np.bool_]
    """Whether a piece starts a word [T]."""
    sentences: NDArray[np.int64]
    """Sentence s holds the pieces sentences[s] : sentences[s + 1]; [S + 1]."""
    documents: NDArray[np.int64]
    """Document n holds the sentences documents[n] : documents[n + 1]; [N + 1]."""

    @classmethod
    def encode(
        cls,
        documents: Iterable[Sequence[str]],
        tokenizer: Tokenizer,
        segment: Segmenter | None = None,
    ) -> Self:
        """Tokenise documents. Sentences and documents without a piece are left out.

        Args:
            documents: Lists of sentences.
            tokenizer: The vocabulary.
            segment: Finds the words of Chinese text; None = each character is a word.

        Raises:
            InputError: Nothing is left.
        """
        dtype = np.uint16 if tokenizer.vocabulary <= 2**16 else np.int32
        tokens, starts, lengths, counts = [], [], [], []
        source = iter(documents)
        while chunk := list(itertools.islice(source, _CHUNK)):
            sentences = [sentence for document in chunk for sentence in document]
            encoded = iter(tokenizer.encode_plain(sentences, segment))
            for document in chunk:
                kept = [pair for pair in itertools.islice(encoded, len(document)) if len(pair[0])]
                if kept:
                    tokens.append(np.concatenate([ids for ids, _ in kept]).astype(dtype))
                    starts.append(np.concatenate([flags for _, flags in kept]))
                    lengths += [len(ids) for ids, _ in kept]
                    counts.append(len(kept))
        if not counts:
            raise InputError("The corpus holds no text.")
        return cls(
            np.concatenate(tokens), np.concatenate(starts), _offsets(lengths), _offsets(counts)
        )

    @classmethod
    def from_ids(cls, documents: Sequence[Sequence[Sequence[int]]]) -> Self:
        """A corpus of ready ids, every piece a word: for tests and small experiments."""
        sentences = [sentence for document in documents for sentence in document]
        tokens = np.asarray([i for sentence in sentences for i in sentence], dtype=np.int32)
        return cls(
            tokens,
            np.ones(len(tokens), dtype=np.bool_),
            _offsets([len(sentence) for sentence in sentences]),
            _offsets([len(document) for document in documents]),
        )

    @property
    def num_documents(self) -> int:
        """Number of documents."""
        return len(self.documents) - 1

    @property
    def num_sentences(self) -> int:
        """Number of sentences."""
        return len(self.sentences) - 1

    def bounds(self, document: int) -> list[int]:
        """Where the sentences of a document begin, and where the last ends; [n + 1]."""
        first, last = self.documents[document], self.documents[document + 1]
        found: list[int] = self.sentences[first : last + 1].tolist()
        return found


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
