"""Questions to a model's own pretraining heads. Results are plain values.

Fill gaps and score sentences (masked-token, permutation and causal heads), judge tokens and pairs
(replaced-token, next-sentence and sentence-order heads), forge tokens (generators).
"""

from core_models.prediction.fill import fill, fill_many
from core_models.prediction.forge import forge
from core_models.prediction.judge import detect, judge_pair
from core_models.prediction.results import (
    Candidate,
    DetectResult,
    FillRequest,
    FillResult,
    Forged,
    PairResult,
    Prediction,
    Sample,
    Score,
    Token,
    TokenScore,
    Verdict,
    Watched,
)
from core_models.prediction.score import score

__all__ = [
    "Candidate",
    "DetectResult",
    "FillRequest",
    "FillResult",
    "Forged",
    "PairResult",
    "Prediction",
    "Sample",
    "Score",
    "Token",
    "TokenScore",
    "Verdict",
    "Watched",
    "detect",
    "fill",
    "fill_many",
    "forge",
    "judge_pair",
    "score",
]
