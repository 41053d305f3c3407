"""Every margin of the proofs of ℓ∞ balls is there for a reason: their parts against exact fractions."""

from fractions import Fraction

import numpy as np

import oracle
from margins import (
    EPS,
    FAR,
    LONG,
    exact,
    exact_row,
    exact_weights,
    layout_of,
    linf,
    linf_radii,
    long_row,
    one_state,
    sums_,
)
from rounding import biased


def most_linear(metric, p, z, theta):
    """What nature gains with one kernel: ℓ1 takes θ/2 from the lowest, ℓ∞ takes θ from all and gives θ to the highest."""
    groups = [oracle.Group(1, x, (y,)) for x, y in zip(z, p, strict=True)]
    if metric == "linf":
        return oracle._worth(groups, 0, theta)
    left, total = theta / 2, sum(a * b for a, b in zip(p, z, strict=True))
    for x, y in sorted(zip(z, p, strict=True)):
        total -= min(left, y) * x
        left -= min(left, y)
    return total


def test_linf_walks_carry_their_rounding():
    """A row within r gains at least what is said; where all mass arrives at the top, a larger r would not help."""
    rng, needed = np.random.default_rng(12), 0
    for K, sign in LONG:
        data, u = long_row(rng, K, sign)
        layout, order, room = one_state(data[None], u)
        down, place = room.places[0], room.places[1]
        linf._places(order, False, layout.indices, room.u, room.reals[2], place, down)
        for r in (1e-9, 0.3 / K, 1.0):
            gain, margin, _ = linf.walk(data, room.u, room.scale[0, 0], r, down, place, order, False)
            wider = Fraction(r) * (1 + (sums_.depth(K) + 2 * K) * EPS)
            own = sum(p * z for p, z in zip(exact_row(data), exact(u), strict=True))
            true = most_linear("linf", exact_row(data), exact(u), wider) - own
            assert Fraction(float(gain)) - Fraction(float(margin)) <= true
            needed += Fraction(float(gain)) > true
            assert abs(Fraction(float(room.own[0, 0])) - own) <= (sums_.depth(K) + 16) * EPS * abs(own)
    assert needed > 1


def test_linf_radii_are_surely_in_the_ball():
    """After what a walk of so many steps may add to them."""
    rng, needed = np.random.default_rng(13), 0
    for N in (1, 3, 300):
        for entries in (2, 1000):
            for _ in range(10):
                w, radius = exact_weights(rng, N), rng.random(N) * 10.0 ** rng.integers(-3, 1)
                theta = 10.0 ** rng.uniform(-4, 0)
                for joint in (False, True):
                    share = np.zeros(N)
                    linf.share_of(theta, radius, w, entries, joint, share)
                    used = [Fraction(float(a)) * b for a, b in zip(share, exact(radius), strict=True)]
                    far = max(used) if not joint else sum(a * b for a, b in zip(exact(w), used, strict=True))
                    steps = min(entries, 2 / min(float(min(used)), 1.0))
                    assert far * (1 + int(sums_.depth(entries) + steps) * EPS) <= Fraction(theta)
                    mean = 0.0
                    for i in range(N):
                        mean += w[i] * radius[i]
                    top = radius.max() if not joint else mean
                    bare = [Fraction(min(theta / top, 1.0)) * b for b in exact(radius)]
                    far = max(bare) if not joint else sum(a * b for a, b in zip(exact(w), bare, strict=True))
                    needed += far > Fraction(theta)
    assert needed > 10
    share = np.ones(3)
    linf.share_of(0.5, np.array([np.nan, -1.0, 0.25]), np.full(3, 1 / 3), 9, False, share)
    assert share.tolist() == [0.0, 0.0, 1.0]
    linf.share_of(0.1, np.array([np.nan, -1.0, 0.75]), np.full(3, 1 / 3), 9, True, share)
    np.testing.assert_allclose(share, [0.0, 0.0, 0.4])


def test_linf_duals_carry_their_rounding():
    """The maximum of h(r) − μ r, of pieces whose sums are off."""
    rng = np.random.default_rng(14)
    for K in (3, 64, 1000):
        _, _, room = one_state(np.full((1, K), 1 / K), np.where(np.arange(K) % 2, -1.0, 0.0))
        ends, drops = room.reals[0], room.reals[1]
        for sign in (-1, 1):
            for theta in (1.0, 0.01, 1e-6):
                ends[:], drops[:] = np.maximum(theta, rng.random(K)), biased(rng, K, sign, 64)
                ends[::3] = rng.random(ends[::3].size) * theta
                worth, rise, terms = -rng.random(), rng.random(), 2 * sums_.depth(K) + 17
                e, d, own, up = exact(ends), exact(drops), Fraction(worth), Fraction(rise)
                mu = float(rise + drops[rng.random(K) < 0.5].sum())
                best, at, slope = own, Fraction(0), up + sum(d) - Fraction(mu)
                for end, drop in [*sorted(zip(e, d, strict=True)), (Fraction(theta), Fraction(0))]:
                    best += max(slope, 0) * (min(end, Fraction(theta)) - at)
                    at, slope = min(end, Fraction(theta)), slope - drop
                assert Fraction(float(linf_radii.climb(worth, rise, K, mu, theta, terms, room))) >= best


def test_linf_slopes_carry_what_even_careful_sums_lose():
    """Next to 1, a sum keeps 2⁻⁵³ as lost, and next to that the 2⁻¹⁰⁹ are lost that remain when all pieces but the endless one have ended."""
    _, _, room = one_state(np.full((1, 2), 0.5), np.array([0.0, -1.0]))
    rise, mu, far, terms = 2.0**-108, 2.0**-109, 1.0, 2 * sums_.depth(2) + 17
    room.reals[0][:], room.reals[1][:] = [2.0**-90, 2.0**-89], [1.0, 2.0**-53]
    ended = sum(a * b for a, b in zip(exact(room.reals[0]), exact(room.reals[1]), strict=True))
    worth = -float(ended)  # no row of such pieces is worth more
    true = Fraction(worth) + ended + (Fraction(rise) - Fraction(mu)) * Fraction(far)
    assert Fraction(float(linf_radii.climb(worth, rise, 2, mu, far, terms, room))) >= true


def test_linf_multipliers_are_lowered_by_what_slopes_of_many_actions_are_off():
    """Of many actions, all but the first add too little to the slope to change it; the multiplier is what the slope seems to be."""
    A, p = 200, 2.0**-60
    kernels, policy = np.zeros((1, 2, A, 2)), np.full(A, 0.49 * FAR)
    kernels[..., 0], kernels[..., 1] = 1.0, p
    policy[0] = 1.0
    _, _, layout = layout_of(kernels, np.zeros((2, A)), 1.0, ("linf", 1))
    order, room = sums_.view(layout, np.array([0.0, -1.0])), sums_.work_space(layout, 0, 1)
    sums_.normalise(layout, order, 0, room)
    for a in range(A):
        sums_.weigh_rows(layout, 0, a, room)
    worth, rise, n = linf.pieces_of(linf.Spot(layout, order, 0, 0, policy), np.full(A, -1.0), room)
    assert rise == 1.0
    x, ours = sum(exact(policy)), exact_row(kernels[0, 0, 0])
    assert x > 1 + 90 * EPS
    found = linf_radii.climb(worth, rise, n, 1.0, 1.0, 2 * sums_.depth(2 * A) + A + 16, room)
    assert Fraction(float(found)) >= (x - 1) - x * ours[1]  # at r = 1
