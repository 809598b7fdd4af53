"""Folders in the format of transformers: config.json and safetensors, nothing else.

Pickle files are refused. A file is read whole and checked before anything is built from it: a
truncated, ill-shaped, non-finite or foreign file gives one InputError that names the tensor.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from core_models.checkpoints.formats import BY_FAMILY, FORMATS
from core_models.checkpoints.own_fields import complete
from core_models.checkpoints.table import FAMILY_FIELD, Format, Transform
from core_models.config import Config
from core_models.errors import InputError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt", "model.ckpt")
SHARD_BYTES = 9_500_000
"""Files stay under 10 MB unless a single tensor is larger, so that a folder needs no LFS."""


def read_json(path: Path, most: int = 1_000_000) -> dict[str, Any]:
    """A JSON object from a file of at most ``most`` bytes."""
    try:
        if path.stat().st_size > most:
            raise InputError(f"{path.name} has {path.stat().st_size} bytes; at most {most} fit.")
        values = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} has no {path.name}; expected a model folder in transformers format."
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a JSON object, not {type(values).__name__}.")
    return values


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
    """The format as a decoder's, or with a task's head, where config.json says so."""
    if values.get("is_decoder") is True:
        form = form.leftward()
    task = form.tasks.read(values)
    return form if task is None else form.for_task(task)


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor of a folder's safetensors files, under the names in the files."""
    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        tensors |= _read_file(path)
    return tensors


def read_headers(folder: Path) -> dict[str, Tensor]:
    """What :func:`read_tensors` gives, on the meta device: names and shapes, no weights read."""
    tensors: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        tensors |= _read_header(path)
    return tensors


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).exists():
        places = read_json(folder / INDEX, 20_000_000).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(f, str) for f in places.values()):
            raise InputError(f"{folder / INDEX} has no weight_map of tensor names to files.")
        names = sorted(set(places.values()))
    elif (folder / WEIGHTS).exists():
        names = [WEIGHTS]
    else:
        pickles = [name for name in PICKLES if (folder / name).exists()]
        if pickles:
            raise InputError(
                f"{folder} holds {pickles[0]}, a pickle file, which can run code and is refused; "
                f"save the model as {WEIGHTS} first."
            )
        raise InputError(f"{folder} has no {WEIGHTS}.")
    for name in names:
        if Path(name).name != name:
            raise InputError(f"{folder / INDEX} names a file outside its folder: {name!r}.")
        if not (folder / name).exists():
            raise InputError(f"{folder / name} is listed in {INDEX} but missing.")
    return [folder / name for name in names]


