"""Where a word's vector goes on its way through the layers, and which words it ends up beside.

The vector of a word of several pieces is the mean of its pieces' vectors. Contextual vectors crowd
into a narrow cone (anisotropy: Ethayarajh 2019, arXiv 1909.00512), so that any two of them have a
high cosine; subtracting the mean over many other words of the same layer takes most of that away.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from core_models.errors import InputError
from core_models.model import Model
from core_models.prediction.passes import apart, together
from core_models.tokenizer import Encoding

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
TINY = 1e-12


def is_chinese(text: str) -> bool:
    """Whether a text holds a Chinese character, so that its words have no blanks around them."""
    return _CHINESE.search(text) is not None


def find_word(text: str, word: str) -> tuple[int, int] | None:
    """Characters [start, end) of a word's first occurrence, whatever its case; None = nowhere.

    A word of an alphabet must stand alone; a Chinese one may stand anywhere.
    """
    own = re.escape(word.strip())
    pattern = own if is_chinese(word) else rf"(?<!\w){own}(?!\w)"
    found = re.search(pattern, text, re.IGNORECASE)
    return None if found is None or not own else found.span()


def pieces_at(encoding: Encoding, start: int, end: int) -> list[int]:
    """Positions of the pieces that hold a part of the characters [start, end) of the text."""
    return [
        position
        for position, (first, last) in enumerate(encoding.offsets)
        if not encoding.special[position] and first < end and start < last
    ]


def words_of(text: str) -> list[tuple[int, int]]:
    """Characters [start, end) of each word: runs of letters, or single Chinese characters."""
    if is_chinese(text):
        return [found.span() for found in _CHINESE.finditer(text)]
    return [found.span() for found in _WORD.finditer(text)]


def word_vectors(
    model: Model, encodings: Sequence[Encoding], places: Sequence[tuple[int, Sequence[int]]]
) -> Tensor:
    """Vectors [N, S + 2, D] of N words on their way through S steps, on the CPU.

    First the static embedding, which is the same wherever the word stands: the rows of its pieces
    through the input's norm and projection (where there are any), without position and segment.
    Then what every step starts from, and what the last one gives.

    Args:
        model: In eval mode.
        encodings: Inputs, padded together unless the model reads padding.
        places: Row and piece positions of each word; the pieces' vectors are averaged.
    """
    if len(rows := together(model, encodings)) > 1:
        return apart(partial(word_vectors, model), encodings, places, rows)
    batch = model.collate(encodings)
    assert batch.input_ids is not None
    longest = batch.shape[1]
    left = model.tokenizer.template.pad_left
    parts = model.encoder.embeddings
    with torch.inference_mode():
        start = parts.alone(batch.input_ids)
        states = model.encoder(batch, every_step=True).states
        every = torch.stack([start, *states], 2)  # [B, L, S + 2, D]
        found = []
        for row, positions in places:
            before = longest - len(encodings[row]) if left else 0
            chosen = [before + position for position in positions]
            found.append(every[row, chosen].float().mean(0))
        return torch.stack(found).cpu()


# --- projection -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Projection:
    """Two axes that stay the same for every layer and sentence."""

    centre: Tensor
    """[D]."""
    axes: Tensor
    """[2, D], orthogonal, of length 1."""
    shares: tuple[float, float]
    """Share of the variance along each axis."""

    def __call__(self, vectors: Tensor) -> Tensor:
        """[..., D] -> [..., 2]."""
        return (vectors - self.centre) @ self.axes.T


def fit_projection(vectors: Tensor) -> Projection:
    """The two directions along which vectors [N, D] differ most (principal components).

    The sign of an axis is chosen so that its largest entry is positive. Where the vectors differ
    along fewer directions, the others are zero.
    """
    points = vectors.double()
    centre = points.mean(0)
    _, sizes, directions = torch.linalg.svd(points - centre, full_matrices=False)
    axes = torch.zeros(2, points.shape[1], dtype=torch.float64)
    variance = sizes.square()
    total = float(variance.sum())
    shares = [0.0, 0.0]
    for n in range(min(2, len(sizes))):
        if total <= TINY or float(variance[n]) <= TINY * total:
            continue
        axis = directions[n]
        axes[n] = axis * axis[axis.abs().argmax()].sign()
        shares[n] = float(variance[n]) / total
    return Projection(centre.float(), axes.float(), (shares[0], shares[1]))


# --- likeness -------------------------------------------------------------------------------------


def cosines(vectors: Tensor, others: Tensor, mean: Tensor | None = None) -> Tensor:
    """Cosines [N, M] of vectors [N, D] and [M, D], after subtracting a mean [D] from all.

    A vector of no length has the cosine 0 to every other.
    """
    a, b = vectors.double(), others.double()
    if mean is not None:
        a, b = a - mean.double(), b - mean.double()
    norms = a.norm(dim=-1)[:, None] * b.norm(dim=-1)[None]
    return torch.where(norms > TINY, a @ b.T / norms.clamp(min=TINY), 0.0)


def crowding(vectors: Tensor, mean: Tensor | None = None) -> float:
    """Mean cosine between different ones of vectors [N, D]: 0 where they point anywhere."""
    count = len(vectors)
    if count < 2:
        return 0.0
    table = cosines(vectors, vectors, mean)
    return float((table.sum() - table.diagonal().sum()) / (count * (count - 1)))


def unknown(model: Model, encoding: Encoding, positions: Sequence[int]) -> bool:
    """Whether one of some pieces stands for anything that the vocabulary does not hold."""
    return any(encoding.ids[p] == model.tokenizer.unknown_id for p in positions)


# --- a corpus -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Occurrence:
    """A word in a sentence of a corpus."""

    sentence: int
    start: int
    end: int
    """Characters [start, end) of the sentence."""
    word: str
    """Lower case."""


def sample_occurrences(
    sentences: Sequence[str], *, most: int, per_word: int, generator: torch.Generator
) -> list[Occurrence]:
    """Draw occurrences of words, no word more than ``per_word`` times, in order of sentence.

    Sentences are visited in an order that the generator draws, and so are the words of each.

    Raises:
        InputError: ``most`` or ``per_word`` is below 1.
    """
    if most < 1 or per_word < 1:
        raise InputError(f"most is {most} and per_word {per_word}; both must be 1 or more.")
    seen: dict[str, int] = {}
    found: list[Occurrence] = []
    for number in torch.randperm(len(sentences), generator=generator).tolist():
        spans = words_of(sentences[number])
        for place in torch.randperm(len(spans), generator=generator).tolist():
            start, end = spans[place]
            word = sentences[number][start:end].lower()
            if seen.get(word, 0) >= per_word:
                continue
            seen[word] = seen.get(word, 0) + 1
            found.append(Occurrence(number, start, end, word))
            if len(found) == most:
                return sorted(found, key=lambda each: (each.sentence, each.start))
    return sorted(found, key=lambda each: (each.sentence, each.start))


def occurrence_vectors(
    model: Model, sentences: Sequence[str], occurrences: Sequence[Occurrence]
) -> tuple[Tensor, list[int]]:
    """Vectors [N', S + 2, D] of occurrences (see `word_vectors`), and which of them they are.

    Left out is what lies beyond the model's longest input and what its vocabulary has no piece for.
    """
    numbers = sorted({each.sentence for each in occurrences})
    rows = {number: row for row, number in enumerate(numbers)}
    encodings = model.encode([sentences[number] for number in numbers])
    places, kept = [], []
    for index, each in enumerate(occurrences):
        row = rows[each.sentence]
        positions = pieces_at(encodings[row], each.start, each.end)
        if positions and not unknown(model, encodings[row], positions):
            places.append((row, positions))
            kept.append(index)
    if not places:
        return torch.zeros(0, model.config.steps + 2, model.config.width), []
    return word_vectors(model, encodings, places), kept


def nearest(
    vector: Tensor, vectors: Tensor, most: int, mean: Tensor | None = None
) -> list[tuple[int, float]]:
    """Numbers and cosines of the nearest of vectors [N, D] to one [D], nearest first."""
    likeness = cosines(vector[None], vectors, mean)[0]
    found = likeness.topk(min(most, len(likeness)))
    return list(zip(found.indices.tolist(), found.values.tolist(), strict=True))
