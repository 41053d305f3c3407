"""Arrays, names, tolerances and validation: the parts without sets and methods."""
