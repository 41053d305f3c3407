"""Bounds hold of the operator to the last bit, on the scale of its rounding, and would not without their margins.

One kernel and one action, so that F(v) at a state is the largest value of a row near another: by its formula, or by a root, in 300 bits.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from test_builds import V3, built

import drmdp
import recorded
from drmdp.bellman.exact import ExactOperator
from drmdp.certificate import compressed, intervals, native
from drmdp.layout.layout import lay_out

mpmath.mp.prec = 300
SIZES = (3, 10, 30)


def moved(y, z, mass):
    """The mass of the lowest stakes goes to the highest."""
    order = sorted(range(len(y)), key=lambda j: z[j])
    value, top = mpmath.fdot(y, z), max(z)
    for j in order:
        part = min(mass, y[j])
        value, mass = value + part * (top - z[j]), mass - part
    return value


def boxed(y, z, r):
    """As much as allowed on the highest stakes."""
    low, high = [max(p - r, mpf(0)) for p in y], [min(p + r, mpf(1)) for p in y]
    left, value = 1 - mpmath.fsum(low), mpmath.fdot(low, z)
    for j in sorted(range(len(y)), key=lambda j: -z[j]):
        part = min(left, high[j] - low[j])
        value, left = value + part * z[j], left - part
    return value


def straight(y, z, r, size):
    """Along the stakes, as long as nothing becomes negative; `size` is of a row's own measure."""
    inside, step = size(y, z)
    assert min(p + r * d for p, d in zip(y, step, strict=True)) >= 0
    return mpmath.fdot(y, z) + r * inside


def by_l2(y, z):
    mean = mpmath.fsum(z) / len(z)
    far = mpmath.sqrt(mpmath.fsum((x - mean) ** 2 for x in z))
    return far, [(x - mean) / far for x in z]


def by_chi2(y, z):
    mean = mpmath.fdot(y, z)
    far = mpmath.sqrt(mpmath.fsum(p * (x - mean) ** 2 for p, x in zip(y, z, strict=True)))
    return far, [p * (x - mean) / far for p, x in zip(y, z, strict=True)]


def tilted(y, z, r, row, cost, low, high):
    """The row of a parameter at which its cost is r."""

    def off(t):
        return mpmath.fsum(map(cost, row(y, z, mpmath.exp(t)), y)) - r

    a, b = mpf(low), mpf(high)
    for _ in range(12):
        middle = (a + b) / 2
        a, b = (middle, b) if off(middle) < 0 else (a, middle)
    t = mpmath.findroot(off, (a, b), solver="secant", tol=1e-120)
    assert a <= t <= b
    return mpmath.fdot(row(y, z, mpmath.exp(t)), z)


def scaled(x):
    total = mpmath.fsum(x)
    return [p / total for p in x]


def by_kl(y, z, t):
    return scaled([p * mpmath.exp(t * (x - max(z))) for p, x in zip(y, z, strict=True)])


def by_burg(y, z, t):
    return scaled([p / (1 + t * (max(z) - x)) for p, x in zip(y, z, strict=True)])


SETS = {
    "l1": (lambda m, r: drmdp.Wasserstein(r, "l1", 1), lambda y, z, r: moved(y, z, r / 2)),
    "tv": (lambda m, r: drmdp.Divergence(r, "tv"), moved),
    "linf-inf": (lambda m, r: drmdp.Wasserstein(r, "linf", np.inf), boxed),
    "intervals": (lambda m, r: drmdp.Intervals.of(m, r), boxed),
    **{
        f"l2-{order:g}": (
            lambda m, r, order=order: drmdp.Wasserstein(r / m.n_states, "l2", order),
            lambda y, z, r: straight(y, z, mpf(float(r) / len(y)), by_l2),
        )
        for order in (1, 1.5, 2, 3, np.inf)
    },
    "chi2": (
        lambda m, r: drmdp.Divergence(r / 10, "chi2"),
        lambda y, z, r: straight(y, z, mpmath.sqrt(mpf(float(r) / 10)), by_chi2),
    ),
    "kl": (
        lambda m, r: drmdp.Divergence(r, "kl"),
        lambda y, z, r: tilted(y, z, r, by_kl, lambda q, p: q * mpmath.log(q / p), -20, 20),
    ),
    "burg": (
        lambda m, r: drmdp.Divergence(r, "burg"),
        lambda y, z, r: tilted(y, z, r, by_burg, lambda q, p: p * mpmath.log(p / q), -20, 20),
    ),
}


def false_bounds(name, n):
    """How many lower and upper bounds of the states of n models a size are false; nature cannot move in every other model."""
    make, largest = SETS[name]
    lower = upper = 0
    for seed in range(n):
        for size in SIZES:
            rng = np.random.default_rng([seed, size])
            kernel = (0.2 + rng.random((1, size, 1, size))) / size
            kernel /= kernel.sum(axis=-1, keepdims=True)
            costs, discount, radius = rng.normal(size=(size, 1)), 0.9, 0.0 if seed % 2 else 0.02 * float(rng.random())
            model, value = drmdp.Model(kernel, costs=costs, discount=discount), 10 * rng.normal(size=size)
            ball = make(model, radius).fitted(model)
            operator = ExactOperator(model, ball, 1)
            operator.update(value, 0, size)
            update = operator.update(value, 0, size)
            found = compressed.derive(ball, lay_out(model, ball), value, update.policy, update.claim, False)
            for s in range(size):
                row = [Fraction(p) for p in kernel[0, s, 0].tolist()]
                y = [mpf(p.numerator) / p.denominator for p in (q / sum(row) for q in row)]
                z = [mpf(costs[s, 0]) + mpf(discount) * mpf(v) for v in value.tolist()]
                exact = largest(y, z, mpf(radius)) if radius else mpmath.fdot(y, z)
                assert abs(exact - found.low[s]) < 1e-9 * 100
                lower, upper = lower + (found.low[s] > exact), upper + (found.high[s] < exact)
    return lower, upper


@pytest.mark.parametrize("name", SETS)
def test_bounds_hold_to_the_last_bit(name):
    assert false_bounds(name, 2) == (0, 0)


@pytest.fixture(scope="module")
def without():
    return recorded.loaded(built("g++", V3, "-DDRMDP_MARGIN=0.0"))


@pytest.mark.builds
@pytest.mark.parametrize("name", SETS)
def test_margins_are_needed(name, without, monkeypatch):
    monkeypatch.setattr(native, "_native", without)
    monkeypatch.setattr(intervals, "_native", without)
    lower, upper = false_bounds(name, 2)
    assert lower > 0
    assert upper > 0
