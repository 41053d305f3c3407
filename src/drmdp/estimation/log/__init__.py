"""Logs: rows of a file or a frame in order, with times, names and numbers as people write them."""
