"""What is asked before a run starts: forms, their settings, and what these come to."""
