"""Proximal maps of the first-order method: Euclidean projections onto one state's ball."""
