"""Robust Bellman operators: one step of a (model, set) on a range of states.

An engine (`operator.ENGINES`) offers `update` and `evaluate`. The exact one (`exact`) looks up the family of its set in `drmdp.sets.registry`: a routine of
`native/`, rows and a way to solve a state, and what its rows are around (`native`). What nature plays after a sweep is written down as rows by `nature_rows`.
`conic` is the slow twin, and `nominal` the operator of one fixed kernel.
"""
