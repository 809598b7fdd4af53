"""The encoder's input."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from core_models.errors import InputError

_PER_TOKEN = ("labels", "label_weights", "draws", "tag_labels")
_PER_ROW = (
    "reversed",
    "pair_labels",
    "class_labels",
    "score_labels",
    "answer_starts",
    "answer_ends",
)


_SHAPES = (
    ("input_ids", 2, "B, L"),
    ("embeddings", 3, "B, L, E"),
)
_PER_PIECE = ("attention_mask", "segment_ids")
_NO_TENSORS = ("memory", "remember", "reuse", "second")
_INDICES = (torch.int64, torch.int32)
"""Types of numbers that tables are read by."""
_IDS = ("input_ids", "segment_ids", "targets")
_MASKS = ("attention_mask", "visibility", "target_visibility", "reversed")


def _boolean(name: str, mask: Tensor) -> Tensor:
    """A mask of 0 and 1, as tokenizers give it, as booleans."""
    if mask.dtype.is_floating_point or not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError(
            f"{name} is of type {mask.dtype}; give booleans, or whole numbers of which 1 is real "
            "and 0 padding."
        )
    return mask.bool()


def _check_type(name: str, value: object) -> None:
    if not isinstance(value, Tensor):
        raise InputError(
            f"{name} is of type {type(value).__name__}; give a tensor, as torch.tensor(...) makes."
        )
    if name in _IDS and value.dtype not in _INDICES:
        raise InputError(
            f"{name} is of type {value.dtype}; give whole numbers of 64 or 32 bits, as "
            f"{name}.long() does."
        )
    if name == "embeddings" and not value.is_floating_point():
        raise InputError(
            f"embeddings is of type {value.dtype}; give rows of floating-point numbers, or ids of "
            "pieces as input_ids."
        )


def not_a_batch(value: Tensor) -> InputError:
    """The error of a tensor where texts or a batch are wanted."""
    return InputError(
        f"A model reads texts or a batch, not a tensor of shape {list(value.shape)}; ids of pieces "
        "go into one: model(cm.Batch(input_ids=...))."
    )


def look_up(table: nn.Embedding, ids: Tensor, name: str) -> Tensor:
    """Rows of a table [..., E] for ids [...]; ``name`` is the batch's field that they stand in.

    Nothing is looked at before: what a GPU or a compiled graph does with an id outside the table is
    their matter, for to ask would be to wait.

    Raises:
        InputError: on a CPU, an id has no row.
    """
    try:
        rows: Tensor = table(ids)
    except IndexError:
        check_ids(ids, table.num_embeddings, name)
        raise
    return rows


def check_ids(ids: Tensor, rows: int, name: str) -> None:
    """InputError where an id [B, L] has no row in a table of so many; reads all values."""
    outside = ((ids < 0) | (ids >= rows)).nonzero()
    if len(outside):
        row, place = outside[0].tolist()
        allowed = "0" if rows == 1 else f"0 to {rows - 1}"
        raise InputError(
            f"{name} has the value {int(ids[row, place])} at row {row}, place {place}; allowed is "
            f"{allowed}, as many as this model's table has rows. Are the ids of another tokenizer?"
        )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Tensors of one forward pass, batch first in every family.

    ``input_ids`` or ``embeddings`` must be given; everything else is optional.
    """

    input_ids: Tensor | None = None
    """Piece ids [B, L], int64."""
    embeddings: Tensor | None = None
    """Rows [B, L, E] in place of the piece table's; positions and segments are still added. The ids
    beside them, where given, are for what else depends on them (ESM scales by its mask pieces)."""
    attention_mask: Tensor | None = None
    """Bool [B, L], True = real token, or whole numbers 1 and 0; None = all real."""
    segment_ids: Tensor | None = None
    """Int64 [B, L]; None = all zero."""
    visibility: Tensor | None = None
    """Bool [B, L, L], True = the row may see the column; None = every real token."""
    targets: Tensor | None = None
    """Positions [B, M] of the query stream, int64 (permutation objective)."""
    target_visibility: Tensor | None = None
    """Bool [B, M, L], what each query of the query stream may see."""
    memory: tuple[Tensor, ...] = ()
    """Inputs of every step for the previous segment, each [B, M', D] (XLNet)."""
    remember: int = 0
    """How many tokens of memory the pass returns for the next segment; 0 = none."""
    reuse: int | None = None
    """Only the first ``reuse`` tokens of this segment enter the memory; None = all."""
    reversed: Tensor | None = None
    """Bool [B], True = the text runs backwards, so distances change sign (XLNet pretraining)."""
    labels: Tensor | None = None
    """Masked-token targets [B, L], int64; -100 = no label."""
    label_weights: Tensor | None = None
    """Weight of each masked-token target [B, L], float; None = 1 everywhere."""
    target_labels: Tensor | None = None
    """Pieces at ``targets`` [B, M], int64; -100 = the target is only padding."""
    boundaries: Tensor | None = None
    """Pieces of hidden spans [B, S, 3], int64: position before the span, position after it, place
    inside it from 0. Rows with fewer end with zeros."""
    boundary_labels: Tensor | None = None
    """Pieces at ``boundaries`` [B, S], int64; -100 = padding."""
    pair_labels: Tensor | None = None
    """Pair targets [B], int64: 0 = next or in order, 1 = random or swapped; -100 = no pair."""
    draws: Tensor | None = None
    """Numbers in [0, 1) [B, L], float, by which a generator samples a piece for each position; with
    them a batch determines its losses, whoever computes them."""
    class_labels: Tensor | None = None
    """Class of each text or pair [B], int64; -100 = no label."""
    label_sets: Tensor | None = None
    """Which labels each text or pair has [B, C], float: 1 = this one, 0 = not; NaN = not known."""
    score_labels: Tensor | None = None
    """Score of each text or pair [B], float; NaN = no label."""
    tag_labels: Tensor | None = None
    """Tag of each token [B, L], int64; -100 = no label."""
    answer_starts: Tensor | None = None
    """Position of the answer's first token [B], int64; [CLS] = no answer, -100 = no label."""
    answer_ends: Tensor | None = None
    """Position of the answer's last token [B], int64, as in ``answer_starts``."""
    second: "Batch | None" = None
    """The other text of each row [B, L'], encoded apart from the first (bi-encoder)."""

    def __post_init__(self) -> None:
        """Refuse a batch without a source of embeddings; whole numbers 0 and 1 are masks.

        Attention would add a mask of numbers to the scores.

        Raises:
            InputError: There is no row, no token in the rows, or a mask of other numbers; ids,
                embeddings, masks, segments or targets are of another type or shape.
            ValueError: Labels are not one per token or one per row, as their field says.
        """
        if self.input_ids is None and self.embeddings is None:
            raise ValueError("a Batch needs input_ids or embeddings")
        for name in (f.name for f in fields(self) if f.name not in _NO_TENSORS):
            if getattr(self, name) is not None:
                _check_type(name, getattr(self, name))
        for name, dimensions, letters in _SHAPES:
            value = getattr(self, name)
            if value is not None and value.dim() != dimensions:
                alone = f"; for a row alone {name}[None]" if value.dim() == dimensions - 1 else ""
                raise InputError(
                    f"{name} has the shape {list(value.shape)}; a batch is [{letters}], rows of "
                    f"tokens{alone}."
                )
        lengths = None if self.embeddings is None else self.embeddings.shape[:2]
        if self.input_ids is not None and lengths not in (None, self.input_ids.shape):
            raise ValueError("input_ids and embeddings are of different lengths")
        if 0 in self.shape:
            rows, length = self.shape
            raise InputError(
                f"A batch has {rows} rows of {length} tokens; it needs one row of one token at "
                "least."
            )
        for names, shape in ((_PER_TOKEN, self.shape), (_PER_ROW, self.shape[:1])):
            for name in names:
                value = getattr(self, name)
                if value is not None and value.shape != shape:
                    raise ValueError(
                        f"{name} has the shape {list(value.shape)}; this batch needs {list(shape)}"
                    )
        for name in _PER_PIECE:
            value = getattr(self, name)
            if value is not None and value.shape != self.shape:
                raise InputError(
                    f"{name} has the shape {list(value.shape)}; this batch needs "
                    f"{list(self.shape)}, a number for each token."
                )
        self._check_order()
        for name in _MASKS:
            value = getattr(self, name)
            if value is not None and value.dtype != torch.bool:
                object.__setattr__(self, name, _boolean(name, value))

    def _check_order(self) -> None:
        """InputError where targets or what rows may see are of another shape."""
        rows, length = self.shape
        targets = self.targets
        if targets is not None and (targets.dim() != 2 or targets.shape[0] != rows):
            raise InputError(
                f"targets has the shape {list(targets.shape)}; this batch needs [{rows}, M], "
                "positions of each row."
            )
        count = None if targets is None else targets.shape[1]
        for name, asked in (("visibility", length), ("target_visibility", count)):
            value = getattr(self, name)
            if value is None or asked is None:
                continue
            if value.shape != (rows, asked, length):
                raise InputError(
                    f"{name} has the shape {list(value.shape)}; this batch needs "
                    f"{[rows, asked, length]}: which column each of its rows may see."
                )

    @property
    def shape(self) -> tuple[int, int]:
        """(B, L)."""
        source = self.input_ids if self.input_ids is not None else self.embeddings
        assert source is not None
        return source.shape[0], source.shape[1]

    @property
    def device(self) -> torch.device:
        """The device of the input."""
        source = self.input_ids if self.input_ids is not None else self.embeddings
        assert source is not None
        return source.device

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Self:
        """The same batch with every tensor on ``device``."""
        moved: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Tensor):
                moved[f.name] = value.to(device, non_blocking=non_blocking)
            elif f.name == "memory":
                moved[f.name] = tuple(t.to(device, non_blocking=non_blocking) for t in value)
            elif isinstance(value, Batch):
                moved[f.name] = value.to(device, non_blocking=non_blocking)
        return replace(self, **moved)


# torch.export takes it as it is: what a model reads and gives are trees of tensors.
torch.export.register_dataclass(Batch)
