"""What a model is trained to do: each objective owns its head and gives losses and metrics."""

from core_models.objectives.base import Losses, Objective
from core_models.objectives.masked_token import MaskedToken
from core_models.objectives.next_sentence import NextSentence
from core_models.objectives.weighted import Weighted

__all__ = ["Losses", "MaskedToken", "NextSentence", "Objective", "Weighted"]
