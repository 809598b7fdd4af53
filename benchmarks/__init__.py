"""Measurements against the libraries that a user would pick instead. Figures, not assertions."""
