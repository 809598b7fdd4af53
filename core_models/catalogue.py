"""Families and published sizes by name; counts and differences of whatever has a config."""

import os
from dataclasses import replace
from pathlib import Path

from core_models.config import Config, Difference
from core_models.config import diff as diff_configs
from core_models.counting.counts import Count
from core_models.counting.counts import count as count_config
from core_models.errors import InputError
from core_models.families import FAMILIES, size, sizes
from core_models.model import Model, config_of, named_folder

__all__ = ["count", "diff", "family_names", "size", "sizes"]


def family_names() -> list[str]:
    """Names of the families that can be built."""
    return list(FAMILIES)


def count(model: str | Model | Config) -> Count:
    """Exact parameter counts, from the built module.

    Args:
        model: a model, a config, or a name: of a model that :func:`core_models.load` finds without
            network, else of a published size. So ``bert-mini`` is the shipped model, and the
            published size of that name is ``bert-4x256``.

    Raises:
        InputError: nothing has this name.
    """
    name = "" if isinstance(model, Config) else getattr(model, "name", model)
    return replace(count_config(_config(model)), name=str(name))


def diff(left: str | Model | Config, right: str | Model | Config) -> list[Difference]:
    """What differs between two models, configs or names (see :func:`count`), value by value."""
    return diff_configs(_config(left), _config(right))


def _config(model: str | Model | Config) -> Config:
    if isinstance(model, Config):
        return model
    if isinstance(model, Model):
        return model.config
    folder = named_folder(model)
    if folder is not None:
        return config_of(folder)
    try:
        return size(model)
    except InputError as error:
        if os.path.isdir(model):
            return config_of(Path(model))  # an InputError that says what the folder lacks
        raise InputError(
            f"{error} Or give a shipped model (python -m core_models models) or a folder."
        ) from None
