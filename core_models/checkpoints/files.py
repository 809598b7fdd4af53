"""Folders in the format of transformers: config.json and safetensors, nothing else.

A folder is read whole and checked before anything is built from it: a truncated, ill-shaped,
non-finite or foreign file gives one InputError that names the tensor. What is written takes the
place of an earlier model at the end, so that a folder never holds parts of two.
"""

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core_models.checkpoints.aside import aside_of
from core_models.checkpoints.fields import untied
from core_models.checkpoints.formats import BY_FAMILY, FORMATS
from core_models.checkpoints.names import present_heads, spelling, their_names, twice
from core_models.checkpoints.own_fields import OBJECTIVES, complete
from core_models.checkpoints.table import FAMILY_FIELD, Format, Transform
from core_models.checkpoints.weights import (
    INDEX,
    WEIGHTS,
    read_headers,
    read_json,
    read_tensors,
    same,
    write_tensors,
)
from core_models.config import Config
from core_models.errors import InputError

__all__ = [
    "CONFIG",
    "INDEX",
    "SHARD_BYTES",
    "WEIGHTS",
    "load_checkpoint",
    "present_heads",
    "read_format",
    "read_headers",
    "read_json",
    "read_tensors",
    "save_checkpoint",
    "their_names",
    "to_their_tensors",
    "write_shards",
]

CONFIG = "config.json"
SHARD_BYTES = 9_500_000
"""Files stay under 10 MB unless a single tensor is larger, so that a folder needs no LFS."""
_FACTOR, _BESIDE = 4, 100_000_000
"""The files may hold other heads, and tensors twice: so many times the model, and some more."""
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")


def read_format(values: Mapping[str, Any]) -> Format:
    """The format that a config.json names."""
    model_type = values.get("model_type")
    if not isinstance(model_type, str) or model_type not in FORMATS:
        raise InputError(
            f"config.json: model_type is {model_type!r}; supported are {', '.join(FORMATS)}."
        )
    return _special(_family_format(model_type, values), values)


def _family_format(model_type: str, values: Mapping[str, Any]) -> Format:
    if FAMILY_FIELD not in values:
        return FORMATS[model_type]
    named = {name: form for name, form in BY_FAMILY.items() if form.model_type == model_type}
    family = values[FAMILY_FIELD]
    if not isinstance(family, str) or family not in named:
        raise InputError(
            f"config.json: {FAMILY_FIELD} is {family!r}; for {model_type} it may be "
            f"{', '.join(named)}, or be left out."
        )
    return named[family]


def _special(form: Format, values: Mapping[str, Any]) -> Format:
    """The format of a causal head, or with a task's head, where config.json says so."""
    classes = values.get("architectures")
    masked = isinstance(classes, list) and any(str(c).endswith("ForMaskedLM") for c in classes)
    if form.older and masked and values.get("legacy") is not False:
        form = form.with_older()
    if values.get("is_decoder") is True or values.get(OBJECTIVES) == ["causal"]:
        form = form.leftward()
    task = form.tasks.read(values)
    return form if task is None else form.for_task(task)


