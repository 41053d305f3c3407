"""The exact kernels of (ℓ2, 2) and (ℓ2, ∞), and their quadratic program: against conic programs, brute force and certificates."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import drmdp
from cases import cases
from drmdp.bellman import l2_2, l2_inf
from drmdp.bellman.conic.operator import ConicOperator
from drmdp.bellman.qp import make_program, simplex_qp
from drmdp.certificate import dense as certificate
from drmdp.core import levels
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import FLAT, normalise, point_at, scratch
from kernels import LAYOUTS, assert_close, in_both_precisions, larger, random_policy, run, small, units

KERNELS = {("l2", 2): l2_2, ("l2", math.inf): l2_inf}
PAIRS = pytest.mark.parametrize("pair", KERNELS, ids=["l2_2", "l2_inf"])
TOL = 1e-11  # asked of the kernels
POISON = (np.nan, np.inf, -1.0, 0.0, 1e-300, 1e13)


# ---------------------------------------------------------------------- the quadratic program


def solve(H, g, x, extra):
    m = x.size
    z = np.empty(m)
    return simplex_qp(H, g, x, m - extra, extra, z, make_program(m)), z


def brute_force(H, g, x, extra):
    """Least value of g·d + ½ dᵀH d over all supports, by the optimality conditions on each."""
    m, n = x.size, x.size - extra
    best = np.inf
    for size in range(1, m + 1):
        for support in combinations(range(m), size):
            free = np.array(support)
            row = (free < n).astype(float)
            if not row.any():
                continue
            fixed = np.zeros(m) - x
            fixed[free] = 0.0
            system = np.block([[H[np.ix_(free, free)], -row[:, None]], [row[None], np.zeros((1, 1))]])
            right = np.append(-(g + H @ fixed)[free], 1.0 - x[free] @ row)
            d = fixed.copy()
            d[free] = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
            z = x + d
            if (z >= -1e-11).all() and abs(z[:n].sum() - 1) < 1e-9:
                best = min(best, g @ d + d @ H @ d / 2)
    return best


def random_program(rng, n, extra, kind):
    m = n + extra
    x = np.append(rng.dirichlet(np.full(n, 0.5)), rng.random(extra) * (rng.random() < 0.5))
    x[:n] *= (rng.random(n) < 0.7) | (np.arange(n) == rng.integers(n))
    x[:n] /= x[:n].sum()
    root = rng.normal(size=(m, {"full": m, "rank one": 1, "zero": 0}.get(kind, max(1, m // 2))))
    H = root @ root.T
    if kind == "null":  # as the kernels' H: none along the policy
        away = np.eye(m) - np.outer(x, x) / (x @ x)
        H = away @ H @ away
    if kind == "row":
        H[0], H[:, 0] = 0.0, 0.0
    g = rng.normal(size=m) * 10.0 ** rng.integers(-3, 3)
    if extra:
        g[n] = abs(g[n])  # bounded below whatever H is
    return H + 1e-12 * np.eye(m), g, x


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("kind", ["full", "half", "rank one", "zero", "null", "row"])
def test_program_finds_the_best_of_all_supports(kind, extra):
    rng = np.random.default_rng(1)
    for _ in range(40):
        H, g, x = random_program(rng, int(rng.integers(1, 6)), extra, kind)
        done, z = solve(H, g, x, extra)
        d = z - x
        assert done
        assert (z >= 0).all()
        assert z[: z.size - extra].sum() == pytest.approx(1, abs=1e-14)
        assert g @ d + d @ H @ d / 2 <= brute_force(H, g, x, extra) + 1e-10 * np.abs(g).max()


@pytest.mark.parametrize("n", [1, 2, 10, 30, 100])
@pytest.mark.parametrize("kind", ["full", "rank one", "zero", "null"])
def test_program_meets_the_optimality_conditions(kind, n):
    rng = np.random.default_rng(2)
    for _ in range(5):
        H, g, x = random_program(rng, n, 0, kind)
        done, z = solve(H, g, x, 0)
        slope = g + H @ (z - x)
        assert done
        assert z @ slope - slope.min() <= 1e-11 * np.abs(g).max()


def test_program_holds_over_many_orders_of_magnitude():
    """Policies of 1e-13 beside 1, curvatures of 1e13 beside 1: a model of leftover budgets."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        big, tiny = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        x = np.append(rng.dirichlet(np.ones(big)), 1e-13 * rng.uniform(1, 5, tiny))
        x[0] -= x[big:].sum()
        H = np.zeros((x.size, x.size))
        for own in (slice(0, big), slice(big, None)):  # √ of a quadratic form, as in each kernel
            D = rng.uniform(0.1, 1, x[own].size)
            size = math.sqrt(x[own] ** 2 @ D)
            H[own, own] = np.diag(D) / size - np.outer(D * x[own], D * x[own]) / size**3
        g = np.append(0.1 * rng.normal(size=big), rng.uniform(0.5, 3, tiny))
        done, z = solve(H, g, x, 0)
        slope = g + H @ (z - x)
        assert done
        assert z[big:].max() < 1e-11
        assert z[big:] @ (slope[big:] - slope.min()) <= 1e-9 * 1e-13
        assert z @ slope - slope.min() <= 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_program_refuses_what_is_not_finite(bad):
    x = np.array([0.5, 0.5, 0.0])
    for H, g in ((np.eye(3), np.array([bad, 0.0, 1.0])), (np.full((3, 3), bad), np.array([1.0, 0.0, 2.0]))):
        done, z = solve(H, g, x, 0)
        assert not done
        np.testing.assert_array_equal(z, x)


