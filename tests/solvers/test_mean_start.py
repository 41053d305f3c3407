"""The start of the robust methods is the optimum of the mean kernel, however the chain mixes and
whatever the model lacks.
"""

import numpy as np
import pytest

import drmdp
from drmdp import instances
from drmdp.criteria import newton_systems
from drmdp.operators.build import build
from drmdp.solvers import mean_start
from drmdp.solvers.mean_start import ROUGH, optimum
from drmdp.solvers.policy_iteration import nominal_value
from drmdp.solvers.problem import Problem


def random_model(seed, S=6, A=3, discount=0.9, scale=1.0, **settings):
    """Zeros, deterministic rows, a terminal state, unavailable actions, costs of next states in
    every other.
    """
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(S, 0.3), size=(2, S, A))
    kernels[:, 0, 0] = np.eye(S)[S - 1]
    available = rng.random((S, A)) < 0.8
    available[:, 0] = True
    costs = scale * rng.normal(size=(S, A, S) if seed % 2 else (S, A))
    given = {"terminal": [1], "available": available} if S > 1 else {}
    return drmdp.Model(
        kernels, costs=costs, discount=discount, weights=[0.3, 0.7], **given | settings
    )


def problem(model, policy=None):
    return Problem(build(model, drmdp.Wasserstein(0.1), "exact", 1), policy)


def by_hand(model, policy=None):
    """Value iteration in plain NumPy, finished by a linear system."""
    S, A = model.n_states, model.n_actions
    kernel = np.asarray(model.mean_kernel).reshape(S, A, S)
    costs = np.asarray(
        model.costs if not model.next_costs else np.asarray(model.costs).reshape(S, A, S)
    )
    costs = (np.where(kernel > 0, costs, 0.0) * kernel).sum(axis=2) if model.next_costs else costs
    x = policy
    if x is None:
        v = np.zeros(S)
        for _ in range(2000):
            q = np.where(model.available, costs + model.discount * kernel @ v, np.inf)
            v = np.where(model.terminal, 0.0, q.min(axis=1))
        x = np.eye(A)[q.argmin(axis=1)] * ~model.terminal[:, None]
    chain, right = (
        np.einsum("sa,sat->st", x, kernel),
        (x * np.where(model.available, costs, 0.0)).sum(axis=1),
    )
    return np.linalg.solve(np.eye(S) - model.discount * chain, right)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_optimum_of_the_mean_kernel(seed, scale):
    model = random_model(seed, S=1 + 9 * (seed // 2), discount=0.9, scale=scale)
    want = by_hand(model)
    np.testing.assert_allclose(
        nominal_value(problem(model)), want, rtol=0, atol=1e-8 * max(np.abs(want).max(), scale)
    )


@pytest.mark.parametrize("seed", range(4))
def test_or_the_value_of_a_policy_that_may_mix(seed):
    model = random_model(seed, discount=0.99)
    x = np.random.default_rng(seed).random((6, 3)) * model.available
    x[2] = np.eye(3)[0]
    x = x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300) * ~model.terminal[:, None]
    want = by_hand(model, x)
    np.testing.assert_allclose(
        nominal_value(problem(model, x)), want, rtol=0, atol=1e-8 * np.abs(want).max()
    )


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.9999])
@pytest.mark.parametrize("name", ["garnet", "ring", "forest"])
def test_chains_that_mix_fast_and_slowly(name, discount):
    made = {
        "garnet": lambda: instances.garnet(150, 4, discount=discount),
        "ring": lambda: instances.ring(150, 2, discount=discount),
    }
    model = made.get(name, lambda: instances.forest(150, discount=discount))()
    own = problem(model)
    value, rows = nominal_value(own), own.mean_rows()
    _, residual = mean_start.improve(rows, mean_start.compact(rows), None, value)
    assert (
        np.abs(residual).max()
        <= 1e-9 * max(1.0, np.abs(value).max()) * (1 - discount) + 1e-13 * np.abs(value).max()
    )
    assert own.mean_rows() is rows  # made once for a model


def test_products_solve_what_mixes_fast_and_nothing_else():
    rng = np.random.default_rng(0)
    for stay, fast in ((0.0, True), (0.95, False)):
        kernel = stay * np.eye(100) + (1 - stay) * rng.dirichlet(np.ones(100), size=100)
        model = drmdp.Model(kernel[:, None], costs=np.zeros((100, 1)), discount=0.999)
        rows, right = problem(model).mean_rows(), rng.normal(size=100)
        found = newton_systems.relax(
            mean_start.compact(rows, np.ones((100, 1))), 0.999, right, ROUGH * (1 - 0.999)
        )
        assert (found is not None) == fast
        assert (newton_systems.relax(kernel, 0.999, right) is not None) == fast
        if fast:
            left = np.abs(right - (found - 0.999 * kernel @ found)).max()
            assert left <= 1.01 * ROUGH * (1 - 0.999) * np.abs(found).max()


def test_ties_and_equal_actions_come_to_an_end():
    kernel = np.tile(np.random.default_rng(0).dirichlet(np.ones(80), size=(80, 1)), (1, 3, 1))
    model = drmdp.Model(kernel, costs=np.ones((80, 3)), discount=0.99)
    np.testing.assert_allclose(nominal_value(problem(model)), 100.0, rtol=1e-9)


def test_who_cuts_it_short_finds_the_newest_point():
    model = random_model(4, S=newton_systems.SMALL + 1)
    points = []

    def checkpoint(value):
        points.append(value)
        if len(points) == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        optimum(problem(model).mean_rows(), None, 0.0, checkpoint)
    assert not points[0].any()
    assert points[1].any()
