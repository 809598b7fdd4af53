"""What ELECTRA's generator puts into gaps: samples, not best guesses."""

import math
from collections.abc import Sequence

import torch

from core_models.errors import InputError, listed
from core_models.model import Model
from core_models.prediction.fill import within
from core_models.prediction.passes import head_of, hidden_at, seen_with
from core_models.prediction.results import Forged, Sample
from core_models.tokenizer import check_text

MOST_MASKS = 512


def forge(
    generator: Model,
    text: str,
    masks: Sequence[int],
    *,
    random: torch.Generator,
    temperature: float = 1.0,
    pair: str | None = None,
) -> Forged:
    """Hide some pieces and draw what stands there from the generator's own distribution.

    Each hidden piece is drawn by itself, as in pretraining (arXiv 2003.10555, section 2): one
    uniform number picks a piece from the cumulated probabilities. A draw that hits the text's own
    piece is no forgery; it is marked ``lucky``.

    Args:
        generator: In eval mode, with a head that predicts pieces.
        text: What the visitor wrote.
        masks: Positions to hide.
        random: Source of the draws.
        temperature: Scores are divided by this; 1 = as in pretraining, towards 0 the best piece.
        pair: A second text.

    Raises:
        InputError: A position holds no word, or the temperature is not between 0.01 and 10.
    """
    head = head_of(generator)
    if not within(temperature, 0.01, 10):
        raise InputError(f"The temperature is {temperature}; allowed is 0.01 to 10.")
    tokenizer = generator.tokenizer
    (encoding,) = generator.encode([check_text(text) if pair is None else (check_text(text), pair)])
    positions = listed(masks, "masks")
    if len(positions) > MOST_MASKS:
        raise InputError(f"{len(positions):,} positions are too many; at most {MOST_MASKS} go.")
    for position in positions:
        there = isinstance(position, int) and 0 <= position < len(encoding)
        if not there or encoding.special[position]:
            raise InputError(f"Position {position} holds no word and cannot be hidden.")
    positions = sorted(set(positions))
    samples = []
    if positions:
        seen = seen_with(encoding, dict.fromkeys(positions, tokenizer.mask_id))
        with torch.inference_mode():
            hidden = hidden_at(generator, [seen], [(0, position) for position in positions])
            logits = head(hidden).float()[:, : tokenizer.vocabulary] / temperature
            logs = logits.log_softmax(-1).cpu()
            edges = logs.double().exp().cumsum(-1)
            numbers = torch.rand(len(positions), 1, generator=random, dtype=torch.float64)
            drawn = torch.searchsorted(edges, numbers * edges[:, -1:], right=True)[:, 0]
            drawn = drawn.clamp(max=logs.shape[1] - 1)
        for row, (position, index) in enumerate(zip(positions, drawn.tolist(), strict=True)):
            original = encoding.ids[position]
            samples.append(
                Sample(
                    position=position,
                    id=index,
                    piece=tokenizer.piece(index),
                    display=tokenizer.display(index),
                    probability=math.exp(float(logs[row, index])),
                    original=original,
                    original_probability=math.exp(float(logs[row, original])),
                    lucky=index == original,
                )
            )
    return Forged(text=encoding.text, samples=samples, truncated=encoding.truncated)
