"""Places in a corpus to padded tensors, special pieces included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core_models.batch import Batch
from core_models.data.corpus import Corpus
from core_models.errors import InputError
from core_models.masking.boundaries import boundary_fields
from core_models.masking.diffusion import Diffused
from core_models.masking.electra import Drawn
from core_models.masking.orderings import Ordering
from core_models.masking.spans import SpanMasked
from core_models.masking.tokens import Masked
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.files import FIRST, SECOND, Slot, Template


@dataclass(frozen=True)
class Places:
    """Examples as arrays, see `pairs.Example`."""

    rows: NDArray[np.int64]
    """First and second segment, and the label [B, 5]."""
    offsets: NDArray[np.int64]
    """Example n has the further runs offsets[n] : offsets[n + 1]; [B + 1]."""
    runs: NDArray[np.int64]
    """Start and stop of all further runs [R, 2]."""

    def take(self, indices: NDArray[Any]) -> "Places":
        """Some examples, any order, repeats allowed."""
        rows: NDArray[np.int64] = self.rows[indices]
        if not len(self.runs):
            return Places(rows, np.zeros(len(rows) + 1, dtype=np.int64), self.runs)
        first = self.offsets[indices]
        counts = self.offsets[indices + 1] - first
        source, _ = spread(first, first, counts)
        return Places(rows, np.append(0, np.cumsum(counts)), self.runs[source])


@dataclass(frozen=True)
class TokenBatch:
    """Padded examples, not yet masked. Tensors are [B, L] where nothing else is said."""

    input_ids: Tensor
    """int64."""
    segment_ids: Tensor
    """int64."""
    attention_mask: Tensor
    """bool, True = real piece."""
    words: Tensor
    """int64 word group of each piece, counted per row; -1 for special pieces and padding."""
    pair_labels: Tensor
    """int64 [B]: 0 = next or in order, 1 = random or swapped, -100 = no pair."""
    lengths: Tensor
    """int64 [B]: pieces without padding, special ones included."""
    reversed: Tensor | None = None
    """Bool [B], True = the text runs backwards (`Recurrent`); None = none does."""
    reuse: int | None = None
    """Pieces at the front that continue the row of the batch before, and the only ones that enter
    the memory (`Recurrent`); None = the rows are independent."""

    @property
    def maskable(self) -> Tensor:
        """Bool [B, L]: real pieces that are not special."""
        return self.words >= 0

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "TokenBatch":
        """The same batch on ``device``."""
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=non_blocking)
            for name, value in vars(self).items()
            if isinstance(value, Tensor)
        }
        return replace(self, **moved)

    def masked(
        self, masked: Masked, *, boundaries: int | None = None, draws: Tensor | None = None
    ) -> Batch:
        """The encoder's input for a masking of this batch.

        Args:
            masked: Maskings with replacement and of diffusion give weights of the labels.
            boundaries: Pieces used per span by the span-boundary objective (15 in SpanBERT), for
                a `SpanMasked`; None = no boundaries.
            draws: See `masking.sample_draws`, for objectives with a generator.
        """
        places, pieces = None, None
        if boundaries is not None and isinstance(masked, SpanMasked):
            places, pieces = boundary_fields(masked, self.maskable, most=boundaries)
        return Batch(
            input_ids=masked.inputs,
            attention_mask=self.attention_mask,
            segment_ids=self.segment_ids,
            reversed=self.reversed,
            reuse=self.reuse,
            labels=masked.labels,
            label_weights=_weights(masked),
            boundaries=places,
            boundary_labels=pieces,
            pair_labels=self.pair_labels,
            draws=draws,
        )

    def permuted(self, ordering: Ordering) -> Batch:
        """The encoder's input for an ordering of this batch; the ids stay as they are."""
        return Batch(
            input_ids=self.input_ids,
            attention_mask=self.attention_mask,
            segment_ids=self.segment_ids,
            visibility=ordering.visibility,
            targets=ordering.targets,
            target_visibility=ordering.target_visibility,
            target_labels=ordering.labels(self.input_ids),
            reversed=self.reversed,
            reuse=self.reuse,
            pair_labels=self.pair_labels,
        )


