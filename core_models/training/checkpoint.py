"""What a checkpoint holds beside the model, and its way to the disk and back.

model/               the model in transformers format; opens like any other
generator/           a further model that is trained with it, where there is one
optimizer.safetensors
random.safetensors   states of the generators: data order, masking, dropout
own.safetensors      what the objective needs beside the models, where it needs something
memory.safetensors   inputs of every step for earlier segments, where the model has a memory
progress.json        step, tokens, sums of the open report, settings, environment
"""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from core_models.errors import InputError
from core_models.model import Model
from core_models.training.feed import Place
from core_models.training.folder import RunFolder

_STATES = ("order", "masking")
"""Names of the states that belong to the stream of batches."""


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    """Updates made."""
    tokens: int = 0
    """Real tokens read, padding not counted."""
    seconds: float = 0.0
    """Time spent in training, over all parts of the run."""
    sums: dict[str, list[float]] = field(default_factory=dict)
    """Metrics since the last report: name -> [sum, count]."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint as read back."""

    model: Model
    companions: dict[str, Model]
    own: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    random: dict[str, Tensor]
    memory: tuple[Tensor, ...]
    place: Place
    progress: Progress
    settings: dict[str, Any]
    environment: dict[str, Any]


def environment() -> dict[str, Any]:
    """What the last bits of a result depend on, beside the settings."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "device": device,
    }


def same_environment(run: RunFolder, before: Mapping[str, Any]) -> bool:
    """Whether the last bits cannot differ from those before a resume; the log names what may."""
    now = environment()
    differ = [name for name, value in before.items() if now.get(name) != value]
    if differ:
        words = ", ".join(f"{n} {before[n]} -> {now.get(n)}" for n in differ)
        run.log(f"this machine differs from the checkpoint's, so last bits may differ: {words}")
    return not differ


def write(
    folder: Path,
    *,
    model: Model,
    companions: Mapping[str, Model],
    own: Mapping[str, Tensor],
    optimizer: dict[str, Tensor],
    random: dict[str, Tensor],
    memory: Sequence[Tensor],
    place: Place,
    progress: Progress,
    settings: dict[str, Any],
) -> None:
    """Fill an empty folder."""
    model.save(folder / "model")
    for name, companion in companions.items():
        companion.save(folder / name)
    save_file(optimizer, folder / "optimizer.safetensors")
    save_file(random | place.states, folder / "random.safetensors")
    _save_some(dict(own), folder / "own.safetensors")
    _save_some(
        {f"{step:03}": tensor for step, tensor in enumerate(memory)}, folder / "memory.safetensors"
    )
    values = {
        "progress": asdict(progress),
        "epoch": place.epoch,
        "batch": place.batch,
        "companions": list(companions),
        "settings": settings,
        "environment": environment(),
    }
    text = json.dumps(values, indent=2) + "\n"
    (folder / "progress.json").write_text(text, encoding="utf-8")


def read(folder: Path) -> Saved:
    """Read a checkpoint; InputError when it is not one of ours."""
    try:
        values = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
        random = load_file(folder / "random.safetensors")
        states = {name: tensor for name, tensor in random.items() if name in _STATES}
        return Saved(
            model=Model.from_folder(folder / "model"),
            companions={
                name: Model.from_folder(folder / name) for name in values.get("companions", [])
            },
            own=_load_some(folder / "own.safetensors"),
            optimizer=load_file(folder / "optimizer.safetensors"),
            random=random,
            memory=tuple(t for _, t in sorted(_load_some(folder / "memory.safetensors").items())),
            place=Place(values["epoch"], values["batch"], states),
            progress=Progress(**values["progress"]),
            settings=values["settings"],
            environment=values["environment"],
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"{folder} is not a checkpoint of a run: {error}") from error


def _save_some(tensors: dict[str, Tensor], path: Path) -> None:
    if tensors:
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)


def _load_some(path: Path) -> dict[str, Tensor]:
    return load_file(path) if path.exists() else {}
