"""The entropy map of nature's rows: optimality conditions, a conic solver, and steps that are too
long.
"""

import cvxpy as cp
import numpy as np
import pytest

import drmdp
from drmdp.layout.layout import lay_out_all
from drmdp.prox.registry import ENTROPY_EACH, Push, cold_memory
from drmdp.solvers.first_order.players import MIX, first_rows

PAIR = "linf", np.inf
RADII = np.array([1e-4, 0.01, 0.1, 0.4, 1.0, 3.0])


def problem(seed, equal, support, dtype=None):
    """A layout with a radius for each state, an iterate inside, the row of each of its entries, a
    step and a value.
    """
    rng = np.random.default_rng(seed)
    S, A, N = 6, 3, 4
    kernels = rng.dirichlet(np.full(S, 0.5), size=(N, S, A))
    kernels[:, rng.random((S, A, S)) < 0.3] = 0
    kernels[rng.random(kernels.shape) < 0.2] = 0
    kernels[..., 0] += 0.1
    kernels /= kernels.sum(axis=-1, keepdims=True)
    weights = None if equal else rng.dirichlet(np.ones(N))
    model = drmdp.Model(
        kernels, costs=rng.random((S, A, S)), discount=0.9, weights=weights, dtype=dtype
    )
    layout = lay_out_all(model, drmdp.Wasserstein(RADII, *PAIR, support))
    lengths = np.repeat(np.diff(layout.indptr), N)
    rows = np.repeat(np.arange(lengths.size), lengths)
    return layout, first_rows(layout, MIX), rows, rng.uniform(-1, 1, (S, A)), rng.random(S)


def run(layout, y, step, value, memory):
    ENTROPY_EACH.project(0, RADII.size, (layout, Push(step, value), y, memory), inside=True)


def log_u(layout, y, step, value):
    """Log y° + w σ x z for every entry of the layout's data."""
    N, A = layout.weights.size, layout.available.shape[1]
    out = np.log(y)
    for k in range(layout.indptr.size - 1):
        lo, hi = layout.indptr[k], layout.indptr[k + 1]
        z = layout.discount * value[layout.indices[lo:hi]] + layout.next_costs[lo:hi]
        out[N * lo : N * hi] += (layout.weights[:, None] * step[k // A, k % A] * z).ravel()
    return out


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("support", ["all", "observed", "state"])
@pytest.mark.parametrize("equal", [True, False])
def test_no_mass_would_rather_be_elsewhere(equal, support, dtype):
    """Feasible, and log(y/u) of what may still grow is at least that of what may still shrink."""
    moved = 0
    for seed in range(20):
        layout, y, rows, step, value = problem(seed, equal, support, dtype)
        centre = layout.data / np.bincount(rows, weights=layout.data)[rows]
        memory = cold_memory(ENTROPY_EACH, layout)
        for size in (1.0, 30.0, 5.0):
            log, before = log_u(layout, y, size * step, value), y.copy()
            run(layout, y, size * step, value, memory)
            theta = RADII[rows // 12]
            low, high = np.maximum(centre - theta, 0), centre + theta
            assert np.all((y >= low - 1e-15) & (y <= high + 1e-15))
            np.testing.assert_allclose(np.bincount(rows, weights=y), 1, rtol=0, atol=1e-13)
            slope = np.log(y) - log
            least, most = np.full(72, np.inf), np.full(72, -np.inf)
            np.minimum.at(least, rows, np.where(y < high - 1e-12, slope, np.inf))
            np.maximum.at(most, rows, np.where(y > low + 1e-12, slope, -np.inf))
            assert np.all(least >= most - 1e-8)
            moved += np.count_nonzero(np.abs(y - before) > 1e-3)
    assert moved > 1000


def test_agrees_with_a_conic_solver():
    layout, y, rows, step, value = problem(3, True, "all")
    log, before = log_u(layout, y, 4 * step, value), y.copy()
    run(layout, y, 4 * step, value, cold_memory(ENTROPY_EACH, layout))
    for row in range(12, 72, 3):
        own = rows == row
        theta, u = RADII[row // 12], np.exp(log[own])
        x = cp.Variable(own.sum())
        inside = [cp.sum(x) == 1, x >= 0, cp.abs(x - layout.data[own]) <= theta]
        cp.Problem(cp.Minimize(cp.sum(cp.kl_div(x, u / u.sum()))), inside).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(y[own], x.value, rtol=0, atol=2e-5)
    assert np.abs(y - before).max() > 0.1


def test_steps_too_long_for_exponentials_leave_rows_in_the_ambiguity():
    layout, y, rows, step, value = problem(5, False, "all")
    memory = cold_memory(ENTROPY_EACH, layout)
    for size in (1e6, -1e6, 1e6, 1.0):
        run(layout, y, size * step, value, memory)
        np.testing.assert_allclose(np.bincount(rows, weights=y), 1, rtol=0, atol=1e-12)
        assert np.all(np.abs(y - layout.data) <= RADII[rows // 12] + 1e-12)


def test_rows_without_a_step_stay_and_a_ambiguity_of_one_point_is_that_point():
    layout, y, rows, step, value = problem(6, True, "all")
    layout = layout._replace(radius=np.array([0.0, *RADII[1:]]))
    layout.radius.setflags(write=False)
    step[:, 1] = 0
    before = y.copy()
    run(layout, y, step, value, cold_memory(ENTROPY_EACH, layout))
    point, still = rows < 12, rows // 4 % 3 == 1
    assert np.array_equal(y[point], layout.data[point])
    assert np.array_equal(y[still & ~point], before[still & ~point])
    assert np.abs(y - before)[~still & ~point].max() > 0.01
