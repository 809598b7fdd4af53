"""Reading the JSON and safetensors files of a model folder, and writing tensors.

Pickle files are refused. An index must say the truth about every tensor: two files that hold one
tensor with different values, or a tensor that is not where the index says, are an error.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from core_models import plain_files
from core_models.errors import InputError, not_json

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.ckpt")

MOST_HEAD = 10_000_000
"""Bytes of the head of a file, which names its tensors; the largest models have some 100,000."""
MOST_TENSORS = 10_000

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""Types of numbers that a model can hold; others are told apart where weights are read."""


def read_json(path: Path, most: int = 1_000_000) -> dict[str, Any]:
    """A JSON object from a file of at most ``most`` bytes."""
    try:
        text = plain_files.read(path, most).decode("utf-8")
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} has no {path.name}; expected a model folder in transformers format."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers beyond reason
        raise InputError(f"{path} is not valid JSON: {not_json(error)}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a JSON object, not {type(values).__name__}.")
    return values


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a safetensors file; OSError with its name where the system refuses that."""
    with plain_files.written(path):
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor of a folder's safetensors files, under the names in the files."""
    return _merged(folder, _read_file)


def read_headers(folder: Path) -> dict[str, Tensor]:
    """What :func:`read_tensors` gives, on the meta device: names, shapes and types alone."""
    return _merged(folder, _read_header)


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers; of tensors without numbers the shape decides."""
    if one is other:
        return True
    if one.shape != other.shape or one.is_meta or other.is_meta:
        return one.shape == other.shape
    if one.dtype != other.dtype or one.dtype.itemsize == 1:
        one, other = one.double(), other.double()
    return torch.equal(one, other)


def _merged(folder: Path, read: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    places = _places(folder)
    if places is None:
        return read(folder / WEIGHTS)
    tensors: dict[str, Tensor] = {}
    found: dict[str, list[str]] = {}
    for file in sorted(set(places.values())):
        for name, tensor in read(folder / file).items():
            if not same(tensors.setdefault(name, tensor), tensor):
                raise InputError(
                    f"{folder} holds the tensor {name!r} in {found[name][0]} and in {file}, with "
                    "different values; keep the right one only."
                )
            found.setdefault(name, []).append(file)
    for name, file in places.items():
        if file not in found.get(name, ()):
            raise InputError(
                f"{folder / INDEX} says that {file} holds the tensor {name!r}, which is not there; "
                "save the model again."
            )
    for name, files in found.items():
        if name not in places:
            raise InputError(
                f"{folder / files[0]} holds the tensor {name!r}, which {INDEX} does not list; "
                "save the model again."
            )
    return tensors


def _places(folder: Path) -> dict[str, str] | None:
    """File of each tensor as the index says; None = there is one file without an index."""
    if not (folder / INDEX).exists():
        _check_single(folder)
        return None
    places = read_json(folder / INDEX, 20_000_000).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(f, str) for f in places.values()):
        raise InputError(f"{folder / INDEX} has no weight_map of tensor names to files.")
    names = set(places.values())
    for name in sorted(names):
        if name in ("", ".", "..") or Path(name).name != name:
            raise InputError(f"{folder / INDEX} names a file outside its folder: {name!r}.")
        if not os.path.isfile(folder / name):  # False, too, for names that no file can have
            raise InputError(f"{folder}: the file {name!r} is listed in {INDEX} but missing.")
    if WEIGHTS not in names and (folder / WEIGHTS).exists():
        raise InputError(
            f"{folder} holds both {WEIGHTS} and {INDEX}, which are the weights of two models; "
            "remove the one that is out of date."
        )
    return places


def _check_single(folder: Path) -> None:
    if (folder / WEIGHTS).exists():
        return
    pickles = [name for name in PICKLES if (folder / name).exists()]
    if pickles:
        raise InputError(
            f"{folder} holds {pickles[0]}, a pickle file, which can run code and is refused; "
            f"save the model as {WEIGHTS} first."
        )
    raise InputError(f"{folder} has no {WEIGHTS}.")


def _read_file(path: Path) -> dict[str, Tensor]:
    try:
        _check_head(path)
        return safetensors.torch.load(path.read_bytes())
    except SafetensorError as error:
        raise _broken(path, error) from None
    except MemoryError:
        raise _too_large(path) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read_header(path: Path) -> dict[str, Tensor]:
    try:
        _check_head(path)
        with safetensors.safe_open(path, framework="pt") as file:
            if len(file.keys()) > MOST_TENSORS:
                raise InputError(
                    f"{path} holds {len(file.keys()):,} tensors; a model has at most "
                    f"{MOST_TENSORS:,}."
                )
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {name: (part.get_shape(), part.get_dtype()) for name, part in parts.items()}
    except SafetensorError as error:
        raise _broken(path, error) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (MemoryError, RuntimeError):  # so the library says that a file cannot be mapped
        raise _too_large(path) from None
    return {
        name: torch.empty(shape, dtype=_TYPES.get(kind, torch.uint8), device="meta")
        for name, (shape, kind) in found.items()
    }


def _check_head(path: Path) -> None:
    """InputError for a head that is longer than that of a model, before it is read.

    The format begins with 8 bytes that hold the length of the head.
    """
    with plain_files.opened(path) as file:
        length = int.from_bytes(file.read(8), "little")
    if length > MOST_HEAD:
        raise InputError(
            f"{path} is cut off or not a safetensors file: its head would have {length:,} bytes; "
            f"at most {MOST_HEAD:,} fit."
        )


def _too_large(path: Path) -> InputError:
    return InputError(
        f"{path} has {path.stat().st_size:,} bytes, more than the memory of this machine can take."
    )


def _broken(path: Path, error: SafetensorError) -> InputError:
    return InputError(f"{path} is cut off or not a safetensors file: {error}")
