"""One word in several sentences, and its neighbours in the shipped texts. No Gradio in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import core_models as cm
from app.labs.meaning.corpus import BACKGROUND, MOST_CHARACTERS, PRIMER, SEED, Corpus, Index
from app.serving.ask import whole_number
from core_models import InputError
from core_models.prediction import meaning
from viz.meaning import Neighbour

ROOT = Path(__file__).resolve().parents[3]
SENTENCES = (2, 8)
MOST_WORD = 40
MOST_NEAR = 12
LAST = 1000
"""The number of the last layer, however many a model has."""


class Example(NamedTuple):
    """A word with more than one meaning."""

    senses: str
    """A letter for each sentence. Those of one meaning have the same letter, and are more alike at
    the last layer than any two of different meanings (tests/app/test_demonstrations.py)."""
    text: str
    """One sentence in each line."""


EXAMPLES = {
    "bank": Example(
        "aabb",
        """She sat on the bank of the river.
Trees grow on the bank of the river.
The bank gave the family a loan for the house.
The bank gave him money for a new house.""",
    ),
    "spring": Example(
        "aabc",
        """In spring the trees are green again.
The lambs are born in spring.
The water of the spring is clear and cold.
A metal spring pushes the door shut.""",
    ),
    "light": Example(
        "aabb",
        """The light of the sun fell through the window.
The light of the moon is weak.
The bag is light, so the child can carry it.
The boat is light and fast.""",
    ),
    "match": Example(
        "aabb",
        """The children watched the football match.
Our team won the football match.
He lit the candle with a match.
She struck a match and lit the lamp.""",
    ),
    "cold": Example(
        "aabc",
        """The winter was long and cold.
The water in the lake is cold.
She has a cold and stays in bed.
He looked at her with cold eyes.""",
    ),
    "花": Example(
        "aabb", "红色的花很美丽。\n院子里的花是红色的。\n他花了很多钱买书。\n她花了三个小时写作业。"
    ),
    "长": Example("aabb", "这条河很长。\n她的头发很长。\n小树长高了。\n小狗长大了。"),
}
FIRST = "bank"


@dataclass(frozen=True, kw_only=True)
class Words:
    """A word and its sentences, checked."""

    word: str
    sentences: tuple[str, ...]

    @property
    def language(self) -> str:
        """Which texts the corpus is."""
        return "chinese" if meaning.is_chinese(self.word) else "english"


def lines_of(text: Any) -> tuple[str, ...]:
    """The sentences of a text with one in each line."""
    clean = str(text or "").encode("utf-8", "replace").decode("utf-8")
    return tuple(line.strip() for line in clean.splitlines() if line.strip())


def example_of(text: Any) -> str | None:
    """The example whose sentences these are."""
    lines = lines_of(text)
    return next((n for n, example in EXAMPLES.items() if lines_of(example.text) == lines), None)


def read_words(word: Any, text: Any) -> Words:
    """The word and its sentences, one in each line."""
    word = str(word or "").strip().encode("utf-8", "replace").decode("utf-8")
    given = lines_of(text)
    if not word:
        raise InputError("There is no word yet. Type one that stands in every sentence.")
    if len(word) > MOST_WORD:
        raise InputError(f"The word has {len(word)} characters; at most {MOST_WORD} go.")
    least, most = SENTENCES
    if len(given) > most:
        raise InputError(f"There are {len(given)} sentences; at most {most} go.")
    if long := next((text for text in given if len(text) > MOST_CHARACTERS), None):
        raise InputError(
            f"A sentence has {len(long)} characters; at most {MOST_CHARACTERS} go. Shorten it."
        )
    if len(given) < least:
        raise InputError("Write at least two sentences with the word.")
    return Words(word=word, sentences=given)


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The word in the sentences that hold it."""

    numbers: list[int]
    """Which sentences, from 0."""
    pieces: list[list[str]]
    vectors: Tensor
    """[n, S + 2, D]."""
    beyond: list[int]
    """Sentences that are cut off before their word."""


def locate(model: cm.Model, words: Words, *, least: int = SENTENCES[0]) -> Found:
    """The word's vectors; InputError where too few sentences hold it."""
    numbers, encodings, places, pieces = [], [], [], []
    beyond: list[int] = []
    for number, text in enumerate(words.sentences):
        span = meaning.find_word(text, words.word)
        if span is None:
            continue
        (encoding,) = model.encode([text])
        positions = meaning.pieces_at(encoding, *span)
        if not positions:
            beyond += [number] if encoding.truncated else []
            continue
        if meaning.unknown(model, encoding, positions):
            raise InputError(
                f"“{words.word}” is not in the vocabulary of {model.name or 'this model'}, which "
                "reads one piece for everything unknown. Choose another word or another model."
            )
        places.append((len(encodings), positions))
        encodings.append(encoding)
        numbers.append(number)
        pieces.append([model.tokenizer.display(encoding.ids[p]) for p in positions])
    if len(numbers) < least and beyond:
        raise InputError(
            f"In sentence {beyond[0] + 1} “{words.word}” stands beyond what "
            f"{model.name or 'this model'} reads ({model.longest} pieces). Shorten the sentence."
        )
    if len(numbers) < least:
        raise InputError(
            f"“{words.word}” stands in {len(numbers)} of the sentences as a word of its own; at "
            "least two must hold it."
        )
    return Found(numbers, pieces, meaning.word_vectors(model, encodings, places), beyond)


