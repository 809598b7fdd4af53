"""A text comes out of [MASK]s, step by step (masked diffusion)."""
