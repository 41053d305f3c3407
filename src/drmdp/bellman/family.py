"""The contract of a family's file, and the opening of a state that all families share.

A family answers one set, or several that differ in numbers only. Its file has

    Work                                               a NamedTuple of work space; its first field is state: Scratch
    workspace(layout, point, start, stop) -> Work      made in Python, once for a range of states
    update(start, stop, layout, point, memory, out, tol, work)       minimise over the policy, let nature maximise
    evaluate(start, stop, layout, point, memory, out, tol, work)     the same for the policy in out.policy
    NATURE                                             how her rows follow from the memory (`nature_rows`)

and, if its kernels read other data than a layout holds, or need room that depends on v,

    prepared(layout)                                   the layout that all of the above are given, made once for a model and a set
    FRESH = True                                       work space is made for every sweep
    FAINTEST = 1e-14                                   the least radius that its kernels tell from 0, if that is above the one below

The arguments say where (start, stop), what is read (layout, point), what is written (memory, out) and how (tol, work). Both functions
fill upper, lower and passes of `out` and what the registry says of `memory`, for every state of the range that is not terminal;
`update` fills policy too. They are compiled, or Python drives several compiled functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp.core.compiled import INLINE, njit
from drmdp.layout.layout import Layout


@njit(**INLINE)
def has_actions(layout, s):
    """Whether there is anything to do in a state. To ask is nothing beside `normalise`, which most pairs are spared (`drmdp.bellman.frame.pairs`).

    reads   layout, s
    returns it; not so for a terminal state
    """
    some = False
    for a in range(layout.available.shape[1]):
        some = some or layout.available[s, a]
    return some


@njit(**INLINE)
def open_state(state, theta, tol):
    """Find the two actions that matter before nature moves, and whether she cannot matter.

    reads   state: cost, nominal; theta, tol
    returns cheapest (the action of least cost, played against an unconstrained nature), lowest (of least cost + nominal value, played
            against none), bottom (that value), and whether the state is trivial: no radius, or nothing to gain beyond tol
    """
    cost, nominal = state.cost, state.nominal
    cheapest = 0
    lowest = 0
    for a in range(cost.size):
        if cost[a] < cost[cheapest]:
            cheapest = a
        if cost[a] + nominal[a] < cost[lowest] + nominal[lowest]:
            lowest = a
    bottom = cost[lowest] + nominal[lowest]
    return cheapest, lowest, bottom, theta <= 0.0 or bottom >= -tol


@njit(**INLINE)
def play_alone(x, a):
    """Play one action.

    reads   a
    fills   x (A,)
    """
    for b in range(x.size):
        x[b] = 0.0
    x[a] = 1.0


@njit(**INLINE)
def close_trivial(theta, cheapest, lowest, bottom, x):
    """Answer a trivial state.

    reads   theta, cheapest, lowest, bottom
    fills   x (A,)
    returns U and L
    """
    play_alone(x, lowest if theta <= 0.0 else cheapest)
    return bottom if theta <= 0.0 else 0.0, bottom


FAINTEST = 1e-40
"""Radii below count as this one: what it buys no double can tell, and kernels divide by radii. Bounds are proved at those of the set."""


def prepared(family: Any, layout: Any) -> Any:
    """The data as the kernels of a family read them."""
    own = getattr(family, "prepared", None)
    least = getattr(family, "FAINTEST", FAINTEST)
    faint = (layout.radius > 0.0) & (layout.radius < least)
    if faint.any():
        radius = np.where(faint, least, layout.radius)
        radius.setflags(write=False)
        layout = layout._replace(radius=radius)
    return layout if own is None else own(layout)


def longest_pair(layout: Layout, start: int, stop: int) -> int:
    """Most entries of a pair of the states start … stop − 1."""
    A = layout.available.shape[1]
    return int(np.diff(layout.indptr[start * A : stop * A + 1]).max(initial=0))
