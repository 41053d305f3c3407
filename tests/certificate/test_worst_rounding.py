"""Bounds hold against exact fractions where rounding is at its worst: sums, stakes, and means over
kernels and actions.

That margins are needed is seen where they are left out (`tests/native/test_margins.py`).
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import drmdp
from drmdp.certificate import compressed
from drmdp.certificate.compressed import rises
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import SweepMemory, shapes_of
from drmdp.sets import PAIRS
from drmdp.sets.registry import entry_of

EPS = Fraction(2) ** -52
FAR = np.finfo(float).eps


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
    """Numbers p_i in (0, most), multiples of 2⁻²⁰, for which Σ_i term(w_i, p_i), added up one after
    the other, is off in the direction `sign`.
    """
    total, found = 0.0, []
    for w in weights.tolist():
        tried = [float(p) for p in most * rng.integers(1, 2**20, 8) / 2.0**20]
        errors = []
        for p in tried:
            new = total + term(w, p)
            errors.append(
                sign * (Fraction(new) - Fraction(total) - Fraction(w) * term(1, Fraction(p)))
            )
        found.append(tried[int(np.argmax(errors))])
        total += term(w, found[-1])
    return np.array(found)


def derived(
    pair, kernels, costs, value, radius=0.0, policy=None, weights=None, fixed=False, multiplier=0.0
):
    """L and U of state 0 at a value with the level 0, from witnesses that do nothing but for one
    multiplier.
    """
    model = drmdp.Model(kernels, costs=costs, discount=0.5, weights=weights)
    ambiguity = drmdp.Wasserstein(radius, *pair, "all")
    layout = lay_out(model, ambiguity)
    (S, A), N = layout.available.shape, layout.weights.size
    memory = SweepMemory(*map(np.zeros, shapes_of(S, A, N, entry_of(ambiguity).keeps)))
    memory.by_action[:] = memory.by_kernel[:] = multiplier
    x = (
        np.eye(A)[np.zeros(S, dtype=int)]
        if policy is None
        else np.broadcast_to(policy, (S, A)).copy()
    )
    low, high, _ = compressed.derive(ambiguity, layout, value, x, memory, fixed)
    return Fraction(float(low[0])), Fraction(float(high[0]))


# ---------------------------------------------------------------------- sums


def test_tables_of_states_that_are_not_listed_keep_their_digits():
    """R₁ and R₂ of 12 000 numbers, off by at most 8 ε, relatively."""
    rng = np.random.default_rng(0)
    n = 12_000
    for down in (
        -np.sort(rng.random(n)),
        -np.sort(1e-9 * rng.random(n)),
        np.repeat([0.0, -0.3, -1.0], n // 3),
    ):
        rise, rise2 = rises(down)
        one = two = Fraction(0)
        for k in range(1, n):
            gap = Fraction(float(down[k - 1])) - Fraction(float(down[k]))
            two += gap * (2 * one + k * gap)
            one += k * gap
            if k % 997 == 0 or k == n - 1:
                assert abs(Fraction(float(rise[k + 1])) - one) <= 8 * EPS * one
                assert abs(Fraction(float(rise2[k + 1])) - two) <= 8 * EPS * two


# ---------------------------------------------------------------------- one step


TERMS = [(sign, lambda p: -p) for sign in (-1, 1)]
TERMS += [(1, lambda p, k=k: (1.0 + k * FAR) * -p) for k in (19, 24)] + [
    (-1, lambda p, k=k: -p + k * FAR * p) for k in (22, 23)
]
"""What each kernel adds in the certificates: ŷ·u, in L lowered and in U raised by what it may be
off, which is known for a row of two.
"""


@cache
def many_kernels(number):
    """Weights of many kernels, and the probability of the second of two next states in each, for
    one of the terms.
    """
    rng, (sign, inner) = np.random.default_rng(number), TERMS[number]
    weights = exact_weights(rng, 1500)
    return weights, chosen(rng, weights, lambda w, p: w * inner(p) if w != 1 else -p, sign)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_values_of_many_kernels_carry_their_rounding(pair):
    """Each kernel has a row of two entries that rounding does not touch: what is off is the mean
    over the kernels.
    """
    for number in range(len(TERMS)):
        weights, p = many_kernels(number)
        kernels = np.zeros((p.size, 2, 1, 2))
        kernels[:, :, 0, 0], kernels[:, :, 0, 1] = (1 - p)[:, None], p[:, None]
        low, high = derived(pair, kernels, np.zeros((2, 1)), np.array([0.0, -1.0]), weights=weights)
        true = (
            -sum(a * b for a, b in zip(exact(weights), exact(p), strict=True))
            / sum(exact(weights))
            / 2
        )
        assert low <= true <= high


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_values_of_many_actions_carry_their_rounding(pair):
    """Five hundred actions that lead to one state at different costs: what is off is the mean over
    the policy.
    """
    rng = np.random.default_rng(8)
    A = 500
    policy = rng.dirichlet(np.ones(A))
    for sign in (-1, 1):
        costs = chosen(rng, policy, lambda x, c: x * c, sign)
        costs[0] = 0.0  # the base
        kernels = np.zeros((1, 2, A, 2))
        kernels[..., 0] = 1
        low, high = derived(
            pair,
            kernels,
            np.tile(costs / 2, (2, 1)),
            np.array([0.0, -1.0]),
            policy=policy,
            fixed=True,
        )
        true = sum(a * b / 2 for a, b in zip(exact(policy), exact(costs), strict=True)) / sum(
            exact(policy)
        )
        assert low <= true <= high


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_stakes_carry_their_rounding(pair):
    """One entry a row: what is off is the stakes themselves, at a level that is large against their
    range.
    """
    rng = np.random.default_rng(9)
    kernels = np.zeros((1, 3, 2, 3))
    kernels[0, :, 0, 1] = kernels[0, :, 1, 2] = 1
    for k in range(60):
        scale = 1e-284 if k % 6 == 0 else 1.0  # differences of such stakes count as 0
        value = scale * np.array([1.0, rng.random(), -rng.random()]) * 10.0 ** rng.integers(-3, 4)
        costs = scale * rng.random((3, 2)) * 10.0 ** rng.integers(-9, 9, 2)
        for policy in ([1.0, 0.0], [0.0, 1.0], [0.3, 0.7]):
            low, high = derived(pair, kernels, costs, value, policy=np.array(policy), fixed=True)
            stakes = [Fraction(costs[0, a]) + Fraction(value[1 + a]) / 2 for a in range(2)]
            true = sum(a * b for a, b in zip(exact(policy), stakes, strict=True)) / sum(
                exact(policy)
            )
            assert low <= true <= high
            low, _ = derived(pair, kernels, costs, value, policy=np.array(policy))
            assert low <= min(stakes)


def test_duals_of_many_actions_carry_the_rounding_of_their_sum():
    """Each of many tiny Φ_a of ℓ2 takes a whole ulp off ½ θ² instead of half of one; the last makes
    the bound negative, but small.

    Neither the margins of the rows nor that of the mean over the policy, which is relative to the
    bound, pay for that.
    """
    A, theta, kappa = 512, 2.0**-30 * (1 + 2.0**-20), 2.0**-60
    p, policy = np.full(A, 0.51 * 2.0**-42), np.full(A, 2.0**-11)
    p[-1], policy[-1] = 2 / 3 + 2.0**-15, 0.75 + 2.0**-11
    kernels = np.zeros((1, 2, A, 2))
    kernels[..., 0], kernels[..., 1] = 1 - p, p
    costs, value, multiplier = np.zeros((2, A)), np.array([0.0, -1.0]), kappa / A
    _, high = derived(("l2", 2), kernels, costs, value, theta, policy, multiplier=multiplier)
    half, phi = Fraction(theta) ** 2 / 2, []
    for x, row in zip(exact(policy), kernels[0, 0], strict=True):
        t = Fraction(kappa) * x
        phi.append(-t * exact_row(row)[1] + t * t / 2)  # at the threshold 0
    true = (half + sum(phi)) / Fraction(kappa)
    assert -0.001 < true < 0
    assert high >= true / 2  # in units of cost
