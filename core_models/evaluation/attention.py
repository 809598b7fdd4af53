"""How widely attention looks: a model all of whose heads look at one token has stopped learning it.

The softmax of such a head passes no gradient on. It happens where queries and keys grow without a
bound ("entropy collapse", arXiv 2303.06296).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from core_models.batch import Batch
from core_models.errors import InputError, listed_of
from core_models.evaluation.plain import MASK, read_plain_sentences
from core_models.model import Model
from core_models.network.trace import Trace
from core_models.prediction.passes import together
from core_models.tokenizer import Encoding

_ROWS = 32
"""Sentences of one pass."""


@dataclass(frozen=True)
class AttentionResult:
    """Means over sentences, heads and the tokens that look, for each step of the model."""

    entropy: tuple[float, ...]
    """Of the probabilities, in nats: 0 = each looks at one token, log(n) = at n alike."""
    residual: tuple[float, ...]
    """Root mean square of the hidden states after the step."""


def plain_texts(language: str) -> list[str]:
    """The plain sentences of a language, each with the first word that fits."""
    return [each.text.replace(MASK, each.words[0]) for each in read_plain_sentences(language)]


def _batches(model: Model, encodings: Sequence[Encoding]) -> Iterator[Batch]:
    for rows in together(model, encodings):
        for start in range(0, len(rows), _ROWS):
            yield model.collate([encodings[row] for row in rows[start : start + _ROWS]])


@torch.inference_mode()
def evaluate_attention(model: Model, texts: Sequence[str]) -> AttentionResult:
    """Look at the attention of sentences; of a model with two streams at the content's.

    Raises:
        InputError: There is no sentence.
    """
    texts = listed_of(str, texts, "texts")
    if not texts:
        raise InputError("Attention is looked at in sentences; there is none.")
    steps = model.config.steps
    entropy, square, looks = torch.zeros(3, steps, dtype=torch.float64)
    tokens = 0
    encodings = sorted(
        (model.tokenizer.encode(text, max_length=model.longest) for text in texts),
        key=lambda encoding: len(encoding.ids),
    )
    for batch in _batches(model, encodings):
        trace = Trace(("probabilities", "residual"))
        model.encoder(batch, trace)
        mask = batch.attention_mask
        real = torch.ones(batch.shape, device=batch.device) if mask is None else mask
        tokens += int(real.sum())
        for step in range(steps):
            shares = trace.records["probabilities", step, "content"].float()  # [B, H, Q, K]
            spread = torch.special.entr(shares).sum(-1) * real[:, None]
            entropy[step] += spread.sum().cpu()
            looks[step] += float(real.sum()) * shares.shape[1]
            states = trace.records["residual", step, "content"].float()
            square[step] += (states.square().mean(-1) * real).sum().cpu()
    return AttentionResult(
        entropy=tuple((entropy / looks).tolist()),
        residual=tuple((square / tokens).sqrt().tolist()),
    )
