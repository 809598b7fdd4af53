"""Content and position scored apart (DeBERTa, XLNet)."""
