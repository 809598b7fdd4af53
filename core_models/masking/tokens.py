"""Which pieces a model has to guess: BERT's two maskings, as pure functions.

``ids -> (inputs, labels, cases)`` with an explicit generator, on any device, with no loop over
rows. Static and dynamic masking differ only in when the generator is seeded (RoBERTa, arXiv
1907.11692, section 4.1)::

    dynamic   generator_for(seed, epoch, index)            a new draw at every visit
    static    generator_for(seed, epoch % copies, index)   BERT's ten fixed copies

Counts and draws follow google-research/bert, create_pretraining_data.py (arXiv 1810.04805,
section 3.1): a fixed number of pieces per row, not a coin per piece. ``counting="fairseq"`` counts
as RoBERTa's code does (fairseq, mask_tokens_dataset.py), ``int(rate * n + U)`` with U uniform in
[0, 1). All of RoBERTa's masking, special pieces among the candidates but not among the random
pieces::

    uniform(batch.input_ids, batch.attention_mask, lengths=batch.lengths, counting="fairseq",
            random_ids=ordinary_ids(vocabulary, special_ids), ...)
"""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

IGNORED = -100
"""Label of positions that are not to be guessed."""
UNTOUCHED, MASK, RANDOM, KEPT, SIMILAR = 0, 1, 2, 3, 4
"""Values of `Masked.cases`."""
Counting = Literal["bert", "fairseq"]
"""How many pieces of a row are masked: `quota`, or ``int(rate * n + U)``, perhaps none."""

Generators = torch.Generator | Sequence[torch.Generator]
"""One generator for the whole batch, or one per row, on the CPU (then a row's draw depends neither
on the rows beside it nor on the padding, as static masking needs)."""


@dataclass(frozen=True)
class Masked:
    """A masked input. Every tensor has the shape of the ids, [L] or [B, L]."""

    inputs: Tensor
    """What the model sees, int64."""
    labels: Tensor
    """The original ids where the model has to guess, -100 elsewhere, int64."""
    cases: Tensor
    """uint8: 0 untouched, 1 replaced by [MASK], 2 by a random piece, 3 chosen but kept, 4 replaced
    by a piece of a similar word."""


