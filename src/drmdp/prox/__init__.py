"""Proximal maps of the first-order method: projections onto one state's ball.

* `registry` finds the map of a set, `project` is the public verb, `simplex` projects single rows;
* `displacement` turns rows into displacements and back, and names the tuples that compiled functions pass on;
* `l1` and `l2` search a multiplier for each budget, in the loop of `sweep`; `linf` needs none where each kernel has a budget, `linf_radii` shares one;
* `entropy` takes multiplicative steps where that is cheap.
"""
