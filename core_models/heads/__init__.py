"""What is asked of an encoder's output: pretraining and fine-tuning heads."""
