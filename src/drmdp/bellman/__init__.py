"""Robust Bellman operators: one step of a (model, set) on a range of states.

An engine (`operator.ENGINES`) offers `update` and `evaluate`. The exact one (`exact`) looks up the family of its set in `drmdp.sets.registry`,
and a family (`family`) is a combination of few pieces. Some of them:

    (ℓ∞, ∞) = native/solve/linf_inf.hpp                   every row bends by the radius, the best action is played
    (ℓ∞, p) = native/solve/linf_orders.hpp                a radius for each kernel, within one budget
    (ℓ2, p) = native/solve/each_kernel.hpp                one multiplier a kernel, one Newton iteration for policy and multipliers
    transport, 1 = native/rows/transport.hpp              one budget, what a row gains is piecewise linear
    transport, ∞ = native/solve/transport_each.hpp        the same, a budget for each kernel: the program of (ℓ1, p)
    (ℓ1, p) = native/solve/l1_each.hpp                    gains are piecewise linear: a linear program whose columns are nature's answers

All begin a state in the same way: `drmdp.layout.point.normalise`, then `family.open_state`. What nature plays after a sweep is written down as
rows by `nature_rows`. `conic` is the slow twin, and `nominal` the operator of one fixed kernel.
"""
