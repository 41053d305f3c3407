"""The exact kernels of (ℓ1, ∞) and (ℓ∞, 1), whose gains are piecewise linear, against conic programs and independent bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import drmdp
import reference
from cases import cases
from drmdp.bellman import l1_inf, linf_1
from drmdp.bellman.conic.operator import ConicOperator
from drmdp.bellman.exact import FINEST
from drmdp.bellman.piecewise import budget_per_kernel as budget_each
from drmdp.bellman.piecewise import budget_shared as budget_joint
from drmdp.bellman.piecewise import columns
from drmdp.bellman.rows import linf as rows_linf
from drmdp.bellman.rows import linf_table as table_linf
from drmdp.bellman.rows.pair import Pair
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import Memory, Out
from drmdp.layout.point import Order, point_at
from drmdp.layout.sorting import SortSpace
from kernels import LAYOUTS, assert_close, in_both_precisions, larger, random_policy, run, small, units

KERNELS = {("l1", math.inf): l1_inf, ("linf", 1): linf_1}
PAIRS = pytest.mark.parametrize("pair", KERNELS, ids=["l1_inf", "linf_1"])


def memory_of(layout):
    S, A = layout.available.shape
    N = layout.weights.size
    return Memory(np.zeros((S, A)), np.zeros((S, N)), np.zeros((S, A, N))), np.zeros((S, A))


def sweep(layout, pair, value, policy=None, warm=None, states=None):
    """Update or, with a policy, evaluate the states; upper and lower are of F(v) with the level of v."""
    memory, x = warm or memory_of(layout)
    memory, x = Memory(*(array.copy() for array in memory)), x.copy() if policy is None else policy.copy()
    S = x.shape[0]
    out = Out(np.full(S, np.nan), np.full(S, np.nan), x, np.zeros(S))
    level = (value.max() + value.min()) / 2
    v = value - level
    run(KERNELS[pair], policy is not None, layout, point_at(layout, v), memory, out, FINEST, states)
    shift = layout.discount * level
    return out._replace(upper=out.upper + shift, lower=out.lower + shift), (memory, out.policy)


def poisoned(rng, warm):
    memory, x = warm
    return Memory(*(_poison(rng, array) for array in memory)), _poison(rng, x)


def _poison(rng, array):
    bad = rng.choice([np.nan, np.inf, -1.0, 1e300], size=array.shape)
    return np.where(rng.random(array.shape) < 0.4, bad, array)


def another_value(rng, case):
    v = rng.normal(size=case.value.size) * (np.ptp(case.value) + 1) * rng.choice([1e-3, 1.0, 1e3])
    return np.where(case.model.terminal, 0.0, v)


def starts(case, rng):
    """Memories to start from: none, of the same value, of an unrelated one, and full of NaN and nonsense."""
    layout = lay_out(case.model, case.ball)
    _, same = sweep(layout, case.ball.pair, case.value)
    _, other = sweep(layout, case.ball.pair, another_value(rng, case), warm=same)
    return [None, same, other, poisoned(rng, other)]


def check_against_conic(case, rng):
    model, ball, value = case.model, case.ball, case.value
    S, own = model.n_states, ~model.terminal
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    exact = conic.update(value, 0, S)
    x = random_policy(rng, model)
    fixed_exact = conic.evaluate(value, x, 0, S)
    for k, warm in enumerate(starts(case, rng)):
        out, after = sweep(layout, ball.pair, value, warm=warm)
        assert_close(out.upper, exact.value, 1e-8, scale, own)
        assert_close(out.upper, out.lower, 1e-10, scale, own)
        if k % 2 == 0:
            attained = conic.evaluate(value, np.where(own[:, None], out.policy, 0.0), 0, S)
            assert_close(out.upper, attained.value, 1e-8, scale, own)
        fixed, _ = sweep(layout, ball.pair, value, x, poisoned(rng, after) if k == 3 else after)
        assert_close(fixed.upper, fixed_exact.value, 1e-8, scale, own)
        assert_close(fixed.upper, fixed.lower, 1e-10, scale, own)


@small(KERNELS, 60, seed=4)
def test_agree_with_conic_programs(case):
    check_against_conic(case, np.random.default_rng(0))


# ---------------------------------------------------------------------- independent bounds


def gained(y, z, m):
    """Gain of moving the mass m from the lowest z to the highest."""
    up = np.argsort(z)
    before = np.cumsum(y[up]) - y[up]
    return np.clip(m - before, 0.0, y[up]) @ (z.max() - z[up])


def bent(y, z, r):
    """Gain of a row in z, each probability changing by at most r."""
    down = np.argsort(-z, kind="stable")
    p = np.minimum(y[down], r)
    room = p + r
    taken = np.clip(p.sum() - (np.cumsum(room) - room), 0.0, room)
    return (taken - p) @ z[down]


def knapsack(slopes, masses, budget):
    down = np.argsort(-slopes)
    before = np.cumsum(masses[down]) - masses[down]
    return np.clip(budget - before, 0.0, masses[down]) @ slopes[down]


def check_alone(case, rng, tol):
    """Bounds close to each other from every start; the lower one rebuilt from nature's masses or radii, the upper one for ℓ1."""
    model, ball, value = case.model, case.ball, case.value
    layout, own, scale = lay_out(model, ball), ~model.terminal, units(model, ball, value)
    z, allowed = np.asarray(reference.stakes(model, value), dtype=float), reference.support(model, ball)
    used = model.weights > 0
    y, w = reference.dense_kernels(model)[used], model.weights[used]
    radius = np.broadcast_to(ball.radius, own.shape)
    for warm in starts(case, rng):
        out, (memory, x) = sweep(layout, ball.pair, value, warm=warm)
        assert_close(out.upper, out.lower, tol, scale, own)
        assert (x[own] >= 0).all()
        assert (x[own] * ~model.available[own] == 0).all()
        np.testing.assert_allclose(x[own].sum(axis=1), 1, rtol=1e-13)
        lower, upper = np.full(own.shape, np.inf), np.zeros(own.shape)
        for s in np.flatnonzero(own):
            items = [[] for _ in w]
            for a in np.flatnonzero(model.available[s]):
                t = allowed[s, a]
                rows, stake = y[:, s, a][:, t], z[s, a, t]
                if ball.metric == "l1":
                    gains = [gained(row, stake, m) for row, m in zip(rows, memory.by_row[s, a], strict=True)]
                    for item, row in zip(items, rows, strict=True):
                        item.append((x[s, a] * (stake.max() - stake), row))
                else:
                    gains = [bent(row, stake, r) for row, r in zip(rows, memory.by_kernel[s], strict=True)]
                lower[s] = min(lower[s], w @ rows @ stake + w @ gains)
                upper[s] += x[s, a] * (w @ rows @ stake)
            if ball.metric == "l1":
                parts = [(np.concatenate([p for p, _ in i]), np.concatenate([m for _, m in i])) for i in items]
                upper[s] += w @ [knapsack(*part, radius[s] / 2) for part in parts]
        assert_close(np.maximum(out.lower, lower), lower, 1e-12, scale, own)
        if ball.metric == "l1":
            assert (memory.by_row[own] >= 0).all()
            assert (memory.by_row[own].sum(axis=1) <= radius[own, None] / 2 * (1 + 1e-14)).all()
            assert_close(np.minimum(out.upper, upper), upper, 1e-12, scale, own)
        else:
            assert (memory.by_kernel[own] >= 0).all()
            assert (memory.by_kernel[own] @ w <= radius[own] * (1 + 1e-14)).all()
        fixed, _ = sweep(layout, ball.pair, value, x, (memory, x))
        assert_close(fixed.upper, fixed.lower, tol, scale, own)
        assert_close(np.maximum(out.upper, fixed.lower), out.upper, 1e-12, scale, own)


