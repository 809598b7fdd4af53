"""XLNet's order of prediction: who may see whom, both streams."""
