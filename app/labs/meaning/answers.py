"""One word in several sentences, and its neighbours in the shipped texts. No Gradio in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.labs.meaning.corpus import MOST_CHARACTERS, Corpus, Index
from app.serving.ask import whole_number
from core_models import InputError, meaning

SENTENCES = (2, 8)
MOST_WORD = 40
MOST_NEAR = 12


@dataclass(frozen=True, kw_only=True)
class Words:
    """A word and its sentences, checked."""

    word: str
    sentences: tuple[str, ...]

    @property
    def language(self) -> str:
        """Which texts the corpus is."""
        return "chinese" if meaning.is_chinese(self.word) else "english"


def read_words(values: Mapping[str, Any]) -> Words:
    """The word and the sentences in an event of the page."""
    word, sentences = values.get("word"), values.get("sentences")
    if not isinstance(word, str) or not word.strip():
        raise InputError("There is no word yet. Type one that stands in every sentence.")
    if len(word.strip()) > MOST_WORD:
        raise InputError(f"The word has {len(word.strip())} characters; at most {MOST_WORD} go.")
    if not isinstance(sentences, Sequence) or isinstance(sentences, str):
        raise InputError("sentences must be a list of texts.")
    if not all(isinstance(text, str) for text in sentences):
        raise InputError("sentences must be a list of texts.")
    least, most = SENTENCES
    if len(sentences) > most:
        raise InputError(f"There are {len(sentences)} sentences; at most {most} go.")
    if long := next((text for text in sentences if len(text) > MOST_CHARACTERS), None):
        raise InputError(
            f"A sentence has {len(long)} characters; at most {MOST_CHARACTERS} go. Shorten it."
        )
    if len([text for text in sentences if text.strip()]) < least:
        raise InputError("Write at least two sentences with the word.")
    clean = (text.encode("utf-8", "replace").decode("utf-8") for text in (word, *sentences))
    word, *rest = clean
    return Words(word=word.strip(), sentences=tuple(rest))


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The word in the sentences that hold it."""

    numbers: list[int]
    """Which sentences, from 0."""
    spans: list[tuple[int, int]]
    pieces: list[list[str]]
    vectors: Tensor
    """[n, S + 2, D]."""


def locate(model: cm.Model, words: Words, *, least: int = SENTENCES[0]) -> Found:
    """The word's vectors; InputError where too few sentences hold it."""
    numbers, spans, encodings, places, pieces = [], [], [], [], []
    for number, text in enumerate(words.sentences):
        span = meaning.find_word(text, words.word) if text.strip() else None
        if span is None:
            continue
        (encoding,) = model.encode([text])
        positions = meaning.pieces_at(encoding, *span)
        if not positions:
            continue
        if meaning.unknown(model, encoding, positions):
            raise InputError(
                f"“{words.word}” is not in the vocabulary of {model.name or 'this model'}, which "
                "reads one piece for everything unknown. Choose another word or another model."
            )
        places.append((len(encodings), positions))
        encodings.append(encoding)
        numbers.append(number)
        spans.append(span)
        pieces.append([model.tokenizer.display(encoding.ids[p]) for p in positions])
    if len(numbers) < least:
        raise InputError(
            f"“{words.word}” stands in {len(numbers)} of the sentences as a word of its own; at "
            "least two must hold it."
        )
    return Found(numbers, spans, pieces, meaning.word_vectors(model, encodings, places))


def compare(corpus: Corpus, model: cm.Model, words: Words) -> dict[str, Any]:
    """Paths, cosines and the background of all layers; runs on the model thread."""
    found = locate(model, words)
    background = corpus.background(model, words.language)
    vectors, means = found.vectors, background.means
    ways = {}
    for name, points in (("raw", vectors), ("centred", vectors - means)):
        projection = meaning.fit_projection(points.flatten(0, 1))
        ways[name] = {
            "points": _rounded(projection(points)),
            "shares": [round(share, 4) for share in projection.shares],
        }
    layers = range(vectors.shape[1])
    return {
        "word": words.word,
        "language": words.language,
        "used": [
            {"number": number, "start": start, "end": end, "pieces": pieces}
            for number, (start, end), pieces in zip(
                found.numbers, found.spans, found.pieces, strict=True
            )
        ],
        "steps": len(layers) - 2,
        "ways": ways,
        "cosines": {
            "raw": [_rounded(meaning.cosines(vectors[:, n], vectors[:, n])) for n in layers],
            "centred": [
                _rounded(meaning.cosines(vectors[:, n], vectors[:, n], means[n])) for n in layers
            ],
        },
        "background": {
            "raw": [round(value, 4) for value in background.crowding],
            "centred": [round(value, 4) for value in background.centred],
            "count": background.count,
        },
    }


def neighbours(
    corpus: Corpus, index: Index, model: cm.Model, words: Words, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Words of the corpus nearest to one occurrence at a layer; runs on the model thread."""
    found = locate(model, words)
    number = whole_number(values.get("which", 0), "which", 0, SENTENCES[1])
    which = found.numbers.index(number) if number in found.numbers else 0
    layer = whole_number(values.get("layer", 0), "layer", 0, 10_000)
    layer = min(layer, model.config.steps + 1)
    centred, others = values.get("centred") is not False, values.get("others") is True
    own = words.word.lower()
    known = [(each, n) for n, each in enumerate(index.occurrences) if each.word != own]
    rows = [each for each, _ in known]
    if not rows:
        raise InputError("The shipped texts hold no word that this model can compare with.")
    vectors = index.vectors[torch.tensor([n for _, n in known]), layer].float()
    if not others:
        same = corpus.same_word(model, words.word, words.language)
        if same.occurrences:
            rows += same.occurrences
            vectors = torch.cat([vectors, same.vectors[:, layer]])
    mean = corpus.background(model, words.language).means[layer] if centred else None
    near = meaning.nearest(found.vectors[which, layer], vectors, MOST_NEAR, mean)
    return {
        "which": found.numbers[which],
        "layer": layer,
        "centred": centred,
        "count": len(rows),
        "same": len(rows) - len(known),
        "near": [
            {
                "word": rows[n].word,
                "cosine": round(cosine, 4),
                "sentence": index.sentences[rows[n].sentence],
                "start": rows[n].start,
                "end": rows[n].end,
                "same": rows[n].word == own,
            }
            for n, cosine in near
        ],
    }


def _rounded(values: Tensor) -> Any:
    """Nested lists with four decimals."""
    if values.dim() == 0:
        return round(float(values), 4)
    return [_rounded(value) for value in values]


def code_lines(name: str, words: Words) -> str:
    """Python that recomputes the paths and the cosines."""
    sentences = "\n".join(f"    {text!r}," for text in words.sentences)
    return "\n".join(
        [
            "import core_models as cm",
            "from core_models import meaning",
            "",
            f"model = cm.load({name!r})",
            f"word, sentences = {words.word!r}, [",
            sentences,
            "]",
            "encodings = model.encode(sentences)",
            "places = [",
            "    (row, meaning.pieces_at(encoding, *meaning.find_word(text, word)))",
            "    for row, (encoding, text) in enumerate(zip(encodings, sentences))",
            "]",
            "vectors = meaning.word_vectors(model, encodings, places)  # [n, layers + 2, width]",
            "projection = meaning.fit_projection(vectors.flatten(0, 1))",
            "print(projection(vectors))",
            "for layer in range(vectors.shape[1]):",
            "    print(layer, meaning.cosines(vectors[:, layer], vectors[:, layer]))",
        ]
    )
