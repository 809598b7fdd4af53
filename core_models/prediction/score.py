"""How likely a model finds a text."""

import math
from collections.abc import Sequence

import torch

from core_models.errors import InputError
from core_models.model import Model
from core_models.prediction.passes import head_of, hidden_at, seen_with
from core_models.prediction.results import Score, TokenScore
from core_models.tokenizer import Encoding, Tokenizer, check_text


def score(model: Model, texts: Sequence[str], *, batch_size: int = 64) -> list[Score]:
    """Pseudo-log-likelihood of each text (Salazar et al. 2020, arXiv 1910.14659, equation 1).

    Every token is masked in turn in a copy of its text; the score is the sum of
    log p(token | all others) in nats. [CLS] and [SEP] do not count, nor does a [MASK] written in
    the text. Copies of similar length share a forward pass.

    Args:
        model: In eval mode, with a masked-token head.
        texts: One score each, in order. Texts beyond the model's longest input lose their end.
        batch_size: Masked copies per forward pass.

    Raises:
        InputError: A text is blank or too long, or the model has no masked-token head.
    """
    head = head_of(model)
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be a whole number from 1.")
    encodings: dict[str, Encoding] = {}
    for number, text in enumerate(texts, start=1):
        try:
            if check_text(text) not in encodings:
                encodings[text] = model.encode([text])[0]
        except InputError as error:
            raise InputError(f"Text {number}: {error}") from None
    mask_id = model.tokenizer.mask_id
    copies = [
        (text, position)
        for text, encoding in sorted(encodings.items(), key=lambda item: len(item[1]))
        for position, special in enumerate(encoding.special)
        if not special and encoding.ids[position] != mask_id
    ]
    found: dict[str, list[tuple[int, float]]] = {text: [] for text in encodings}
    for start in range(0, len(copies), batch_size):
        chunk = copies[start : start + batch_size]
        masked = [seen_with(encodings[text], {p: mask_id}) for text, p in chunk]
        places = [(row, position) for row, (_, position) in enumerate(chunk)]
        targets = [encodings[text].ids[position] for text, position in chunk]
        with torch.inference_mode():
            logits = head(hidden_at(model, masked, places)).float()
            wanted = torch.tensor(targets, device=logits.device)[:, None]
            values = (logits.gather(1, wanted) - logits.logsumexp(1, keepdim=True))[:, 0].tolist()
        for (text, position), value in zip(chunk, values, strict=True):
            found[text].append((position, value))
    scores = {t: _score(model.tokenizer, e, found[t]) for t, e in encodings.items()}
    return [scores[text] for text in texts]


def _score(tokenizer: Tokenizer, encoding: Encoding, values: list[tuple[int, float]]) -> Score:
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
        total=math.fsum(token.score for token in tokens),
        per_token=tokens,
        tokens=len(tokens),
        words=len({token.word for token in tokens}),
        truncated=encoding.truncated,
    )
