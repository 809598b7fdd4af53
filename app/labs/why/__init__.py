"""Which words speak for an answer, by four methods side by side."""
