"""Every head of every layer: weights, combinations, norms, switches, products."""
