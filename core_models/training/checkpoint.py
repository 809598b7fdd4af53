"""What a checkpoint holds beside the model, and its way to the disk and back.

model/               the model in transformers format; opens like any other
optimizer.safetensors
random.safetensors   states of the generators: data order, masking, dropout
progress.json        step, tokens, sums of the open report, settings, environment
"""

import json
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from core_models.errors import InputError
from core_models.model import Model
from core_models.training.order import Position


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
    optimizer: dict[str, Tensor]
    random: dict[str, Tensor]
    position: Position
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


def write(
    folder: Path,
    *,
    model: Model,
    optimizer: dict[str, Tensor],
    random: dict[str, Tensor],
    position: Position,
    progress: Progress,
    settings: dict[str, Any],
) -> None:
    """Fill an empty folder."""
    model.save(folder / "model")
    save_file(optimizer, folder / "optimizer.safetensors")
    save_file(random | {"order": position.generator}, folder / "random.safetensors")
    values = {
        "progress": asdict(progress),
        "epoch": position.epoch,
        "batch": position.batch,
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
        return Saved(
            model=Model.from_folder(folder / "model"),
            optimizer=load_file(folder / "optimizer.safetensors"),
            random=random,
            position=Position(values["epoch"], values["batch"], random.pop("order")),
            progress=Progress(**values["progress"]),
            settings=values["settings"],
            environment=values["environment"],
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"{folder} is not a checkpoint of a run: {error}") from error