def load_checkpoint(
    module: nn.Module,
    form: Format,
    config: Config,
    folder: Path,
    tensors: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Fill ``module`` (``encoder.*`` and ``heads.*``, built on the meta device) from a folder.

    Strict both ways: every tensor in the files must have a place or a listed reason to be left
    out, and every parameter of the module must be in the files, with its shape, finite and of a
    floating type. Half-precision weights are widened to float32. ``tensors`` are the folder's,
    under today's names, where they have been read already.

    Returns:
        What the files hold beside the model, by its name there: a pooler that nothing here reads,
        say. A warning names it; :func:`save_checkpoint` writes it back.
    """
    form = form.at(config)
    wanted = {name: p.shape for name, p in module.state_dict().items() if not _tied(name)}
    if tensors is None:
        _check_amount(folder, sum(shape.numel() for shape in wanted.values()))
        tensors = their_names(form, read_tensors(folder))
    if form.scores is not None and untied(config):
        tensors = form.scores.read(tensors)
    tensors = form.unpack(tensors, config)
    filled: dict[str, Tensor] = {}
    sources: dict[str, str] = {}
    spare: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        ignored = form.ignores(name)
        if ignored:
            _check_same(name, tensor, ignored.same_as, tensors)
            if ignored.kept:
                spare[name] = tensor
            continue
        ours = form.to_ours(name)
        if ours is None:
            raise InputError(
                f"{folder} holds the tensor {spelling(form, folder, name)!r}, which a "
                f"{form.model_type} model does not have; the file seems to be of another "
                "architecture."
            )
        if ours[0] not in wanted and ours[0].startswith("heads."):
            spare[name] = tensor  # alone without the rest of its head (Format.alone), or left over
            continue
        own = _ours(partial(spelling, form, folder, name), tensor, ours, wanted, config)
        if not same(filled.setdefault(ours[0], own), own):
            raise twice(name, sources[ours[0]])
        sources[ours[0]] = name
    missing = [name for name in wanted if name not in filled]
    if missing:
        theirs = [(form.to_theirs(name) or (name, None))[0] for name in missing]
        raise InputError(
            f"{folder} lacks {len(missing)} of {len(wanted)} tensors, first {theirs[0]!r}."
        )
    module.load_state_dict(filled, strict=False, assign=True)
    pieces = module.get_parameter("encoder.embeddings.pieces.weight")
    for name in filter(_tied, module.state_dict()):
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, pieces)
    if spare:
        warnings.warn(
            f"{folder} holds tensors that this model does not use ({len(spare)}) and keeps for "
            f"saving: {', '.join(sorted(spare))}.",
            stacklevel=3,
        )
    return spare


def _check_amount(folder: Path, described: int) -> None:
    """InputError, before any number is read, where the files hold far more than the model has."""
    held = sum(tensor.numel() for tensor in read_headers(folder).values())
    if held > _FACTOR * described + _BESIDE:
        raise InputError(
            f"config.json describes a model of {described:,} parameters; the files hold {held:,} "
            "numbers."
        )


def _ours(
    name: Callable[[], str],
    tensor: Tensor,
    ours: tuple[str, Transform | None],
    wanted: Mapping[str, torch.Size],
    config: Config,
) -> Tensor:
    if ours[0] not in wanted:
        raise InputError(f"The tensor {name()!r} has no place in a model of this config.json.")
    if not tensor.is_floating_point():
        raise InputError(f"The tensor {name()!r} holds {tensor.dtype}; expected floating-point.")
    if ours[1] is not None:
        tensor = ours[1].forward(tensor, config)
    expected = wanted[ours[0]]
    if tensor.shape != expected:
        raise InputError(
            f"The tensor {name()!r} has shape {list(tensor.shape)}; "
            f"config.json asks for {list(expected)}."
        )
    tensor = tensor.float()
    lowest, highest = tensor.aminmax()  # one pass, and NaN wins
    if not bool(lowest.isfinite() & highest.isfinite()):
        raise InputError(f"The tensor {name()!r} holds NaN or infinite values.")
    return tensor


def _check_same(
    name: str, tensor: Tensor, other: str | None, tensors: Mapping[str, Tensor]
) -> None:
    if other is not None and other in tensors and not same(tensor, tensors[other]):
        raise InputError(
            f"The tensor {name!r} differs from {other!r}, with which this model shares it."
        )


def _tied(name: str) -> bool:
    return name.endswith(".decoder.weight")


def save_checkpoint(
    module: nn.Module,
    form: Format,
    config: Config,
    folder: Path,
    beside: Callable[[Path], None] | None = None,
    spare: Mapping[str, Tensor] | None = None,
    spare_fields: Mapping[str, Any] | None = None,
) -> None:
    """Write config.json and safetensors that ``transformers.Auto...from_pretrained`` opens.

    Args:
        module: with ``encoder.*`` and ``heads.*``.
        form: of :data:`~core_models.checkpoints.formats.BY_FAMILY`.
        config: the module's.
        folder: made if missing; a model that it holds is replaced.
        beside: writes more files that belong to the model into the folder given to it.
        spare: what :func:`load_checkpoint` gave back; what the model has itself comes first.
        spare_fields: likewise of config.json.

    Raises:
        InputError: files of this format cannot hold the config or a head. Nothing is written.
    """
    values = {**(spare_fields or {}), **_fields(module, form, config)}
    values |= complete(form, config, values)
    form = form.at(config)
    tensors = {**(spare or {}), **to_their_tensors(form, module.state_dict(), config)}
    if form.scores is not None and untied(config):
        tensors = form.scores.write(tensors)
    text = json.dumps(values, indent=2, sort_keys=True) + "\n"

    def write(aside: Path) -> None:
        (aside / CONFIG).write_text(text, "utf-8")
        if beside is not None:
            beside(aside)

    write_shards(tensors, folder, write)


def check_savable(module: nn.Module, form: Format, config: Config) -> None:
    """Raise now what :func:`save_checkpoint` would, of a module that need not have values."""
    complete(form, config, _fields(module, form, config))
    form = form.at(config)
    for name in module.state_dict():
        if not _tied(name):
            _place(form, name)


def _fields(module: nn.Module, form: Format, config: Config) -> dict[str, Any]:
    """config.json as their own class writes it."""
    form = form.at(config)
    heads = {name.split(".")[1] for name in module.state_dict() if name.startswith("heads.")}
    return {
        "architectures": [next(n for part, n in form.architectures.items() if set(part) <= heads)],
        "model_type": form.model_type,
        **form.write_config(config),
        "dtype": "float32",
    }


def _place(form: Format, name: str) -> tuple[str, Transform | None]:
    """Where a file has a tensor of ours."""
    found = form.to_theirs(name)
    if found is None:
        raise InputError(
            f"Files of type {form.model_type} have no place for the tensor {name!r}; build "
            "the model without that part to save it."
        )
    return found


def to_their_tensors(form: Format, ours: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Tensors under our names (weights, or their gradients) as a file of theirs holds them."""
    theirs: dict[str, Tensor] = {}
    for name, tensor in ours.items():
        if _tied(name):
            continue
        place, transform = _place(form, name)
        value = tensor.detach().cpu()
        theirs[place] = transform.inverse(value, config) if transform else value
    packed = form.pack(theirs, config)
    return {name: tensor.contiguous().clone() for name, tensor in packed.items()}


def write_shards(
    tensors: Mapping[str, Tensor], folder: Path, beside: Callable[[Path], None] | None = None
) -> None:
    """One safetensors file, or several below :data:`SHARD_BYTES` with their index.

    Weights that the folder holds are replaced. Everything is written aside first. Then the file
    that readers begin with goes, and comes back last: whoever reads in between, or after an
    interruption, finds the old model, the new one, or none, never parts of both. Of several who
    write into one folder each waits for the one before, and the last one's model stays.

    Args:
        tensors: by their names in the files.
        folder: made if missing.
        beside: writes more files that belong to these weights into the folder given to it.
    """
    with aside_of(folder) as aside:
        _write_weights(tensors, aside)
        if beside is not None:
            beside(aside)
        for name in (WEIGHTS, INDEX):  # in this order: where both are there, ours is the index
            (folder / name).unlink(missing_ok=True)
        for path in folder.iterdir():
            if _SHARD.fullmatch(path.name):
                path.unlink()
        begin = (WEIGHTS, INDEX)
        for path in sorted(aside.iterdir(), key=lambda path: path.name in begin):
            os.replace(path, folder / path.name)


def _write_weights(tensors: Mapping[str, Tensor], folder: Path) -> None:
    shards: list[dict[str, Tensor]] = [{}]
    room = SHARD_BYTES
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        if shards[-1] and size > room:
            shards.append({})
            room = SHARD_BYTES
        shards[-1][name] = tensor
        room -= size
    if len(shards) == 1:
        write_tensors(shards[0], folder / WEIGHTS)
        return
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write_tensors(shard, folder / file)
        places |= dict.fromkeys(shard, file)
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    (folder / INDEX).write_text(text, "utf-8")
