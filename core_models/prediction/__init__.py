"""Questions to a masked-token head: fill gaps, score sentences. Results are plain values."""

from core_models.prediction.fill import fill, fill_many
from core_models.prediction.results import (
    Candidate,
    FillRequest,
    FillResult,
    Prediction,
    Score,
    Token,
    TokenScore,
    Watched,
)
from core_models.prediction.score import score

__all__ = [
    "Candidate",
    "FillRequest",
    "FillResult",
    "Prediction",
    "Score",
    "Token",
    "TokenScore",
    "Watched",
    "fill",
    "fill_many",
    "score",
]