@PAIRS
def test_bounds_hold_by_themselves(pair):
    rng = np.random.default_rng(2)
    for case in cases(pair, 120, seed=12):
        check_alone(case, rng, 1e-10)


# ---------------------------------------------------------------------- larger ones, every layout


@pytest.mark.parametrize("radius", [0.01, 0.2, 0.7, 3.0])
@pytest.mark.parametrize("kind", LAYOUTS)
@PAIRS
def test_every_layout_agrees_with_conic_programs(pair, kind, radius):
    model, support, value = larger(kind)
    ball = drmdp.Wasserstein(radius, *pair, support)
    layout, conic, scale = lay_out(model, ball), ConicOperator(model, ball), units(model, ball, value)
    own = np.arange(model.n_states) < 2
    found, _ = sweep(layout, pair, value)
    x = random_policy(np.random.default_rng(1), model)
    fixed, _ = sweep(layout, pair, value, x)
    want, fixed_want = np.zeros((2, model.n_states))
    want[own] = conic.update(value, 0, 2).value
    fixed_want[own] = conic.evaluate(value, x, 0, 2).value
    assert_close(found.upper, want, 1e-8, scale, own)
    assert_close(fixed.upper, fixed_want, 1e-8, scale, own)
    assert_close(found.upper, found.lower, 1e-10, scale, ~model.terminal)
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
            np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)
            np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-10)


