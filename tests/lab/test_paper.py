"""The paper's algorithm and statements against references that share nothing with the package, and
examples that our list of errata quotes.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import algorithm_1
import drmdp
from drmdp import instances
from drmdp.operators.build import build
from drmdp.solvers.problem import Problem


def stepped(model, ambiguity, method, n_steps, value=None):
    """State after so many steps."""
    problem = Problem(build(model, ambiguity, "exact", 1))
    problem.operator.accuracy = 1e-3
    state = method.init(problem, value)
    for _ in range(n_steps):
        state = method.step(problem, state)
    return state


# ---------------------------------------------------------------------- Algorithm 1


@pytest.mark.parametrize("start", ["zero", "random"])
@pytest.mark.parametrize(("metric", "order", "radius"), [("l2", 2, 0.25), ("l1", 1, 0.4)])
def test_an_independent_algorithm_1_takes_the_same_204_steps(metric, order, radius, start):
    model = instances.perturb(instances.garnet(3, 2, 2), 2)  # in two states both actions are played
    v = np.random.default_rng(1).uniform(0, 1, 3) if start == "random" else np.zeros(3)
    expected = algorithm_1.algorithm_1(model.kernels, model.costs, 0.8, radius, metric, 8, v)
    assert expected.steps == 204
    method = drmdp.FirstOrder(check_every=100)
    state = stepped(
        model, drmdp.Wasserstein(radius, metric, order, support="all"), method, 204, v.copy()
    )
    y = state.players.kernels.reshape(3, 2, 2, 3).transpose(2, 0, 1, 3)
    far = (np.abs(expected.y - model.kernels) ** order).sum(axis=(2, 3)).mean(axis=0) ** (1 / order)
    assert far.max() == pytest.approx(radius)  # the ball binds
    for ours, theirs in (
        (state.players.policy, expected.x),
        (y, expected.y),
        (state.value, expected.v),
        (state.answer.parts[0], expected.x_mean),
        (state.answer.parts[1].reshape(3, 2, 3), expected.y_mean),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 7])
def test_with_its_signs_as_printed_algorithm_1_solves_the_optimistic_problem(seed):
    model = instances.perturb(instances.garnet(4, 3, 2, seed=seed, discount=0.4), 2, seed=seed)
    given, ambiguity = (
        (model.kernels, model.costs, model.discount, 0.3),
        drmdp.Wasserstein(0.3, support="all"),
    )
    best, worst = algorithm_1.optimistic(*given), drmdp.solve(model, ambiguity, tol=1e-9).value
    found = algorithm_1.algorithm_1(*given, "l2", 7, np.zeros(4), printed=True)
    assert (worst - best).min() > 0.3
    assert np.abs(found.v - best).max() < 0.01


def test_value_iteration_with_an_inner_first_order_method_closes_the_gap_too():
    """The pair that only the last epoch averaged is as good as its v and its inner accuracy: both
    improve.
    """
    model, ambiguity = (
        instances.perturb(instances.garnet(5, 3), 2),
        drmdp.Wasserstein(0.2, support="all"),
    )
    found = drmdp.solve(model, ambiguity, drmdp.FirstOrder(output="epoch"), tol=1e-3)
    again = drmdp.certify(model, ambiguity, found.policy, found.kernel)
    assert found.status == "solved"
    assert again.gap <= 1e-3 * (1 + 1e-6)


# ---------------------------------------------------------------------- examples behind the errata


def two_costs(cost, discount=0.8):
    """One state, two actions, costs 0 and `cost`."""
    return drmdp.Model(np.ones((1, 1, 2, 1)), costs=[[0.0, cost]], discount=discount)


def test_a_one_step_gap_of_half_epsilon_may_lose_more_than_epsilon():
    """The policy that pays ε/2 in every step has the gap (11) of ε/2 and loses ε/2/(1 − λ)."""
    epsilon, ambiguity = 0.1, drmdp.Wasserstein(0.0, support="all")
    model = two_costs(epsilon / 2)
    loss = (
        drmdp.evaluate(model, ambiguity, [[0, 1]], tol=1e-12).value
        - drmdp.solve(model, ambiguity, tol=1e-12).value
    )
    assert loss[0] == pytest.approx(2.5 * epsilon)


def test_the_printed_stopping_rule_may_lose_27_epsilon_at_the_paper_s_discount():
    """In state 0 the free action leads to a cost of .79 forever, the other costs .4 and leads to
    none.
    """
    kernel = np.zeros((3, 2, 3))
    kernel[0, 0, 1] = kernel[0, 1, 2] = kernel[1, :, 1] = kernel[2, :, 2] = 1
    model = drmdp.Model(kernel, costs=[[0, 0.4], [0.79, 0.79], [0, 0]], discount=0.8)
    epsilon, ambiguity = 0.1, drmdp.Wasserstein(0.0, support="all")
    loss = {}
    for rule in ("paper", "puterman"):
        found = drmdp.solve(model, ambiguity, drmdp.ValueIteration(stop=rule), tol=epsilon)
        best = drmdp.solve(model, ambiguity, tol=1e-10)
        loss[rule] = (
            drmdp.evaluate(model, ambiguity, found.policy, tol=1e-10).value - best.value
        ).max()
        assert rule != "paper" or found.kernel_passes == 1
    assert loss["paper"] > 27 * epsilon
    assert loss["puterman"] <= epsilon


def test_a_kernel_drawn_once_is_not_one_drawn_at_every_visit():
    """Equation (1) draws y once, equation (2) at every visit: to stay for sure or to leave for
    sure, each with probability ½.
    """
    kernels = np.zeros((2, 2, 1, 2))
    kernels[0, 0, 0, 0] = kernels[1, 0, 0, 1] = kernels[:, 1, 0, 1] = 1
    model = drmdp.Model(kernels, costs=[[1.0], [0.0]], discount=0.8)
    every_visit = drmdp.solve(model, drmdp.Wasserstein(0.0, support="all"), tol=1e-12).value[0]
    once = (1 / (1 - 0.8) + 1) / 2
    assert every_visit == pytest.approx(1 / (1 - 0.4))
    assert once == pytest.approx(3)


def rational(z, p, gamma, alpha):
    """Sum of a row in equation (19), in fractions."""
    total = Fraction(0)
    for own, hat in zip(z, p, strict=True):
        apart = own - hat - alpha
        total += (
            own - gamma - alpha
            if apart > gamma
            else max(own + gamma - alpha, 0)
            if apart < -gamma
            else hat
        )
    return total


def test_the_breakpoint_sweep_never_needs_more_than_its_breakpoints():
    """Rows of ŷ sum to 1, so the sum is at least 1 at the last breakpoint: exactly 1 where every
    entry is ŷ, which "sum > 1" misses.
    """
    rng, least = np.random.default_rng(0), []
    for case in range(500):
        n = int(rng.integers(1, 6))
        parts = [Fraction(int(k)) for k in rng.integers(0, 9, n) + (np.arange(n) == 0)]
        p = [part / sum(parts) for part in parts]
        level = Fraction(int(rng.integers(-9, 9)), 7)
        z = [hat + level if case % 5 == 0 else Fraction(int(rng.integers(-20, 20)), 9) for hat in p]
        gamma = Fraction(int(rng.integers(0, 20)), 11)
        least.append(
            rational(z, p, gamma, min(own - hat - gamma for own, hat in zip(z, p, strict=True)))
        )
    assert min(least) == 1


def test_the_printed_dual_of_d1_has_a_radius_n_times_too_small():
    rng = np.random.default_rng(3)
    centre = rng.dirichlet(np.ones(4), (3, 2))  # N = 3 kernels, 2 actions
    point = centre + rng.normal(0, 0.3, centre.shape)

    def dual(gamma, theta):
        y = algorithm_1.shrunken(point, centre, gamma)
        return -gamma * theta + ((y - point) ** 2).sum() / 2 + gamma * np.abs(y - centre).sum()

    for printed, radius in ((True, 0.6 / 3), (False, 0.6)):
        theta = 0.6 if printed else 3 * 0.6
        best = minimize_scalar(
            lambda gamma, theta=theta: -dual(gamma, theta),
            bounds=(0, 5),
            method="bounded",
            options={"xatol": 1e-10},
        )
        expected = algorithm_1.project(point, centre, radius, "l1")
        np.testing.assert_allclose(algorithm_1.shrunken(point, centre, best.x), expected, atol=1e-5)


# ---------------------------------------------------------------------- garnet's two readings


def test_the_preset_does_not_see_the_level_of_the_costs_and_algorithm_1_does():
    """Centred steps are the same for costs and for rewards; the printed ones are shorter where
    values are far from 0.
    """
    ambiguity, steps = drmdp.Wasserstein(1.2, support="all"), {}
    for kind in (drmdp.FirstOrder.fast, drmdp.FirstOrder):
        for rewards in (False, True):
            model = instances.perturb(instances.garnet(7, 7, rewards=rewards), 3)
            found = drmdp.solve(model, ambiguity, kind(stop="duality-gap"), tol=0.05)
            steps[kind, rewards] = found.n_iters
            assert found.duality_gap <= 0.05
    assert steps[drmdp.FirstOrder.fast, False] == steps[drmdp.FirstOrder.fast, True]
    assert steps[drmdp.FirstOrder, True] > 2 * steps[drmdp.FirstOrder, False]
