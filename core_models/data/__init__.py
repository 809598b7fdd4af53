"""Text to training examples: source -> documents -> corpus -> examples -> store.

Nothing here knows a model.
"""

from core_models.data.corpus import Corpus
from core_models.data.formats import (
    FIXED,
    FORMATS,
    PAIRED,
    examples,
    full_sentences,
    sentence_pair,
    single,
)
from core_models.data.layout import TokenBatch
from core_models.data.order_pairs import sentence_order
from core_models.data.pairs import Example, next_sentence, segments
from core_models.data.prepare import build_store
from core_models.data.recurrent import Recurrent
from core_models.data.sources import Preview, Source, preview, read_documents
from core_models.data.store import TokenStore

__all__ = [
    "FIXED",
    "FORMATS",
    "PAIRED",
    "Corpus",
    "Example",
    "Preview",
    "Recurrent",
    "Source",
    "TokenBatch",
    "TokenStore",
    "build_store",
    "examples",
    "full_sentences",
    "next_sentence",
    "preview",
    "read_documents",
    "segments",
    "sentence_order",
    "sentence_pair",
    "single",
]
