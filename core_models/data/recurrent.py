"""XLNet's recurrent segments: rows that continue those of the step before.

The documents stand end to end in one stream, which is cut into as many equal parts as there are
rows. With every step each row moves on by ``reuse`` pieces, so its memory fits::

    step t      [ reuse pieces of the text ][ A | sep | B | sep | cls ]
    step t + 1                              [ the next reuse pieces, where A began ][ A' | sep ...

B continues A or, with probability 0.5, comes from a random place of the same row. Half of the rows
read their part backwards. The layout is that of zihangdai/xlnet (data_utils.py, create_tfrecords
and _split_a_and_b; arXiv 1906.08237, section 2.5), with these differences: documents (rather than
files) change their order every epoch, labels follow the rest of this project (0 = next; there 1),
and every row draws by itself, so that any step can be made at any time.
"""

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from core_models.data.layout import TokenBatch, spread
from core_models.data.pairs import IS_NEXT, IS_RANDOM
from core_models.data.store import TokenStore
from core_models.errors import InputError
from core_models.masking.tokens import generator_for
from core_models.tokenizer.files import FIRST, SECOND

_END = -1
"""Place of the piece that ends a document, which is not in the corpus."""
_SPECIAL = -2
"""Place of a special piece."""


class Recurrent:
    """Batches of fixed length without padding, in an order whose position can be saved."""

    def __init__(
        self,
        store: TokenStore,
        *,
        batch_size: int,
        length: int,
        reuse: int,
        seed: int,
        both_directions: bool = True,
        end_id: int | None = None,
    ) -> None:
        """Look at a store; nothing is read yet.

        Args:
            store: A split of whole documents (format "recurrent").
            batch_size: Rows B; even if ``both_directions``.
            length: Pieces of a row, special ones included (512).
            reuse: Pieces by which a row moves on (256).
            seed: Of the order of the documents and of all draws.
            both_directions: The second half of the rows reads the parts of the first backwards.
            end_id: Piece put behind every document (XLNet's <eod>); None = none.

        Raises:
            InputError: A size does not fit, or there is too little text for one step.
        """
        if batch_size < 1 or (both_directions and batch_size % 2):
            raise InputError(
                f"batch_size {batch_size} must be at least 1, and even with text in both "
                "directions: half of the rows read backwards."
            )
        extras = store.layout.template.extra(pair=True)
        if not 1 <= reuse <= length - extras - 2:
            raise InputError(
                f"reuse {reuse} must lie between 1 and {length - extras - 2}, so that two segments "
                f"and {extras} special pieces fit into the length {length}."
            )
        self.batch_size, self.length, self.reuse = batch_size, length, reuse
        self._store, self._seed, self._end_id = store, seed, end_id
        self._room = length - reuse - extras
        self._streams = batch_size // 2 if both_directions else batch_size
        runs = np.asarray(store.places.rows[:, :2])
        total = int((runs[:, 1] - runs[:, 0]).sum()) + len(runs) * (end_id is not None)
        self._part = total // self._streams
        if self._part < length:
            raise InputError(
                f"{total} pieces of text in {self._streams} streams are {self._part} each; "
                f"a step needs {length}: use more text, fewer rows or shorter ones."
            )
        self.steps = (self._part - length) // reuse + 1
        """Steps of one epoch."""
        self._epoch, self._step = 0, 0
        self._drawn: tuple[int, _Stream] | None = None

    def __next__(self) -> TokenBatch:
        """The next batch; epochs follow each other without end."""
        if self._step == self.steps:
            self._epoch, self._step = self._epoch + 1, 0
        self._step += 1
        return self.batch(self._epoch, self._step - 1)

    @property
    def fresh(self) -> bool:
        """Whether the next batch begins an epoch: no memory belongs to it."""
        return self._step in {0, self.steps}

    def position(self) -> tuple[int, int]:
        """Epoch and step of the next batch; `restore` goes on there."""
        return self._epoch, self._step

    def restore(self, position: tuple[int, int]) -> None:
        """Go on where `position` was taken."""
        self._epoch, self._step = position

    def batch(self, epoch: int, step: int, rows: Sequence[int] | None = None) -> TokenBatch:
        """One step, which depends on nothing but the arguments.

        Args:
            epoch: From 0.
            step: 0 to ``steps`` - 1.
            rows: Rows to make (those of one process); None = all.

        Raises:
            InputError: There is no such step.
        """
        if not 0 <= step < self.steps:
            raise InputError(f"step {step} must lie between 0 and {self.steps - 1}.")
        chosen = np.arange(self.batch_size) if rows is None else np.asarray(rows)
        stream = self._stream(epoch)
        where = np.full((len(chosen), self.length), _SPECIAL)
        ids = np.zeros((len(chosen), self.length), dtype=np.int64)
        segments = np.zeros_like(ids)
        labels = np.zeros(len(chosen), dtype=np.int64)
        for n, row in enumerate(chosen.tolist()):
            cuts = self._cuts(stream, row)
            draws = random.Random(f"{self._seed},{epoch},{step},{row}")
            start = step * self.reuse
            first, second, labels[n] = _split(
                cuts, start + self.reuse, self._room, self._part, draws
            )
            self._write(where[n], ids[n], segments[n], start, first, second)
        backwards = chosen >= self._streams
        plain = where >= 0
        base = (chosen % self._streams)[:, None] * self._part
        places = base + np.where(backwards[:, None], self._part - 1 - where, where)
        places = np.where(plain, places, 0)
        ids = np.where(plain, stream.ids(places, self._end_id), ids)
        # A word begins at its first piece; read backwards, behind the first piece of the last one.
        begins = stream.begins(places + backwards[:, None]) & plain
        begins |= plain & (np.diff(where, prepend=_SPECIAL, axis=1) != 1)
        words = np.where(plain, begins.cumsum(axis=1) - 1, -1)
        return TokenBatch(
            input_ids=torch.from_numpy(ids),
            segment_ids=torch.from_numpy(segments),
            attention_mask=torch.ones(ids.shape, dtype=torch.bool),
            words=torch.from_numpy(words),
            pair_labels=torch.from_numpy(labels),
            lengths=torch.full((len(chosen),), self.length),
            reversed=torch.from_numpy(backwards),
            reuse=self.reuse,
        )

    def _write(
        self,
        where: NDArray[np.int64],
        ids: NDArray[np.int64],
        segments: NDArray[np.int64],
        start: int,
        first: tuple[int, int],
        second: tuple[int, int],
    ) -> None:
        """Lay out one row [L]: places of its text in its part, special pieces, segments."""
        slots = self._store.layout.template.pair
        where[: self.reuse] = np.arange(start, start + self.reuse)
        segments[: self.reuse] = next(slot.segment for slot in slots if slot.content == FIRST)
        at = self.reuse
        for slot in slots:
            if slot.content in {FIRST, SECOND}:
                begin, end = first if slot.content == FIRST else second
                where[at : at + end - begin] = np.arange(begin, end)
                segments[at : at + end - begin] = slot.segment
                at += end - begin
            else:
                ids[at], segments[at] = self._store.layout.ids[slot.content], slot.segment
                at += 1

    def _cuts(self, stream: "_Stream", row: int) -> list[int]:
        """Where sentences end inside the part of a row, in the direction of reading."""
        base = row % self._streams * self._part
        low, high = np.searchsorted(stream.cuts, (base, base + self._part), side="right")
        inside = stream.cuts[low:high] - base
        inside = inside[inside < self._part]
        cuts: list[int] = (self._part - inside[::-1] if row >= self._streams else inside).tolist()
        return cuts

    def _stream(self, epoch: int) -> "_Stream":
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = (
                epoch,
                _Stream.draw(
                    self._store, generator_for(self._seed, epoch), self._end_id is not None
                ),
            )
        return self._drawn[1]


