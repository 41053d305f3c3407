"""(ℓ2, 2) and (ℓ2, ∞): against conic programs and certificates, and the passes they take."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

import drmdp
from cases import cases
from drmdp.certificate import dense as certificate
from drmdp.core import levels
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import SweepMemory
from drmdp.operators.conic.operator import ConicOperator
from drmdp.operators.exact import ExactOperator
from drmdp.solvers.problem import Problem
from kernels import assert_close, larger, over, poisoned, random_policy, sweep, sweeps, units

FLAT = 1e-13
PAIRS = over(("l2", 2), ("l2", math.inf))


# ---------------------------------------------------------------------- ends of the range


@pytest.mark.parametrize("radius", [1e-12, 1e-9, 1e-6, 1e-3])
@PAIRS
def test_small_radii_need_few_passes(pair, radius):
    """Once lost to cancellation: γ of (ℓ2, 2) from squares of levels, D of rows at t below
    rounding.
    """
    model, support, value = larger("dense")
    layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support))
    out, after = sweep(layout, pair, value)
    assert (out.upper - out.lower <= 1e-10).all()
    assert out.passes.max() <= 10
    again, _ = sweep(layout, pair, value, warm=after)
    assert again.passes.max() <= 2


@pytest.mark.parametrize("radius", [0.3, 1.0, 1.7])
@PAIRS
def test_actions_return_from_saturation(pair, radius):
    """(ℓ2, 2) once kept an action at the top for good, where D = 0 gives no Newton step: 80 passes
    a state.
    """
    rng = np.random.default_rng(8)
    S, A, N = 12, 20, 8
    y = rng.dirichlet(np.full(S, 0.2), (N, S, A))
    model = drmdp.Model(y, costs=rng.random((S, A)) / 20, discount=0.5)
    out, _ = sweep(
        lay_out(model, drmdp.Wasserstein(radius, *pair, support="all")), pair, rng.normal(size=S)
    )
    assert (out.upper - out.lower <= 1e-10).all()
    assert out.passes.mean() <= 15


@pytest.mark.parametrize("discount", [0.3, 0.7, 0.9, 0.95, 0.99])
@PAIRS
def test_entries_that_tie_exactly_are_counted_once(pair, discount):
    """Rows of 0 and 1, values with ties, unlisted states: thresholds meet listed and unlisted
    entries at the same time.
    """
    rng = np.random.default_rng(9)
    S, A, N = 6, 3, 3
    for _ in range(10):
        rows = [sparse.csr_array(np.eye(S)[rng.integers(S, size=S * A)]) for _ in range(N)]
        model = drmdp.Model(rows, costs=np.round(rng.random((S, A)), 1), discount=discount)
        value = np.round(rng.normal(size=S), 1) / 3
        for radius in (0.2, 0.9, 1.3):
            layout = lay_out(model, drmdp.Wasserstein(radius, *pair, support="all"))
            out, after = sweep(layout, pair, value)
            warm, _ = sweep(layout, pair, value, warm=poisoned(rng, after))
            for own in (out, warm):
                assert (own.upper - own.lower <= 1e-10).all()
                assert own.passes.max() <= 60


def test_leftover_budgets_bend_actions_that_are_not_played():
    """One action decides, and is at the top for most kernels; what they leave is all that bends
    three others, which share it unequally.
    """
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
            ambiguity = drmdp.Wasserstein(radius, "l2", math.inf, support="all")
            out, _ = sweep(lay_out(model, ambiguity), ambiguity.pair, value)
            exact = ConicOperator(model, ambiguity).update(value, 0, 1)
            assert abs(out.upper[0] - exact.value[0]) <= 1e-8
            assert (out.upper - out.lower <= 1e-10).all()


# ---------------------------------------------------------------------- certificates


def projected(y, t, stake):
    """The row nearest to y + t stake."""
    bent = y + t * stake
    down = np.sort(bent)[::-1]
    levels_of = (np.cumsum(down) - 1.0) / np.arange(1, bent.size + 1)
    return np.maximum(bent - levels_of[np.flatnonzero(down > levels_of)[-1]], 0.0)


def normalised(data, s):
    """The largest range of the stakes of an action, and the costs of all in it; the range of the
    costs where nature can change nothing.
    """
    stakes = [data.stakes[s, a, on] for a, on in enumerate(data.allowed[s])]
    here = np.flatnonzero(data.available[s])
    tops = np.array([stakes[a].max() if a in here else 0.0 for a in range(len(stakes))])
    unit = max(np.ptp(stakes[a]) for a in here)
    unit = unit if unit > 1e-280 else max(tops.max(), 1e-280)
    return unit, tops / unit


def rederived(case, layout, out, memory):
    """Re-derive U and L from what is remembered in plain NumPy: kernels rebuilt, made feasible and
    measured, and the dual at the multipliers.

    With e = (z − ŷ)/κ of nature's rows z at κ x, every y has x u·y ≤ max (x u − e) + e·ŷ + e·(y −
    ŷ), and e·(y − ŷ) ≤ ‖e‖ θ in each kernel.
    """
    model, ambiguity = case.model, case.ambiguity
    S, N = model.n_states, layout.weights.size
    v = case.value - levels.level(case.value, case.model)
    data, upper = certificate.block(model, ambiguity, v, 0, S), np.zeros(S)
    kernels = data.nominal.copy()
    for s in np.flatnonzero(~model.terminal):
        unit, cost = normalised(data, s)
        value, price = 0.0, np.zeros(N)
        for a in np.flatnonzero(model.available[s]):
            on = data.allowed[s, a]
            u = (data.stakes[s, a, on] - data.stakes[s, a, on].max()) / unit
            u[u > -FLAT] = 0.0  # plateaus as the kernels see them: t may be 1e14
            x, bend = out.policy[s, a], memory.by_action[s, a]
            value += x * cost[a]
            for i in range(N):
                y, kappa = data.nominal[s, a, i, on], memory.by_kernel[s, i]
                kernels[s, a, i, on] = projected(y, kappa * bend, u) if bend > 0 else y
                e = (projected(y, kappa * x, u) - y) / kappa if layout.radius[s] > 0 else x * u
                value += layout.weights[i] * ((x * u - e).max() + e @ y)
                price[i] += e @ e
        upper[s] = data.base[s] + unit * min(
            value + layout.radius[s] * (layout.weights @ np.sqrt(price)), 0.0
        )
    lower, _ = certificate.lower(data, certificate.feasible(ambiguity, data, kernels))
    shift = layout.discount * levels.level(case.value, case.model)
    return upper + shift, lower + shift


def check_rederived(case, layout, out, memory, tol):
    """Compare the bounds with those re-derived from what is remembered."""
    own, scale = ~case.model.terminal, units(case.model, case.ambiguity, case.value)
    margin = (
        scale[0],
        100 * scale[1] + 1e-279,
    )  # certificates add all rounding up, and what underflows
    upper, lower = rederived(case, layout, out, memory)
    assert_close(upper, out.upper, tol, margin, own)
    assert_close(lower, out.lower, tol, margin, own)


def check_alone(case, rng, tol):
    layout = lay_out(case.model, case.ambiguity)
    for out, _, memory in sweeps(case, rng, tol):
        check_rederived(case, layout, out, memory, tol)


def test_bounds_follow_from_what_is_remembered():
    rng = np.random.default_rng(3)
    for case in cases(("l2", math.inf), 50, seed=11):
        check_alone(case, rng, 1e-10)


@pytest.mark.parametrize("seed", [105, 201, 704, 1134, 2246])
def test_a_policy_closes_where_radii_nearly_jump(seed):
    """Order 1.01: a kernel with next to no price takes all of the budget or nothing, and the joint
    iteration goes to and fro.
    """
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(3), size=(2, 3, 2)) * (rng.random((2, 3, 2, 3)) < 0.6)
    kernels[kernels.sum(axis=-1) == 0] = [0, 0, 1]
    policy = rng.dirichlet(np.full(2, 0.5), size=3) + 1e-12
    model = drmdp.Model(
        kernels / kernels.sum(axis=-1, keepdims=True),
        costs=np.zeros((3, 2)),
        discount=0.9,
        weights=[0.95, 0.05],
    )
    ambiguity = drmdp.Wasserstein(float(rng.choice([0.05, 0.3, 0.7])), "l2", 1.01, "all")
    value = np.array([0, 0, 1.0]) if seed % 2 else rng.normal(size=3)
    found = Problem(ExactOperator(model, ambiguity.fitted(model), 1)).proved(
        value, policy / policy.sum(axis=1, keepdims=True)
    )
    assert (found.upper_step - found.lower_step < 1e-10).all()


def test_rows_of_another_state_are_not_taken_for_this_one():
    """Found in these cases, from these memories, drawn in this order."""
    rng, pair = np.random.default_rng(7), ("l2", math.inf)
    for case in cases(pair, 240, seed=207):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        own, layout = ~model.terminal, lay_out(model, ambiguity)
        S, A = layout.available.shape
        N = layout.weights.size
        warm = (
            SweepMemory(np.zeros((S, A)), np.zeros((S, N)), np.zeros((S, 0, 0))),
            np.zeros((S, A)),
        )
        for turn in range(3):
            if turn == 1:
                elsewhere = np.where(own, value + rng.normal(size=S) * np.ptp(value), 0.0)
                other, warm = sweep(layout, pair, elsewhere, warm=warm)
                assert_close(
                    other.upper, other.lower, 1e-9, units(model, ambiguity, elsewhere), own
                )
            if turn == 2:
                for array in warm[0]:
                    array[rng.random(array.shape) < 0.2] = rng.choice(
                        [np.nan, np.inf, -1.0, 0.0, 1e-300, 1e13]
                    )
            out, warm = sweep(layout, pair, value, warm=warm)
            assert_close(out.upper, out.lower, 1e-9, units(model, ambiguity, value), own)
            check_rederived(case, layout, out, warm[0], 1e-9)
        for x in (np.where(own[:, None], out.policy, 0.0), random_policy(rng, model)):
            fixed, warm = sweep(layout, pair, value, x, warm)
            unit, noise = units(model, ambiguity, value)
            assert_close(fixed.upper, fixed.lower, 1e-9, (unit, noise), own)
            assert (fixed.upper >= out.lower - 1e-9 * unit - noise)[own].all()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10))
def test_bounds_follow_from_what_is_remembered_in_many_cases(seed):
    rng = np.random.default_rng(seed)
    for case in cases(("l2", math.inf), 2000, seed=200 + seed):
        check_alone(case, rng, 1e-9)
