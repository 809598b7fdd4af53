"""What a checkpoint holds, whatever is trained, and its way to the disk and back.

model/          the model in transformers format; opens like any other
NAME/           a further model that is trained with it (a generator), where there is one
*.safetensors   tensors of the state: optimizer, generators, memory, best weights
progress.json   step, tokens, sums of the open report, plain values of the state, settings,
                environment

Which tensors and values there are is known to what is trained alone
(:meth:`~core_models.training.learning.Learning.state`).
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from core_models import plain_files
from core_models.errors import InputError
from core_models.model import Model
from core_models.training.folder import RunFolder
from core_models.training.host import asked_for

Tensors = Mapping[str, Tensor]


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


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything beside settings and progress that decides how a training goes on."""

    models: Mapping[str, Model]
    """By the name of their folder."""
    tensors: Mapping[str, Tensors]
    """By the name of their file; one that would be empty is left out."""
    values: Mapping[str, Any]
    """Plain ones."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint as read back."""

    folder: Path
    tensors: dict[str, dict[str, Tensor]]
    values: dict[str, Any]
    progress: Progress
    settings: dict[str, Any]
    environment: dict[str, Any]

    def model(self, name: str = "model") -> Model:
        """One of its models."""
        return Model.from_folder(self.folder / name)


def environment() -> dict[str, Any]:
    """What the last bits of a result depend on, beside the settings."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "processes": asked_for(),
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


def write(folder: Path, state: State, progress: Progress, settings: Mapping[str, Any]) -> None:
    """Fill an empty folder."""
    for name, model in state.models.items():
        model.save(folder / name)
    for name, tensors in state.tensors.items():
        if tensors:
            plain = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
            path = folder / f"{name}.safetensors"
            with plain_files.written(path):
                save_file(plain, path)
    values = {
        "progress": asdict(progress),
        **state.values,
        "settings": settings,
        "environment": environment(),
    }
    text = json.dumps(values, indent=2) + "\n"
    (folder / "progress.json").write_text(text, encoding="utf-8")


def read(folder: Path) -> Saved:
    """Read a checkpoint; InputError when it is not one of ours."""
    try:
        values = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
        return Saved(
            folder=folder,
            tensors={path.stem: load_file(path) for path in folder.glob("*.safetensors")},
            progress=Progress(**values.pop("progress")),
            settings=values.pop("settings"),
            environment=values.pop("environment"),
            values=values,
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(f"{folder} is not a checkpoint of a run: {error}") from error