def generator_for(seed: int, *counters: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator that depends on these numbers and on nothing else.

    Args:
        seed: Seed of the run.
        *counters: For example epoch (or epoch % copies) and index of the example.
        device: Where its draws are made; draws differ between kinds of device.
    """
    text = ",".join(str(int(value)) for value in (seed, *counters))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest, "little") >> 1)


def quota(length: int, rate: float, most: int | None = None) -> int:
    """How many pieces of an input are masked.

    Args:
        length: Pieces of the input, [CLS] and [SEP] included.
        rate: Share to mask.
        most: Upper limit (BERT's max_predictions_per_seq); None = no limit.

    Returns:
        ``min(most, max(1, round(rate * length)))`` with Python's rounding, halves to even:
        128 -> 19, 512 -> 77, 30 -> 4, 3 -> 1.
    """
    count = max(1, round(rate * length))
    return count if most is None else min(most, count)


def ordinary_ids(vocabulary: int, special_ids: Iterable[int]) -> Tensor:
    """All ids below ``vocabulary`` but the special ones, int64: fairseq's random pieces.

    fairseq leaves out <s>, <pad>, </s> and <unk>; its <mask> may be drawn.
    """
    ordinary = torch.ones(vocabulary, dtype=torch.bool)
    ordinary[list(special_ids)] = False
    return ordinary.nonzero().squeeze(1)


def sample_draws(rows: int, length: int, generator: Generators) -> Tensor:
    """Numbers in [0, 1), float32 [B, L] on the CPU, for `core_models.Batch.draws`."""
    if isinstance(generator, torch.Generator):
        at = generator.device
        return torch.rand(rows, length, generator=generator, device=at).cpu()
    check_count(generator, rows)
    return torch.stack([torch.rand(length, generator=g) for g in generator])


def uniform(
    ids: Tensor,
    maskable: Tensor,
    *,
    generator: Generators,
    mask_id: int,
    vocabulary: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    most: int | None = None,
    counting: Counting = "bert",
    random_ids: Tensor | None = None,
) -> Masked:
    """Mask single pieces, each as likely as any other.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape: False for [CLS], [SEP] and padding (fairseq: padding only).
        generator: One for the batch, or one per row.
        mask_id: Id of [MASK].
        vocabulary: V; random pieces are drawn from all V ids, special ones and the true one
            included, as BERT's code does.
        lengths: Pieces per row without padding but with [CLS] and [SEP], [B] (or a number in a
            tensor for [L]); None = no row is padded.
        rate: Share to mask, of `lengths`.
        split: Shares of [MASK], random piece and kept piece among the chosen ones.
        most: Most pieces to mask per row; None = no limit.
        counting: How many pieces of a row are masked.
        random_ids: Ids to draw random pieces from, int64 [R]; None = all.

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    rows, open_, counts = prepare(ids, maskable, lengths, rate, split, most)
    if counting == "fairseq":
        counts = _fractional(rows, lengths, rate, most, generator)
    order, case, pieces = draw_from(rows.shape, vocabulary, random_ids, generator, rows.device)
    keys = order.masked_fill(~open_, 2.0)
    highest = min(rows.shape[1], quota(rows.shape[1], rate, most) + (counting == "fairseq"))
    picked = keys.topk(highest, dim=1, largest=False, sorted=True)
    ranks = torch.arange(highest, device=rows.device)
    # Rows with fewer maskable pieces than their quota reach into the closed ones: cut those off.
    valid = (ranks < counts[:, None]) & (picked.values < 2.0)
    chosen = torch.zeros_like(open_).scatter_(1, picked.indices, valid)
    return replace_pieces(ids, chosen, case, pieces, mask_id, split)


def whole_word(
    ids: Tensor,
    maskable: Tensor,
    words: Tensor,
    *,
    generator: Generators,
    mask_id: int,
    vocabulary: int,
    lengths: Tensor | None = None,
    rate: float = 0.15,
    split: tuple[float, float, float] = (0.8, 0.1, 0.1),
    most: int | None = None,
    counting: Counting = "bert",
    random_ids: Tensor | None = None,
) -> Masked:
    """Mask all pieces of a word or none (BERT's whole-word flag).

    Words are taken in random order. One that would overflow the budget is skipped, not cut, and
    shorter ones after it may still fit. The draw among [MASK], random and kept is made for each
    piece by itself, as the released code does.

    Args:
        ids: Piece ids [L] or [B, L], int64.
        maskable: Bool, same shape.
        words: Word group of each piece, same shape, int64, numbered 0.. in each row; -1 = none.
        generator: See `uniform`, as the other arguments.
        mask_id: Id of [MASK].
        vocabulary: V.
        lengths: Pieces per row without padding.
        rate: Share to mask: the budget in pieces.
        split: Shares of [MASK], random piece and kept piece.
        most: Most pieces to mask per row.
        counting: The budget in pieces. (fairseq's own whole-word flag counts words instead.)
        random_ids: Ids to draw random pieces from, int64 [R]; None = all.

    Raises:
        ValueError: A share is out of range, or shapes do not agree.
    """
    rows, open_, budget = prepare(ids, maskable, lengths, rate, split, most)
    if counting == "fairseq":
        budget = _fractional(rows, lengths, rate, most, generator)
    groups = words.reshape(rows.shape)
    open_ = open_ & (groups >= 0)
    order, case, pieces = draw_from(rows.shape, vocabulary, random_ids, generator, rows.device)
    slots = groups.clamp(min=0)
    # One column per word group; a row has at most L of them.
    sizes = torch.zeros_like(rows).scatter_add_(1, slots, open_.long())
    turns = order.masked_fill(sizes == 0, 2.0).argsort(dim=1)
    taken = _fill_budget(sizes.gather(1, turns), budget)
    chosen_words = torch.zeros_like(open_).scatter_(1, turns, taken)
    chosen = chosen_words.gather(1, slots) & open_
    return replace_pieces(ids, chosen, case, pieces, mask_id, split)


def _fill_budget(sizes: Tensor, budget: Tensor) -> Tensor:
    """Which of the words in a row are taken, first come first served, skipping what overflows.

    Args:
        sizes: Word sizes in the order of their turn [B, W]; 0 = no word.
        budget: Pieces per row [B].

    Every round takes all words up to the first that overflows and drops every word larger than
    what is left. The overflowing word of a round is smaller than that of the round before, so
    there are at most as many rounds as different word sizes (in practice two or three).
    """
    waiting = (sizes > 0) & (sizes <= budget[:, None])
    taken = torch.zeros_like(waiting)
    left = budget[:, None]
    while bool(waiting.any()):
        running = (sizes * waiting).cumsum(1)
        fits = waiting & (running <= left)
        taken |= fits
        left = left - (sizes * fits).sum(1, keepdim=True)
        waiting = waiting & ~fits & (sizes <= left)
    return taken


def prepare(
    ids: Tensor,
    maskable: Tensor,
    lengths: Tensor | None,
    rate: float,
    split: tuple[float, float, float],
    most: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids and maskable as rows [B, L], and the quota of each row [B]."""
    if ids.shape != maskable.shape or ids.dim() not in {1, 2}:
        raise ValueError(
            f"ids {tuple(ids.shape)} and maskable {tuple(maskable.shape)} must have the same "
            "shape, [L] or [B, L]"
        )
    if not ids.shape[-1]:
        raise ValueError("there are no pieces to mask: L is 0")
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"rate {rate} must lie above 0 and at most at 1")
    if min(split) < 0 or abs(sum(split) - 1.0) > 1e-6:
        raise ValueError(f"split {split} must hold three shares that add up to 1")
    rows = ids.reshape(-1, ids.shape[-1])
    table = _quotas(rows.shape[1], rate, most, str(rows.device))
    if lengths is None:
        counts = table[-1:].expand(rows.shape[0])
    else:
        counts = table[lengths.to(rows.device).reshape(-1)]
    return rows, maskable.reshape(rows.shape), counts


@functools.lru_cache(maxsize=64)
def _quotas(longest: int, rate: float, most: int | None, device: str) -> Tensor:
    """The quota of every length 0..longest, so that no device has to round in float64."""
    return torch.tensor([quota(n, rate, most) for n in range(longest + 1)], device=device)


def _fractional(
    rows: Tensor,
    lengths: Tensor | None,
    rate: float,
    most: int | None,
    generator: Generators,
) -> Tensor:
    """``int(rate * n + U)`` for each row [B], at most ``most``."""
    count, length = rows.shape
    if isinstance(generator, torch.Generator):
        at = generator.device
        drawn = torch.rand(count, generator=generator, device=at).cpu().double()
    else:
        check_count(generator, count)
        drawn = torch.cat([torch.rand(1, generator=g, dtype=torch.float64) for g in generator])
    sizes = torch.tensor([length]) if lengths is None else lengths.reshape(-1).cpu()
    counts = (sizes.double() * rate + drawn).long()
    return counts.clamp(max=length if most is None else most).to(rows.device)


def replace_pieces(
    ids: Tensor,
    chosen: Tensor,
    case: Tensor,
    pieces: Tensor,
    mask_id: int,
    split: tuple[float, float, float],
) -> Masked:
    """Put [MASK], a random piece or the piece itself at the chosen positions.

    Args:
        ids: The argument of the caller, [L] or [B, L].
        chosen: Bool [B, L].
        case: Uniform numbers in [0, 1), [B, L]: which of the three.
        pieces: Random pieces [B, L].
        mask_id: Id of [MASK].
        split: Shares of the three.
    """
    rows = ids.reshape(chosen.shape)
    as_mask = chosen & (case < split[0])
    as_kept = chosen & (case >= split[0] + split[1])
    as_random = chosen & ~as_mask & ~as_kept
    inputs = torch.where(as_random, pieces, rows).masked_fill(as_mask, mask_id)
    labels = rows.masked_fill(~chosen, IGNORED)
    cases = as_mask * MASK + as_random * RANDOM + as_kept * KEPT
    return Masked(
        inputs.view(ids.shape), labels.view(ids.shape), cases.to(torch.uint8).view(ids.shape)
    )


def draw(
    shape: torch.Size, vocabulary: int, generator: Generators, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Order of the candidates, case (both uniform in [0, 1)) and random piece, each [B, L]."""
    if isinstance(generator, torch.Generator):
        at = generator.device
        order, case = torch.rand((2, *shape), generator=generator, device=at).to(device)
        pieces = torch.randint(vocabulary, shape, generator=generator, device=at)
        return order, case, pieces.to(device)
    rows, length = shape
    check_count(generator, rows)
    # Three numbers per position, position by position: padding a row further does not change the
    # draws of its real pieces. Double precision, because piece = floor(number * V).
    drawn = torch.stack(
        [torch.rand((length, 3), generator=g, dtype=torch.float64) for g in generator]
    )
    pieces = (drawn[..., 2] * vocabulary).long()
    return drawn[..., 0].to(device), drawn[..., 1].to(device), pieces.to(device)


def draw_from(
    shape: torch.Size,
    vocabulary: int,
    random_ids: Tensor | None,
    generator: Generators,
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor]:
    """As `draw`, with random pieces out of some ids only."""
    if random_ids is None:
        return draw(shape, vocabulary, generator, device)
    order, case, numbers = draw(shape, len(random_ids), generator, device)
    return order, case, random_ids.to(device)[numbers]


def check_count(generators: Sequence[torch.Generator], rows: int) -> None:
    """ValueError unless there is one generator for each row."""
    if len(generators) != rows:
        raise ValueError(f"{len(generators)} generators for {rows} rows: give one, or one per row")
