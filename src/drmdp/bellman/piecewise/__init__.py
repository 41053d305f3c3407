"""Transport: gains that are concave and piecewise linear, and a policy that is a vector of unknowns.

`method` solves a state from tables of gains, with a budget for each kernel (`budget_per_kernel`) or one for all (`budget_shared`); `columns`
closes the gap where it stalls; `sweep` drives both from Python.
"""