@dataclass(frozen=True)
class _Stream:
    """All documents of one epoch end to end, as numbers per document and per sentence."""

    store: TokenStore
    starts: NDArray[np.int64]
    """Where each document begins in the corpus [N]."""
    offsets: NDArray[np.int64]
    """Where each begins in the stream, and where the last ends [N + 1]."""
    sizes: NDArray[np.int64]
    """Pieces of each, without the piece that ends it [N]."""
    cuts: NDArray[np.int64]
    """Where sentences end in the stream [S]."""

    @classmethod
    def draw(cls, store: TokenStore, generator: torch.Generator, ended: bool) -> "_Stream":
        """Put the documents in a random order."""
        runs = np.asarray(store.places.rows[:, :2])
        runs = runs[torch.randperm(len(runs), generator=generator).numpy()]
        sizes = runs[:, 1] - runs[:, 0]
        offsets = np.append(0, np.cumsum(sizes + ended))
        bounds = store.corpus.sentences
        low = np.searchsorted(bounds, runs[:, 0])
        counts = np.searchsorted(bounds, runs[:, 1]) - low
        source, _ = spread(low + 1, low, counts)
        cuts = bounds[source] + np.repeat(offsets[:-1] - runs[:, 0], counts)
        if ended:
            cuts = np.sort(np.concatenate([cuts, offsets[1:]]))
        return cls(store, runs[:, 0], offsets, sizes, cuts)

    def _places(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places in the corpus, `_END` behind a document."""
        number = np.searchsorted(self.offsets, positions, side="right") - 1
        number = np.minimum(number, len(self.starts) - 1)
        inside = positions - self.offsets[number]
        return np.where(inside < self.sizes[number], self.starts[number] + inside, _END)

    def ids(self, positions: NDArray[np.int64], end_id: int | None) -> NDArray[np.int64]:
        """The pieces at some positions of the stream."""
        places = self._places(positions)
        found = self.store.corpus.tokens[np.maximum(places, 0)].astype(np.int64)
        return found if end_id is None else np.where(places == _END, end_id, found)

    def begins(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a word begins at each position; true behind documents and behind the last."""
        places = self._places(positions)
        found: NDArray[np.bool_] = (places == _END) | self.store.corpus.starts[
            np.maximum(places, 0)
        ]
        return found


def _split(
    cuts: Sequence[int], begin: int, room: int, size: int, draws: random.Random
) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Two segments of ``room`` pieces together, the first from ``begin`` on, and the label.

    Args:
        cuts: Where sentences end, ascending, below ``size``.
        begin: Start of the first segment.
        room: Pieces of both segments.
        size: Pieces of the part.
        draws: Source of the draws.
    """
    low = bisect.bisect_right(cuts, begin)
    high = bisect.bisect_left(cuts, begin + room, low)
    stop = cuts[high] if high < len(cuts) else size
    if high == low or draws.random() < 0.5:
        label = IS_RANDOM
        end = draws.choice(cuts[low:high]) if high > low else stop
        count = max(1, room - (end - begin))
        other = draws.randint(0, size - 1 - count)
        # The whole sentences around that place.
        left = bisect.bisect_right(cuts, other)
        right = bisect.bisect_left(cuts, other + count)
        second = cuts[left - 1] if left else 0, cuts[right] if right < len(cuts) else size
    else:
        label = IS_NEXT
        end = draws.choice(cuts[low:high])
        second = end, stop
    return *_shorten((begin, end), second, room), label


def _shorten(
    first: tuple[int, int], second: tuple[int, int], room: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Cut pieces off the end of the longer segment (of the second at a tie) until both fit."""
    a, b = first[1] - first[0], second[1] - second[0]
    # The longer one is cut down to the other, then both in turn, the second first.
    excess = a + b - room
    single = min(excess, abs(a - b))
    a, b = (a - single, b) if a > b else (a, b - single)
    rest = excess - single
    a, b = a - rest // 2, b - (rest + 1) // 2
    return (first[0], first[0] + a), (second[0], second[0] + b)
