"""MacBERT's masking: words are replaced by similar words, never by [MASK] (arXiv 2004.13922).

Three steps, of which the first two are made once for a corpus::

    words = lexicon(corpus)                                  the words worth replacing
    table = similar_table(words, word_vectors(corpus, words, generator=...))
    masked = similar_words(ids, maskable, words_of_pieces, table=table, ...)

What differs from the paper (section 3): its similar words come from the Synonyms toolkit, that is
from word2vec trained on much more text; here from vectors counted in the corpus itself, or from
any table that is given. It does not say what happens to words of another length; here similar
words have as many pieces as the word, so that every piece keeps a label.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from core_models import plain_files
from core_models.data.corpus import Corpus
from core_models.errors import InputError
from core_models.masking.spans import (
    MACBERT_WEIGHTS,
    SpanMasked,
    rows_by_words,
    take_ngrams,
    with_spans,
)
from core_models.masking.tokens import (
    IGNORED,
    KEPT,
    RANDOM,
    SIMILAR,
    Generators,
    Masked,
    draw_from,
    prepare,
)

Word = tuple[int, ...]
"""A word as its piece ids."""
_CHUNK = 1024
"""Words compared with all others at a time."""


@dataclass(frozen=True)
class Similar:
    """Words and those most like them, the nearest first, all of equally many pieces."""

    neighbours: Mapping[Word, tuple[Word, ...]]

    def save(self, path: str | Path) -> None:
        """Write a safetensors file: words of n pieces [W, n], and numbers of their neighbours."""
        tensors = {}
        for size in sorted({len(word) for word in self.neighbours}):
            words = sorted({w for w in self._all() if len(w) == size})
            number = {word: n for n, word in enumerate(words)}
            found = [[number[w] for w in self.neighbours.get(word, ())] for word in words]
            widest = max(map(len, found))
            padded = [row + [-1] * (widest - len(row)) for row in found]
            tensors[f"words.{size}"] = torch.tensor(words)
            tensors[f"neighbours.{size}"] = torch.tensor(padded)
        with plain_files.written(path):
            save_file(tensors, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: The file is missing or no such table.
        """
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path} is no table of similar words: {error}") from error
        neighbours = {}
        try:
            for name in sorted(n for n in tensors if n.startswith("words.")):
                words = [tuple(word) for word in tensors[name].tolist()]
                rows = tensors[name.replace("words", "neighbours")].tolist()
                for word, row in zip(words, rows, strict=True):
                    if found := tuple(words[n] for n in row if n >= 0):
                        neighbours[word] = found
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is no table of similar words: tensors and numbers do not agree ({error})."
            ) from error
        return cls(neighbours)

    def _all(self) -> Iterable[Word]:
        for word, found in self.neighbours.items():
            yield word
            yield from found


def lexicon(corpus: Corpus, most: int = 20_000) -> list[Word]:
    """The words of a corpus as pieces, the most frequent first; equal counts by their ids."""
    tokens, edges = corpus.tokens.tolist(), _edges(corpus).tolist()
    counts = Counter(tuple(tokens[a:b]) for a, b in itertools.pairwise(edges))
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def word_vectors(
    corpus: Corpus,
    words: Sequence[Word],
    *,
    generator: torch.Generator,
    width: int = 100,
    window: int = 2,
) -> Tensor:
    """Vectors of words from the words around them in the corpus.

    The positive pointwise mutual information of a word and each word at most ``window`` places
    before it, and after it, and of that the largest singular directions: what word2vec factorises
    implicitly (Levy and Goldberg, 2014), without a training run. Sides are kept apart so that words
    of one use are alike rather than words that stand together.

    Args:
        corpus: The pieces.
        words: As of `lexicon`.
        generator: Start of the subspace iteration, on the CPU; the result hardly depends on it.
        width: Largest length of a vector.
        window: Distance in words, inside a sentence.

    Returns:
        float32 [W, E]; zero for words that share no sentence with another one.
    """
    before, after, counts = _pairs(corpus, words, window)
    size = len(words)
    lefts, rights = np.bincount(before, counts, size), np.bincount(after, counts, size)
    information = np.log(counts * counts.sum() / (lefts[before] * rights[after]))
    kept = information > 0
    places = torch.from_numpy(np.stack([before[kept], after[kept]]))
    values = torch.from_numpy(information[kept]).float()
    follows = torch.sparse_coo_tensor(
        places, values, (size, size), check_invariants=True
    ).coalesce()
    precedes = follows.t().coalesce()

    def both_sides(columns: Tensor) -> Tensor:
        """The matrix of all pairs of rows of [follows, precedes], times columns."""
        found: Tensor = follows @ (precedes @ columns) + precedes @ (follows @ columns)
        return found

    basis = torch.randn(size, min(size, width + 10), generator=generator)
    for _ in range(4):
        basis = torch.linalg.qr(both_sides(basis)).Q
    squares, turned = torch.linalg.eigh(basis.T @ both_sides(basis))
    largest = slice(-min(width, size), None)
    vectors: Tensor = basis @ turned[:, largest] * squares[largest].clamp(min=0) ** 0.25
    # What is zero up to rounding is zero: words without a neighbour have no direction.
    alone = torch.ones(size, dtype=torch.bool)
    alone[places.flatten()] = False
    return vectors.masked_fill(alone[:, None], 0.0)


def _edges(corpus: Corpus) -> np.ndarray:
    """Where words begin, and where the last ends."""
    begins = np.array(corpus.starts)
    begins[corpus.sentences[:-1]] = True
    return np.append(np.flatnonzero(begins), len(begins))


