"""Lower bounds on totals where waiting is free: exact to the last digit, of adversaries only, and
not believed where rule E does not hold.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import drmdp
from drmdp.solution import Status
from drmdp.solvers.reachability import far_side
from drmdp.solvers.reachability.nature_table import Proved


def corridor(costs, by_next=False, slow=()):
    """Rooms in a row: each can be waited in, at no cost but in those that are `slow`, or left for
    the next one at its cost.
    """
    n = len(costs)
    rows, prices = np.zeros((n + 1, 2, n + 1)), np.zeros((n + 1, 2))
    for s, cost in enumerate(costs):
        rows[s, 0, s] = rows[s, 1, s + 1] = 1
        prices[s] = float(s in slow), cost
    rows[n, :, n] = 1
    prices = np.broadcast_to(prices[:, :, None], rows.shape).copy() if by_next else prices
    return drmdp.Model(
        rows[None],
        costs=prices,
        discount=1.0,
        terminal=[f"room {n}"],
        states=[f"room {s}" for s in range(n + 1)],
    )


@pytest.mark.parametrize("by_next", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_exact_where_sums_are_not(seed, by_next):
    """.1 + .2 + … in fractions: no float may be above it."""
    rng = np.random.default_rng(seed)
    costs = rng.choice([0.1, 0.2, 0.3, 0.7, 1e-3, 13.7], size=9) * rng.choice([1.0, 1 / 3, 1e5])
    found = drmdp.solve(corridor(costs.tolist(), by_next), drmdp.Wasserstein(0.0), threads=1)
    assert found.status is Status.solved
    for s in range(9):
        exact = sum(map(Fraction, costs[s:].tolist()))
        assert Fraction(float(found.lower[s])) <= exact <= Fraction(float(found.upper[s]))


def test_only_rooms_that_cost_nothing_are_named():
    found = drmdp.solve(corridor([1.0, 1.0, 2.0], slow=[1]), drmdp.Wasserstein(0.0))
    assert found.notes == (
        "waiting in 'room 0', 'room 2' costs nothing; the value is that of arriving",
    )


def test_what_rule_e_does_not_hold_for_is_not_taken(monkeypatch):
    bound = far_side.bound
    monkeypatch.setattr(
        far_side, "bound", lambda *given, **more: replace(bound(*given, **more), holds=False)
    )
    found = drmdp.solve(corridor([1.0, 1.0]), drmdp.Wasserstein(0.0))
    assert found.status is Status.precision_limit
    assert found.lower[0] < 2 - 1e-6


def test_a_kernel_proves_nothing_of_a_nature_that_helps():
    rows = np.array([[[1.0, 0], [0.5, 0.5]], [[0, 1.0], [0, 1.0]]])
    model = drmdp.Model(rows[None], costs=[[0, 1], [0, 0]], discount=1.0, terminal=[1])
    lower, upper = np.where(rows == 0.5, 0.2, rows), np.where(rows == 0.5, 0.9, rows)
    for nature, kernel in (("adversarial", True), ("cooperative", False)):
        found = drmdp.solve(model, drmdp.Intervals(lower, upper), nature=nature)
        assert found.lower[0] <= (5 if kernel else 1 / 0.9) <= found.upper[0]
        shown = found.sweeps[0] is not None and isinstance(found.sweeps[0].update.claim, Proved)
        assert shown == kernel


@pytest.mark.parametrize("seed", range(10))
def test_costs_by_next_state_are_sums_with_their_rounding(seed):
    """L(s) ≤ Σ y (c + L) in fractions, of rows of thirds and costs that cancel."""
    rng = np.random.default_rng(seed)
    n = 5
    rows = rng.integers(1, 8, size=(n + 1, 2, n + 1)) / 1.0
    rows[:n, 0] = np.eye(n + 1)[:n]
    rows /= rows.sum(axis=2, keepdims=True)
    costs = rng.normal(size=rows.shape) * 1e6 + 1e-3
    costs[:, 0] = 0.0
    costs -= (rows * costs).sum(axis=2, keepdims=True) * (np.arange(2) == 1)[None, :, None]
    costs[:, 1] += rng.choice([1e-9, 1e-7, 1.0])
    model = drmdp.Model(rows[None], costs=costs, discount=1.0, terminal=[n])
    found = drmdp.solve(model, drmdp.Wasserstein(0.0), threads=1, tol=1e-3)
    side = found.sweeps[0]
    if side is None:
        return
    lower = [Fraction(float(x)) for x in side.value]
    for s in range(n):
        for a in range(2):
            y = [Fraction(float(p)) for p in model.kernels[0, s, a]]
            paid = sum(
                p * (Fraction(float(c)) + v)
                for p, c, v in zip(y, model.costs[s, a], lower, strict=True)
            ) / sum(y)
            assert lower[s] <= paid
