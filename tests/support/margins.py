"""What the tests of margins share: parts of the compiled certificates as plain Python, exact fractions, and data that round the wrong way.

Random rounding errors cancel, so data are *biased*: number by number, of several candidates the one is taken whose rounding goes
the wrong way most.
"""

import math
from fractions import Fraction

import numpy as np

import drmdp
from drmdp.certificate import compressed
from drmdp.layout.layout import Layout, lay_out
from drmdp.layout.memory import Memory, shapes_of
from drmdp.sets.registry import entry_of
from interpreted import interpreted
from rounding import uneven

EPS = Fraction(2) ** -52
FAR = np.finfo(float).eps
MODULES = interpreted()
sums_ = MODULES["certificate.sums"]


def exact(numbers):
    return [Fraction(float(x)) for x in numbers]


def exact_row(data):
    p = exact(data)
    whole = sum(p)
    return [x / whole for x in p]


def exact_weights(rng, N):
    """Weights with sum 1, as near as floats come: nobody changes them."""
    w = rng.dirichlet(np.ones(N))
    while math.fsum(w) != 1:
        w /= math.fsum(w)
        w[0] += 1 - math.fsum(w)
    return w


def chosen(rng, weights, term, sign, most=1.0):
    """Numbers p_i in (0, most), multiples of 2⁻²⁰, for which Σ_i term(w_i, p_i), added up one after the other, is off in the direction `sign`."""
    total, found = 0.0, []
    for w in weights.tolist():
        tried = [float(p) for p in most * rng.integers(1, 2**20, 8) / 2.0**20]
        errors = []
        for p in tried:
            new = total + term(w, p)
            errors.append(sign * (Fraction(new) - Fraction(total) - Fraction(w) * term(1, Fraction(p))))
        found.append(tried[int(np.argmax(errors))])
        total += term(w, found[-1])
    return np.array(found)


LONG = [(K, sign) for K in (2, 64, 1000) for sign in (-1, 1)]


def long_row(rng, K, sign):
    """Row and stakes, of which half are 0."""
    u = np.where(np.arange(K) % 2, -1.0, 0.0)
    data = uneven(rng, K, sign, u)
    data /= data.sum()
    return data * (1 + FAR * rng.integers(-K, K)), u


def layout_of(kernels, costs, radius=0.0, pair=("l2", 2), weights=None, discount=0.5):
    """Model, ball and layout of dense kernels (N, S, A, S)."""
    model = drmdp.Model(kernels, costs=costs, discount=discount, weights=weights)
    ball = drmdp.Wasserstein(radius, *pair, "all")
    return model, ball, lay_out(model, ball)


def one_state(data, stakes, theta=0.0):
    """Layout, work space and order of one state with one action: rows (N, K), stakes ≤ 0 of which the highest is 0, discount 0."""
    N, K = data.shape
    layout = Layout(
        np.array([0, K]), np.arange(K, dtype=np.int32), data.ravel(), data.mean(axis=0), np.full(N, 1 / N),
        np.ones((1, 1), dtype=bool), np.zeros((1, 1)), stakes, np.array([theta]), 0.0, False, False,
    )  # fmt: skip
    order, room = sums_.view(layout, np.zeros(K)), sums_.work_space(layout, 0, 1)
    sums_.normalise(layout, order, 0, room)
    sums_.weigh_rows(layout, 0, 0, room)
    return layout, order, room


def derived(pair, kernels, costs, value, radius=0.0, policy=None, weights=None, fixed=False, multiplier=0.0):
    """L and U of state 0 at a value with the level 0, from witnesses that do nothing but for one multiplier."""
    _, ball, layout = layout_of(kernels, costs, radius, pair, weights)
    (S, A), N = layout.available.shape, layout.weights.size
    memory = Memory(*map(np.zeros, shapes_of(S, A, N, entry_of(ball).keeps)))
    memory.by_action[:] = memory.by_kernel[:] = multiplier
    x = np.eye(A)[np.zeros(S, dtype=int)] if policy is None else np.broadcast_to(policy, (S, A)).copy()
    low, high, _ = compressed.derive(ball, layout, value, x, memory, fixed)
    return Fraction(float(low[0])), Fraction(float(high[0]))
