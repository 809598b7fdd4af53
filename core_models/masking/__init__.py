"""Which tokens are hidden, and how."""
