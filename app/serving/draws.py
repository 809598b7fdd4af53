"""A random masking of one sentence, with core_models' own maskings; no Gradio in it."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.serving.ask import Case, Mark
from app.serving.pieces import Sentence, SentenceToken
from core_models import InputError
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.prediction.passes import KINDS as PREDICTIONS

KINDS = ("uniform", "whole_word", "ngram", "span")
"""Single pieces, whole words, n-grams as ALBERT's, spans as SpanBERT's."""
LAWS: dict[str, tuple[float, ...]] = {
    "ngram": tuple(
        weight / sum(span_masking.ALBERT_WEIGHTS) for weight in span_masking.ALBERT_WEIGHTS
    ),
    "span": span_masking.geometric(),
}
"""Shares of the lengths 1, 2, ... in words."""
_MASKINGS = {
    "uniform": masking.uniform,
    "whole_word": masking.whole_word,
    "ngram": span_masking.ngrams,
    "span": span_masking.spans,
}
_CASES: dict[int, Case] = {masking.MASK: "mask", masking.RANDOM: "random", masking.KEPT: "kept"}


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A random masking of a sentence."""

    sentence: Sentence
    marks: tuple[Mark, ...]
    shown: tuple[str, ...]
    """For each mark, the piece the model sees, as people read it."""
    kind: str
    seed: int
    lengths: tuple[int, ...]
    """Words in each run of chosen pieces, in the order of the text; () where no law rules them.
    Runs that touch are one, and a run ends where the share to mask is reached."""


def clean_kind(value: Any) -> str:
    """One of `KINDS`; InputError for anything else."""
    if value not in KINDS:
        raise InputError(f"kind is {repr(value)[:40]}; it must be one of {', '.join(KINDS)}.")
    return str(value)


def draw(model: cm.Model, sentence: Sentence, *, seed: int, rate: float, kind: str) -> Draw:
    """Draw positions as in pretraining: of those, 80 % masked, 10 % random, 10 % kept.

    For a model that predicts in an order, never from what stands at the place, all are masked.
    """
    tokens, tokenizer = sentence.tokens, model.tokenizer
    words = torch.tensor([-1 if token.word is None else token.word for token in tokens])
    in_order = any(PREDICTIONS.get(name) == "order" for name in model.heads)
    masked = _MASKINGS[kind](
        torch.tensor([token.id for token in tokens]),
        torch.tensor([not token.special and not token.masked for token in tokens]),
        **({} if kind == "uniform" else {"words": words}),
        generator=torch.Generator().manual_seed(seed),
        mask_id=tokenizer.mask_id,
        vocabulary=tokenizer.vocabulary,
        rate=rate,
        split=(1.0, 0.0, 0.0) if in_order else (0.8, 0.1, 0.1),
    )
    inputs, cases = masked.inputs.tolist(), masked.cases.tolist()
    marks = tuple(
        Mark(
            position=position,
            case=_CASES[case],
            piece=inputs[position] if case == masking.RANDOM else None,
        )
        for position, case in enumerate(cases)
        if case != masking.UNTOUCHED
    )
    return Draw(
        sentence=sentence,
        marks=marks,
        shown=tuple(tokenizer.display(inputs[mark.position]) for mark in marks),
        kind=kind,
        seed=seed,
        lengths=_lengths(masked.spans, tokens) if kind in LAWS else (),
    )


def _lengths(spans: Tensor, tokens: tuple[SentenceToken, ...]) -> tuple[int, ...]:
    """Words in each span [N, 3] (row, first position, position after the last one)."""
    return tuple(
        len({token.word for token in tokens[first:after]}) for _, first, after in spans.tolist()
    )
