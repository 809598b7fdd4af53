"""What is wrong with a run, and the known cure."""
