"""The exact kernels of (ℓ1, 1) and (ℓ∞, ∞) against conic programs, their definitions and their own certificates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import drmdp
import reference
from cases import cases
from drmdp.bellman import l1_1, linf_inf
from drmdp.bellman.conic.operator import ConicOperator
from drmdp.bellman.rows import linf as rows_linf
from drmdp.bellman.rows.pair import Pair
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import point_at
from drmdp.layout.sorting import sort_ahead, sort_space
from kernels import LAYOUTS, assert_close, in_both_precisions, larger, random_policy, run, small, units

KERNELS = {("l1", 1): l1_1, ("linf", math.inf): linf_inf}
PAIRS = pytest.mark.parametrize("pair", KERNELS, ids=["l1_1", "linf_inf"])


def sweep(layout, pair, value, policy=None, memory=None, states=None):
    """Update or, with a policy, evaluate the states; upper and lower are of F(v) with the level of v."""
    S, A = layout.available.shape
    if memory is None:
        memory = Memory(np.full((S, A), np.nan), np.full((S, layout.weights.size), np.nan), np.zeros((S, 0, 0)))
    x = np.full((S, A), np.nan) if policy is None else policy.copy()
    out = Out(np.full(S, np.nan), np.full(S, np.nan), x, np.full(S, -1))
    level = (value.max() + value.min()) / 2
    v = value - level
    run(KERNELS[pair], policy is not None, layout, point_at(layout, v), memory, out, 1e-12, states)
    shift = layout.discount * level
    return out._replace(upper=out.upper + shift, lower=out.lower + shift), memory


def check_against_conic(case, rng):
    model, ball, value = case.model, case.ball, case.value
    S, own = model.n_states, ~model.terminal
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    cold, _ = sweep(layout, ball.pair, value)
    exact = conic.update(value, 0, S)
    assert_close(cold.upper, exact.value, 1e-8, scale, own)
    assert_close(cold.upper, cold.lower, 1e-10, scale, own)
    played = cold.policy[own]
    assert (played >= 0).all()
    np.testing.assert_allclose(played.sum(axis=1), 1, rtol=1e-13)
    assert (cold.policy[own] * ~model.available[own] == 0).all()
    attained = conic.evaluate(value, np.where(own[:, None], cold.policy, 0.0), 0, S)
    assert_close(cold.upper, attained.value, 1e-8, scale, own)

    _, memory = sweep(layout, ball.pair, rng.normal(size=S) * (np.ptp(value) + 1))
    warm, memory = sweep(layout, ball.pair, value, memory=memory)
    assert_close(warm.upper, cold.upper, 1e-10, scale, own)
    assert_close(warm.upper, warm.lower, 1e-10, scale, own)

    x = random_policy(rng, model)
    fixed, _ = sweep(layout, ball.pair, value, x, memory)
    assert_close(fixed.upper, conic.evaluate(value, x, 0, S).value, 1e-8, scale, own)
    assert_close(fixed.upper, fixed.lower, 1e-10, scale, own)


@small(KERNELS, 60, seed=3)
def test_agree_with_conic_programs(case):
    check_against_conic(case, np.random.default_rng(0))


# ---------------------------------------------------------------------- larger rows, every layout


@pytest.mark.parametrize("radius", [0.01, 0.2, 0.7, 3.0])
@pytest.mark.parametrize("kind", LAYOUTS)
@PAIRS
def test_every_layout_agrees_with_conic_programs(pair, kind, radius):
    model, support, value = larger(kind)
    ball = drmdp.Wasserstein(radius, *pair, support)
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    states = range(0, 3)
    own = np.isin(np.arange(model.n_states), states)
    found, _ = sweep(layout, pair, value)
    x = random_policy(np.random.default_rng(1), model)
    fixed, _ = sweep(layout, pair, value, x)
    want, fixed_want = np.zeros((2, model.n_states))
    want[own] = conic.update(value, 0, 3).value
    fixed_want[own] = conic.evaluate(value, x, 0, 3).value
    assert_close(found.upper, want, 1e-8, scale, own)
    assert_close(fixed.upper, fixed_want, 1e-8, scale, own)
    assert_close(found.upper, found.lower, 1e-12, scale, ~model.terminal)
    assert_close(fixed.upper, fixed.lower, 1e-12, scale, ~model.terminal)


@PAIRS
def test_dense_and_sparse_models_agree(pair):
    model, _, value = larger("unlisted")
    S, A = model.n_states, model.n_actions
    matrices = [sparse.csr_array(kernel.reshape(S * A, S)) for kernel in model.kernels]
    twin = drmdp.Model(matrices, costs=model.costs, discount=model.discount)
    for radius in (0.1, 0.6):
        for support in ("all", "observed"):
            ball = drmdp.Wasserstein(radius, *pair, support)
            a, b = (sweep(lay_out(m, ball), pair, value)[0] for m in (model, twin))
            np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-12)
            np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-12)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.01, 0.1, 0.5, 1.5])
@PAIRS
def test_unlisted_states_count_as_if_they_were_listed(pair, radius):
    model, _, value = larger("unlisted")
    S, A = model.n_states, model.n_actions
    ball = drmdp.Wasserstein(radius, *pair, support="all")
    costs = np.repeat(model.costs[:, :, None], S, axis=2)
    twin = drmdp.Model(model.kernels, costs=costs, discount=model.discount)
    some, full = lay_out(model, ball), lay_out(twin, ball)
    assert some.unlisted
    assert full.indices.size == S * A * S
    x = random_policy(np.random.default_rng(2), model)
    for policy in (None, x):
        a, b = (sweep(layout, pair, value, policy)[0] for layout in (some, full))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-12)


@PAIRS
def test_a_range_leaves_other_states_alone(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.3, *pair, support))
    whole, _ = sweep(layout, pair, value)
    part, memory = sweep(layout, pair, value, states=(5, 9))
    inside = np.isin(np.arange(model.n_states), range(5, 9))
    np.testing.assert_array_equal(part.upper[inside], whole.upper[inside])
    left = memory.by_action if pair == ("l1", 1) else memory.by_kernel
    assert np.isnan(part.upper[~inside]).all()
    assert np.isnan(left[~inside]).all()
    assert not np.isnan(left[inside]).any()


@pytest.mark.fuzz  # for what it takes to compile
def test_float32_rows_are_renormalised():
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.1, "linf", math.inf, support))
    single, double = in_both_precisions(layout, model.n_states)
    a, b = (sweep(own, ("linf", math.inf), value)[0] for own in (single, double))
    np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-13)


# ---------------------------------------------------------------------- parts


@pytest.mark.parametrize("kind", ["random", "ties", "ascending", "descending", "constant"])
def test_entries_are_sorted_as_far_as_asked(kind):
    rng = np.random.default_rng(5)
    for n in (1, 2, 19, 20, 21, 60, 500):
        key = rng.integers(n // 5 + 1, size=n) * 1.0 if kind == "ties" else rng.normal(size=n)
        key = {"ascending": np.sort(key), "descending": -np.sort(key), "constant": key * 0}.get(kind, key)
        given, entry, stack, done = key.copy(), np.arange(n), np.zeros(n + 2, dtype=np.int64), 0
        stack[:2] = 1, n
        want = np.sort(given)
        while done < n:
            more = sort_ahead(key, entry, stack, done)
            assert more > done
            done = more
            np.testing.assert_array_equal(key[:done], want[:done])
        np.testing.assert_array_equal(given[entry], want)
        assert np.unique(entry).size == n


def test_slope_of_a_row_is_that_of_its_gain():
    rng = np.random.default_rng(6)
    layout = lay_out(larger("dense")[0], drmdp.Wasserstein(1.0, "linf", math.inf, support="all"))
    point = point_at(layout, np.zeros(40))
    for _ in range(200):
        K = rng.integers(2, 12)
        y = rng.dirichlet(np.ones(K)) * (rng.random(K) < 0.7)
        y = y / y.sum() if y.sum() else np.eye(K)[0]
        u = np.minimum(np.round(rng.random(K), rng.integers(1, 4)) - 1, 0)
        u -= u.max()
        sort = sort_space(layout, point, 0, 0, K)
        rows_linf.top_entries(u, np.arange(K), point.order, False, K, sort)
        row = Pair(y, 0, K, u, 0, np.ones(1), sort.entry, sort.level, K)
        for r in (1e-12, *rng.random(5) * 0.5):
            gain, slope, pivot, delta, _ = rows_linf.row_at(row, 0, r)
            more = rows_linf.row_at(row, 0, r + 1e-9)[0]
            assert slope == pytest.approx((more - gain) / 1e-9, abs=1e-5)
            assert gain == pytest.approx(bend(y, u, r) @ u - y @ u, abs=1e-14)
            assert -min(r, y[sort.entry[pivot]]) - 1e-15 <= delta <= r


def bend(y, z, r):
    """Rows (…, S) that gain most in z, each probability changing by at most r."""
    down = np.argsort(-z, axis=-1, kind="stable")
    p = np.minimum(np.take_along_axis(y, np.broadcast_to(down, y.shape), axis=-1), r)
    room, supply = p + r, p.sum(axis=-1, keepdims=True)
    taken = np.clip(supply - (np.cumsum(room, axis=-1) - room), 0.0, room)
    change = np.empty_like(y)
    np.put_along_axis(change, np.broadcast_to(down, y.shape), taken - p, axis=-1)
    return y + change


def gained(y, z, m):
    """Gain of moving the mass m from the lowest z to the highest, for a mean row."""
    up = np.argsort(z)
    before = np.cumsum(y[up]) - y[up]
    return np.clip(m - before, 0.0, y[up]) @ (z.max() - z[up])


# ---------------------------------------------------------------------- many


def check_alone(case, tol=1e-9):
    """Check a case against the certificate of (ℓ1, 1), rebuilt from the masses, and the definition of (ℓ∞, ∞)."""
    model, ball, value = case.model, case.ball, case.value
    layout = lay_out(model, ball)
    own = ~model.terminal
    out, memory = sweep(layout, ball.pair, value)
    scale = units(model, ball, value)
    assert_close(out.upper, out.lower, tol, scale, own)
    fixed, _ = sweep(layout, ball.pair, value, np.where(own[:, None], out.policy, 0.0))
    assert_close(out.upper, fixed.lower, tol, scale, own)
    z, allowed = np.asarray(reference.stakes(model, value), dtype=float), reference.support(model, ball)
    y = reference.dense_kernels(model)[model.weights > 0]
    w = model.weights[model.weights > 0]
    radius = np.broadcast_to(ball.radius, own.shape)
    lower = np.full(own.shape, np.inf)
    for s, a in np.argwhere(model.available & own[:, None]):
        t = allowed[s, a]
        rows, stake = y[:, s, a, t], z[s, a, t]
        if ball.metric == "l1":
            got = w @ rows @ stake + gained(w @ rows, stake, memory.by_action[s, a])
        else:
            got = w @ bend(rows, stake, radius[s]) @ stake
        lower[s] = min(lower[s], got)
    if ball.metric == "l1":
        assert (memory.by_action[own] >= 0).all()
        assert (memory.by_action[own].sum(axis=1) <= radius[own] / 2 * (1 + 1e-14)).all()
    else:
        assert (memory.by_kernel[own] == radius[own, None]).all()
    assert_close(np.maximum(out.upper, lower), lower, tol, scale, own)


@PAIRS
def test_bounds_hold_by_themselves(pair):
    for case in cases(pair, 200, seed=11):
        check_alone(case, 1e-10)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_bounds_hold_by_themselves_in_many_cases(pair, seed):
    for case in cases(pair, 2500, seed=100 + seed):
        check_alone(case)


@pytest.mark.fuzz
@PAIRS
def test_agree_with_conic_programs_in_many_cases(pair):
    rng = np.random.default_rng(1)
    for case in cases(pair, 500, seed=50):
        check_against_conic(case, rng)
