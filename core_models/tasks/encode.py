"""Rows to features, and features to batches, for every kind of task and tokenizer.

A row gives one feature, or several where it is too long to be read at once: a long context is read
in windows that overlap (arXiv 1810.04805, released ``run_squad.py``), a long row of words to tag
in windows that do not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from core_models.batch import Batch
from core_models.errors import InputError
from core_models.model import Model
from core_models.tasks import windows
from core_models.tasks.rows import Row
from core_models.tasks.sets import TaskSet
from core_models.tasks.words import join
from core_models.tokenizer import Encoding, Tokenizer

IGNORED = -100


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One input of the model, not padded, with its labels."""

    row: int
    """Index of the row among those encoded together."""
    encoding: Encoding
    second: Encoding | None = None
    """The other text, encoded apart (bi-encoder)."""
    label: int = IGNORED
    labels: tuple[int, ...] = ()
    """Several labels, or none."""
    score: float = math.nan
    """In 0..1 of the set's scale."""
    words: tuple[int, ...] = ()
    """Tagging: for each piece the word that it is the first piece of, else -1."""
    tags: tuple[int, ...] = ()
    """Tagging: for each piece the tag of that word, else -100."""
    context: tuple[int, int] = (0, 0)
    """Answers: the pieces of the context, from and to (exclusive)."""
    start: int = IGNORED
    """Answers: first piece of the answer; that of [CLS] where the window holds none; -100 in all
    windows of a row whose answer fits into none of them."""
    end: int = IGNORED
    """Answers: last piece."""

    @property
    def length(self) -> int:
        """Pieces, of the longer text where there are two inputs."""
        return max(len(self.encoding), 0 if self.second is None else len(self.second))


MEASURED = " to measure on"
"""Behind the number of a development row that cannot be encoded."""


