"""What the Attention tab looks at: one sentence or two, marks applied. No Gradio in it."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import core_models as cm
from app.serving.ask import Ask, read_ask
from app.serving.cache import Cache
from app.serving.passes import check_maps
from app.serving.pieces import SentenceToken, check_marks, sentence_tokens
from app.serving.session import AttentionResult, Session
from core_models import InputError
from core_models.config import TransformerXL
from core_models.tokenizer import Encoding

MOST_SECOND = 1_000
"""Characters of the second sentence: it travels in the address."""
CACHE_BYTES = 64 << 20
FILTERS = ("all", "ab", "ba", "within")
"""Which links of a pair are shown: all, first to second, second to first, inside a sentence."""


@dataclass(frozen=True, kw_only=True)
class Scene(Ask):
    """A sentence with marks and a second one beside it: the key under which answers are kept."""

    second: str = ""


def read_scene(data: Mapping[str, Any]) -> Ask:
    """The sentence in an event of the page; a :class:`Scene` where there is a second one."""
    ask = read_ask({key: data.get(key, ()) for key in ("text", "model", "marks")})
    second = data.get("second") or ""
    if not isinstance(second, str):
        raise InputError("The second sentence must be text.")
    second = second.strip().encode("utf-8", "replace").decode("utf-8")
    if not second:
        return ask
    if len(second) > MOST_SECOND:
        raise InputError(
            f"The second sentence has {len(second):,} characters; it may have {MOST_SECOND:,}."
        )
    return Scene(text=ask.text, model=ask.model, marks=ask.marks, second=second)


def second_of(ask: Ask) -> str:
    """The second sentence, "" where there is none."""
    return ask.second if isinstance(ask, Scene) else ""


def read_filter(data: Mapping[str, Any]) -> str:
    """Which links of a pair are asked for."""
    found = data.get("part", "all")
    if found not in FILTERS:
        raise InputError(f"part is {str(found)[:40]!r}; it must be one of {', '.join(FILTERS)}.")
    return str(found)


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Look:
    """The input as the model sees it."""

    encoding: Encoding
    """Marks applied."""
    tokens: tuple[SentenceToken, ...]
    """As the visitor wrote them."""
    seen: tuple[str, ...]
    """Pieces that the model sees, as people read them."""


def read(model: cm.Model, ask: Ask) -> Look:
    """Cut the sentence, or the pair, and apply the marks.

    Raises:
        InputError: a mark has no place in it.
    """
    second = second_of(ask)
    (plain,) = model.encode([(ask.text, second) if second else ask.text])
    check_maps(model, len(plain.ids))
    sides = parts(plain.special, plain.offsets, paired=bool(second))
    first = 1 + max((n for n, side in enumerate(sides) if side == 0), default=0)
    # Marks belong to the first sentence, of which less is read beside a second one.
    if second and any(mark.position >= first for mark in ask.marks):
        raise InputError(
            f"Beside the second sentence {ask.model} reads only the first {first} tokens, and a "
            "word beyond them is hidden. Hide an earlier one, or use shorter sentences."
        )
    check_marks(ask.marks, plain, model.tokenizer)
    written = list(sentence_tokens(plain, model.tokenizer))
    for position, part in enumerate(sides):
        start, end = plain.offsets[position]
        if part == 1 and plain.pair is not None and plain.pair[start:end].strip():
            written[position] = replace(written[position], text=plain.pair[start:end])
        elif part != 0:
            piece = model.tokenizer.display(plain.ids[position])
            written[position] = replace(written[position], text=piece)
    ids = list(plain.ids)
    for mark in ask.marks:
        if mark.case == "mask":
            ids[mark.position] = model.tokenizer.mask_id
        elif mark.piece is not None:
            ids[mark.position] = mark.piece
    return Look(
        encoding=replace(plain, ids=ids),
        tokens=tuple(written),
        seen=tuple(model.tokenizer.display(index) for index in ids),
    )


def parts(
    special: Sequence[bool], offsets: Sequence[tuple[int, int]], *, paired: bool
) -> list[int | None]:
    """0 for pieces of the first sentence, 1 for those of the second, None for special ones.

    The second begins after the special pieces between words, not where segment ids change: RoBERTa
    reads both sentences with the same one. One that a visitor has typed ("[SEP]") divides nothing.
    """
    found: list[int | None] = []
    part, words = 0, False
    for each, (start, end) in zip(special, offsets, strict=True):
        added = each and start == end
        words = words or not added
        if added and words and paired:
            part = 1
        found.append(None if each else part)
    return found


def maps_of(model: cm.Model, ask: Ask) -> AttentionResult:
    """Every head's map over the input; runs the model."""
    look = read(model, ask)
    trace = cm.Trace(["probabilities"])
    model.encoder(model.collate([look.encoding]), trace)
    maps: NDArray[np.float32] = trace.stack("probabilities")[:, 0].float().cpu().numpy()
    return AttentionResult(tokens=look.tokens, seen=look.seen, probabilities=maps)


