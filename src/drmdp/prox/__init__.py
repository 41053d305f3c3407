"""Proximal maps of the first-order method: projections onto one state's ball.

`registry` finds the map of a set and calls its routine (`native/prox`), `project` is the public verb.
"""
