"""Row profiles."""
