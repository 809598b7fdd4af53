"""Large models on a GPU that is lent for seconds: ZeroGPU Spaces. Elsewhere nothing changes.

On such a Space (``SPACES_ZERO_GPU``) the package `spaces` is there, and the Space starts only if a
function is decorated with its ``GPU``. Whatever that function is called with goes to a process of
its own that has the GPU, and what it gives comes back: so it takes the folder of a model, opens it
there once for each model that is loaded here, and answers with plain values.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

import core_models as cm
from app.serving.passes import attention, fill
from core_models.training.host import on

LARGE = 40_000_000
"""Parameters from which a model is answered on the GPU: a smaller one is quicker here."""
SECONDS = 15
"""Most time of a call, which the visitor's or the Space's quota is asked for."""

_SIZES: WeakKeyDictionary[cm.Model, int] = WeakKeyDictionary()
"""Parameters, counted once: each question asks for them."""

Answers = Callable[[str, str, int, Sequence[Any]], Sequence[Any]]


def answers(kind: str, folder: str, number: int, asks: Sequence[Any]) -> Sequence[Any]:
    """Answers of one model, where the GPU is.

    Args:
        kind: ``fill``, ``attention`` or ``work``.
        folder: of the model, in the format of transformers.
        number: of the model as it is loaded here (:meth:`Session.number`): a folder that is written
            anew holds another one, and is opened anew.
        asks: what is asked of it (``Ask``); for ``work`` functions of the model that can be sent to
            another process. They may ask for gradients.
    """
    model = _opened(folder, number)
    if kind == "work":
        return [work(model) for work in asks]
    with torch.inference_mode():
        if kind == "fill":
            return fill(model, list(asks))
        return [attention(model, ask) for ask in asks]


@lru_cache(maxsize=2)
def _opened(folder: str, number: int) -> cm.Model:
    return cm.load(Path(folder)).to(on())


def lent(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a Space that is lent a GPU."""
    return environment.get("SPACES_ZERO_GPU", "").strip().lower() in ("1", "true", "yes", "on")


def decorated() -> Answers | None:
    """:func:`answers`, to be called here and run where the GPU is; None where none is lent."""
    if not lent():
        return None
    found: Answers = import_module("spaces").GPU(duration=SECONDS)(answers)
    return found


ON_GPU = decorated()


def large(model: cm.Model) -> bool:
    """Whether a model is answered on the GPU where one is lent."""
    if model not in _SIZES:
        _SIZES[model] = sum(p.numel() for p in model.parameters())
    return _SIZES[model] >= LARGE
