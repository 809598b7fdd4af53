"""What a model is trained to do: each objective owns its head and gives losses and metrics."""

from core_models.objectives.base import IGNORED, Losses, Objective
from core_models.objectives.build import NEEDS, Needs, Options, build
from core_models.objectives.causal import Causal
from core_models.objectives.distillation import Distillation, shallower
from core_models.objectives.masked_diffusion import MaskedDiffusion
from core_models.objectives.masked_next_token import MaskedNextToken, read_leftward
from core_models.objectives.masked_token import MaskedToken
from core_models.objectives.pair import NextSentence, SentenceOrder
from core_models.objectives.permutation import Permutation
from core_models.objectives.replaced_token import ReplacedToken
from core_models.objectives.replacing import Corrupted, corrupt
from core_models.objectives.span_boundary import SpanBoundary
from core_models.objectives.weighted import Weighted

__all__ = [
    "IGNORED",
    "NEEDS",
    "Causal",
    "Corrupted",
    "Distillation",
    "Losses",
    "MaskedDiffusion",
    "MaskedNextToken",
    "MaskedToken",
    "Needs",
    "NextSentence",
    "Objective",
    "Options",
    "Permutation",
    "ReplacedToken",
    "SentenceOrder",
    "SpanBoundary",
    "Weighted",
    "build",
    "corrupt",
    "read_leftward",
    "shallower",
]
