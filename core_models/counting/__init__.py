"""Parameters and operations, counted from configs and files."""
