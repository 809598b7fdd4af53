"""A fine-tuning head on a pretrained encoder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor, nn

from core_models.checkpoints.formats import BY_FAMILY
from core_models.config import Config, check_ours
from core_models.errors import listed_of
from core_models.network.encoder import Encoder
from core_models.network.initialise import initialise


class Parts(Protocol):
    """What is needed of a model."""

    config: Config
    encoder: Encoder
    heads: nn.ModuleDict
    spare: dict[str, Tensor]


def task_config(
    config: Config,
    name: str,
    labels: Sequence[str],
    dropout: float | None,
    pooling: str,
    every_step: bool,
) -> Config:
    """The config with a task in its family's style, and without what only masked tokens need.

    Raises:
        InputError: the model is run by transformers.
    """
    check_ours(config)
    labels = listed_of(str, labels, "labels")
    task = BY_FAMILY[config.family].tasks.task(
        name, tuple(labels), dropout=dropout, pooling=pooling, every_step=every_step
    )
    if task.as_masked_token:
        activation = config.head_activation or config.feed_forward.activation
        task = replace(task, activation=activation)
    return replace(config, task=task, mask_decoder=None)


def start(model: Parts, pretrained: Parts, generator: torch.Generator | None) -> None:
    """Fill a new model: the encoder's values, a trained pooler if there is one, and fresh ones."""
    model.encoder.to(pretrained.encoder.embeddings.pieces.weight.device)
    model.heads.to(pretrained.encoder.embeddings.pieces.weight.device)
    wanted = model.encoder.state_dict()
    values = pretrained.encoder.state_dict()
    model.encoder.load_state_dict({name: values[name] for name in wanted})
    initialise(model.heads, model.config.initial_std, generator)
    trained = {**pretrained.spare, **_dense(pretrained)}
    with torch.no_grad():
        for name, tensor in _dense(model).items():
            if name in trained:
                tensor.copy_(trained[name])


def _dense(model: Parts) -> dict[str, Tensor]:
    """Tensors of the heads' dense layers and their norms, by their name in the family's files."""
    form = BY_FAMILY[model.config.family].at(model.config)
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.heads.named_parameters(prefix="heads"):
        theirs = form.to_theirs(name)
        if theirs is not None and name.rsplit(".", 2)[-2] in ("dense", "norm"):
            tensors[theirs[0]] = parameter
    return tensors
