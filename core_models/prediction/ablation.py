"""Heads switched off, and what that does to the prediction of a hidden piece.

A head is switched off where its weights work: a block that the schedule runs several times
(ALBERT) loses it in every pass unless one pass is asked for, and a mask decoder (DeBERTa), which
runs the last block again, loses the heads of that block too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.config import Config
from core_models.errors import InputError
from core_models.model import Model
from core_models.network.trace import Edit, Trace
from core_models.prediction.passes import head_of, hidden_at
from core_models.tokenizer import Encoding

Head = tuple[int, int]
"""Step and head, counted from 0."""

PIECES = 4096
"""Most pieces in one forward pass of a sweep."""


def steps_of(config: Config, step: int) -> tuple[int, ...]:
    """The steps that run with the weights of one step, itself among them."""
    block = config.schedule[step]
    return tuple(n for n, other in enumerate(config.schedule) if other == block)


def spread(config: Config, heads: Iterable[Head]) -> frozenset[Head]:
    """Heads, and those of all other steps that share their weights."""
    return frozenset((other, head) for step, head in heads for other in steps_of(config, step))


def check_heads(config: Config, heads: Iterable[Head]) -> None:
    """InputError for a head that the model does not have."""
    steps, count = len(config.schedule), config.attention.heads
    for step, head in heads:
        if not (0 <= step < steps and 0 <= head < count):
            raise InputError(
                f"There is no head {head} in layer {step}: this model has layers 0 to {steps - 1} "
                f"with heads 0 to {count - 1}."
            )


@dataclass(frozen=True)
class _Rows:
    """Sets the output of some heads to zero, others in every row of the batch."""

    keep: Tensor
    """[B, H], 1 or 0."""

    def __call__(self, output: Tensor) -> Tensor:
        return output * self.keep.to(output)[:, :, None, None]


def head_edits(config: Config, rows: Sequence[Iterable[Head]]) -> list[Edit]:
    """Edits for one forward pass over len(rows) inputs: each row loses its own heads.

    They act on the content stream, on the query stream where there is one, and in the mask decoder
    for heads of the block that it runs.

    Raises:
        InputError: a head that the model does not have.
    """
    count = config.attention.heads
    keep = torch.ones(len(config.schedule), len(rows), count)
    for row, heads in enumerate(rows):
        chosen = list(heads)
        check_heads(config, chosen)
        for step, head in chosen:
            keep[step, row, head] = 0
    edits = []
    for step, kept in enumerate(keep):
        if not bool(kept.all()):
            edits += [
                Edit("head_output", _Rows(kept), step, stream) for stream in ("content", "query")
            ]
    last = keep[list(steps_of(config, len(keep) - 1))].amin(0)
    if not bool(last.all()):
        edits.append(Edit("head_output", _Rows(last), None, "mask_decoder"))
    return edits


@torch.no_grad()
def without_heads(
    model: Model, encoding: Encoding, position: int, rows: Sequence[Iterable[Head]]
) -> Tensor:
    """Log-probabilities of the piece at a position, once for each set of heads switched off.

    Args:
        model: with a head that predicts pieces, in eval mode.
        encoding: the input, its hidden pieces replaced.
        position: of the hidden piece.
        rows: heads that are off; an empty set is the model as it is.

    Returns:
        [len(rows), V], float32.

    Raises:
        InputError: no predicting head, or a head or position that does not exist.
    """
    if not 0 <= position < len(encoding):
        raise InputError(
            f"Position {position} is beyond the text, which has {len(encoding)} pieces."
        )
    head = head_of(model)
    size = max(1, PIECES // len(encoding))
    found = []
    for start in range(0, len(rows), size):
        part = list(rows[start : start + size])
        trace = Trace(edits=head_edits(model.config, part))
        places = [(row, position) for row in range(len(part))]
        hidden = hidden_at(model, [encoding] * len(part), places, trace)
        found.append(head(hidden).float().log_softmax(-1))
    return torch.cat(found)


def damage(
    model: Model,
    encoding: Encoding,
    position: int,
    piece: int,
    *,
    steps: Sequence[int] | None = None,
    shared: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    """What each head is worth: every one switched off in turn.

    Args:
        model: with a head that predicts pieces, in eval mode.
        encoding: the input, its hidden pieces replaced.
        position: of the hidden piece.
        piece: whose log-probability is watched.
        steps: steps to go through; None = all.
        shared: switch a head off in every step that has its weights, not in one pass alone.
        progress: called with steps done and steps in all.

    Returns:
        [steps, H]: log-probability (nats) without the head less that of the whole model; below
        zero where the head helps.

    Raises:
        InputError: as :func:`without_heads`, or no such piece or step.
    """
    config = model.config
    chosen = range(len(config.schedule)) if steps is None else steps
    count = config.attention.heads
    model.tokenizer.piece(piece)  # None, say, would add an axis
    check_heads(config, [(step, 0) for step in chosen])
    before = without_heads(model, encoding, position, [()])[0, piece]
    rows = []
    for done, step in enumerate(chosen):
        alone = [[(step, head)] for head in range(count)]
        sets = [spread(config, heads) for heads in alone] if shared else alone
        rows.append(without_heads(model, encoding, position, sets)[:, piece] - before)
        if progress is not None:
            progress(done + 1, len(chosen))
    return torch.stack(rows)
