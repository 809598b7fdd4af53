"""How likely a model finds a text."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from core_models.errors import InputError, listed
from core_models.model import Model
from core_models.prediction.passes import (
    HEAD_ROWS,
    first_told,
    head_name,
    head_of,
    hidden_at,
    seen_with,
)
from core_models.prediction.results import Score, TokenScore
from core_models.tokenizer import Encoding, Tokenizer, check_text


def score(model: Model, texts: str | Sequence[str], *, batch_size: int = 64) -> list[Score]:
    """Log-likelihood of each text, or the nearest thing its model has.

    A masked model and XLNet have a pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659,
    equation 1): every token is hidden in turn in a copy of its text; the score is the sum of
    log p(token | all others) in nats. A causal model has the log-likelihood itself: the sum of
    log p(token | those before it), from one pass. [CLS] and [SEP] do not count, nor does a mask
    piece written in the text, nor for a causal head a piece with none before it. Copies of similar
    length share a forward pass.

    Args:
        model: In eval mode, with a head that predicts pieces.
        texts: One score each, in order; a text alone has one. Texts beyond the model's longest
            input lose their end.
        batch_size: Copies per forward pass.

    Raises:
        InputError: A text is blank or too long, or the model predicts no pieces.
    """
    head = head_of(model)
    if type(batch_size) is not int or batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be a whole number from 1.")
    texts = [texts] if isinstance(texts, str) else listed(texts, "texts")
    encodings: dict[str, Encoding] = {}
    for number, text in enumerate(texts, start=1):
        try:
            if check_text(text) not in encodings:
                encodings[text] = model.encode([text])[0]
        except InputError as error:
            raise InputError(f"Text {number}: {error}") from None
    leftward = head_name(model) == "causal" and model.config.left_to_right
    first = first_told(model)
    copies = _copies(encodings, model.tokenizer.mask_id, apart=not leftward, first=first)
    found: dict[str, list[tuple[int, float]]] = {text: [] for text in encodings}
    for start in range(0, len(copies), batch_size):
        chunk = copies[start : start + batch_size]
        places = [(row, p) for row, copy in enumerate(chunk) for p in copy.positions]
        originals = [encodings[copy.text].ids for copy in chunk]
        with torch.inference_mode():
            hidden = hidden_at(model, [copy.seen for copy in chunk], places)
            values = _values(head, hidden, [originals[row][p] for row, p in places])
        for (row, position), value in zip(places, values, strict=True):
            found[chunk[row].text].append((position, value))
    kind_of_score = "log-likelihood" if leftward else "pseudo-log-likelihood"
    scores = {t: _score(model.tokenizer, e, found[t], kind_of_score) for t, e in encodings.items()}
    return [scores[text] for text in texts]


class _Copy(NamedTuple):
    """One row of a forward pass, and the positions that are read from it."""

    text: str
    seen: Encoding
    positions: list[int]


def _copies(
    encodings: Mapping[str, Encoding], mask_id: int, *, apart: bool, first: int
) -> list[_Copy]:
    """One copy for each position, hidden there, or one copy for all positions; short ones first.

    Positions before ``first`` are left out.
    """
    copies = []
    for text, encoding in sorted(encodings.items(), key=lambda item: len(item[1])):
        scored = [
            position
            for position, special in enumerate(encoding.special)
            if not special and encoding.ids[position] != mask_id and position >= first
        ]
        if apart:
            copies += [_Copy(text, seen_with(encoding, {p: mask_id}), [p]) for p in scored]
        elif scored:
            copies.append(_Copy(text, encoding, scored))
    return copies


def _values(head: nn.Module, hidden: Tensor, wanted: Sequence[int]) -> list[float]:
    """Log-probability of one piece for each row of hidden states [N, D]."""
    values: list[float] = []
    for rows, ids in zip(
        hidden.split(HEAD_ROWS), torch.tensor(wanted).split(HEAD_ROWS), strict=True
    ):
        logits = head(rows).float()
        chosen = logits.gather(1, ids.to(logits.device)[:, None])[:, 0]
        values += (chosen - logits.logsumexp(1)).tolist()
    return values


def _score(
    tokenizer: Tokenizer, encoding: Encoding, values: list[tuple[int, float]], kind: str
) -> Score:
    tokens = [
        TokenScore(
            position=position,
            id=encoding.ids[position],
            piece=encoding.pieces[position],
            display=tokenizer.display(encoding.ids[position]),
            word=encoding.words[position],
            score=value,
        )
        for position, value in values
    ]
    return Score(
        text=encoding.text,
        kind=kind,
        total=math.fsum(token.score for token in tokens),
        per_token=tokens,
        tokens=len(tokens),
        words=len({token.word for token in tokens}),
        truncated=encoding.truncated,
    )
