"""How good a pretrained model is, in figures that can be compared between families."""

from core_models.evaluation.attention import AttentionResult, evaluate_attention
from core_models.evaluation.capitals import CapitalsResult, evaluate_capitals
from core_models.evaluation.forgeries import ForgeryResult, evaluate_forgeries
from core_models.evaluation.minimal_pairs import PairsResult, evaluate_minimal_pairs
from core_models.evaluation.plain import PlainResult, evaluate_plain_sentences
from core_models.evaluation.text_pairs import TextPairsResult, evaluate_text_pairs
from core_models.evaluation.words import WordsResult, evaluate_words

__all__ = [
    "AttentionResult",
    "CapitalsResult",
    "ForgeryResult",
    "PairsResult",
    "PlainResult",
    "TextPairsResult",
    "WordsResult",
    "evaluate_attention",
    "evaluate_capitals",
    "evaluate_forgeries",
    "evaluate_minimal_pairs",
    "evaluate_plain_sentences",
    "evaluate_text_pairs",
    "evaluate_words",
]
