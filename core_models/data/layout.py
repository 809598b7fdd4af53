"""Places in a corpus to padded tensors, special pieces included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core_models.batch import Batch
from core_models.data.corpus import Corpus
from core_models.errors import InputError
from core_models.masking import Masked
from core_models.tokenizer import Tokenizer
from core_models.tokenizer.files import FIRST, SECOND, Slot, Template


@dataclass(frozen=True)
class TokenBatch:
    """Padded examples, not yet masked. All tensors [B, L] but ``pair_labels`` and ``lengths``."""

    input_ids: Tensor
    """int64."""
    segment_ids: Tensor
    """int64."""
    attention_mask: Tensor
    """bool, True = real piece."""
    words: Tensor
    """int64 word group of each piece, counted per row; -1 for special pieces and padding."""
    pair_labels: Tensor
    """int64 [B]: 0 = next, 1 = random, -100 = no pair."""
    lengths: Tensor
    """int64 [B]: pieces without padding, special ones included."""

    @property
    def maskable(self) -> Tensor:
        """Bool [B, L]: real pieces that are not special."""
        return self.words >= 0

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "TokenBatch":
        """The same batch on ``device``."""
        return TokenBatch(
            **{k: v.to(device, non_blocking=non_blocking) for k, v in vars(self).items()}
        )

    def masked(self, masked: Masked) -> Batch:
        """The encoder's input for a masking of this batch."""
        return Batch(
            input_ids=masked.inputs,
            attention_mask=self.attention_mask,
            segment_ids=self.segment_ids,
            labels=masked.labels,
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

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Pieces of each example, special ones included: rows [B, 5] -> [B]."""
        second = rows[:, 3] - rows[:, 2]
        extras = self.template.extra(pair=True), self.template.extra(pair=False)
        found: NDArray[np.int64] = rows[:, 1] - rows[:, 0] + second + np.where(second > 0, *extras)
        return found

    def pack(self, corpus: Corpus, rows: NDArray[np.int64], length: int | None) -> TokenBatch:
        """Fill padded rows.

        Args:
            corpus: The pieces.
            rows: Examples as in `pairs.Example` [B, 5].
            length: L; None = as long as the longest of these.

        Raises:
            InputError: An example is longer than ``length``.
        """
        lengths = self.lengths(rows)
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
                canvas.write(self.template.of(pair=is_pair), corpus, rows[where], offsets[where])
        columns = np.arange(width)
        if self.template.pad_left:
            columns = columns[::-1]
        real = columns < lengths[:, None]
        words = np.where(canvas.plain, canvas.begins.cumsum(axis=1) - 1, -1)
        arrays = (canvas.ids, canvas.segments, real, words, rows[:, 4].copy(), lengths)
        return TokenBatch(*(torch.from_numpy(array) for array in arrays))


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
        rows: NDArray[np.int64],
        cursor: NDArray[np.int64],
    ) -> None:
        """Write examples of one shape, slot by slot, all rows at once.

        Args:
            slots: The template.
            corpus: The pieces.
            rows: Examples [N, 5].
            cursor: Flat place of the first piece of each row [N].
        """
        ids, segments = self.ids.reshape(-1), self.segments.reshape(-1)
        begins, plain = self.begins.reshape(-1), self.plain.reshape(-1)
        columns = {FIRST: 0, SECOND: 2}
        for slot in slots:
            if slot.content not in columns:
                ids[cursor] = self.layout.ids[slot.content]
                segments[cursor] = slot.segment
                cursor = cursor + 1
                continue
            column = columns[slot.content]
            counts = rows[:, column + 1] - rows[:, column]
            source, goal = _spread(rows[:, column], cursor, counts)
            ids[goal] = corpus.tokens[source]
            segments[goal] = slot.segment
            begins[goal] = corpus.starts[source]
            begins[cursor] = True  # trimming may have cut into the first word
            plain[goal] = True
            cursor = cursor + counts


def _spread(
    starts: NDArray[np.int64], goals: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of ``counts`` consecutive places from ``starts`` and from ``goals``, end to end."""
    ends = counts.cumsum()
    steps = np.arange(int(ends[-1]))
    shift = ends - counts
    return steps + np.repeat(starts - shift, counts), steps + np.repeat(goals - shift, counts)