# ---------------------------------------------------------------------- running a kernel


def fresh(layout, fill=0.0):
    S, A = layout.available.shape
    N = layout.weights.size
    return Memory(np.full((S, A), fill), np.full((S, N), fill), np.full((S, A, N), fill))


def sweep(layout, pair, value, policy=None, memory=None, states=None, look=point_at):
    """Update or, with a policy, evaluate the states; upper and lower are of F(v) with the level of v."""
    S, A = layout.available.shape
    memory = fresh(layout) if memory is None else memory
    x = np.full((S, A), np.nan) if policy is None else policy.copy()
    out = Out(np.full(S, np.nan), np.full(S, np.nan), x, np.full(S, -1))
    level = levels.level(value)
    v = value - level
    run(KERNELS[pair], policy is not None, layout, look(layout, v), memory, out, TOL, states)
    shift = layout.discount * level
    return out._replace(upper=out.upper + shift, lower=out.lower + shift), memory


def poisoned(memory, rng):
    """Spoil some of what is remembered."""
    for array in memory:
        array[rng.random(array.shape) < 0.2] = rng.choice(POISON)
    return memory


def width(update):
    """What a conic program did not settle."""
    return update.upper_step - update.lower_step


def check_against_conic(case, rng):
    model, ball, value = case.model, case.ball, case.value
    S, own = model.n_states, ~model.terminal
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    cold, memory = sweep(layout, ball.pair, value)
    exact = conic.update(value, 0, S)
    assert_close(cold.upper, exact.value, 1e-8, scale, own, width(exact))
    assert_close(cold.upper, cold.lower, 1e-10, scale, own)
    played = cold.policy[own]
    assert (played >= 0).all()
    np.testing.assert_allclose(played.sum(axis=1), 1, rtol=1e-13)
    assert (played * ~model.available[own] == 0).all()
    attained = conic.evaluate(value, np.where(own[:, None], cold.policy, 0.0), 0, S)
    assert_close(cold.upper, attained.value, 1e-8, scale, own, width(attained))

    for spoil in (lambda memory, rng: memory, poisoned):
        sweep(layout, ball.pair, np.where(own, rng.normal(size=S), 0) * (np.ptp(value) + 1), memory=memory)
        warm, _ = sweep(layout, ball.pair, value, memory=spoil(memory, rng))
        assert_close(warm.upper, cold.upper, 1e-10, scale, own)
        assert_close(warm.upper, warm.lower, 1e-10, scale, own)

    x = random_policy(rng, model)
    fixed, _ = sweep(layout, ball.pair, value, x, memory)
    want = conic.evaluate(value, x, 0, S)
    assert_close(fixed.upper, want.value, 1e-8, scale, own, width(want))
    assert_close(fixed.upper, fixed.lower, 1e-10, scale, own)