@dataclass(frozen=True)
class Layout:
    """How examples become rows: a tokenizer's template with its ids."""

    template: Template
    ids: Mapping[str, int]
    """Id of each special piece of the template."""
    pad_id: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """The layout of a tokenizer."""
        template = tokenizer.template
        ids = {}
        for slot in (*template.single, *template.pair):
            index = tokenizer.id(slot.content)
            if index is not None and slot.content not in {FIRST, SECOND}:
                ids[slot.content] = index
        return cls(template, ids, tokenizer.pad_id)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        template = Template(
            single=tuple(Slot(*slot) for slot in value["single"]),
            pair=tuple(Slot(*slot) for slot in value["pair"]),
            pad_left=value["pad_left"],
            pad_segment=value["pad_segment"],
        )
        return cls(template, value["ids"], value["pad_id"])

    def to_json(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {"ids": dict(self.ids), "pad_id": self.pad_id, **vars(self.template)}

    @property
    def separator(self) -> Slot:
        """The special piece behind a text, or else between two, which also parts documents.

        Raises:
            InputError: There is none.
        """
        for slots in (self.template.single, self.template.pair):
            place = next(n for n, slot in enumerate(slots) if slot.content == FIRST)
            for slot in slots[place + 1 : place + 2]:
                if slot.content != SECOND:
                    return slot._replace(segment=slots[place].segment)
        raise InputError(
            "The tokenizer puts no special piece behind a text or between two, so documents cannot "
            "stand on end in one example (format full_sentences); take doc_sentences."
        )

    def lengths(self, places: Places) -> NDArray[np.int64]:
        """Pieces of each example, special ones included: [B]."""
        rows = places.rows
        second = rows[:, 3] - rows[:, 2]
        extras = self.template.extra(pair=True), self.template.extra(pair=False)
        found: NDArray[np.int64] = rows[:, 1] - rows[:, 0] + second + np.where(second > 0, *extras)
        if len(places.runs):
            ends = np.cumsum(places.runs[:, 1] - places.runs[:, 0] + 1)
            found += np.diff(np.append(0, ends)[places.offsets])
        return found

    def pack(self, corpus: Corpus, places: Places, length: int | None) -> TokenBatch:
        """Fill padded rows.

        Args:
            corpus: The pieces.
            places: The examples.
            length: L; None = as long as the longest of these.

        Raises:
            InputError: An example is longer than ``length``.
        """
        rows = places.rows
        lengths = self.lengths(places)
        longest = int(lengths.max())
        width = longest if length is None else length
        if longest > width:
            raise InputError(f"An example has {longest} pieces; the length asked for is {width}.")
        canvas = _Canvas(len(rows), width, self)
        offsets = np.arange(len(rows)) * width
        if self.template.pad_left:
            offsets += width - lengths
        pair = rows[:, 3] > rows[:, 2]
        for chosen, is_pair in ((~pair, False), (pair, True)):
            where = np.flatnonzero(chosen)
            if len(where):
                template = self.template.of(pair=is_pair)
                canvas.write(template, corpus, places.take(where), offsets[where])
        columns = np.arange(width)
        if self.template.pad_left:
            columns = columns[::-1]
        real = columns < lengths[:, None]
        words = np.where(canvas.plain, canvas.begins.cumsum(axis=1) - 1, -1)
        return TokenBatch(
            input_ids=torch.from_numpy(canvas.ids),
            segment_ids=torch.from_numpy(canvas.segments),
            attention_mask=torch.from_numpy(real),
            words=torch.from_numpy(words),
            pair_labels=torch.from_numpy(rows[:, 4].copy()),
            lengths=torch.from_numpy(lengths),
        )


class _Canvas:
    """Padded rows in the making, [B, L] each. ``reshape(-1)`` gives flat views of them."""

    def __init__(self, rows: int, width: int, layout: Layout) -> None:
        shape = (rows, width)
        self.layout = layout
        self.ids = np.full(shape, layout.pad_id, dtype=np.int64)
        self.segments = np.full(shape, layout.template.pad_segment, dtype=np.int64)
        self.begins = np.zeros(shape, dtype=np.bool_)
        """A piece that starts a word."""
        self.plain = np.zeros(shape, dtype=np.bool_)
        """A piece that is not special."""

    def write(
        self,
        slots: Sequence[Slot],
        corpus: Corpus,
        places: Places,
        cursor: NDArray[np.int64],
    ) -> None:
        """Write examples of one shape, slot by slot, all rows at once.

        Args:
            slots: The template.
            corpus: The pieces.
            places: N examples.
            cursor: Flat place of the first piece of each row [N].
        """
        rows = places.rows
        for slot in slots:
            if slot.content == FIRST:
                cursor = self._text(slot, corpus, rows[:, :2], cursor)
                if len(places.runs):
                    cursor = self._further(slot, corpus, places, cursor)
            elif slot.content == SECOND:
                cursor = self._text(slot, corpus, rows[:, 2:4], cursor)
            else:
                cursor = self._special(slot, cursor)

    def _special(self, slot: Slot, cursor: NDArray[np.int64]) -> NDArray[np.int64]:
        """Write a special piece at each cursor, and give the places behind."""
        self.ids.reshape(-1)[cursor] = self.layout.ids[slot.content]
        self.segments.reshape(-1)[cursor] = slot.segment
        return cursor + 1

    def _text(
        self, slot: Slot, corpus: Corpus, runs: NDArray[np.int64], cursor: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Write a run of pieces (start, stop) at each cursor, and give the places behind."""
        counts = runs[:, 1] - runs[:, 0]
        source, goal = spread(runs[:, 0], cursor, counts)
        self.ids.reshape(-1)[goal] = corpus.tokens[source]
        self.segments.reshape(-1)[goal] = slot.segment
        begins = self.begins.reshape(-1)
        begins[goal] = corpus.starts[source]
        begins[cursor] = True  # trimming may have cut into the first word
        self.plain.reshape(-1)[goal] = True
        return cursor + counts

    def _further(
        self, slot: Slot, corpus: Corpus, places: Places, cursor: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Write the further runs of each row, each behind a separator."""
        sizes = places.runs[:, 1] - places.runs[:, 0] + 1
        before = np.append(0, np.cumsum(sizes))
        counts = np.diff(places.offsets)
        row = np.repeat(np.arange(len(counts)), counts)
        at = cursor[row] + before[:-1] - before[places.offsets[:-1]][row]
        self._text(slot, corpus, places.runs, self._special(self.layout.separator, at))
        return cursor + np.diff(before[places.offsets])


def spread(
    starts: NDArray[np.int64], goals: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of ``counts`` consecutive places from ``starts`` and from ``goals``, end to end."""
    ends = counts.cumsum()
    steps = np.arange(int(ends[-1]) if len(ends) else 0)
    shift = ends - counts
    return steps + np.repeat(starts - shift, counts), steps + np.repeat(goals - shift, counts)


def _weights(masked: Masked) -> Tensor | None:
    """How much each label counts, where they do not count alike."""
    if isinstance(masked, Diffused):
        return masked.weights
    return masked.times.float() if isinstance(masked, Drawn) else None
