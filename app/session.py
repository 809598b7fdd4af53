"""The one service behind the page and its endpoints. No Gradio in it.

It checks what is asked, loads each model once, runs all of them on one thread (see
:mod:`app.batcher`) and remembers results by the content of the question, so nothing is kept per
visitor and handlers stay stateless.
"""

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import core_models as cm
from app.ask import MOST_SEED, Ask, Case, Mark, clean_rate, clean_text, whole_number
from app.batcher import Batcher
from app.cache import Cache
from core_models import InputError, masking, prediction
from core_models.tokenizer import Encoding, Tokenizer

CACHE_BYTES = 256 << 20
_CASES: dict[int, Case] = {masking.MASK: "mask", masking.RANDOM: "random", masking.KEPT: "kept"}


@dataclass(frozen=True, kw_only=True)
class SentenceToken:
    """One piece of a sentence as the page shows it."""

    position: int
    id: int
    piece: str
    """Raw piece of the vocabulary ("##ing")."""
    text: str
    """What stands in the sentence there, in the visitor's own spelling."""
    start: int
    end: int
    """Characters (code points) of the text: [start, end)."""
    word: int | None
    """Word group; None for [CLS] and [SEP]."""
    special: bool
    masked: bool
    """[MASK] written in the text."""
    unknown: bool
    """The vocabulary has no piece for it."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text in the pieces of one model."""

    text: str
    model: str
    tokens: tuple[SentenceToken, ...]
    truncated: bool
    """Pieces beyond the model's longest input were cut off."""


@dataclass(frozen=True, kw_only=True)
class AttentionResult:
    """Where each piece of a sentence looks."""

    tokens: tuple[SentenceToken, ...]
    seen: tuple[str, ...]
    """The pieces that the model saw, marks applied, as people read them."""
    probabilities: NDArray[np.float32]
    """[layers, heads, L, L]; each row sums to 1."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A random masking of a sentence."""

    sentence: Sentence
    marks: tuple[Mark, ...]
    shown: tuple[str, ...]
    """For each mark, the piece the model sees, as people read it."""