def read_layer(value: Any, steps: int) -> int:
    """0 is the static embedding, 1 the input, then one for each step; what is more is the last."""
    return min(whole_number(value, "layer", 0, LAST), steps + 1)


@dataclass(frozen=True)
class Compared:
    """The word's way through all layers, by ``raw`` (as it is) and ``centred`` vectors."""

    numbers: list[int]
    pieces: list[list[str]]
    points: dict[str, Any]
    """[n, S + 2, 2] in the two main directions of all layers together."""
    shares: dict[str, tuple[float, float]]
    """Which part of the differences these directions hold."""
    cosines: dict[str, Any]
    """[S + 2, n, n]."""
    random: dict[str, Sequence[float]]
    """[S + 2], mean cosine of different words."""
    beyond: list[int]

    @property
    def last(self) -> int:
        """Number of the last layer."""
        return len(self.random["raw"]) - 1


def compare(corpus: Corpus, model: cm.Model, words: Words) -> Compared:
    """Paths, cosines and the background of all layers; runs on the model thread."""
    found = locate(model, words)
    background = corpus.background(model, words.language)
    vectors, means = found.vectors, background.means
    points, shares, cosines = {}, {}, {}
    for way, moved in (("raw", vectors), ("centred", vectors - means)):
        projection = meaning.fit_projection(moved.flatten(0, 1))
        points[way] = _rounded(projection(moved))
        shares[way] = (projection.shares[0], projection.shares[1])
        cosines[way] = [_rounded(meaning.cosines(each, each)) for each in moved.unbind(1)]
    random = {"raw": background.crowding, "centred": background.centred}
    return Compared(found.numbers, found.pieces, points, shares, cosines, random, found.beyond)


def neighbours(
    corpus: Corpus, index: Index, model: cm.Model, words: Words, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Words of the corpus nearest to one occurrence at a layer; runs on the model thread."""
    found = locate(model, words)
    number = whole_number(values["which"] or 0, "which", 0, SENTENCES[1])
    which = found.numbers.index(number) if number in found.numbers else 0
    layer = read_layer(values["layer"], model.config.steps)
    centred, others = values["way"] == "centred", values["others"] is True
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
        "numbers": found.numbers,
        "layer": layer,
        "centred": centred,
        "count": len(rows),
        "same": len(rows) - len(known),
        "near": [
            Neighbour(
                before=index.sentences[rows[n].sentence][: rows[n].start],
                word=index.sentences[rows[n].sentence][rows[n].start : rows[n].end],
                after=index.sentences[rows[n].sentence][rows[n].end :],
                cosine=cosine,
                same=rows[n].word == own,
            )
            for n, cosine in near
        ],
    }


def _rounded(values: Tensor) -> Any:
    """Nested lists with four decimals."""
    return values.double().round(decimals=4).tolist()


def code_lines(name: str, words: Words, texts: Sequence[str], way: str) -> str:
    """Python that recomputes the paths and the cosines."""
    lines = "\n".join(f"    {text!r}," for text in texts)
    subtracted = [
        "# The mean of many words of the Primer, which is subtracted.",
        f'files = sorted(Path({str(PRIMER.relative_to(ROOT))!r}).glob("{words.language}-*.txt"))',
        'lines = [line for file in files for line in file.read_text("utf-8").splitlines()]',
        f"lines = [line for line in lines if line.strip() and len(line) <= {MOST_CHARACTERS}]",
        f"seed = torch.Generator().manual_seed({SEED})",
        f"drawn = meaning.sample_occurrences(lines, most={BACKGROUND}, per_word=1, generator=seed)",
        "vectors = vectors - meaning.occurrence_vectors(model, lines, drawn)[0].mean(0)",
    ]
    return "\n".join(
        [
            *(["from pathlib import Path", "import torch"] if way == "centred" else []),
            "import core_models as cm",
            "from core_models.prediction import meaning",
            "",
            f"model = cm.load({name!r})",
            f"word, sentences = {words.word!r}, [",
            lines,
            "]",
            "encodings = model.encode(sentences)",
            "places = [",
            "    (row, meaning.pieces_at(encoding, *meaning.find_word(text, word)))",
            "    for row, (encoding, text) in enumerate(zip(encodings, sentences))",
            "]",
            "vectors = meaning.word_vectors(model, encodings, places)  # [n, layers + 2, width]",
            *(subtracted if way == "centred" else []),
            "projection = meaning.fit_projection(vectors.flatten(0, 1))",
            "print(projection(vectors))",
            "for layer in range(vectors.shape[1]):",
            "    print(layer, meaning.cosines(vectors[:, layer], vectors[:, layer]))",
        ]
    )
