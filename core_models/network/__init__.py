"""What an encoder is built from, and the trace of its passes."""
