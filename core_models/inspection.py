"""What a model folder holds, read from its headers: nothing is built and no weight is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_models.checkpoints.fields import untied
from core_models.checkpoints.files import (
    CONFIG,
    present_heads,
    read_format,
    read_headers,
    read_json,
)
from core_models.checkpoints.names import their_names
from core_models.config import Config
from core_models.foreign.config import check_kind, is_foreign, refuse_code


@dataclass(frozen=True)
class Inspection:
    """A model folder, seen from outside."""

    family: str
    """Of ours, or the ``model_type`` of another's."""
    made_for: str
    """Class that the files were made for, as config.json names it; may be empty."""
    adapter: bool
    """Whether transformers runs it (:mod:`core_models.foreign`), as no family of ours does."""
    parameters: int
    """Numbers in the files, each shared tensor once."""
    bytes: int
    """Size of the weights."""
    heads: tuple[str, ...]
    """What the model answers; of an adapter's what its class promises."""
    config: Config | None
    """Of a family of ours; None for an adapter's."""


def inspect(folder: str | Path) -> Inspection:
    """Read the headers of a folder in the format of transformers.

    Raises:
        InputError: there is no config.json or no safetensors file, one of them is damaged, or a
            tensor is of none of the sizes that a header may tell.
    """
    path = Path(folder)
    values = read_json(path / CONFIG)
    refuse_code(values, CONFIG)
    classes = values.get("architectures")
    made_for = str(classes[0])[:80] if isinstance(classes, list) and classes else ""
    headers = read_headers(path)
    size = sum(tensor.numel() * tensor.itemsize for tensor in headers.values())
    if is_foreign(values):
        numbers = sum(t.numel() for t in headers.values() if t.is_floating_point())
        promised = ("masked_token",) if made_for.endswith("ForMaskedLM") else ()
        return Inspection(values["model_type"], made_for, True, numbers, size, promised, None)
    form = read_format(values)
    tensors = their_names(form, headers)
    config = form.settle(form.read_config(values), tensors)
    heads = present_heads(form, tensors)
    form = form.at(config)
    if form.scores is not None and untied(config):
        tensors = form.scores.read(tensors)
    numbers = sum(t.numel() for n, t in tensors.items() if not form.ignores(n))
    return Inspection(config.family, made_for, False, numbers, size, heads, config)


def check_config(values: Mapping[str, Any]) -> None:
    """InputError for a config.json that no model can be opened by, before anything is fetched.

    Args:
        values: the content of config.json.
    """
    refuse_code(values, CONFIG)
    if is_foreign(values):
        check_kind(values)
    else:
        read_format(values).read_config(values)
