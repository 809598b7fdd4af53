"""What the page shows of runs: figures, curves, states, a box to try a model in."""
