"""What the session asks a model for: candidates of hidden words, and who looks at whom."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import core_models as cm
from app.serving.ask import Ask
from app.serving.pieces import SentenceToken, check_marks, sentence_tokens
from core_models import InputError, prediction

MOST_MAPS = 1 << 30
"""Bytes of all maps of a pass, which are held twice for a moment; BERT large at 512 tokens has 402
MB."""


@dataclass(frozen=True, kw_only=True)
class AttentionResult:
    """Where each piece of a sentence looks."""

    tokens: tuple[SentenceToken, ...]
    seen: tuple[str, ...]
    """The pieces that the model saw, marks applied, as people read them."""
    probabilities: NDArray[np.float32]
    """[layers, heads, L, L]; each row sums to 1."""


def fill(model: cm.Model, asks: list[Ask]) -> Sequence[prediction.FillResult | InputError]:
    """Candidates for every mark of several sentences, in one pass."""
    requests = [
        prediction.FillRequest(
            text=ask.text,
            masks=tuple(mark.position for mark in ask.marks if mark.case == "mask"),
            replaced={m.position: m.piece for m in ask.marks if m.piece is not None},
            kept=tuple(mark.position for mark in ask.marks if mark.case == "kept"),
            top_k=ask.top_k,
            watch=ask.words,
        )
        for ask in asks
    ]
    return prediction.fill_many(model, requests)


def check_maps(model: cm.Model, length: int, steps: int | None = None) -> None:
    """Refuse a pass whose attention maps would fill the memory.

    Args:
        model: any encoder.
        length: tokens that it reads.
        steps: layers whose maps are kept; None = all.

    Raises:
        InputError: they would.
    """
    steps = model.config.steps if steps is None else steps
    needed = 4 * steps * model.config.attention.heads * length**2
    if needed > MOST_MAPS:
        raise InputError(
            f"The attention of {length:,} tokens would take {needed / 2**30:.1f} GB of memory, and "
            f"{MOST_MAPS >> 30} GB are allowed. Use a shorter text."
        )


def attention(model: cm.Model, ask: Ask) -> AttentionResult | InputError:
    """One sentence at a time: the maps of a batch would hold padding."""
    try:
        encoding = model.encode([ask.text])[0]
        check_marks(ask.marks, encoding, model.tokenizer)
        check_maps(model, len(encoding.ids))
    except InputError as error:
        return error
    ids = list(encoding.ids)
    for mark in ask.marks:
        if mark.case == "mask":
            ids[mark.position] = model.tokenizer.mask_id
        elif mark.piece is not None:
            ids[mark.position] = mark.piece
    trace = cm.Trace(sites=["probabilities"])
    model.encoder(model.collate([replace(encoding, ids=ids)]), trace)
    maps = trace.stack("probabilities")[:, 0]  # [layers, H, L, L]
    return AttentionResult(
        tokens=sentence_tokens(encoding, model.tokenizer),
        seen=tuple(model.tokenizer.display(index) for index in ids),
        probabilities=maps.float().cpu().numpy(),
    )


def cost_of(answer: Any) -> int:
    """Rough bytes of a result."""
    if isinstance(answer, AttentionResult):
        return answer.probabilities.nbytes + 1_000 * len(answer.tokens)
    return 1_000 * len(answer.tokens) + 4_000 * len(answer.predictions)