# --- describing -----------------------------------------------------------------------------------


def describe(
    tokens: Sequence[SentenceToken], seen: Sequence[str], ask: Ask
) -> list[dict[str, Any]]:
    """The tokens: the visitor's spelling, or at marked positions what the model saw instead."""
    marked = {mark.position for mark in ask.marks}
    special, offsets = zip(*((t.special, (t.start, t.end)) for t in tokens), strict=True)
    sides = parts(special, offsets, paired=bool(second_of(ask)))
    shown = []
    for token, face, side in zip(tokens, seen, sides, strict=True):
        label = face if token.position in marked else token.text
        shown.append(
            {
                "position": token.position,
                "label": label,
                "original": None if label == token.text else token.text,
                "special": token.special,
                "word": token.word,
                "part": side,
                "masked": token.masked or token.position in marked,
            }
        )
    return shown


def filtered(
    weights: NDArray[np.floating], tokens: Iterable[Mapping[str, Any]], part: str
) -> NDArray[np.floating]:
    """The links of a pair that a filter lets through; the others are 0, nothing is re-normalised.

    Special pieces belong to neither sentence.
    """
    if part == "all":
        return weights
    sides = np.array([-1 if token["part"] is None else token["part"] for token in tokens])
    first, second = sides == 0, sides == 1
    if part == "ab":
        allowed = np.outer(first, second)
    elif part == "ba":
        allowed = np.outer(second, first)
    else:
        allowed = np.outer(first, first) | np.outer(second, second)
    return np.where(allowed, weights, 0).astype(weights.dtype)


# --- computing ------------------------------------------------------------------------------------


class Lab:
    """Runs the tab's own questions on the model thread and keeps their answers.

    Answers are kept by the content of the question, as the session keeps its own.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._cache = Cache(CACHE_BYTES)
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def attention(self, ask: Ask) -> AttentionResult:
        """Every head's map; a single sentence is the session's own question."""
        if not second_of(ask):
            return await self.session.attention(ask)
        found: AttentionResult = await self.ask(ask, "maps", (), lambda model: maps_of(model, ask))
        return found

    async def segments(self, ask: Ask) -> dict[str, Any]:
        """The segment of each token, and how the model uses it: "table", "scores" or "none"."""
        model = await asyncio.to_thread(self.session.model, ask.model)
        look = await asyncio.to_thread(read, model, ask)
        terms = model.config.attention.terms
        use = "table" if model.config.embeddings.segments > 1 else "none"
        if isinstance(terms, TransformerXL) and terms.segments:
            use = "scores"
        return {"ids": look.encoding.segment_ids, "use": use}

    async def ask(
        self, ask: Ask, kind: str, values: Hashable, work: Callable[[cm.Model], Any]
    ) -> Any:
        """The answer that was kept, the one being computed, or ``work(model)`` on its thread."""
        model, key = await self._named(ask, kind, values)
        if (known := self._cache.get(key)) is not None:
            return known
        if (task := self._running.get(key)) is None:
            task = asyncio.ensure_future(self._compute(key, lambda: work(model), model))
            self._running[key] = task
        # One visitor who leaves must not cancel what others wait for.
        return await asyncio.shield(task)

    async def knows(self, ask: Ask, kind: str, values: Hashable) -> bool:
        """Whether the answer is kept."""
        _, key = await self._named(ask, kind, values)
        return self._cache.get(key) is not None

    async def _named(self, ask: Ask, kind: str, values: Hashable) -> tuple[cm.Model, Hashable]:
        """The model, and the key of an answer; opened models and runs change under their names."""
        model = await asyncio.to_thread(self.session.model, ask.model)
        return model, (kind, ask, values, self.session.number(model))

    async def _compute(self, key: Hashable, work: Callable[[], Any], model: cm.Model) -> Any:
        try:
            answer = await self.session.compute(work, model)
        finally:
            self._running.pop(key, None)
        self._cache.put(key, answer, _cost(answer))
        return answer


def _cost(answer: Any) -> int:
    """Rough bytes of what is kept."""
    if isinstance(answer, np.ndarray):
        return answer.nbytes + 200
    if isinstance(answer, AttentionResult):
        return answer.probabilities.nbytes + 1_000 * len(answer.tokens)
    if isinstance(answer, Mapping):
        return 200 + sum(_cost(each) for each in answer.values())
    if isinstance(answer, list | tuple):
        return 200 + sum(_cost(each) for each in answer)
    return 200
