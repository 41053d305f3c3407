"""Robust Bellman operators: one step of a (model, set) on a range of states.

An engine (`operator.ENGINES`) offers `update` and `evaluate`. The exact one (`exact`) looks up the
family of its set in `drmdp.sets.registry`: a routine of `native/` and the rows that it moves
(`native`). `nature_rows` writes nature's rows after a sweep. `conic` computes the same by conic
programs, slowly and independently; `nominal` is the operator of one fixed kernel.
"""