@small(KERNELS, 60, seed=5)
def test_agree_with_conic_programs(case):
    check_against_conic(case, np.random.default_rng(0))


# ---------------------------------------------------------------------- larger rows, every layout


@pytest.mark.parametrize("radius", [0.01, 0.3, 1.0, 2.4])
@pytest.mark.parametrize("kind", LAYOUTS)
@PAIRS
def test_every_layout_agrees_with_conic_programs(pair, kind, radius):
    model, support, value = larger(kind)
    ball = drmdp.Wasserstein(radius, *pair, support)
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    own = np.arange(model.n_states) < 1
    found, _ = sweep(layout, pair, value)
    x = random_policy(np.random.default_rng(1), model)
    fixed, _ = sweep(layout, pair, value, x)
    for got, exact in ((found, conic.update(value, 0, 1)), (fixed, conic.evaluate(value, x, 0, 1))):
        assert_close(got.upper, np.append(exact.value, np.zeros(own.size - 1)), 1e-8, scale, own, width(exact).max())
        assert_close(got.upper, got.lower, 2 * TOL, scale, ~model.terminal)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.1, 1.0, 2.4])
@PAIRS
def test_unlisted_states_count_as_if_they_were_listed(pair, radius):
    model, _, value = larger("unlisted", is_sparse=True)
    S, A = model.n_states, model.n_actions
    ball = drmdp.Wasserstein(radius, *pair, support="all")
    costs = np.repeat(model.costs[:, :, None], S, axis=2)
    kernels = np.stack([kernel.toarray().reshape(S, A, S) for kernel in model.kernels])
    some, full = lay_out(model, ball), lay_out(drmdp.Model(kernels, costs=costs, discount=model.discount), ball)
    assert some.unlisted
    assert full.indices.size == S * A * S
    for policy in (None, random_policy(np.random.default_rng(2), model)):
        a, b = (sweep(layout, pair, value, policy)[0] for layout in (some, full))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-10)


@PAIRS
def test_dense_and_sparse_models_agree(pair):
    model, _, value = larger("unlisted", is_sparse=True)
    S, A = model.n_states, model.n_actions
    kernels = np.stack([kernel.toarray().reshape(S, A, S) for kernel in model.kernels])
    twin = drmdp.Model(kernels, costs=model.costs, discount=model.discount)
    for support in ("all", "observed"):
        ball = drmdp.Wasserstein(0.6, *pair, support)
        a, b = (sweep(lay_out(m, ball), pair, value)[0] for m in (model, twin))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-10)


@PAIRS
def test_a_range_leaves_other_states_alone(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.3, *pair, support))
    whole, _ = sweep(layout, pair, value)
    part, memory = sweep(layout, pair, value, memory=fresh(layout, -7.0), states=(5, 9))
    inside = np.isin(np.arange(model.n_states), range(5, 9))
    np.testing.assert_allclose(part.upper[inside], whole.upper[inside], rtol=0, atol=1e-10)
    assert np.isnan(part.upper[~inside]).all()
    assert all((array[~inside] == -7.0).all() for array in memory)
    assert (memory.by_action[inside] >= 0).all()


def check_float32(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.3, *pair, support))
    single, double = in_both_precisions(layout, model.n_states)
    a, b = (sweep(own, pair, value)[0] for own in (single, double))
    np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)


# ---------------------------------------------------------------------- ends of the range


