"""Weights in half precision: files of half the size, for models that are shipped.

Only files are halved. Loading widens every number to float32, exactly, so that all arithmetic is
as before; what is lost is what float16 cannot hold: beyond its 11 significant bits, and below 6e-8.
bfloat16 would keep 8 bits only, for a range that weights do not need.
"""

import shutil
from pathlib import Path

import torch
from torch import nn

from core_models.checkpoints.files import read_tensors, write_shards
from core_models.errors import InputError


def write_half(source: Path, target: Path) -> None:
    """Copy a model folder with its weights as float16, rounded to the nearest.

    ``config.json`` stays, and with it ``dtype`` float32: that is what transformers computes in
    when it opens the folder (its files would otherwise decide, and half precision is slow and
    partly missing on a CPU). A folder that is in half precision already is copied as it is.

    Args:
        source: In the format of transformers.
        target: A new or empty folder.

    Raises:
        InputError: the source holds no readable weights, or a number that float16 cannot hold.
    """
    tensors = read_tensors(source)
    target.mkdir(parents=True, exist_ok=True)
    whole = any(tensor.dtype != torch.float16 for tensor in tensors.values())
    for path in source.iterdir():
        if path.is_file() and not (whole and _is_weights(path)):
            shutil.copyfile(path, target / path.name)
    if not whole:
        return
    # In the order of names: files are read in any order, and equal weights are to be equal files.
    ordered = sorted(tensors.items())
    halves = {n: t.half() if t.is_floating_point() else t for n, t in ordered}
    for name, tensor in halves.items():
        if not bool(tensor.isfinite().all()):
            raise InputError(f"{source}: the tensor {name!r} holds numbers beyond float16.")
    write_shards(halves, target)


def round_to_half(module: nn.Module) -> None:
    """Give parameters in float32 the values that :func:`write_half` would leave of them."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.half())


def _is_weights(path: Path) -> bool:
    return path.name.endswith((".safetensors", ".safetensors.index.json"))
