"""A small dense quadratic program on a simplex: the Newton step of the kernels whose policy is a vector of unknowns.

    minimise  g·d + ½ dᵀH d,   d = z − x,   over  z_1 … z_n ≥ 0, Σ_{j≤n} z_j = 1  and, with `extra`, z_{n+1} ≥ 0,

H symmetric and positive semidefinite up to rounding, g the gradient at the feasible x. A primal active-set method: free at first is
the support of x; each step minimises over the free variables and stops at the first bound it meets; where it meets none, the
variable with the most negative multiplier is set free. Every step descends, so even a step cut short is a feasible descent direction.

The sum is removed by eliminating its largest variable p, d_p = −Σ_{j≠p} d_j. Like a multiple of 11ᵀ added to H, this gives curvature
along x, where the kernels' H has none; but it also holds when variables differ by many orders of magnitude (policies of 1e-13 beside 1
with curvatures of 1e13 beside 1): no sum mixes the scales, and Cholesky's method does not see the scale of a variable. A pivot lost to
rounding is replaced by a small one: a long step, which the bounds cut.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from drmdp._typing import Array
from drmdp.core.compiled import KERNEL, LEAN, njit

LOST = 1e-14  # a pivot this small beside its diagonal entry is rounding
FLAT_CURVATURE = 1e-12  # takes its place, beside the gradient
NOISE = 1e-15  # rounding of a gradient, beside the sum of its terms


class Program(NamedTuple):
    """Work space of programs with up to m variables."""

    grad: Array  # (m,)
    step: Array  # (m,)
    factor: Array  # (m, m)
    index: Any  # (2, m)


def make_program(m: int) -> Program:
    """Work space for m variables."""
    return Program(np.empty(m), np.empty(m), np.empty((m, m)), np.empty((2, m), dtype=np.int64))


@njit(**KERNEL)
def simplex_qp(H, g, x, n, extra, z, work):
    """Solve the program; H, g, x, z hold n + extra variables or more.

    reads   H, g, x, n, extra
    fills   z: the minimiser, or x; work
    returns whether the data and the result are finite
    """
    grad, step, factor, index = work.grad, work.step, work.factor, work.index
    m = n + extra
    free = index[0]
    size = 0.0
    finite = True
    for j in range(m):
        z[j] = x[j]
        free[j] = 1 if x[j] > 0.0 else 0
        size = max(size, abs(g[j]))
        finite = finite and math.isfinite(g[j])
    whole = False  # the last step met no bound
    last = -1  # variable set free last
    for _ in range(20 + 8 * m):
        if not finite:
            break
        pivot = _largest(z, n)
        free[pivot] = 1
        _gradient(H, g, x, z, m, grad, step)
        if whole:
            last = _most_negative(grad, step, pivot, n, m, free)
            if last < 0:
                break
            free[last] = 1
        _minimise(H, grad, pivot, n, m, index, size, step, factor)
        met = _advance(z, step, m, free)
        whole = met < 0
        finite = met != m
        if met >= 0 and met == last and z[met] <= 0.0:  # set free and stopped at once: rounding
            last = -1
            whole = True
            break
    pivot = _largest(z, n)
    total = 0.0
    for j in range(n):
        if j != pivot:
            total += z[j]
    z[pivot] = 1.0 - total
    for j in range(m):
        finite = finite and z[j] >= 0.0 and z[j] < 1e300
    if not finite:
        for j in range(m):
            z[j] = x[j]
    return finite


@njit(**LEAN)
def _largest(z, n):
    """The largest of the first n variables.

    reads   z, n
    returns its number
    """
    best = 0
    for j in range(1, n):
        if z[j] > z[best]:
            best = j
    return best


@njit(**LEAN)
def _gradient(H, g, x, z, m, grad, noise):
    """The gradient g + H(z − x).

    reads   H, g, x, z, m
    fills   grad (m,), noise (m,): its rounding
    """
    for j in range(m):
        total = g[j]
        size = abs(g[j])
        for k in range(m):
            term = H[j, k] * (z[k] - x[k])
            total += term
            size += abs(term)
        grad[j] = total
        noise[j] = NOISE * size


@njit(**LEAN)
def _most_negative(grad, noise, pivot, n, m, free):
    """The bound variable whose multiplier is most negative, beyond rounding.

    reads   grad, noise, pivot, n, m, free
    returns its number, −1 if there is none
    """
    best = -1
    least = 0.0
    for j in range(m):
        if free[j] == 0:
            multiplier = grad[j] + noise[j]
            if j < n:
                multiplier += noise[pivot] - grad[pivot]
            if multiplier < least:
                best = j
                least = multiplier
    return best


@njit(**LEAN)
def _minimise(H, grad, pivot, n, m, index, size, step, factor):
    """Minimise over the free variables by Cholesky's method, the sum eliminated.

    reads   H, grad, pivot, n, m, index[0] (which are free), size (of the gradient)
    fills   step (m,), 0 where a variable is bound; factor, index[1]
    """
    free, order = index[0], index[1]
    count = 0
    for j in range(m):
        step[j] = 0.0
        if free[j] == 1 and j != pivot:
            order[count] = j
            count += 1
    for r in range(count):
        j = order[r]
        to_j = 1.0 if j < n else 0.0
        right = to_j * grad[pivot] - grad[j]
        for c in range(r + 1):
            k = order[c]
            entry = H[j, k]
            if j < n:
                entry -= H[pivot, k]
            if k < n:
                entry -= H[j, pivot] - to_j * H[pivot, pivot]
            diagonal = entry
            for i in range(c):
                entry -= factor[r, i] * factor[c, i]
            if c < r:
                factor[r, c] = entry / factor[c, c]
                right -= factor[r, c] * step[order[c]]
            else:
                if not entry > LOST * abs(diagonal):
                    entry = max(LOST * abs(diagonal), FLAT_CURVATURE * size + 1e-290)
                factor[r, r] = math.sqrt(entry)
                step[j] = right / factor[r, r]
    balance = 0.0
    for r in range(count - 1, -1, -1):
        j = order[r]
        value = step[j]
        for i in range(r + 1, count):
            value -= factor[i, r] * step[order[i]]
        step[j] = value / factor[r, r]
        if j < n:
            balance += step[j]
    step[pivot] = -balance


@njit(**LEAN)
def _advance(z, step, m, free):
    """Go as far as the bounds allow, at most the whole step.

    reads   step, m
    fills   z, free
    returns the variable whose bound is met, −1 if none, m if not finite
    """
    met = -1
    share = 1.0
    for j in range(m):
        if not math.isfinite(step[j]):
            return m
        if step[j] < 0.0 and z[j] + share * step[j] < 0.0:
            share = z[j] / -step[j]
            met = j
    for j in range(m):
        z[j] = max(z[j] + share * step[j], 0.0)
    if met >= 0:
        z[met] = 0.0
        free[met] = 0
    return met