@dataclass(frozen=True, kw_only=True)
class Coder:
    """How the rows of one set become batches of one model."""

    model: Model
    kind: str
    labels: tuple[str, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    apart: bool = False
    """Whether the two texts are encoded apart (bi-encoder)."""
    max_length: int = 128
    """Most pieces of one input."""
    stride: int = 64
    """By how many pieces the next window of a long context starts later."""
    threshold: float = 0.5
    """Probability from which on one of several labels is said to hold."""

    def __post_init__(self) -> None:
        """Check lengths against the model."""
        longest = self.model.longest
        if not 8 <= self.max_length <= longest:
            raise InputError(f"max_length is {self.max_length}; this model takes 8 to {longest}.")
        if self.stride < 1:
            raise InputError(f"stride is {self.stride}; it must be 1 or more.")

    @classmethod
    def of(
        cls,
        model: Model,
        task: TaskSet,
        *,
        max_length: int = 128,
        stride: int | None = None,
        apart: bool = False,
    ) -> Self:
        """For a set; inputs are cut to ``max_length`` or the model's longest, if that is less."""
        length = min(max_length, model.longest)
        return cls(
            model=model,
            kind=task.kind,
            labels=task.labels,
            scale=task.scale,
            apart=apart,
            max_length=length,
            stride=max(length // 3, 1) if stride is None else stride,
        )

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""
        return self.model.tokenizer

    def features(self, rows: Sequence[Row]) -> list[Feature]:
        """Encode rows, in their order.

        Raises:
            InputError: a row that cannot be encoded, by its number.
        """
        encode = {"tag": self._tagged, "answer": self._question}.get(self.kind, self._text)
        found: list[Feature] = []
        for index, row in enumerate(rows):
            try:
                found += [replace(feature, row=index) for feature in encode(row)]
            except InputError as error:
                raise InputError(f"Row {row.number or index + 1}: {error}") from None
        return found

    def count(self, rows: Sequence[Row], most: int | None = None, *, of: str = "") -> int:
        """How many features rows give; those of long contexts are not made for it.

        Args:
            rows: to encode.
            most: where more than these are found the rest is not looked at.
            of: which rows they are, behind the number of one that cannot be encoded.

        Raises:
            InputError: a row that cannot be encoded, by its number.
        """
        found = 0
        for index, row in enumerate(rows):
            try:
                found += self._count(row)
            except InputError as error:
                raise InputError(f"Row {row.number or index + 1}{of}: {error}") from None
            if most is not None and found > most:
                break
        return found

    def _count(self, row: Row) -> int:
        if self.kind == "answer":
            return len(windows.read(row, self.tokenizer, self.max_length, self.stride).windows)
        return len(self._tagged(row)) if self.kind == "tag" else 1

    def batch(self, features: Sequence[Feature]) -> Batch:
        """A padded batch with labels, on the model's device."""
        batch = self.model.collate([f.encoding for f in features])
        device, (_, length) = batch.device, batch.shape
        if self.kind == "tag":
            tags = torch.full(batch.shape, IGNORED)
            for row, feature in enumerate(features):
                first = self.shift(feature, length)
                tags[row, first : first + len(feature.tags)] = torch.tensor(feature.tags)
            return replace(batch, tag_labels=tags.to(device))
        if self.kind == "answer":
            return replace(
                batch,
                answer_starts=self._places([f.start for f in features], features, length, device),
                answer_ends=self._places([f.end for f in features], features, length, device),
            )
        if self.kind == "regress":
            scores = torch.tensor([f.score for f in features], dtype=torch.float32)
            second = [f.second for f in features if f.second is not None]
            return replace(
                batch,
                score_labels=scores.to(device),
                second=self.model.collate(second) if self.apart else None,
            )
        if self.kind == "multilabel":
            sets = torch.zeros(len(features), len(self.labels))
            for row, feature in enumerate(features):
                sets[row, list(feature.labels)] = 1.0
            return replace(batch, label_sets=sets.to(device))
        return replace(batch, class_labels=torch.tensor([f.label for f in features]).to(device))

    def shift(self, feature: Feature, length: int) -> int:
        """Column of the first piece in a row of ``length``: padding may come first (XLNet)."""
        left = self.tokenizer.template.pad_left
        return length - len(feature.encoding) if left else 0

    def _places(
        self, places: Sequence[int], features: Sequence[Feature], length: int, device: torch.device
    ) -> Tensor:
        moved = [
            place if place == IGNORED else place + self.shift(feature, length)
            for place, feature in zip(places, features, strict=True)
        ]
        return torch.tensor(moved).to(device)

    # -- one row ----------------------------------------------------------------------------------

    def _text(self, row: Row) -> list[Feature]:
        """One text or two; the longer is cut first."""
        low, high = self.scale
        apart = self.apart and row.pair is not None
        return [
            Feature(
                row=0,
                encoding=self._encode(row.text, None if apart else row.pair),
                second=self._encode(row.pair) if apart and row.pair is not None else None,
                label=IGNORED if row.label is None else self._number(row.label),
                labels=tuple(map(self._number, row.labels)),
                score=math.nan if row.score is None else (row.score - low) / (high - low),
            )
        ]

    def _encode(self, text: str, pair: str | None = None) -> Encoding:
        return self.tokenizer.encode(text, pair, max_length=self.max_length)

    def _number(self, label: str) -> int:
        if label not in self.labels:
            raise InputError(f"Label {label!r} is unknown; known are {', '.join(self.labels)}.")
        return self.labels.index(label)

    def _tagged(self, row: Row) -> list[Feature]:
        """Words with a blank between, so that no piece holds letters of two words.

        Only the first piece of a word is labelled (arXiv 1810.04805, section 5.3).
        """
        numbers = [self._number(tag) for tag in row.tags]
        found = []
        done = 0
        while done < len(row.tokens):
            # A word has a piece at least: more words than this are in no window.
            text, places = join(row.tokens[done : done + self.max_length])
            encoding = self._encode(text)
            words = _first_pieces(encoding, places)
            count = len(places)
            if encoding.truncated:
                # The last word may have lost pieces: it opens the next window, unless it is alone.
                count = max(max(words), 1)
                words = [w if w < count else -1 for w in words]
            words = [w if w < 0 else w + done for w in words]
            tags = [numbers[w] if numbers and w >= 0 else IGNORED for w in words]
            found.append(Feature(row=0, encoding=encoding, words=tuple(words), tags=tuple(tags)))
            done += count
        return found

    def _question(self, row: Row) -> list[Feature]:
        """Question and context, the context in windows."""
        read = windows.read(row, self.tokenizer, self.max_length, self.stride)
        answer = _answer_pieces(row, read.whole, read.context)
        found = []
        for window in read.windows:
            kept = sorted([*read.always, *window])
            found.append(self._window(_select(read.whole, kept), kept, window, answer))
        if row.answers and all(f.start == self.cls_place(f.encoding) for f in found):
            # No window holds the whole answer: that does not teach "there is none".
            found = [replace(feature, start=IGNORED, end=IGNORED) for feature in found]
        return found

    def _window(
        self, encoding: Encoding, kept: list[int], window: range, answer: list[int]
    ) -> Feature:
        """One window; an answer that it holds only in part counts as none."""
        start = end = self.cls_place(encoding)
        if answer and answer[0] in window and answer[-1] in window:
            start, end = kept.index(answer[0]), kept.index(answer[-1])
        first = kept.index(window[0])
        return Feature(
            row=0,
            encoding=encoding,
            context=(first, first + len(window)),
            start=start,
            end=end,
        )

    @property
    def cls_column(self) -> int:
        """Column of [CLS], which stands for the whole text and for "no answer": 0 or -1."""
        return -1 if self.tokenizer.template.pad_left else 0

    def cls_place(self, encoding: Encoding) -> int:
        """Position of [CLS] among the pieces of an input."""
        return self.cls_column % len(encoding)


def content(encoding: Encoding, place: int, text: str) -> tuple[int, int]:
    """Characters of ``text`` that a piece stands for, without blanks at its sides.

    Byte-level and unigram pieces count the blank before a word as theirs; a piece that is only a
    blank gets an empty stretch.
    """
    start, end = encoding.offsets[place]
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _answer_pieces(row: Row, encoding: Encoding, context: range) -> list[int]:
    """Pieces of the context that share a character with the first answer, if there is one."""
    if not row.answers:
        return []
    answer = row.answers[0]
    stretches = ((i, *content(encoding, i, row.text)) for i in context)
    return [i for i, a, b in stretches if a < b and a < answer.end and b > answer.start]


def _first_pieces(encoding: Encoding, places: Sequence[tuple[int, int]]) -> list[int]:
    """For each piece the word that it is the first piece of, else -1.

    A word that the tokenizer drops altogether (an invisible character) has none.
    """
    found = []
    word = -1
    for place, special in enumerate(encoding.special):
        start, end = content(encoding, place, encoding.text)
        found.append(-1)
        if special or start == end:
            continue
        before = word
        while places[max(word, 0)][1] <= start or word < 0:
            word += 1
        if word != before:
            found[-1] = word
    return found


def _select(encoding: Encoding, places: Sequence[int]) -> Encoding:
    """The encoding with some of its pieces only."""
    return replace(
        encoding,
        ids=[encoding.ids[i] for i in places],
        segment_ids=[encoding.segment_ids[i] for i in places],
        pieces=[encoding.pieces[i] for i in places],
        offsets=[encoding.offsets[i] for i in places],
        words=[encoding.words[i] for i in places],
        special=[encoding.special[i] for i in places],
        truncated=len(places) < len(encoding),
    )
