"""Every margin for rounding is there for a reason: parts of the compiled certificates against exact fractions.

Random rounding errors cancel, so data are *biased*: number by number, of several candidates the one is taken whose rounding goes
the wrong way most. Each test goes red when a margin it names is left out.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import drmdp
import oracle
from drmdp.layout.layout import Layout, lay_out
from drmdp.layout.memory import Memory
from drmdp.sets import PAIRS
from interpreted import interpreted

EPS = Fraction(2) ** -52
FAR = np.finfo(float).eps
MODULES = interpreted()
sums_, l1, l2, linf, linf_radii, compressed = (
    MODULES[f"certificate.{name}"] for name in ("sums", "l1", "l2", "linf", "linf_radii", "compressed")
)
compressed.load = lambda where: MODULES[where.removeprefix("drmdp.")]


def exact(numbers):
    return [Fraction(float(x)) for x in numbers]


def biased(rng, n, sign, block=None):
    """Positive numbers whose sum, computed in blocks one after the other, is off in the direction `sign` by about n/8 ulps."""
    found, total, part = np.empty(n), 0.0, 0.0
    for k in range(n):
        if block and k % block == 0:
            total, part = total + part, 0.0
        tried = (0.5 + rng.random(16)) / n
        new = part + tried
        own = new - part
        lost = (part - (new - own)) + (tried - own)  # exactly
        found[k] = tried[np.argmin(sign * lost)]
        part += float(found[k])
    return found


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


# ---------------------------------------------------------------------- ℓ2: one row


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


def sums_of(data, u, t, tau, order=None):
    """The sums of a row as the certificate makes them, 1/Σ and ŷ·u."""
    K = data.size
    total = sums_.row_sum(data, 0, K)
    scale = 1.0 / total
    own = scale * sums_.dot(data, 0, u, 0, K)
    sums = np.zeros(9)
    l2._sum_row(l2.Row(data, 0, K, u, 0, scale), t, tau, 0.0, order, order is not None, sums)
    sums[l2.LEVEL] = tau
    return sums, scale, own, sums_.depth(K) + 16


def exact_row(data):
    p = exact(data)
    whole = sum(p)
    return [x / whole for x in p]


ROWS = [(K, t, moved) for K in (1, 5, 64, 700) for t in (1e-8, 0.01, 1.0, 1e3) for moved in (0.0, 1e-9, 0.05, -0.05)]


def test_duals_of_rows_are_bounds():
    """Σ_t over all next states of max_y {…}: Φ as computed, margin included, is at least Φ; without it, often less."""
    rng, needed = np.random.default_rng(1), 0
    for K, t, moved in ROWS:
        data, u, tau = row_l2(rng, K, t, moved)
        sums, _, own, n = sums_of(data, u, t, tau)
        found = Fraction(float(l2._dual(sums, t, own, n)))
        level, strength, phi = Fraction(float(tau)), Fraction(t), Fraction(0)
        for p, z in zip(exact_row(data), exact(u), strict=True):
            d = strength * z - level
            phi += d * p + d * d / 2 if p + d > 0 else -p * p / 2
        phi += level
        assert found >= phi
        margin_free = l2._dual(sums, t, own, 0)
        needed += Fraction(float(margin_free)) < phi
    assert needed > 10


def test_rows_moved_by_nature_are_measured():
    """(y − ŷ)·u is at least what is said, the distance at most; for rows whose mass is 1 and for others."""
    rng, needed = np.random.default_rng(2), np.zeros(2, dtype=int)
    for K, t, moved in ROWS:
        data, u, tau = row_l2(rng, K, t, moved)
        sums, scale, own, n = sums_of(data, u, t, tau)
        gain, margin, far = l2._move(sums, own, n)
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
    assert Fraction(float(l2._move(sums, own, n)[2])) ** 2 >= square


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


# ---------------------------------------------------------------------- ℓ2: one state


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


def exact_weights(rng, N):
    """Weights with sum 1, as near as floats come: nobody changes them."""
    w = rng.dirichlet(np.ones(N))
    while math.fsum(w) != 1:
        w /= math.fsum(w)
        w[0] += 1 - math.fsum(w)
    return w


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


def layout_of(kernels, costs, radius=0.0, pair=("l2", 2), weights=None, discount=0.5):
    """Model, ball and layout of dense kernels (N, S, A, S)."""
    model = drmdp.Model(kernels, costs=costs, discount=discount, weights=weights)
    ball = drmdp.Wasserstein(radius, *pair, "all")
    return model, ball, lay_out(model, ball)


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


# ---------------------------------------------------------------------- all metrics: one step


def derived(pair, kernels, costs, value, radius=0.0, policy=None, weights=None, fixed=False, multiplier=0.0):
    """L and U of state 0 at a value with the level 0, from witnesses that do nothing but for one multiplier."""
    _, ball, layout = layout_of(kernels, costs, radius, pair, weights)
    (S, A), N = layout.available.shape, layout.weights.size
    memory = Memory(np.full((S, A), multiplier), np.full((S, N), multiplier), np.zeros((S, A, N)))
    x = np.eye(A)[np.zeros(S, dtype=int)] if policy is None else np.broadcast_to(policy, (S, A))
    with np.errstate(all="ignore"):  # as compiled
        low, high, _ = compressed.derive(ball, layout, value, x, memory, fixed)
    return Fraction(float(low[0])), Fraction(float(high[0]))


@pytest.mark.parametrize("pair", [("l2", 2), ("l2", np.inf)], ids=str)
def test_l2_duals_of_many_actions_carry_the_rounding_of_their_sum(pair):
    """Each of many tiny Φ_a takes a whole ulp off ½ θ² instead of half of one; the last makes the bound negative, but small.

    Neither the margins of the rows nor that of the mean over the policy, which is relative to the bound, pay for that.
    """
    A, theta, kappa = 512, 2.0**-30 * (1 + 2.0**-20), 2.0**-60
    p, policy = np.full(A, 0.51 * 2.0**-42), np.full(A, 2.0**-11)
    p[-1], policy[-1] = 2 / 3 + 2.0**-15, 0.75 + 2.0**-11
    kernels = np.zeros((1, 2, A, 2))
    kernels[..., 0], kernels[..., 1] = 1 - p, p
    costs, value, multiplier = np.zeros((2, A)), np.array([0.0, -1.0]), kappa / A if pair[1] == 2 else kappa
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


# ---------------------------------------------------------------------- long rows


def uneven(rng, K, sign, u):
    """A row of K entries for which Σ ŷ u, summed in blocks and divided by the sum of the row, is off in the direction `sign`; u is 0 or −1.

    Both sums are off, in opposite directions.
    """
    found, part, part_u = np.empty(K), 0.0, 0.0
    for k in range(K):
        if k % 64 == 0:
            part = part_u = 0.0
        tried = (0.5 + rng.random(32)) / K
        errors = np.zeros(32)
        for total, factor in ((part, -sign), (part_u, 2 * sign if u[k] else 0)):
            new = total + tried
            own = new - total
            errors -= factor * ((total - (new - own)) + (tried - own))
        found[k] = tried[np.argmin(errors)]
        part += float(found[k])
        part_u += float(found[k]) if u[k] else 0.0
    return found


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


@pytest.mark.parametrize("metric", ["l1", "linf"])
def test_values_before_a_move_carry_their_rounding(metric):
    """Each of many tiny probabilities rounds the sum of the row up by nearly half an ulp, and not that of the stakes: ŷ·u comes out too high by 15 ε."""
    data, u = np.array([0.5, 0.5, *[0.51 * FAR] * 62]), np.array([0.0, *[-1.0] * 63])
    layout, order, room = one_state(data[None], u)
    nothing, true = np.zeros(1), -sum(exact_row(data)[1:])
    assert Fraction(float(room.own[0, 0])) > true + 12 * EPS
    if metric == "l1":
        found = l1._worth(layout, 0, 0, nothing, nothing, 2 * sums_.depth(64) + 16, room)
    else:
        found = linf.worth_of(layout, order, 0, 0, nothing, nothing, room)
    assert Fraction(float(found)) <= true


LONG = [(K, sign) for K in (2, 64, 1000) for sign in (-1, 1)]


def long_row(rng, K, sign):
    """Row and stakes, of which half are 0."""
    u = np.where(np.arange(K) % 2, -1.0, 0.0)
    data = uneven(rng, K, sign, u)
    data /= data.sum()
    return data * (1 + FAR * rng.integers(-K, K)), u


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
                bounds = [Fraction(float(l1._bound(layout, 0, theta, 0, K, cut, n, True, room))) for n in (terms, 0)]
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
    """The value of h at r = θ, and the maximum of h(r) − μ r, of pieces whose sums are off."""
    rng, needed = np.random.default_rng(14), 0
    for K in (3, 64, 1000):
        _, _, room = one_state(np.full((1, K), 1 / K), np.where(np.arange(K) % 2, -1.0, 0.0))
        ends, drops = room.reals[0], room.reals[1]
        for sign in (-1, 1):
            for theta in (1.0, 0.01, 1e-6):
                ends[:], drops[:] = np.maximum(theta, rng.random(K)), biased(rng, K, sign, 64)
                ends[::3] = rng.random(ends[::3].size) * theta
                worth, rise, terms = -rng.random(), rng.random(), 2 * sums_.depth(K) + 17
                e, d, own, up = exact(ends), exact(drops), Fraction(worth), Fraction(rise)
                true = own + Fraction(theta) * up + sum(a * min(b, Fraction(theta)) for a, b in zip(d, e, strict=True))
                found = [Fraction(float(linf._at_radius(worth, rise, K, theta, n, room))) for n in (terms, 0)]
                assert found[0] >= true
                needed += found[1] < true
                mu = float(rise + drops[rng.random(K) < 0.5].sum())
                best, at, slope = own, Fraction(0), up + sum(d) - Fraction(mu)
                for end, drop in [*sorted(zip(e, d, strict=True)), (Fraction(theta), Fraction(0))]:
                    best += max(slope, 0) * (min(end, Fraction(theta)) - at)
                    at, slope = min(end, Fraction(theta)), slope - drop
                assert Fraction(float(linf_radii._climb(worth, rise, K, mu, theta, terms, room))) >= best
    assert needed > 1


def test_linf_slopes_carry_what_even_careful_sums_lose():
    """Next to 1, a sum keeps 2⁻⁵³ as lost, and next to that the 2⁻¹⁰⁹ are lost that remain when all pieces but the endless one have ended."""
    _, _, room = one_state(np.full((1, 2), 0.5), np.array([0.0, -1.0]))
    rise, mu, far, terms = 2.0**-108, 2.0**-109, 1.0, 2 * sums_.depth(2) + 17
    room.reals[0][:], room.reals[1][:] = [2.0**-90, 2.0**-89], [1.0, 2.0**-53]
    ended = sum(a * b for a, b in zip(exact(room.reals[0]), exact(room.reals[1]), strict=True))
    worth = -float(ended)  # no row of such pieces is worth more
    true = Fraction(worth) + ended + (Fraction(rise) - Fraction(mu)) * Fraction(far)
    assert Fraction(float(linf_radii._climb(worth, rise, 2, mu, far, terms, room))) >= true


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
    found = linf_radii._climb(worth, rise, n, 1.0, 1.0, 2 * sums_.depth(2 * A) + A + 16, room)
    assert Fraction(float(found)) >= (x - 1) - x * ours[1]  # at r = 1
