"""Where the parameters of every published size are, and what a pass costs."""
