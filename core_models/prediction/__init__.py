"""Questions to a model's own pretraining heads. Results are plain values.

Fill gaps, alone, together or in steps, look at them layer by layer and score sentences and words
(masked-token, permutation and causal heads), tell hidden spans from what stands around them
(span-boundary head), judge tokens and pairs
(replaced-token, next-sentence and sentence-order heads), forge tokens (generators).
"""

from core_models.prediction.embed import embed
from core_models.prediction.fill import fill, fill_many
from core_models.prediction.forge import forge
from core_models.prediction.joint import fill_jointly, score_filling, score_words
from core_models.prediction.judge import detect, judge_pair, judge_pairs
from core_models.prediction.lens import lens
from core_models.prediction.results import (
    Candidate,
    Choice,
    DetectResult,
    Filling,
    FillRequest,
    FillResult,
    Forged,
    Layer,
    LensResult,
    PairResult,
    Prediction,
    Revealed,
    Sample,
    Score,
    Token,
    TokenScore,
    Unmasking,
    UnmaskStep,
    Verdict,
    Watched,
    WordScore,
)
from core_models.prediction.score import score
from core_models.prediction.spans import HiddenSpan, Shift, SpanPiece, fill_spans, shift
from core_models.prediction.unmasking import unmask

__all__ = [
    "Candidate",
    "Choice",
    "DetectResult",
    "FillRequest",
    "FillResult",
    "Filling",
    "Forged",
    "HiddenSpan",
    "Layer",
    "LensResult",
    "PairResult",
    "Prediction",
    "Revealed",
    "Sample",
    "Score",
    "Shift",
    "SpanPiece",
    "Token",
    "TokenScore",
    "UnmaskStep",
    "Unmasking",
    "Verdict",
    "Watched",
    "WordScore",
    "detect",
    "embed",
    "fill",
    "fill_jointly",
    "fill_many",
    "fill_spans",
    "forge",
    "judge_pair",
    "judge_pairs",
    "lens",
    "score",
    "score_filling",
    "score_words",
    "shift",
    "unmask",
]