class Session:
    """Models, results and the thread that computes them.

    Args:
        threads: cores for the model thread; None leaves torch's own choice. Set once per process,
            as torch keeps one number for all models.
    """

    def __init__(self, *, threads: int | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self._infos: dict[str, cm.ModelInfo] = {}
        self._loaded: dict[str, cm.Model] = {}
        self._loading = Lock()
        self._cache = Cache(cache_bytes)
        self._running: dict[Hashable, Future[Any]] = {}
        self._batcher = Batcher(self._run)

    def close(self) -> None:
        """End the model thread."""
        self._batcher.close()

    # --- models -----------------------------------------------------------------------------

    def models(self) -> list[cm.ModelInfo]:
        """The models that visitors may use."""
        with self._loading:
            if not self._infos:
                self._infos = {info.name: info for info in cm.models()}
            return list(self._infos.values())

    def model(self, name: str) -> cm.Model:
        """A model by name, loaded on first use; InputError for any name that is not listed.

        Folders and hub ids are refused: visitors choose from the list, never from the disk.
        """
        with self._loading:
            if name not in self._infos:
                self._infos = {info.name: info for info in cm.models()}
            if name not in self._infos:
                known = ", ".join(self._infos) or "none is installed"
                raise InputError(f"There is no model “{name[:60]}” here. Known models: {known}.")
            if name not in self._loaded:
                self._loaded[name] = cm.load(name)
            return self._loaded[name]

    def warm(self, name: str) -> None:
        """Load a model and run it once, so that the first visitor does not wait for that."""
        try:
            model = self.model(name)
            self._batcher.submit(("fill", model.name), Ask(text="[MASK]", model=name)).result()
        except (InputError, CancelledError):
            return

    # --- questions --------------------------------------------------------------------------

    async def tokenize(self, text: str, model: str) -> Sentence:
        """A text in the pieces of a model."""
        return await asyncio.to_thread(self.sentence, text, model)

    async def random_mask(
        self, text: str, model: str, *, seed: int, rate: float = 0.15, whole_word: bool = False
    ) -> Draw:
        """Draw positions as in pretraining: of those, 80 % masked, 10 % random, 10 % kept."""
        text = clean_text(text)
        seed = whole_number(seed, "seed", 0, MOST_SEED)
        rate = clean_rate(rate)
        return await asyncio.to_thread(self._draw, text, model, seed, rate, bool(whole_word))

    async def fill(self, ask: Ask) -> prediction.FillResult:
        """The model's candidates for every marked position and every [MASK] in the text."""
        result: prediction.FillResult = await self._answer("fill", ask)
        return result

    async def attention(self, ask: Ask) -> AttentionResult:
        """The attention of every head over the sentence with its marks applied."""
        result: AttentionResult = await self._answer("attention", ask)
        return result

    # --- inside -----------------------------------------------------------------------------

    async def _answer(self, kind: str, ask: Ask) -> Any:
        """The cached answer, the one being computed for somebody else, or a new one."""
        key = (kind, ask)
        if ask.model not in self._loaded:
            await asyncio.to_thread(self.model, ask.model)
        if (known := self._cache.get(key)) is not None:
            return known
        # No await between looking and entering, so that equal questions share one future.
        if (future := self._running.get(key)) is None:
            size = min(self._loaded[ask.model].longest, len(ask.text))
            future = self._running[key] = self._batcher.submit((kind, ask.model), ask, size)
            future.add_done_callback(partial(self._keep, key))
        # One visitor who leaves must not cancel what others wait for.
        return await asyncio.shield(asyncio.wrap_future(future))

    def _keep(self, key: Hashable, future: Future[Any]) -> None:
        """Remember a good answer; runs on the model thread when a future is done."""
        if not future.cancelled() and future.exception() is None:
            self._cache.put(key, future.result(), _cost(future.result()))
        self._running.pop(key, None)

    def _run(self, key: Any, asks: list[Ask]) -> Sequence[Any]:
        """Answer asks of one kind for one model; runs on the model thread only."""
        kind, name = key
        model = self.model(name)
        with torch.inference_mode():
            if kind == "fill":
                return _fill(model, asks)
            return [_attention(model, ask) for ask in asks]

    def sentence(self, text: str, model: str) -> Sentence:
        """A text in the pieces of a model, in the calling thread."""
        text = clean_text(text)
        loaded = self.model(model)
        encoding = loaded.encode([text])[0]
        tokens = sentence_tokens(encoding, loaded.tokenizer)
        return Sentence(text=text, model=model, tokens=tokens, truncated=encoding.truncated)

    def _draw(self, text: str, model: str, seed: int, rate: float, whole_word: bool) -> Draw:
        loaded = self.model(model)
        sentence, tokenizer = self.sentence(text, model), loaded.tokenizer
        tokens = sentence.tokens
        ids = torch.tensor([token.id for token in tokens])
        open_ = torch.tensor([not token.special and not token.masked for token in tokens])
        words = torch.tensor([-1 if token.word is None else token.word for token in tokens])
        draw = partial(masking.whole_word, words=words) if whole_word else masking.uniform
        masked = draw(
            ids,
            open_,
            generator=torch.Generator().manual_seed(seed),
            mask_id=tokenizer.mask_id,
            vocabulary=tokenizer.vocabulary,
            rate=rate,
        )
        inputs, cases = masked.inputs.tolist(), masked.cases.tolist()
        marks = tuple(
            Mark(
                position=position,
                case=_CASES[case],
                piece=inputs[position] if case == masking.RANDOM else None,
            )
            for position, case in enumerate(cases)
            if case != masking.UNTOUCHED
        )
        shown = tuple(tokenizer.display(inputs[mark.position]) for mark in marks)
        return Draw(sentence=sentence, marks=marks, shown=shown)


def sentence_tokens(encoding: Encoding, tokenizer: Tokenizer) -> tuple[SentenceToken, ...]:
    """The pieces of an encoding with what stands in the text at their place."""
    tokens = []
    for position, (start, end) in enumerate(encoding.offsets):
        index = encoding.ids[position]
        written = encoding.text[start:end]
        tokens.append(
            SentenceToken(
                position=position,
                id=index,
                piece=encoding.pieces[position],
                text=written if written.strip() else tokenizer.display(index),
                start=start,
                end=end,
                word=encoding.words[position],
                special=encoding.special[position],
                masked=index == tokenizer.mask_id,
                unknown=index == tokenizer.unknown_id,
            )
        )
    return tuple(tokens)


def check_marks(marks: Sequence[Mark], encoding: Encoding, tokenizer: Tokenizer) -> None:
    """Refuse marks that the text or the vocabulary has no place for."""
    for mark in marks:
        if mark.position >= len(encoding):
            raise InputError(
                f"Position {mark.position} is beyond the text, which has {len(encoding)} pieces "
                f"(0 to {len(encoding) - 1})."
            )
        if encoding.special[mark.position]:
            raise InputError(
                f"Position {mark.position} is {encoding.pieces[mark.position]}, which cannot be "
                "hidden; choose a word."
            )
        if mark.piece is not None and mark.piece >= tokenizer.vocabulary:
            raise InputError(
                f"Piece {mark.piece} is outside the vocabulary (0 to {tokenizer.vocabulary - 1})."
            )


def _fill(model: cm.Model, asks: list[Ask]) -> Sequence[prediction.FillResult | InputError]:
    requests = [
        prediction.FillRequest(
            text=ask.text,
            masks=tuple(mark.position for mark in ask.marks if mark.case == "mask"),
            replaced={m.position: m.piece for m in ask.marks if m.piece is not None},
            kept=tuple(mark.position for mark in ask.marks if mark.case == "kept"),
            top_k=ask.top_k,
            watch=ask.words,
        )
        for ask in asks
    ]
    return prediction.fill_many(model, requests)


def _attention(model: cm.Model, ask: Ask) -> AttentionResult | InputError:
    """One sentence at a time: the maps of a batch would hold padding."""
    try:
        encoding = model.encode([ask.text])[0]
        check_marks(ask.marks, encoding, model.tokenizer)
    except InputError as error:
        return error
    ids = list(encoding.ids)
    for mark in ask.marks:
        if mark.case == "mask":
            ids[mark.position] = model.tokenizer.mask_id
        elif mark.piece is not None:
            ids[mark.position] = mark.piece
    trace = cm.Trace(sites=["probabilities"])
    model.encoder(model.collate([replace(encoding, ids=ids)]), trace)
    maps = trace.stack("probabilities")[:, 0]  # [layers, H, L, L]
    return AttentionResult(
        tokens=sentence_tokens(encoding, model.tokenizer),
        seen=tuple(model.tokenizer.display(index) for index in ids),
        probabilities=maps.float().cpu().numpy(),
    )


def _cost(answer: Any) -> int:
    """Rough bytes of a result."""
    if isinstance(answer, AttentionResult):
        return answer.probabilities.nbytes + 1_000 * len(answer.tokens)
    return 1_000 * len(answer.tokens) + 4_000 * len(answer.predictions)
