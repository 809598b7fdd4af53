"""The encoder-only family, complete: models, objectives, data, training, checkpoints.

>>> import core_models as cm
>>> model = cm.load("bert-mini")
>>> cm.fill(model, "The capital of France is [MASK].").predictions[0].candidates[0].display
>>> out = model("The capital of France is [MASK].")
>>> scores = out.logits["masked_token"]

Names are imported on first use, so that whatever only watches run folders
(:mod:`core_models.training.folder`) does not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core_models.batch import Batch
    from core_models.catalogue import count, diff, family_names, size, sizes
    from core_models.config import Config, Difference
    from core_models.counting.counts import Count
    from core_models.counting.flops import Flops
    from core_models.errors import InputError
    from core_models.foreign.proof import Proof, proof
    from core_models.inspection import Inspection, inspect
    from core_models.model import Model, ModelInfo, load, models
    from core_models.network.encoder import Encoder, EncoderOutput
    from core_models.network.inference import Optimization, optimization, optimize_for_inference
    from core_models.network.trace import Edit, Trace, patch, switch_off_heads, switch_off_term
    from core_models.output import ModelOutput
    from core_models.prediction.embed import embed
    from core_models.prediction.fill import fill
    from core_models.prediction.score import score
    from core_models.prediction.unmasking import unmask
    from core_models.tokenizer import Encoding, Tokenizer

__version__ = "0.1.0"

_PLACES = {
    "batch": ("Batch",),
    "catalogue": ("count", "diff", "family_names", "size", "sizes"),
    "config": ("Config", "Difference"),
    "counting.counts": ("Count",),
    "network.encoder": ("Encoder", "EncoderOutput"),
    "errors": ("InputError",),
    "counting.flops": ("Flops",),
    "foreign.proof": ("Proof", "proof"),
    "network.inference": ("Optimization", "optimization", "optimize_for_inference"),
    "inspection": ("Inspection", "inspect"),
    "model": ("Model", "ModelInfo", "load", "models"),
    "output": ("ModelOutput",),
    "prediction.embed": ("embed",),
    "prediction.fill": ("fill",),
    "prediction.score": ("score",),
    "prediction.unmasking": ("unmask",),
    "tokenizer": ("Encoding", "Tokenizer"),
    "network.trace": ("Edit", "Trace", "patch", "switch_off_heads", "switch_off_term"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Batch",
    "Config",
    "Count",
    "Difference",
    "Edit",
    "Encoder",
    "EncoderOutput",
    "Encoding",
    "Flops",
    "InputError",
    "Inspection",
    "Model",
    "ModelInfo",
    "ModelOutput",
    "Optimization",
    "Proof",
    "Tokenizer",
    "Trace",
    "count",
    "diff",
    "embed",
    "family_names",
    "fill",
    "inspect",
    "load",
    "models",
    "optimization",
    "optimize_for_inference",
    "patch",
    "proof",
    "score",
    "size",
    "sizes",
    "switch_off_heads",
    "switch_off_term",
    "unmask",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
