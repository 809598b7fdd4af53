"""One vector for each text."""

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from core_models.errors import InputError
from core_models.model import Model
from core_models.prediction.passes import ready, together
from core_models.tokenizer import Encoding

POOLINGS = ("mean", "token")
_PADDED_TOKENS = 8192
"""Most tokens, padding included, of one forward pass."""


def embed(
    model: Model,
    texts: str | Sequence[str],
    *,
    pooling: str = "mean",
    normalize: bool = False,
) -> Tensor:
    """A vector [N, D] of each text, or [D] of a single one, from the last hidden states.

    A pretrained encoder was never asked for such a vector; one that was fine-tuned for similarity
    was (:meth:`Model.with_head`).

    Args:
        model: In eval mode.
        texts: At least one. Texts beyond the model's longest input lose their end.
        pooling: ``mean`` of all tokens but padding (arXiv 1908.10084), or the ``token`` that stands
            for a text: the first one, [CLS], or the last one where the template puts it there
            (XLNet).
        normalize: Whether vectors have length 1, so that products are cosines.

    Raises:
        InputError: A text is blank, none is given, the pooling is unknown, or its token sees
            nothing of the text.
    """
    ready(model)
    if pooling not in POOLINGS:
        raise InputError(f"No pooling {pooling!r}; there are {', '.join(POOLINGS)}.")
    last = model.tokenizer.template.pad_left
    if pooling == "token" and model.config.left_to_right and not last:
        raise InputError(
            "This model reads from left to right, so its first token sees nothing of the text; use "
            "pooling 'mean'."
        )
    encodings = model.encode(texts)
    if not encodings:
        raise InputError("No text was given; pass at least one.")
    found: dict[int, Tensor] = {}
    for chosen in _chunks(model, encodings):
        batch = model.collate([encodings[n] for n in chosen])
        with torch.inference_mode():
            hidden = model.encoder(batch).hidden
            mask = batch.attention_mask
            if mask is None:
                mask = torch.ones(batch.shape, dtype=torch.bool, device=batch.device)
            if pooling == "mean":
                vectors = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            else:
                vectors = hidden[:, -1 if last else 0]
        found.update(zip(chosen, vectors.float(), strict=True))
    result = torch.stack([found[n] for n in range(len(encodings))])
    result = F.normalize(result, dim=-1) if normalize else result
    return result[0] if isinstance(texts, str) else result


def _chunks(model: Model, encodings: Sequence[Encoding]) -> Iterator[list[int]]:
    """Numbers of the encodings that share a pass, the longest first."""
    for part in reversed(together(model, encodings)):
        order = sorted(part, key=lambda n: len(encodings[n]))
        while order:
            rows = max(1, _PADDED_TOKENS // len(encodings[order[-1]]))
            yield order[-rows:]
            order = order[:-rows]
