"""Every margin of the proof of ℓ1 balls is there for a reason: its parts against exact fractions."""

from fractions import Fraction

import numpy as np

from margins import EPS, LONG, exact, exact_row, l1, long_row, one_state, sums_


def test_l1_duals_and_gains_carry_their_rounding():
    """U at any cut, and what moving a mass gains: with margins never false, without them often."""
    rng, needed = np.random.default_rng(10), np.zeros(2, dtype=int)
    for K, sign in LONG:
        data, u = long_row(rng, K, sign)
        for theta in (0.0, 0.1, 1.0):
            layout, _, room = one_state(data[None], u, theta)
            room.reals[0][:], room.places[0][:], room.places[1][:] = u, np.arange(K), 0
            room.places[2][:] = np.argsort(u, kind="stable")
            terms, ours = 2 * sums_.depth(K) + 16, exact_row(data)
            for cut in (0.0, 0.3, 1.0):
                bounds = [Fraction(float(l1.bound_of(layout, 0, theta, 0, K, cut, n, True, room))) for n in (terms, 0)]
                true = Fraction(cut) * Fraction(theta) / 2
                true += sum(p * max(z, -Fraction(cut)) for p, z in zip(ours, exact(u), strict=True))
                assert bounds[0] >= true
                needed[0] += bounds[1] < true
            left = [theta / 2, 1.0][theta == 0]
            gains = [Fraction(float(l1._gain(layout, 0, 0, 0, left, n, True, room))) for n in (terms + K, 0)]
            low = sum(p for p, z in zip(ours, u, strict=True) if z < 0)
            assert gains[0] <= min(low, Fraction(left))
            needed[1] += gains[1] > min(low, Fraction(left))
    assert (needed > 1).all(), needed


def test_l1_shares_are_surely_in_the_budget():
    rng, needed = np.random.default_rng(11), 0
    for A in (1, 3, 300):
        for _ in range(20):
            mass, theta = rng.random(A) * 10.0 ** rng.integers(-3, 3), 10.0 ** rng.uniform(-9, 0)
            moved = sum(exact(mass))
            share = Fraction(float(l1._share(theta, mass, 30)))
            assert share * moved * (1 + 30 * EPS) <= Fraction(theta) / 2
            bare = min(Fraction(theta / 2 / float(np.add.accumulate(mass)[-1])), Fraction(1))
            needed += bare * moved > Fraction(theta) / 2
    assert needed > 10
    assert l1._share(1.0, np.array([np.nan, -1.0, 0.25]), 30) == 1.0
    assert l1._share(1.0, np.array([np.inf, 0.25]), 30) == 0.0
