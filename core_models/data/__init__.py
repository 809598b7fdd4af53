"""Text to training examples: documents -> corpus -> pairs -> store. Nothing here knows a model."""

from core_models.data.corpus import Corpus
from core_models.data.layout import TokenBatch
from core_models.data.pairs import Example, next_sentence, segments
from core_models.data.prepare import next_sentence_store
from core_models.data.store import TokenStore

__all__ = [
    "Corpus",
    "Example",
    "TokenBatch",
    "TokenStore",
    "next_sentence",
    "next_sentence_store",
    "segments",
]
