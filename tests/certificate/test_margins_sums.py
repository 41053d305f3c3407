"""Every margin for rounding that all metrics share is there for a reason: sums, stakes, and means over kernels and actions against exact fractions.

Each test goes red when a margin it names is left out; so do those of the metrics, in files of their own.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from drmdp.sets import PAIRS
from margins import (
    EPS,
    FAR,
    chosen,
    derived,
    exact,
    exact_row,
    exact_weights,
    layout_of,
    sums_,
)
from rounding import biased

# ---------------------------------------------------------------------- sums


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 1_000, 5_000])
def test_sums_by_blocks_are_off_by_at_most_their_depth(n):
    rng, worst = np.random.default_rng(n), Fraction(0)
    most = sums_.depth(n) * EPS / 2
    lost = np.full(n, 0.49 * FAR / 2)
    lost[0] = 1.0  # what is added to it is lost
    for data in (biased(rng, n, 1, 64), biased(rng, n, -1, 64), rng.random(n), lost):
        total = sum(exact(data))
        found = Fraction(float(sums_.row_sum(data, 0, n)))
        assert abs(found - total) <= most * total
        worst = max(worst, abs(found - total) / (EPS / 2 * total))
        ones = np.ones(n)
        assert Fraction(float(sums_.dot(data, 0, ones, 0, n))) == found
    assert n < 63 or worst > 20  # ulps: the data are not harmless


def test_tables_of_states_that_are_not_listed_keep_their_digits():
    """R₁ and R₂ of 12 000 numbers, off by at most 8 ε, relatively."""
    rng = np.random.default_rng(0)
    n = 12_000
    for down in (-np.sort(rng.random(n)), -np.sort(1e-9 * rng.random(n)), np.repeat([0.0, -0.3, -1.0], n // 3)):
        rise, rise2 = sums_.rises(down)
        one = two = Fraction(0)
        for k in range(1, n):
            gap = Fraction(float(down[k - 1])) - Fraction(float(down[k]))
            two += gap * (2 * one + k * gap)
            one += k * gap
            if k % 997 == 0 or k == n - 1:
                assert abs(Fraction(float(rise[k + 1])) - one) <= 8 * EPS * one
                assert abs(Fraction(float(rise2[k + 1])) - two) <= 8 * EPS * two


def test_the_last_addition_is_known():
    total, lost = sums_.add(1.0, 0.0, 1e-20)
    assert (total, lost) == (1.0, 1e-20)
    total, lost = sums_.add(1e-20, 0.5, -1.0)
    assert (total, lost) == (-1.0, 0.5 + 1e-20)


# ---------------------------------------------------------------------- one step


TERMS = [(sign, lambda p: -p) for sign in (-1, 1)]
TERMS += [(1, lambda p, k=k: (1.0 + k * FAR) * -p) for k in (19, 24)] + [
    (-1, lambda p, k=k: -p + k * FAR * p) for k in (22, 23)
]
"""What each kernel adds in the certificates: ŷ·u, in L lowered and in U raised by what it may be off, which is known for a row of two."""


@cache
def many_kernels(number):
    """Weights of many kernels, and the probability of the second of two next states in each, for one of the terms."""
    rng, (sign, inner) = np.random.default_rng(number), TERMS[number]
    weights = exact_weights(rng, 1500)
    return weights, chosen(rng, weights, lambda w, p: w * inner(p) if w != 1 else -p, sign)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_values_of_many_kernels_carry_their_rounding(pair):
    """Each kernel has a row of two entries that rounding does not touch: what is off is the mean over the kernels."""
    for number in range(len(TERMS)):
        weights, p = many_kernels(number)
        kernels = np.zeros((p.size, 2, 1, 2))
        kernels[:, :, 0, 0], kernels[:, :, 0, 1] = (1 - p)[:, None], p[:, None]
        low, high = derived(pair, kernels, np.zeros((2, 1)), np.array([0.0, -1.0]), weights=weights)
        true = -sum(a * b for a, b in zip(exact(weights), exact(p), strict=True)) / sum(exact(weights)) / 2
        assert low <= true <= high


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_values_of_many_actions_carry_their_rounding(pair):
    """Five hundred actions that lead to one state at different costs: what is off is the mean over the policy."""
    rng = np.random.default_rng(8)
    A = 500
    policy = rng.dirichlet(np.ones(A))
    for sign in (-1, 1):
        costs = chosen(rng, policy, lambda x, c: x * c, sign)
        costs[0] = 0.0  # the base
        kernels = np.zeros((1, 2, A, 2))
        kernels[..., 0] = 1
        low, high = derived(pair, kernels, np.tile(costs / 2, (2, 1)), np.array([0.0, -1.0]), policy=policy, fixed=True)
        true = sum(a * b / 2 for a, b in zip(exact(policy), exact(costs), strict=True)) / sum(exact(policy))
        assert low <= true <= high


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_stakes_carry_their_rounding(pair):
    """One entry a row: what is off is the stakes themselves, at a level that is large against their range."""
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
            true = sum(a * b for a, b in zip(exact(policy), stakes, strict=True)) / sum(exact(policy))
            assert low <= true <= high
            low, _ = derived(pair, kernels, costs, value, policy=np.array(policy))
            assert low <= min(stakes)


@pytest.mark.parametrize("fixed", [False, True])
def test_what_is_no_number_is_no_bound(fixed):
    _, _, layout = layout_of(np.full((1, 2, 2, 2), 0.5), np.zeros((2, 2)))
    room, low, high = sums_.work_space(layout, 0, 2), np.zeros(2), np.zeros(2)
    view = sums_.view(layout, np.array([0.0, -1.0]))
    room.cost[:] = 0.0
    for worths in ([np.nan, -1.0], [-1.0, np.nan], [-1.0, np.inf]):
        room.worth[:] = worths
        with np.errstate(invalid="ignore"):
            claim = sums_.Claim(np.full((1, 2), 0.5), None, False, fixed)
            sums_.finish(0, 0.0, 1.0, np.nan, layout, view, claim, sums_.Found(low, high, None), room)
        assert (low[0], high[0]) == (-np.inf, np.inf)


def test_duals_of_many_actions_carry_the_rounding_of_their_sum():
    """Each of many tiny Φ_a of ℓ2 takes a whole ulp off ½ θ² instead of half of one; the last makes the bound negative, but small.

    Neither the margins of the rows nor that of the mean over the policy, which is relative to the bound, pay for that.
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
