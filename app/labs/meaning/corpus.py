"""The shipped texts as vectors: a background of many words, and an index to find neighbours in.

A thread of its own has the model thread build the index in small pieces of work, so that visitors'
questions come between them; it is kept in memory as long as the page runs.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread

import torch
from torch import Tensor

import core_models as cm
from app.serving.cache import Cache
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import meaning
from core_models.prediction.meaning import Occurrence

PRIMER = Path(__file__).resolve().parents[3] / "assets" / "primer"
MOST_CHARACTERS = 300
MOST_OCCURRENCES = 4_000
PER_WORD = 8
INDEX_BYTES = 96 << 20
MOST_INDEXES = 3
MOST_SAME = 40
"""Sentences of the corpus with the visitor's own word that join the index for a question."""
MOST_WORDS = 32
"""Words whose own occurrences are kept."""
MOST_COMPARED = 64
BACKGROUND = 240
"""Words whose mean is subtracted."""
CHUNK = 12
"""Sentences of one piece of work on the model thread."""
SEED = 11


@dataclass(frozen=True)
class Background:
    """Many words of the corpus at every layer, to compare with."""

    means: Tensor
    """[S + 2, D]."""
    crowding: tuple[float, ...]
    """Mean cosine between different words at each layer."""
    centred: tuple[float, ...]
    """The same after subtracting the means."""
    count: int


@dataclass(frozen=True)
class Index:
    """Vectors of words of the corpus."""

    sentences: Sequence[str]
    occurrences: Sequence[Occurrence]
    vectors: Tensor
    """[N, S + 2, D], half precision."""


@dataclass
class Building:
    """An index on its way."""

    done: int = 0
    of: int = 1
    index: Index | None = None
    failed: bool = False


class Corpus:
    """Backgrounds and indexes of the shipped texts by model and language; one per page."""

    def __init__(self, session: Session, folder: Path = PRIMER, *, most: int = MOST_OCCURRENCES):
        self.session = session
        self.folder = folder
        self.most = most
        self.compared = Cache(MOST_COMPARED)
        """What was found for a model (by its number) and its words."""
        self._lock = Lock()
        self._texts: dict[str, list[str]] = {}
        # By the model's number: a key that holds a model keeps it in memory when it was put out.
        self._backgrounds: OrderedDict[tuple[int, str], Background] = OrderedDict()
        self._buildings: OrderedDict[tuple[int, str], Building] = OrderedDict()
        self._same: OrderedDict[tuple[int, str], Index] = OrderedDict()

    def sentences(self, language: str) -> list[str]:
        """Sentences of the shipped texts in a language."""
        with self._lock:
            if language not in self._texts:
                self._texts[language] = [
                    line
                    for path in sorted(self.folder.glob(f"{language}-*.txt"))
                    for line in path.read_text("utf-8").splitlines()
                    if line.strip() and len(line) <= MOST_CHARACTERS
                ]
            return self._texts[language]

    def background(self, model: cm.Model, language: str) -> Background:
        """Computed once for a model; runs on the model thread."""
        key = (self.session.number(model), language)
        if (known := self._backgrounds.get(key)) is not None:
            return known
        sentences = self.sentences(language)
        random = torch.Generator().manual_seed(SEED)
        drawn = meaning.sample_occurrences(sentences, most=BACKGROUND, per_word=1, generator=random)
        vectors, kept = meaning.occurrence_vectors(model, sentences, drawn)
        if not kept:
            raise InputError("The shipped texts hold no word that this model can compare with.")
        means = vectors.mean(0)
        layers = range(vectors.shape[1])
        found = Background(
            means=means,
            crowding=tuple(meaning.crowding(vectors[:, n]) for n in layers),
            centred=tuple(meaning.crowding(vectors[:, n], means[n]) for n in layers),
            count=len(kept),
        )
        with self._lock:
            self._backgrounds[key] = found
            while len(self._backgrounds) > 2 * MOST_INDEXES:
                self._backgrounds.popitem(last=False)
        return found

    def building(self, model: cm.Model, language: str) -> Building:
        """The index, or how far it is; the first call for a model starts a thread for it."""
        key = (self.session.number(model), language)
        with self._lock:
            found = self._buildings.get(key)
            if found is not None and not found.failed:
                self._buildings.move_to_end(key)
                return found
            found = self._buildings[key] = Building()
            while len(self._buildings) > MOST_INDEXES:
                self._buildings.popitem(last=False)
        Thread(
            target=self._build, args=(model, language, found), name="cloze-meaning", daemon=True
        ).start()
        return found

    def _build(self, model: cm.Model, language: str, building: Building) -> None:
        try:
            asyncio.run(self._collect(model, language, building))
        except (RuntimeError, CancelledError, asyncio.CancelledError, OSError):
            building.failed = True  # the page closes, or memory is short: the next question tries

    async def _collect(self, model: cm.Model, language: str, building: Building) -> None:
        sentences = self.sentences(language)
        size = (model.config.steps + 2) * model.config.width * 2
        random = torch.Generator().manual_seed(SEED)
        drawn = meaning.sample_occurrences(
            sentences,
            most=max(1, min(self.most, INDEX_BYTES // size)),
            per_word=PER_WORD,
            generator=random,
        )
        building.of = len(drawn)
        numbers = sorted({each.sentence for each in drawn})
        kept: list[Occurrence] = []
        parts: list[Tensor] = []
        for first in range(0, len(numbers), CHUNK):
            chosen = set(numbers[first : first + CHUNK])
            chunk = [each for each in drawn if each.sentence in chosen]
            vectors, found = await self.session.compute(
                lambda chunk=chunk: meaning.occurrence_vectors(model, sentences, chunk), model
            )
            parts.append(vectors.half())
            kept += [chunk[n] for n in found]
            building.done += len(chunk)
        building.index = Index(sentences, kept, torch.cat(parts))

    def same_word(self, model: cm.Model, word: str, language: str) -> Index:
        """The word itself in sentences of the corpus; runs on the model thread."""
        key = (self.session.number(model), word.lower())
        with self._lock:
            if (known := self._same.get(key)) is not None:
                self._same.move_to_end(key)
                return known
        sentences = self.sentences(language)
        found = []
        for number, text in enumerate(sentences):
            if (span := meaning.find_word(text, word)) is not None:
                found.append(Occurrence(number, *span, word.lower()))
        random = torch.Generator().manual_seed(SEED)
        order = torch.randperm(len(found), generator=random).tolist()[:MOST_SAME]
        chosen = [found[n] for n in sorted(order)]
        vectors, kept = torch.zeros(0), []
        if chosen:
            vectors, kept = meaning.occurrence_vectors(model, sentences, chosen)
        result = Index(sentences, [chosen[n] for n in kept], vectors)
        with self._lock:
            self._same[key] = result
            while len(self._same) > MOST_WORDS:
                self._same.popitem(last=False)
        return result
