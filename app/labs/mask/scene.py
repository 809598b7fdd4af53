"""What the sections of the Mask tab look at: a sentence of one model and its gaps."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import core_models as cm
from app.serving.ask import Ask, read_ask
from app.serving.pieces import SentenceToken, check_marks, sentence_tokens
from app.serving.session import Session
from core_models import InputError
from core_models.prediction import Score
from core_models.prediction.passes import KINDS
from core_models.tokenizer import Encoding
from viz.svg import Wording

NOTHING = "Nothing is hidden yet. Click a word of the sentence, or try the example."


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Hidden pieces that stand together in one word."""

    positions: tuple[int, ...]
    text: str
    start: int
    end: int
    """Characters (code points) of the text: [start, end)."""
    written: bool
    """The text itself has [MASK] there."""

    def to_json(self) -> dict[str, Any]:
        """For the page's list of gaps."""
        return {"positions": list(self.positions), "text": self.text}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A sentence in the pieces of one model, with every marked word hidden."""

    ask: Ask
    model: cm.Model
    encoding: Encoding
    tokens: tuple[SentenceToken, ...]
    gaps: tuple[Gap, ...]

    @property
    def hidden(self) -> list[int]:
        """Every position that the model does not see."""
        return [position for gap in self.gaps for position in gap.positions]

    def gap(self, position: Any) -> Gap:
        """The gap that holds a position, else the first; InputError where nothing is hidden."""
        if not self.gaps:
            raise InputError(NOTHING)
        return next((gap for gap in self.gaps if position in gap.positions), self.gaps[0])

    def single(self, position: Any) -> int:
        """A hidden position, else the first one; InputError where nothing is hidden."""
        if not self.gaps:
            raise InputError(NOTHING)
        return position if position in self.hidden else self.hidden[0]

    def unknown(self, positions: Sequence[int]) -> list[str]:
        """Words at positions that the vocabulary has no piece for: no answer can be one of them."""
        return [self.tokens[p].text for p in positions if self.tokens[p].unknown]

    def chooser(self, gap: Gap) -> dict[str, Any]:
        """The gaps to choose from, and the one that is looked at."""
        return {"gaps": [entry.to_json() for entry in self.gaps], "at": gap.positions[0]}

    def code(self, session: Session, imports: Sequence[str], lines: Sequence[str]) -> str:
        """Lines of Python that recompute an answer."""
        load = f"model = cm.load({session.loadable(self.ask.model)!r})"
        head = ["import core_models as cm", *imports, "", load]
        return "\n".join([*head, f"text = {self.ask.text!r}", *lines])

    def others(self, gap: Gap) -> list[int]:
        """What stays hidden while one gap is looked at."""
        return [position for position in self.hidden if position not in gap.positions]


async def read(session: Session, question: Mapping[str, Any]) -> Scene:
    """The scene of a question; InputError for a text, model or mark that does not go."""
    ask = read_ask(question)
    model = await asyncio.to_thread(session.model, ask.model)
    return scene(ask, model)


def check_fills(model: cm.Model) -> None:
    """InputError, in plain words, for a model that fills no gaps."""
    if any(head in model.heads for head in KINDS):
        return
    if "replaced_token" in model.heads:
        raise InputError(
            f"{model.name} judges words and fills no gaps: it was trained to tell which words were "
            "replaced."
        )
    raise InputError(
        f"{model.name} fills no gaps: it was trained for another task. Choose a model that fills "
        "gaps."
    )


def scene(ask: Ask, model: cm.Model) -> Scene:
    """The scene of a checked question."""
    encoding = model.encode([ask.text])[0]
    check_marks(ask.marks, encoding, model.tokenizer)
    tokens = sentence_tokens(encoding, model.tokenizer)
    marked = {mark.position for mark in ask.marks}
    found = gaps([token for token in tokens if token.masked or token.position in marked])
    return Scene(ask=ask, model=model, encoding=encoding, tokens=tokens, gaps=found)


def gaps(hidden: Sequence[SentenceToken]) -> tuple[Gap, ...]:
    """Hidden pieces, ascending; neighbours of one word make one gap."""
    groups: list[list[SentenceToken]] = []
    for token in hidden:
        last = groups[-1][-1] if groups else None
        beside = last is not None and last.position + 1 == token.position
        if beside and last is not None and last.word == token.word and not token.masked:
            groups[-1].append(token)
        else:
            groups.append([token])
    return tuple(
        Gap(
            positions=tuple(token.position for token in group),
            text="".join(token.text for token in group),
            start=group[0].start,
            end=group[-1].end,
            written=group[0].masked,
        )
        for group in groups
    )


def in_other_pieces(scene: Scene, chosen: Gap, model: cm.Model) -> tuple[str, list[int], list[int]]:
    """The same sentence and gaps for a model with a vocabulary of its own.

    Returns:
        The text (a [MASK] of the text in the other model's spelling), the positions of the chosen
        gap, and those of the other gaps.

    Raises:
        InputError: The other model's pieces have no place for the gap.
    """
    literal = model.tokenizer.piece(model.tokenizer.mask_id)
    text, moved, spans = scene.ask.text, 0, []
    for gap in scene.gaps:
        start = gap.start + moved
        if gap.written:
            text = text[:start] + literal + text[gap.end + moved :]
            moved += len(literal) - (gap.end - gap.start)
        spans.append((gap, start, gap.end + moved))
    encoding = model.encode([text])[0]
    mine: list[int] = []
    others: list[int] = []
    for gap, start, end in spans:
        (mine if gap == chosen else others).extend(
            position
            for position, (first, after) in enumerate(encoding.offsets)
            if not encoding.special[position] and first < end and after > start
        )
    if not mine:
        raise InputError(f"The gap lies beyond what {model.name} reads of the text.")
    # One piece may reach over two gaps; it belongs to the one that is looked at.
    return text, mine, [position for position in others if position not in mine]


def no_piece(word: str) -> Wording:
    """What is said of a hidden word that the vocabulary has no piece for."""
    return Wording(
        "“{0}” is not in the model's vocabulary: it has neither a rank nor a probability.", word
    )


_WORD = re.compile(
    r"\[MASK\]|<mask>|[\u3400-\u9fff\uf900-\ufaff]|[^\W_]+(?:['\u2019\-][^\W_]+)*|[^\w\s]|_"
)


def words_of(text: str) -> list[tuple[int, int]]:
    """Words of a text by eye, whatever a vocabulary makes of them: (start, end) of each.

    A Chinese character and a sign count as words of their own, and so does a gap in the text.
    """
    return [match.span() for match in _WORD.finditer(text)]


def per_word(
    score: Score, encoding: Encoding, words: Sequence[tuple[int, int]], unknown: int | None = None
) -> list[float | None]:
    """Sums of a score's summands over words, in nats.

    None where no piece begins in the word, or the vocabulary has none for a part of it: what is
    known then is the probability of [UNK], which stands for many words.

    Args:
        score: of the text.
        encoding: of the text.
        words: as of `words_of`.
        unknown: the id of [UNK].
    """
    sums: list[float | None] = [None] * len(words)
    lost: set[int] = set()
    for token in score.per_token:
        start, end = encoding.offsets[token.position]
        blank = len(encoding.text[start:end]) - len(encoding.text[start:end].lstrip())
        first = start + blank
        for number, (begin, after) in enumerate(words):
            if begin <= first < after:
                sums[number] = (sums[number] or 0.0) + token.score
                if encoding.ids[token.position] == unknown:
                    lost.add(number)
    return [None if number in lost else value for number, value in enumerate(sums)]