@PAIRS
def test_radius_0_is_nominal_and_a_huge_one_unconstrained(pair):
    model, support, value = larger("dense")
    stake = model.costs + model.discount * model.mean_kernel @ value
    nothing, _ = sweep(lay_out(model, drmdp.Wasserstein(0.0, *pair, support)), pair, value)
    np.testing.assert_allclose(nothing.upper, stake.min(axis=1), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(nothing.policy.argmax(axis=1), stake.argmin(axis=1))
    top = model.costs + model.discount * value.max()
    for radius in (10.0, 1e200):
        free, _ = sweep(lay_out(model, drmdp.Wasserstein(radius, *pair, support)), pair, value)
        np.testing.assert_allclose(free.upper, top.min(axis=1), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(free.policy.argmax(axis=1), top.argmin(axis=1))
        assert_close(free.upper, free.lower, TOL, (np.ones(1), 1e-13), slice(None))


@pytest.mark.parametrize("radius", [1e-12, 1e-9, 1e-6, 1e-3])
@PAIRS
def test_small_radii_need_few_passes(pair, radius):
    """Once lost to cancellation: γ of (ℓ2, 2) from squares of levels, D of rows at t below rounding."""
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
    out, memory = sweep(layout, pair, value)
    assert (out.upper - out.lower <= TOL * 10).all()
    assert out.passes.max() <= 8
    again, _ = sweep(layout, pair, value, memory=memory)
    assert again.passes.max() <= 2


@pytest.mark.parametrize("radius", [0.3, 1.0, 1.7])
@PAIRS
def test_actions_return_from_saturation(pair, radius):
    """(ℓ2, 2) once kept an action at the top for good, where D = 0 gives no Newton step: 80 passes a state."""
    rng = np.random.default_rng(8)
    S, A, N = 12, 20, 8
    y = rng.dirichlet(np.full(S, 0.2), (N, S, A))
    model = drmdp.Model(y, costs=rng.random((S, A)) / 20, discount=0.5)
    out, _ = sweep(lay_out(model, drmdp.Wasserstein(radius, *pair, support="all")), pair, rng.normal(size=S))
    assert (out.upper - out.lower <= 1e-10).all()
    assert out.passes.mean() <= 15


@pytest.mark.parametrize("discount", [0.3, 0.7, 0.9, 0.95, 0.99])
@PAIRS
def test_entries_that_tie_exactly_are_counted_once(pair, discount):
    """Rows of 0 and 1, values with ties, unlisted states: thresholds meet listed and unlisted entries at the same time."""
    rng = np.random.default_rng(9)
    S, A, N = 6, 3, 3
    for _ in range(10):
        rows = [sparse.csr_array(np.eye(S)[rng.integers(S, size=S * A)]) for _ in range(N)]
        model = drmdp.Model(rows, costs=np.round(rng.random((S, A)), 1), discount=discount)
        value = np.round(rng.normal(size=S), 1) / 3
        for radius in (0.2, 0.9, 1.3):
            layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support="all"))
            out, memory = sweep(layout, pair, value)
            warm, _ = sweep(layout, pair, value, memory=poisoned(memory, rng))
            for own in (out, warm):
                assert (own.upper - own.lower <= 1e-10).all()
                assert own.passes.max() <= 60


def test_leftover_budgets_bend_actions_that_are_not_played():
    """One action decides, and is at the top for most kernels; what they leave is all that bends three others, which share it unequally."""
    y = np.zeros((3, 4, 4, 4))
    y[:, :, 0, 0] = 1.0  # saturated already in kernels 0 and 1
    y[2, :, 0] = [0.1, 0.3, 0.3, 0.3]
    for a, row in ((1, [0.5, 0.5, 0, 0]), (2, [0.2, 0, 0.8, 0]), (3, [0.4, 0, 0, 0.6])):
        y[:, :, a] = row
    value = np.array([1.0, 0.0, -0.2, -1.0])
    for last in np.linspace(0.3, 0.9, 13):  # of the cost of action 0
        costs = np.tile([0.0, -last / 3, -last / 4, -last / 2], (4, 1))
        model = drmdp.Model(y, costs=costs, discount=0.9)
        for radius in (0.3, 0.5, 0.7, 0.9):
            ball = drmdp.Wasserstein(radius, "l2", math.inf, support="all")
            out, _ = sweep(lay_out(model, ball), ball.pair, value)
            exact = ConicOperator(model, ball).update(value, 0, 1)
            assert abs(out.upper[0] - exact.value[0]) <= 1e-8
            assert (out.upper - out.lower <= 1e-10).all()


# ---------------------------------------------------------------------- certificates