@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.01, 0.1, 0.5, 1.5])
@PAIRS
def test_unlisted_states_count_as_if_they_were_listed(pair, radius):
    model, _, value = larger("unlisted")
    ball = drmdp.Wasserstein(radius, *pair, support="all")
    costs = np.repeat(model.costs[:, :, None], model.n_states, axis=2)
    some, full = lay_out(model, ball), lay_out(drmdp.Model(model.kernels, costs=costs, discount=0.9), ball)
    assert some.unlisted
    assert not full.unlisted
    x = random_policy(np.random.default_rng(2), model)
    for policy in (None, x):
        a, b = (sweep(layout, pair, value, policy)[0] for layout in (some, full))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.lower, b.lower, rtol=0, atol=1e-10)


@PAIRS
def test_sweeps_converge_and_stay_certified(pair):
    model, support, _ = larger("unlisted")
    for radius in (0.05, 0.5, 2.0):
        layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
        value, warm = np.zeros(model.n_states), None
        for _ in range(30):
            out, warm = sweep(layout, pair, value, warm=warm)
            assert (out.upper - out.lower <= 1e-10 * max(np.ptp(value), 1.0)).all()
            change, value = np.ptp(out.upper - value), out.upper
        assert change < 1e-3
        cold, _ = sweep(layout, pair, value)
        np.testing.assert_allclose(sweep(layout, pair, value, warm=warm)[0].upper, cold.upper, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", LAYOUTS)
@PAIRS
def test_warm_sweeps_are_verified_and_not_solved(pair, kind):
    model, support, value = larger(kind)
    for radius in (0.05, 0.5):
        layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
        _, warm = sweep(layout, pair, value)
        rng = np.random.default_rng(8)
        passes = []
        for _ in range(6):
            value = value + 1e-4 * rng.normal(size=value.size)
            out, warm = sweep(layout, pair, value, warm=warm)
            np.testing.assert_allclose(out.upper, out.lower, rtol=0, atol=1e-10 * np.ptp(value))
            np.testing.assert_allclose(out.upper, sweep(layout, pair, value)[0].upper, rtol=0, atol=1e-9)
            passes.append(out.passes[(out.policy == 1).any(axis=1) | (pair[0] == "l1")])  # for ℓ∞ one action at a time
        assert np.mean(np.concatenate(passes) == 1) > 0.8


@PAIRS
def test_a_range_leaves_other_states_alone(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.3, *pair, support))
    whole, _ = sweep(layout, pair, value)
    part, _ = sweep(layout, pair, value, states=(5, 9))
    inside = np.isin(np.arange(model.n_states), range(5, 9))
    np.testing.assert_array_equal(part.upper[inside], whole.upper[inside])
    assert np.isnan(part.upper[~inside]).all()
    assert (part.policy[~inside] == 0).all()


