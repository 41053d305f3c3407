"""(ℓ1, ∞) and (ℓ∞, 1), whose gains are piecewise linear: tables, knapsacks and games by themselves, bounds rebuilt, warm sweeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import drmdp
import reference
from cases import cases
from drmdp.bellman.piecewise import budget_per_kernel as budget_each
from drmdp.bellman.piecewise import budget_shared as budget_joint
from drmdp.bellman.piecewise import columns
from drmdp.layout.layout import lay_out
from kernels import LAYOUTS, assert_close, gained, larger, over, sweep, sweeps, units

PAIRS = over(("l1", math.inf), ("linf", 1))


# ---------------------------------------------------------------------- independent bounds


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
    """The lower bound rebuilt from nature's masses or radii, the upper one for ℓ1."""
    model, ball, value = case.model, case.ball, case.value
    own, scale = ~model.terminal, units(model, ball, value)
    z, allowed = np.asarray(reference.stakes(model, value), dtype=float), reference.support(model, ball)
    used = model.weights > 0
    y, w = reference.dense_kernels(model)[used], model.weights[used]
    radius = np.broadcast_to(ball.radius, own.shape)
    for out, fixed, memory in sweeps(case, rng, tol):
        x = out.policy
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
        assert_close(np.maximum(out.upper, fixed.lower), out.upper, 1e-12, scale, own)


@PAIRS
def test_bounds_follow_from_what_is_remembered(pair):
    rng = np.random.default_rng(2)
    for case in cases(pair, 50, seed=12):
        check_alone(case, rng, 1e-10)


# ---------------------------------------------------------------------- warm sweeps


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


# ---------------------------------------------------------------------- parts


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
@pytest.mark.parametrize("seed", range(10))
@PAIRS
def test_bounds_follow_from_what_is_remembered_in_many_cases(pair, seed):
    rng = np.random.default_rng(seed)
    for case in cases(pair, 2000, seed=200 + seed):
        check_alone(case, rng, 1e-9)