def _read_file(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(path.read_bytes())
    except SafetensorError as error:
        raise _broken(path, error) from None


def _read_header(path: Path) -> dict[str, Tensor]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise _broken(path, error) from None
    return {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}


def _broken(path: Path, error: SafetensorError) -> InputError:
    return InputError(f"{path} is cut off or not a safetensors file: {error}")


def present_heads(form: Format, names: Iterable[str]) -> tuple[str, ...]:
    """A task's head, and heads of which a file holds tensors beyond those that may stand alone.

    In the order of the format's rows: a file gives its tensors in no fixed order, and the order of
    parameters decides how a gradient norm rounds.
    """
    alone = {a for pattern in form.alone for a in (pattern.replace("*", w) for w in _SUFFIXES)}
    found = {ours[0] for name in names if name not in alone and (ours := form.to_ours(name))}
    heads = {name.split(".")[1] for name in found if name.startswith("heads.")}
    task = () if form.task is None else (form.task.head,)
    known = dict.fromkeys([*task, *(row.head for row in form.rows if row.head)])
    kept = heads.union(task)
    return tuple(h for h in known if h in kept and form.leftovers.get(h) not in heads)


_SUFFIXES = ("weight", "bias")


def their_names(form: Format, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors under today's names: gamma and beta renamed, the encoder's prefix added."""
    renamed = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): tensor
        for name, tensor in tensors.items()
    }
    if any(name.startswith(form.prefix) for name in renamed):
        return renamed
    return {
        name if form.to_ours(name) or form.ignores(name) else form.prefix + name: tensor
        for name, tensor in renamed.items()
    }


def load_checkpoint(
    module: nn.Module,
    form: Format,
    config: Config,
    folder: Path,
    tensors: Mapping[str, Tensor] | None = None,
) -> None:
    """Fill ``module`` (``encoder.*`` and ``heads.*``, built on the meta device) from a folder.

    Strict both ways: every tensor in the files must have a place or a listed reason to be left
    out, and every parameter of the module must be in the files, with its shape, finite and of a
    floating type. Half-precision weights are widened to float32. ``tensors`` are the folder's,
    under today's names, where they have been read already.
    """
    form = form.at(config)
    if tensors is None:
        tensors = their_names(form, read_tensors(folder))
    tensors = form.unpack(tensors, config)
    wanted = {name: p.shape for name, p in module.state_dict().items() if not _tied(name)}
    filled: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        ignored = form.ignores(name)
        if ignored:
            _check_same(name, tensor, ignored.same_as, tensors)
            continue
        ours = form.to_ours(name)
        if ours is None:
            raise InputError(
                f"{folder} holds the tensor {name!r}, which a {form.model_type} model does not "
                "have; the file seems to be of another architecture."
            )
        if ours[0] not in wanted and ours[0].startswith("heads."):
            continue  # stands alone without the rest of its head: see Format.alone
        filled[ours[0]] = _ours(name, tensor, ours, wanted, config)
    missing = [name for name in wanted if name not in filled]
    if missing:
        theirs = [(form.to_theirs(name) or (name, None))[0] for name in missing]
        raise InputError(
            f"{folder} lacks {len(missing)} of {len(wanted)} tensors, first {theirs[0]!r}."
        )
    module.load_state_dict(filled, strict=False, assign=True)
    pieces = module.get_parameter("encoder.embeddings.pieces.weight")
    for name in filter(_tied, module.state_dict()):
        owner, _, own = name.rpartition(".")
        setattr(module.get_submodule(owner), own, pieces)


def _ours(
    name: str,
    tensor: Tensor,
    ours: tuple[str, Transform | None],
    wanted: Mapping[str, torch.Size],
    config: Config,
) -> Tensor:
    if ours[0] not in wanted:
        raise InputError(f"The tensor {name!r} has no place in a model of this config.json.")
    if not tensor.is_floating_point():
        raise InputError(f"The tensor {name!r} holds {tensor.dtype}; expected floating-point.")
    if ours[1] is not None:
        tensor = ours[1].forward(tensor, config)
    expected = wanted[ours[0]]
    if tensor.shape != expected:
        raise InputError(
            f"The tensor {name!r} has shape {list(tensor.shape)}; "
            f"config.json asks for {list(expected)}."
        )
    tensor = tensor.float()
    lowest, highest = tensor.aminmax()  # one pass, and NaN wins
    if not bool(lowest.isfinite() & highest.isfinite()):
        raise InputError(f"The tensor {name!r} holds NaN or infinite values.")
    return tensor


def _check_same(
    name: str, tensor: Tensor, other: str | None, tensors: Mapping[str, Tensor]
) -> None:
    if other is not None and other in tensors and not torch.equal(tensor, tensors[other]):
        raise InputError(
            f"The tensor {name!r} differs from {other!r}, with which this model shares it."
        )


def _tied(name: str) -> bool:
    return name.endswith(".decoder.weight")


def save_checkpoint(module: nn.Module, form: Format, config: Config, folder: Path) -> None:
    """Write config.json and safetensors that ``transformers.Auto...from_pretrained`` opens."""
    plain, form = form, form.at(config)
    heads = tuple(
        dict.fromkeys(n.split(".")[1] for n in module.state_dict() if n.startswith("heads."))
    )
    architecture = next(
        name for needed, name in form.architectures.items() if set(needed) <= set(heads)
    )
    tensors = to_their_tensors(form, module.state_dict(), config)
    values = {
        "architectures": [architecture],
        "model_type": form.model_type,
        **form.write_config(config),
        "dtype": "float32",
    }
    values |= complete(plain, config, values)
    folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / CONFIG, json.dumps(values, indent=2, sort_keys=True) + "\n")
    write_shards(tensors, folder)


def to_their_tensors(form: Format, ours: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Tensors under our names (weights, or their gradients) as a file of theirs holds them."""
    theirs: dict[str, Tensor] = {}
    for name, tensor in ours.items():
        if _tied(name):
            continue
        found = form.to_theirs(name)
        assert found is not None, f"{name} has no row in the {form.model_type} table"
        value = tensor.detach().cpu()
        theirs[found[0]] = found[1].inverse(value, config) if found[1] else value
    packed = form.pack(theirs, config)
    return {name: tensor.contiguous().clone() for name, tensor in packed.items()}


def write_shards(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """One safetensors file, or several below :data:`SHARD_BYTES` with their index."""
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
        safetensors.torch.save_file(shards[0], folder / WEIGHTS, metadata={"format": "pt"})
        return
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        safetensors.torch.save_file(shard, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    _write_text(folder / INDEX, json.dumps(index, indent=2, sort_keys=True) + "\n")


def _write_text(path: Path, text: str) -> None:
    aside = path.with_name(path.name + ".part")
    aside.write_text(text, "utf-8")
    os.replace(aside, path)