# ---------------------------------------------------------------------- parts


def random_row(rng):
    K = int(rng.integers(1, 10))
    y = rng.dirichlet(np.ones(K)) * (rng.random(K) < 0.7)
    if rng.random() < 0.3:
        y = rng.integers(3, size=K) * 1.0
    return y / y.sum() if y.sum() else np.eye(K)[0]


def test_tables_of_linf_rows_are_their_gains():
    rng = np.random.default_rng(9)
    for _ in range(400):
        y = random_row(rng)
        K = y.size
        S = K + int(rng.integers(0, 6))
        v = rng.normal(size=S) if rng.random() < 0.6 else rng.integers(3, size=S) * 1.0
        v = (v - v.max()) / (np.ptp(v) or 1.0)
        down = np.argsort(-v, kind="stable").astype(np.int32)
        order = Order(
            np.zeros(0),
            down,
            v[down],
            np.zeros(S + 1),
            np.zeros(S + 1),
            np.argsort(down).astype(np.int32),
            np.zeros(0, dtype=np.int32),
            0.0,
        )
        indices = np.sort(rng.choice(S, K, replace=False)).astype(np.int32)
        u = v[indices] - (v[indices].max() if K == S else 0.0)
        length = rows_linf.walk_length(K, S, K < S, 0.0)
        whole = [np.zeros(size, dtype=np.int64) for size in (K + 1, K + 2, K, 0)]
        sort = SortSpace(np.zeros(K), np.full(S, -1), whole[0], np.zeros(K + 1), *whole[1:])
        rows_linf.top_entries(u, indices, order, K < S, length, sort)
        pair = Pair(y, 0, K, u, 0, np.ones(1), sort.entry, sort.level, length)
        table_linf.place_entries(pair, sort.place)
        tables = budget_each.make_tables(1, 1, table_linf.lines_needed(K, 1))
        scratch = np.zeros(K + 1), np.zeros(K + 1, dtype=np.int64)
        table_linf.tabulate(pair, 1.0, sort.place, tables, 0, 0, *scratch)
        lines = tables.lines[: tables.length[0, 0] + 1]
        assert (np.diff(lines[:, 0]) > 0).all()
        assert (np.diff(lines[1:, 2]) < 0).all()
        full, z = np.zeros(S), v
        full[indices] = y
        for r in (*rng.random(4), *10.0 ** rng.uniform(-6, 0, 3), *lines[1:, 0]):
            assert budget_each.gain_at.py_func(tables, 0, 0, r, int(rng.integers(0, 5))) == pytest.approx(
                bent(full, z, r), abs=1e-12
            )


def random_tables(rng, n, N):
    """Concave tables with few, often equal, slopes."""
    tables = budget_each.make_tables(n, N, n * N * 6)
    for a in range(n):
        tables.start[a], tables.stride[a] = a * N * 6, 6
        for i in range(N):
            L = int(rng.integers(0, 6))
            slopes = np.sort(rng.choice([*np.arange(1, 12) / 10, *rng.random(5)], L, replace=False))[::-1]
            lengths = rng.choice([0.1, 0.25, rng.random() + 0.01], L)
            at = tables.start[a] + 6 * i
            tables.lines[at] = 0.0
            tables.lines[at + 1 : at + 1 + L] = np.column_stack([lengths.cumsum(), (lengths * slopes).cumsum(), slopes])
            tables.length[a, i] = L
    return tables


def segments(tables, a, i):
    at = tables.start[a] + i * tables.stride[a]
    lines = tables.lines[at : at + tables.length[a, i] + 1]
    return np.diff(lines[:, 0]), lines[1:, 2]


