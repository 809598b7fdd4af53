"""A run of hidden words, predicted from its boundary (SpanBERT)."""
