"""What is hidden in each epoch, once or anew, and RoBERTa's input formats."""