def rederived(case, layout, out, memory):
    """Re-derive U and L from what is remembered in plain NumPy: kernels rebuilt, made feasible and measured, and the dual at the multipliers."""
    model, ball = case.model, case.ball
    S, A, N = model.n_states, model.n_actions, layout.weights.size
    v = case.value - levels.level(case.value)
    data = certificate.block(model, ball, v, 0, S)
    ends = model.terminal[:, None]
    by_action, by_kernel = np.where(ends, 0.0, memory.by_action), np.where(ends, 1.0, memory.by_kernel)
    kappa = np.repeat(by_action.sum(axis=1)[:, None], N, axis=1) if ball.order == 2 else by_kernel
    t = by_action[:, :, None] * (np.ones((S, 1, N)) if ball.order == 2 else by_kernel[:, None, :])
    thresholds = np.where(t > 0, memory.by_row, 0.0)
    unit, level, kernels = np.ones(S), np.zeros((S, A)), data.nominal.copy()
    point, state = point_at(layout, v), scratch(layout, 0, S)
    for s in np.flatnonzero(~model.terminal):
        _, unit[s] = normalise(layout, point, s, state)
        level[s] = np.where(model.available[s], state.cost, 0.0)
        top = np.where(data.allowed[s], data.stakes[s], -np.inf).max(axis=-1, keepdims=True)
        top[~np.isfinite(top)] = 0.0  # of an unavailable action
        stake = (data.stakes[s] - top) / unit[s]
        stake[stake > -FLAT] = 0.0  # plateaus as the kernels see them: t may be 1e14
        bent = data.nominal[s] + t[s][..., None] * stake[:, None, :] - thresholds[s][..., None]
        moved = (t[s] > 0)[..., None] & data.allowed[s][:, None, :]
        kernels[s] = np.where(moved, np.maximum(bent, 0.0), np.where(t[s][..., None] > 0, 0.0, data.nominal[s]))
    x = np.where(ends, 0.0, out.policy)
    price = np.where(kappa > 0, unit[:, None] / (2 * np.where(kappa > 0, kappa, 1.0)), 0.0)
    share = thresholds / np.where(kappa > 0, kappa, 1.0)[:, None, :] + (x * level)[:, :, None]
    upper = certificate.upper(ball, data, x, price[:, 0] if ball.order == 2 else price, unit[:, None, None] * share)
    lower = certificate.lower(data, certificate.feasible(ball, data, kernels))
    shift = layout.discount * levels.level(case.value)
    return upper + shift, lower + shift


def check_alone(case, tol, rng):
    """Own bounds, cold and warm, and the bounds re-derived from what is remembered."""
    model, ball, value = case.model, case.ball, case.value
    own, scale, layout = ~model.terminal, units(model, ball, value), lay_out(model, ball)
    margin = scale[0], 100 * scale[1] + 1e-279  # certificates add all rounding up, and what underflows
    memory = fresh(layout)
    for turn in range(3):
        if turn == 1:  # from somewhere else
            elsewhere = np.where(own, value + rng.normal(size=own.size) * np.ptp(value), 0.0)
            other, _ = sweep(layout, ball.pair, elsewhere, memory=memory)
            assert_close(other.upper, other.lower, tol, units(model, ball, elsewhere), own)
        if turn == 2:
            poisoned(memory, rng)
        out, _ = sweep(layout, ball.pair, value, memory=memory)
        assert_close(out.upper, out.lower, tol, scale, own)
        upper, lower = rederived(case, layout, out, memory)
        assert_close(upper, out.upper, tol, margin, own)
        assert_close(lower, out.lower, tol, margin, own)
    for x in (np.where(own[:, None], out.policy, 0.0), random_policy(rng, model)):
        fixed, _ = sweep(layout, ball.pair, value, x, memory)
        assert_close(fixed.upper, fixed.lower, tol, scale, own)
        assert (fixed.upper >= out.lower - tol * scale[0] - scale[1])[own].all()


@PAIRS
def test_bounds_hold_by_themselves(pair):
    rng = np.random.default_rng(3)
    for case in cases(pair, 150, seed=11):
        check_alone(case, 1e-10, rng)


@PAIRS
def test_rows_of_another_state_are_not_taken_for_this_one(pair):
    rng = np.random.default_rng(7)
    for case in cases(pair, 240, seed=207):
        check_alone(case, 1e-9, rng)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_bounds_hold_by_themselves_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 2000, seed=200 + seed):
        check_alone(case, 1e-9, rng)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_agree_with_conic_programs_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 50, seed=300 + seed):
        check_against_conic(case, rng)


@pytest.mark.fuzz  # for what it takes to compile
@PAIRS
def test_float32_rows_are_renormalised(pair):
    check_float32(pair)
