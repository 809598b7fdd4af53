"""A generator forges words and a discriminator judges every token (ELECTRA, DeBERTa v3)."""
