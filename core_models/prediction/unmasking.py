"""Text out of hidden pieces in steps, as masked diffusion models write (arXiv 2502.09992).

Every step asks the model for all pieces that are still hidden, in one pass, and keeps some of its
answers; the next step reads them. The order says which:

=============  =====================================================================================
left_to_right  the leftmost
random         those whose turn it is in an order that is drawn at the start: what masked diffusion
               is trained for
surest         those with the most probable answers (LLaDA's "low-confidence remasking", section
               2.4; mask-predict, arXiv 1904.09324)
=============  =====================================================================================
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.model import Model
from core_models.prediction.fill import Question, whole, within
from core_models.prediction.passes import head_of, hidden_at, seen_with
from core_models.prediction.results import FillRequest, Revealed, Unmasking, UnmaskStep
from core_models.tokenizer import Tokenizer

ORDERS = ("left_to_right", "random", "surest")
MAX_HIDDEN = 256
MAX_STEPS = 256
_MOST_SEED = 2**63 - 1
_LEAST = 1e-30
"""Of temperatures; below it the best piece is drawn anyway, and float32 ends."""


def unmask(
    model: Model,
    text: str,
    *,
    masks: Sequence[int] = (),
    steps: int = 8,
    order: str = "surest",
    seed: int = 1,
    temperature: float = 0.0,
    remask: float = 0.0,
) -> Unmasking:
    """Put a piece into every [MASK], in steps.

    After step s of N, ``ceil(n * s / N)`` of the n hidden pieces stand there. [MASK], [UNK] and the
    special pieces are never put in.

    Args:
        model: In eval mode, with a head that predicts pieces.
        text: Its [MASK]s are hidden, all else is given.
        masks: Positions of further pieces to hide (piece numbers, [CLS] is 0).
        steps: N; more than there are hidden pieces make no difference unless pieces go back to
            [MASK]. A step that puts none in asks the model nothing and draws nothing.
        order: One of ``ORDERS``.
        seed: Of the random order and of pieces that are drawn; the same seed gives the same text.
        temperature: 0 = the most probable piece; else pieces are drawn, with the logits divided by
            it.
        remask: Share of the pieces put in so far, the least probable first (rounded down), that go
            back to [MASK] before each step but the first, to be answered anew with more in sight.

    Returns:
        Every step, and the text.

    Raises:
        InputError: A value is out of range, nothing is hidden, or the model predicts no pieces.
    """
    _check(steps, order, seed, temperature, remask)
    head = head_of(model)
    question = Question(model, FillRequest(text, masks))
    places = question.positions
    if not places:
        raise InputError("There is no [MASK] to fill; hide a word or write [MASK].")
    if len(places) > MAX_HIDDEN:
        raise InputError(f"{len(places)} hidden pieces are too many; at most {MAX_HIDDEN} go.")
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(places), generator=generator).tolist()
    turns = {p: n for n, p in zip(drawn, places, strict=True)} if order == "random" else {}
    ids = list(question.seen.ids)
    start, found = tuple(ids), dict[int, Revealed]()
    told = []
    for step in range(1, steps + 1):
        again = _least(found, math.floor(remask * len(found)))
        for position in again:
            ids[position] = model.tokenizer.mask_id
            del found[position]
        answers = []
        count = math.ceil(len(places) * step / steps) - len(found)
        if count and (left := [p for p in places if p not in found]):
            seen = seen_with(question.seen, dict(enumerate(ids)))
            with torch.inference_mode():
                hidden = hidden_at(model, [seen], [(0, p) for p in left])
                answers = _answers(model.tokenizer, head, hidden, left, temperature, generator)
        if order == "surest":
            answers.sort(key=lambda each: -each.probability)
        elif turns:
            answers.sort(key=lambda each: turns[each.position])
        kept = sorted(answers[:count], key=lambda each: each.position)
        for each in kept:
            ids[each.position] = each.id
            found[each.position] = each
        told.append(UnmaskStep(tuple(again), tuple(kept), tuple(ids)))
    text = _text(model, question, ids)
    return Unmasking(tuple(places), start, tuple(told), text, question.encoding.truncated)


def _least(found: dict[int, Revealed], count: int) -> list[int]:
    """The positions with the least probable pieces, in the order of the text."""
    least = sorted(found.values(), key=lambda each: (each.probability, each.position))[:count]
    return sorted(each.position for each in least)


def _answers(
    tokenizer: Tokenizer,
    head: nn.Module,
    hidden: Tensor,
    places: Sequence[int],
    temperature: float,
    generator: torch.Generator,
) -> list[Revealed]:
    """A piece for each hidden state [N, D]."""
    logits = head(hidden).float().cpu()[:, : tokenizer.vocabulary]
    barred = [*tokenizer.special_ids, tokenizer.mask_id, tokenizer.unknown_id]
    logits[:, barred] = -math.inf
    chances = logits.softmax(-1)
    if temperature:
        # The best score becomes 0, which no temperature can lift out of the numbers.
        best = logits.amax(-1, keepdim=True)
        flat = ((logits - best) / max(temperature, _LEAST)).softmax(-1)
        chosen = torch.multinomial(flat, 1, generator=generator)[:, 0]
    else:
        chosen = logits.argmax(-1)
    values = chances.gather(1, chosen[:, None])[:, 0]
    return [
        Revealed(place, index, tokenizer.display(index), value)
        for place, index, value in zip(places, chosen.tolist(), values.tolist(), strict=True)
    ]


def _text(model: Model, question: Question, ids: Sequence[int]) -> str:
    """What a reader gets: the pieces but the special ones."""
    special = question.encoding.special
    return model.tokenizer.decode([i for i, no in zip(ids, special, strict=True) if not no])


def _check(steps: int, order: str, seed: int, temperature: float, remask: float) -> None:
    whole(steps, "steps", 1, MAX_STEPS)
    whole(seed, "seed", 0, _MOST_SEED)
    if order not in ORDERS:
        raise InputError(f"order is {str(order)[:40]!r}; it must be one of {', '.join(ORDERS)}.")
    for name, share, highest in (("temperature", temperature, 100.0), ("remask", remask, 0.9)):
        if not within(share, 0, highest):
            raise InputError(f"{name} is {share!r}; it must be a number from 0 to {highest:g}.")
