"""What a model judges: which tokens were replaced, whether two texts belong in this order."""

from collections.abc import Mapping, Sequence

import torch

from core_models.errors import InputError, by_position, listed
from core_models.model import Model
from core_models.prediction.passes import ready, seen_with
from core_models.prediction.results import DetectResult, PairResult, Verdict
from core_models.tokenizer import check_text

PAIR_HEADS = {
    "next_sentence": ("next", "random"),
    "sentence_order": ("in order", "swapped"),
}
"""Answers of each head for labels 0 and 1."""


def detect(
    model: Model, text: str, *, replaced: Mapping[int, int] | None = None, pair: str | None = None
) -> DetectResult:
    """How likely each token was put there by somebody else (ELECTRA, DeBERTa v3).

    Args:
        model: In eval mode, with a replaced-token head.
        text: What the visitor wrote.
        replaced: Position -> piece id that the model reads there instead of the text's own.
        pair: A second text.

    Raises:
        InputError: The model has no such head, or a position or piece is out of range.
    """
    if "replaced_token" not in model.heads:
        raise _lacks(model, "replaced-token head")
    ready(model)
    (encoding,) = model.encode([check_text(text) if pair is None else (check_text(text), pair)])
    changes = by_position({} if replaced is None else replaced, "replaced")
    for position, index in changes.items():
        there = isinstance(position, int) and 0 <= position < len(encoding)
        if not there or encoding.special[position]:
            raise InputError(
                f"Position {position} holds no word; words stand at "
                f"{[p for p, special in enumerate(encoding.special) if not special]}."
            )
        if not isinstance(index, int) or not 0 <= index < model.tokenizer.vocabulary:
            raise InputError(
                f"Piece {index} is outside the vocabulary (0 to {model.tokenizer.vocabulary - 1})."
            )
    seen = seen_with(encoding, changes)
    with torch.inference_mode():
        hidden = model.encoder(model.collate([seen])).hidden
        chances = model.heads["replaced_token"](hidden)[0].float().sigmoid().tolist()
    verdicts = [
        Verdict(
            position=position,
            id=seen.ids[position],
            display=model.tokenizer.display(seen.ids[position]),
            special=encoding.special[position],
            replaced=seen.ids[position] != encoding.ids[position],
            probability=chance,
        )
        for position, chance in enumerate(chances)
    ]
    return DetectResult(text=encoding.text, verdicts=verdicts, truncated=encoding.truncated)


def judge_pair(model: Model, first: str, second: str) -> PairResult:
    """Whether the second text follows the first, as the model was trained to tell.

    A next-sentence head (BERT) tells a true neighbour from a random text, a sentence-order head
    (ALBERT) neighbours in order from swapped ones.

    Raises:
        InputError: The model has neither head, or a text is blank.
    """
    return judge_pairs(model, [(first, second)])[0]


def judge_pairs(model: Model, pairs: Sequence[tuple[str, str]]) -> list[PairResult]:
    """The same for several pairs in one forward pass; errors as `judge_pair`."""
    asked = listed(pairs, "pairs")
    for pair in asked:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"A pair is {repr(pair)[:40]}; it must be two texts, as in (a, b).")
    if not asked:
        return []
    ready(model)
    name = next((name for name in PAIR_HEADS if name in model.heads), None)
    if name is None:
        raise _lacks(model, "next-sentence or sentence-order head")
    encodings = model.encode([(check_text(first), check_text(second)) for first, second in asked])
    with torch.inference_mode():
        batch = model.collate(encodings)
        first = torch.zeros(len(encodings), 1, dtype=torch.long, device=batch.device)
        hidden = model.encoder(batch, places=first).hidden
        chances = model.heads[name](hidden).float().softmax(-1).tolist()
    return [
        PairResult(
            first=first,
            second=second,
            head=name,
            labels=PAIR_HEADS[name],
            probabilities=tuple(row),
            truncated=encoding.truncated,
        )
        for (first, second), encoding, row in zip(asked, encodings, chances, strict=True)
    ]


def _lacks(model: Model, what: str) -> InputError:
    held = ", ".join(model.heads) or "none"
    return InputError(f"{model.name or 'This model'} has no {what} (heads: {held}).")
