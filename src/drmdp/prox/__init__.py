"""Proximal maps of the first-order method: projections onto the set of a state.

`registry` looks up the map of a set and calls its routine (`native/prox`), `project` is the public
verb.
"""
