"""Every margin of the proof of ℓ2 balls is there for a reason: rows and states against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from drmdp.layout.memory import Memory
from margins import EPS, FAR, biased, derived, exact, exact_row, exact_weights, l2, layout_of, sums_

# ---------------------------------------------------------------------- one row


def row_l2(rng, K, t, moved):
    """Data, u, t and a threshold: of a row with mass 1 + moved at it, about."""
    data = biased(rng, K, 1, 64) * (rng.random(K) < 0.9)
    data[rng.integers(K)] += 0.1
    data /= data.sum()
    data *= 1 + rng.uniform(-1, 1) * K * FAR
    u = -(rng.random(K) ** 2)
    u[rng.integers(K)] = 0.0
    low, high = -2.0 - t, 2.0
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if np.maximum(data + t * u - tau, 0).sum() > 1 + moved else (low, tau)
    return data, u, tau


def sums_of(data, u, t, tau, order=None, flat=0.0):
    """The sums of a row as the certificate makes them, 1/Σ and ŷ·u."""
    K = data.size
    total = sums_.row_sum(data, 0, K)
    scale = 1.0 / total
    own = scale * sums_.dot(data, 0, u, 0, K)
    sums = np.zeros(9)
    l2.sum_row(l2.Row(data, 0, K, u, 0, scale), t, tau, 0.0, order, order is not None, flat, sums)
    sums[l2.LEVEL] = tau
    return sums, scale, own, sums_.depth(K) + 16


ROWS = [(K, t, moved) for K in (1, 5, 64, 700) for t in (1e-8, 0.01, 1.0, 1e3) for moved in (0.0, 1e-9, 0.05, -0.05)]


def test_duals_of_rows_are_bounds():
    """Σ_t over all next states of max_y {…}: Φ as computed, margin included, is at least Φ; without it, often less."""
    rng, needed = np.random.default_rng(1), 0
    for K, t, moved in ROWS:
        data, u, tau = row_l2(rng, K, t, moved)
        sums, _, own, n = sums_of(data, u, t, tau)
        found = Fraction(float(l2.dual_of(sums, t, own, n)))
        level, strength, phi = Fraction(float(tau)), Fraction(t), Fraction(0)
        for p, z in zip(exact_row(data), exact(u), strict=True):
            d = strength * z - level
            phi += d * p + d * d / 2 if p + d > 0 else -p * p / 2
        phi += level
        assert found >= phi
        margin_free = l2.dual_of(sums, t, own, 0)
        needed += Fraction(float(margin_free)) < phi
    assert needed > 10


def test_rows_moved_by_nature_are_measured():
    """(y − ŷ)·u is at least what is said, the distance at most; for rows whose mass is 1 and for others."""
    rng, needed = np.random.default_rng(2), np.zeros(2, dtype=int)
    for K, t, moved in ROWS:
        data, u, tau = row_l2(rng, K, t, moved)
        sums, scale, own, n = sums_of(data, u, t, tau)
        gain, margin, far = l2.move_of(sums, own, n)
        if far == 0:
            continue
        sure = 1.0 - (sums_.depth(K) + 24) * FAR
        ours = exact_row(data)
        y = []
        for p, x, z in zip(ours, data, u, strict=True):
            d = (t * z - tau) - 0.0
            y.append(p + Fraction(float(d)) if (x * scale) * sure + d > 0.0 else Fraction(0))
        assert min(y) >= 0
        mass = sum(y)
        move = [x / mass - p for x, p in zip(y, ours, strict=True)]
        true_gain, square = sum(m * z for m, z in zip(move, exact(u), strict=True)), sum(m * m for m in move)
        assert Fraction(float(gain)) - Fraction(float(margin)) <= true_gain
        assert Fraction(float(far)) ** 2 >= square
        bare = math.sqrt(sums[l2.SQUARES] + sums[l2.IDLE_SQUARES])
        needed += [
            Fraction(float(gain)) > true_gain,
            Fraction(bare) ** 2 * (1 + 100 * K * EPS) < square,  # without what the mass is off
        ]
    assert (needed > [5, 3]).all(), needed


def test_unlisted_states_as_high_as_the_highest_are_raised_to_it():
    """Sums over all states, none listed with a probability, against fractions: of states above −flat, d is that of the highest."""
    rng, below = np.random.default_rng(5), 0
    for number in range(200):
        flat, S = 1e-13, int(rng.integers(2, 40))
        near = int(rng.integers(1, S))
        down = -np.sort(np.concatenate([[0.0], flat * rng.random(near - 1), 10.0 ** rng.uniform(-13, 0, S - near)]))
        down[down < -1] = -1.0
        view = sums_.View(down, 0.0, 1.0, down, np.arange(S), np.arange(S), down, *sums_.rises(down), np.zeros(1, int))
        t = float(10.0 ** rng.uniform(0, 28))
        tau = float(t * down[rng.integers(S)] * rng.uniform(0.5, 1.5) - rng.random()) if number % 2 else -1.0 / near
        sums, _, _, n = sums_of(np.array([1.0]), np.zeros(1), t, tau, view, flat)
        d = [(Fraction(t) * (Fraction(0) if z > -flat else Fraction(z)) - Fraction(tau), z) for z in down.tolist()]
        active = [(x, Fraction(0) if z > -flat else Fraction(z)) for x, z in d if x > 0]
        below += len(active) > near
        if len(active) != sums[l2.COUNT]:  # one that is 0 up to rounding is neither
            assert min(x for x, _ in d if x > 0) < 4 * EPS * abs(Fraction(tau))
            continue
        size, squares = sum(x for x, _ in active), sum(x * x for x, _ in active)
        gain = sum(x * z for x, z in active)
        rounding = sum(Fraction(t) * abs(z) + abs(Fraction(tau)) for _, z in active)  # of d itself
        assert abs(Fraction(float(sums[l2.MASS])) - size) <= n * EPS * rounding
        assert abs(Fraction(float(sums[l2.GAIN])) - gain) <= n * EPS * rounding
        assert abs(Fraction(float(sums[l2.SQUARES])) - squares) <= 2 * n * EPS * rounding * max(x for x, _ in active)
    assert below > 20


def test_distances_of_rows_are_rounded_up():
    """Moves in pairs ±d leave the mass 1 exactly; their squares add up to too little."""
    rng = np.random.default_rng(3)
    K, total, moves = 64, 0.0, []
    for _ in range(K // 2):
        tried = rng.integers(2**20, 2**22, 32) / 2.0**31
        squares = tried * tried
        errors = [sum(exact([total + x, (total + x) + x])) - sum(exact([total, x, total + x, x])) for x in squares]
        chosen = tried[int(np.argmin(errors))]
        moves += [chosen, -chosen]
        total = (total + chosen * chosen) + chosen * chosen
    data, u = np.full(K, 1 / K), np.array(moves) - 0.5
    sums, _, own, n = sums_of(data, u, 1.0, -0.5)
    assert sums[l2.MASS] == sums[l2.IDLE] == 0
    square = sum(x * x for x in exact(moves))
    assert Fraction(math.sqrt(sums[l2.SQUARES])) ** 2 < square
    assert Fraction(float(l2.move_of(sums, own, n)[2])) ** 2 >= square


def test_entries_that_count_as_active_surely_are():
    """A row whose sum comes out too small makes probabilities too large; d just balances one of them."""
    rng = np.random.default_rng(4)
    K = 64
    data = biased(rng, K, -1, 64)
    data[-1] = 1 - data[:-1].sum()
    _, scale, _, _ = sums_of(data, np.zeros(K), 1.0, 0.0)
    p = data * scale
    ours = exact_row(data)
    off = [float((Fraction(float(x)) - y) / y / EPS) for x, y in zip(p, ours, strict=True)]
    j = int(np.argmax(off))
    assert off[j] > 2
    u = np.full(K, -0.25)
    u[j] = -p[j] * (1 - FAR)  # above −p as computed, below −ŷ
    assert p[j] + u[j] > 0
    assert ours[j] + Fraction(float(u[j])) < 0
    sums, *_ = sums_of(data, u, 1.0, 0.0)
    assert sums[l2.COUNT] == 0


# ---------------------------------------------------------------------- one state


def test_shares_of_a_move_are_surely_in_the_ball():
    """Σ_i w_i (share·d_i)² ≤ θ², or share_i·d_i ≤ θ, however far the rows were; by as much as the measured sums may be off."""
    rng, needed = np.random.default_rng(5), 0
    for N in (1, 2, 50):
        for _ in range(40):
            w, spent, theta = (
                exact_weights(rng, N),
                rng.random(N) * 10.0 ** rng.integers(-12, 3),
                10.0 ** rng.uniform(-6, 0),
            )
            for every in (False, True):
                share = np.zeros(N)
                l2._share(theta, spent, every, w, 3, share)
                parts = [Fraction(float(r)) ** 2 * d for r, d in zip(share, exact(spent), strict=True)]
                far = parts if every else [sum(a * b for a, b in zip(exact(w), parts, strict=True))]
                assert max(far) <= Fraction(theta) ** 2 * (1 - 16 * EPS)
                assert (share <= 1).all()
                total = spent if every else np.full(N, w @ spent)
                bare = [Fraction(theta / math.sqrt(x)) ** 2 * Fraction(float(x)) for x in total if x > theta**2]
                needed += any(x > Fraction(theta) ** 2 for x in bare)
    assert needed > 30


def test_the_mean_of_the_kernels_duals_is_rounded_up():
    rng, needed = np.random.default_rng(6), 0
    for _ in range(60):
        N = 40
        w, kappa = exact_weights(rng, N), 10.0 ** rng.uniform(-3, 3, N)
        dual = -rng.random(N) * kappa
        for every in (False, True):
            total = sum(a * b / c for a, b, c in zip(exact(w), exact(dual), exact(kappa), strict=True))
            assert Fraction(float(l2._above(dual, kappa, every, w))) >= total
            bare = 0.0
            for i in range(N):
                bare += w[i] * (dual[i] / kappa[i])
            needed += Fraction(float(bare)) < total
    assert needed > 10
    assert l2._above(np.array([-1.0, 3.0]), np.array([1.0, 0.0]), False, np.array([0.5, 0.5])) == 0
    for every, expected in ((False, 0.0), (True, -0.5)):
        found = l2._above(np.array([-1.0, np.nan]), np.array([1.0, 1.0]), every, np.array([0.5, 0.5]))
        assert found == pytest.approx(expected)


def rows_with_bad_sums(rng, N, S, sign):
    """Kernels (N, S, 1, S) whose rows miss 1 by what rounding explains, all to the same side, and sum up badly."""
    y = np.array([biased(rng, S, sign, 64) for _ in range(N)])
    y /= np.array([math.fsum(row) for row in y])[:, None]
    y *= 1 + sign * 1.5 * S * FAR
    return np.broadcast_to(y[:, None, None], (N, S, 1, S)).copy()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("S", [3, 64, 300])
def test_nominal_values_of_rows_carry_their_rounding(S, sign):
    """ŷ·u by kernel and of the mean kernel, rows and weights being what they are after division by their sums."""
    rng = np.random.default_rng(S)
    N = 4
    kernels, value = rows_with_bad_sums(rng, N, S, sign), -rng.random(S)
    value[0] = 0.0
    value[-1] = -1.0
    weights = rng.dirichlet(np.ones(N)) * (1 + sign * 2 * N * FAR)
    _, _, layout = layout_of(kernels, np.zeros((S, 1)), weights=weights)
    w, order = layout.weights / math.fsum(layout.weights), sums_.view(layout, value)
    layout, room = layout._replace(weights=w), sums_.work_space(layout, 0, S)
    sums_.normalise(layout, order, 0, room)
    whole = sum(exact(weights))
    true = [sum(p * z for p, z in zip(exact_row(kernels[i, 0, 0]), exact(value), strict=True)) for i in range(N)]
    mean = sum(a / whole * b for a, b in zip(exact(weights), true, strict=True))
    assert Fraction(float(sums_.mean_worth(layout, 0, 0, room))) <= mean
    claim = sums_.Claim(None, Memory(None, None, np.zeros((1, 1, N))), False, False)
    margin = l2._visit(layout, order, 0, 0, 1.0, 0.0, claim, room)
    error = sum(a * abs(Fraction(float(b)) - c) for a, b, c in zip(exact(w), room.own[0], true, strict=True))
    assert Fraction(float(margin)) >= error
    bare = sums_.dot(layout.mean, 0, room.u, 0, S)
    assert error > 0
    assert sign < 0 or Fraction(float(bare)) < mean or S < 64
    assert sign > 0 or Fraction(float(bare)) > mean


@pytest.mark.parametrize("pair", [("l2", 2)], ids=str)
def test_l2_duals_of_many_actions_carry_the_rounding_of_their_sum(pair):
    """Each of many tiny Φ_a takes a whole ulp off ½ θ² instead of half of one; the last makes the bound negative, but small.

    Neither the margins of the rows nor that of the mean over the policy, which is relative to the bound, pay for that.
    """
    A, theta, kappa = 512, 2.0**-30 * (1 + 2.0**-20), 2.0**-60
    p, policy = np.full(A, 0.51 * 2.0**-42), np.full(A, 2.0**-11)
    p[-1], policy[-1] = 2 / 3 + 2.0**-15, 0.75 + 2.0**-11
    kernels = np.zeros((1, 2, A, 2))
    kernels[..., 0], kernels[..., 1] = 1 - p, p
    costs, value, multiplier = np.zeros((2, A)), np.array([0.0, -1.0]), kappa / A
    _, high = derived(pair, kernels, costs, value, theta, policy, multiplier=multiplier)
    half, phi = Fraction(theta) ** 2 / 2, []
    for x, row in zip(exact(policy), kernels[0, 0], strict=True):
        t = Fraction(kappa) * x
        phi.append(-t * exact_row(row)[1] + t * t / 2)  # at the threshold 0
    true = (half + sum(phi)) / Fraction(kappa)
    assert -0.001 < true < 0
    total = float(half)
    for x in phi:
        total += float(x)
    assert (Fraction(total) - half - sum(phi)) / half < -200 * EPS  # the data are not harmless
    assert high >= true / 2  # in units of cost
