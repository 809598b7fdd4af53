"""Checkpoints of the Hugging Face hub."""
