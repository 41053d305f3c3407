"""Rows of one pair (state, action): what nature gains in them, and where that has kinks."""