def test_knapsacks_are_exact():
    rng = np.random.default_rng(10)
    for _ in range(200):
        n, N = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        tables, w, x = random_tables(rng, n, N), rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(n))
        x[rng.random(n) < 0.2] = 0.0
        B = rng.choice([0.3, 1.0, 5.0])
        guess = rng.choice([0.0, 0.1, 0.5, 3.0])
        for i in range(N):
            parts = [(x[a] * slopes, lengths) for a in range(n) for lengths, slopes in [segments(tables, a, i)]]
            want = knapsack(np.concatenate([p for p, _ in parts]), np.concatenate([m for _, m in parts]), B)
            segment, end, m = rng.integers(0, 5, size=(n, N)), np.zeros(n, dtype=np.int64), np.zeros((n, N))
            priced = budget_each.Priced(tables, n, B, x)
            assert budget_each.knapsack.py_func(priced, i, guess, segment, end, m)[0] == pytest.approx(want, abs=1e-14)
        steps, lengths = [], []
        for i in range(N):  # segments of the sum over actions
            ends = np.unique(np.concatenate([[0.0], *(segments(tables, a, i)[0].cumsum() for a in range(n))]))
            at = np.array([sum(x[a] * budget_each.gain_at.py_func(tables, a, i, r, 1) for a in range(n)) for r in ends])
            steps += [*(np.diff(at) / np.diff(ends))]
            lengths += [*(w[i] * np.diff(ends))]
        want = knapsack(np.array(steps), np.array(lengths), B)
        r, segment = rng.random(N) * 2, rng.integers(0, 5, size=(n, N))
        mu, left = budget_joint.knapsack(priced, w, guess, r, segment)
        budget_joint.spend(priced, left, w, mu, rng.random(N), r, segment, np.zeros(N))
        got = sum(
            w[i] * x[a] * budget_each.gain_at.py_func(tables, a, i, r[i], segment[a, i])
            for a in range(n)
            for i in range(N)
        )
        assert got == pytest.approx(want, abs=1e-13)
        assert w @ r <= B * (1 + 1e-14)


def test_games_are_solved_column_by_column():
    rng = np.random.default_rng(11)
    for _ in range(60):
        n, J = int(rng.integers(1, 7)), int(rng.integers(1, 30))
        q = rng.normal(size=(J, n)) if rng.random() < 0.6 else rng.integers(-2, 3, size=(J, n)) * 1.0
        want = linprog(
            [*np.zeros(J), -1.0], np.column_stack([-q.T, np.ones(n)]), np.zeros(n), [[*np.ones(J), 0.0]], [1.0],
            bounds=[(0, None)] * J + [(None, None)],
        )  # fmt: skip
        board = columns.make_basis(n)
        columns.begin(board, n, q[0])
        for _ in range(500):
            low = columns.balance(board, n, 1e-13)
            x = np.maximum(board.price[:n], 0.0)
            best = np.argmax(q @ (x / x.sum()))
            high = (q @ (x / x.sum()))[best]
            if high - low <= 1e-11:
                break
            assert columns.admit(board, n, q[best]) >= 0
        assert low == pytest.approx(-want.fun, abs=1e-10)
        assert high == pytest.approx(-want.fun, abs=1e-10)


# ---------------------------------------------------------------------- many


@pytest.mark.fuzz
@PAIRS
def test_float32_rows_are_renormalised(pair):
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(0.1, *pair, support))
    single, double = in_both_precisions(layout, model.n_states)
    for policy in (None, random_policy(np.random.default_rng(3), model)):
        a, b = (sweep(own, pair, value, policy)[0] for own in (single, double))
        np.testing.assert_allclose(a.upper, b.upper, rtol=0, atol=1e-10)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_bounds_hold_by_themselves_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 2000, seed=200 + seed):
        check_alone(case, rng, 1e-9)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(5))
@PAIRS
def test_agree_with_conic_programs_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 100, seed=300 + seed):
        check_against_conic(case, rng)
