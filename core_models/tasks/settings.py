"""What a fine-tuning is told, and the ranges of its values.

:class:`Settings` is the argument of a call, by the names of the core. A run's ``config.json`` is
:class:`~core_models.training.task_schema.TaskSettings`: also the model, the files and the reports,
by names that old folders have, with the words of the page's form. It takes its ranges from here and
becomes one of these (:func:`core_models.training.task_settings.tuning`).
"""

from dataclasses import dataclass
from numbers import Integral

from core_models.errors import InputError

RANGES: dict[str, tuple[float, float]] = {
    "learning_rate": (1e-7, 1.0),
    "epochs": (1, 1000),
    "batch_size": (1, 4096),
    "seed": (0, 2**31),
    "layer_decay": (0.05, 1.0),
    "warmup": (0.0, 0.9),
    "dropout": (0.0, 0.9),
    "weight_decay": (0.0, 1.0),
    "clip": (1e-3, 1e6),
}
"""Least and greatest value, both allowed."""
_WHOLE = ("epochs", "batch_size", "seed", "frozen", "max_length", "stride")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to fine-tune."""

    learning_rate: float | None = None
    """Peak, of the head; None = :func:`usual_rate` of the model's width."""
    epochs: int = 8
    """Passes over the rows; for a few hundred rows. With many thousands 2 to 4 are usual."""
    batch_size: int = 16
    seed: int = 1
    """Head, order and dropout."""
    layer_decay: float = 1.0
    """Factor of the learning rate from each block to the one below; 1 = the same everywhere."""
    frozen: int = 0
    """Lowest blocks that stay as they are, with the embeddings."""
    warmup: float = 0.1
    """Share of the steps in which the rate rises."""
    dropout: float | None = None
    """Everywhere; None = the model's own."""
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest gradient norm."""
    max_length: int = 128
    """Longest input in pieces."""
    stride: int | None = None
    """By how many pieces the next window of a long context starts later; None = a third of the
    longest input."""
    precision: str = "fp32"
    """``fp32`` or ``bf16`` (matrix products)."""
    apart: bool = False
    """Whether the texts of a scored pair are encoded apart and compared by cosine (bi-encoder)."""
    every_step: bool = False
    """Whether tags are read from a learned mix of all layers."""
    pretrained: bool = True
    """False = the same model from random weights, as a mark to beat."""

    def __post_init__(self) -> None:
        """Check ranges."""
        for name in _WHOLE:
            value = getattr(self, name)
            if value is not None and not isinstance(value, Integral):
                raise InputError(f"{name} is {value!r}; give a whole number.")
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InputError(f"{name} is {value}; allowed is {low:g} to {high:g}.")
        if self.precision not in ("fp32", "bf16"):
            raise InputError(f"precision is {self.precision!r}; allowed are fp32 and bf16.")


def usual_rate(width: int) -> float:
    """A learning rate that suits a model of this width.

    3e-5 at base size (arXiv 1810.04805, appendix A.3); small models want more: 1e-4 stands in the
    grid published for them (arXiv 1908.08962, released code), and the shipped 4 x 256 model did
    better with 5e-4 than with 1e-4 on the Primer's sentiment set.
    """
    if width <= 256:
        return 5e-4
    return 1e-4 if width <= 512 else 3e-5