def _pairs(
    corpus: Corpus, words: Sequence[Word], window: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of words near each other in a sentence, the earlier one first, and how often."""
    number = {word: n for n, word in enumerate(words)}
    edges = _edges(corpus)
    tokens, places = corpus.tokens.tolist(), edges.tolist()
    spans = itertools.pairwise(places)
    row = np.array([number.get(tuple(tokens[a:b]), -1) for a, b in spans])
    sentence = np.searchsorted(corpus.sentences, edges[:-1], side="right")
    keys = []
    for distance in range(1, window + 1):
        left, right = row[:-distance], row[distance:]
        near = (sentence[:-distance] == sentence[distance:]) & (left >= 0) & (right >= 0)
        keys.append(left[near] * len(words) + right[near])
    found, counts = np.unique(np.concatenate(keys), return_counts=True)
    return found // len(words), found % len(words), counts


def similar_table(words: Sequence[Word], vectors: Tensor, *, neighbours: int = 1) -> Similar:
    """The words most like each word, among those of equally many pieces, by cosine.

    Args:
        words: Different words.
        vectors: A vector of each [W, E]. A row of zeros = unknown: neither replaced nor used.
        neighbours: How many per word, at most.

    Raises:
        ValueError: The number of vectors is not that of the words.
    """
    if len(words) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(words)} words")
    known = (vectors != 0).any(1)
    unit = functional.normalize(vectors.float(), dim=1)
    sizes = torch.tensor([len(word) for word in words])
    table: dict[Word, tuple[Word, ...]] = {}
    for size in sizes.unique().tolist():
        group = ((sizes == size) & known).nonzero().squeeze(1)
        count = min(neighbours, len(group) - 1)
        if count < 1:
            continue
        for chunk in group.split(_CHUNK):
            alike = unit[chunk] @ unit[group].T
            alike[chunk[:, None] == group] = -2.0
            nearest = group[alike.topk(count, dim=1).indices]
            for n, row in zip(chunk.tolist(), nearest.tolist(), strict=True):
                table[words[n]] = tuple(words[m] for m in row)
    return Similar(table)


def similar_words(
    ids: Tensor,
    maskable: Tensor,
    words: Tensor | None = None,
    *,
    table: Similar,
    generator: Generators,
    vocabulary: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    most: int | None = None,
    weights: Sequence[float] = MACBERT_WEIGHTS,
    random_ids: Tensor | None = None,
) -> SpanMasked:
    """Choose n-grams of whole words, and replace them word by word.

    The n-grams are those of `core_models.masking.spans.ngrams`. Each word is drawn by itself:
    replaced by one of its similar words (by random pieces if it has none), by random pieces, or
    kept.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape.
        words: Word group of each piece, same shape; -1 = none. None = pieces are words.
        table: Similar words; one of several is drawn.
        generator: One for the batch, or one per row.
        vocabulary: V.
        lengths: Pieces per row without padding but with [CLS] and [SEP], [B]; None = no padding.
        rate: Share to choose, of `lengths`.
        split: Shares of similar words, random pieces and kept words.
        most: Most pieces to choose per row; None = no limit.
        weights: Shares of n = 1, 2, ... words: 40, 30, 20, 10 %.
        random_ids: Ids to draw random pieces from, int64 [R]; None = all.

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    rows, open_, budget = prepare(ids, maskable, lengths, rate, split, most)
    picked: list[tuple[int, list[int]]] = []
    quotas = budget.tolist()
    for row, (groups, source) in enumerate(rows_by_words(open_, words, generator)):
        taken = set(take_ngrams(groups, quotas[row], weights, source))
        picked += [(row, group) for group in groups if group[0] in taken]
    numbers, case, pieces = draw_from(rows.shape, vocabulary, random_ids, generator, rows.device)
    chosen, first, alike = _alike(rows, numbers, picked, table)
    case = case.gather(1, first)
    kept = chosen & (case >= split[0] + split[1])
    similar = chosen & (case < split[0]) & (alike >= 0)
    replaced = chosen & ~kept & ~similar
    inputs = torch.where(similar, alike, torch.where(replaced, pieces, rows))
    cases = (similar * SIMILAR + replaced * RANDOM + kept * KEPT).to(torch.uint8)
    labels = rows.masked_fill(~chosen, IGNORED)
    masked = Masked(inputs.view(ids.shape), labels.view(ids.shape), cases.view(ids.shape))
    return with_spans(masked, chosen)


def _alike(
    rows: Tensor, numbers: Tensor, picked: Sequence[tuple[int, list[int]]], table: Similar
) -> tuple[Tensor, Tensor, Tensor]:
    """What is chosen, the first piece of its word, and a similar piece (-1 = none), each [B, L].

    Args:
        rows: Piece ids [B, L].
        numbers: Uniform in [0, 1), [B, L]: which of several similar words.
        picked: Row and positions of each chosen word.
        table: Similar words.
    """
    texts, chances = rows.tolist(), numbers.tolist()
    places: list[tuple[int, int]] = []
    leads: list[int] = []
    others: list[int] = []
    for row, group in picked:
        word = tuple(texts[row][i] for i in group)
        found = table.neighbours.get(word, ())
        places += [(row, i) for i in group]
        leads += [group[0]] * len(group)
        others += found[int(chances[row][group[0]] * len(found))] if found else [-1] * len(group)
    where = torch.tensor(places, dtype=torch.int64).reshape(-1, 2).unbind(1)
    chosen = torch.zeros(rows.shape, dtype=torch.bool)
    chosen[where] = True
    first, alike = torch.zeros(2, *rows.shape, dtype=torch.int64)
    first[where] = torch.tensor(leads, dtype=torch.int64)
    alike[where] = torch.tensor(others, dtype=torch.int64)
    return chosen.to(rows.device), first.to(rows.device), alike.to(rows.device)
