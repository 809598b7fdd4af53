"""Forward passes that read single positions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from core_models.errors import InputError
from core_models.model import Model
from core_models.tokenizer import Encoding


def head_of(model: Model) -> nn.Module:
    """The masked-token head of a model that is ready to answer.

    Raises:
        InputError: It has none, or the model is in training mode.
    """
    if "masked_token" not in model.heads:
        held = ", ".join(model.heads) or "none"
        raise InputError(f"{model.name or 'This model'} has no masked-token head (heads: {held}).")
    if model.training:
        raise InputError("The model is in training mode, where dropout is on; call model.eval().")
    return model.heads["masked_token"]


def hidden_at(
    model: Model, encodings: Sequence[Encoding], places: Sequence[tuple[int, int]]
) -> Tensor:
    """Hidden states [N, D] that the head predicts from, at (row, position) places."""
    batch = model.collate(encodings)
    hidden = model.encoder.decode(batch, model.encoder(batch))
    longest = batch.shape[1]
    left = model.tokenizer.template.pad_left
    columns = [p + (longest - len(encodings[row]) if left else 0) for row, p in places]
    rows = torch.tensor([row for row, _ in places], device=hidden.device)
    return hidden[rows, torch.tensor(columns, device=hidden.device)]


def seen_with(encoding: Encoding, changes: Mapping[int, int]) -> Encoding:
    """The encoding with other pieces at some positions."""
    ids = list(encoding.ids)
    for position, index in changes.items():
        ids[position] = index
    return replace(encoding, ids=ids)
