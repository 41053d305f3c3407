"""The terminal and notebooks: progress, Ctrl-C, numbers as text, small tables."""
