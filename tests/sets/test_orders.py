"""Balls of any finite order: the six tuned balls, limits, and corrupted claims;
`tests/operators/test_sets.py` has their twins.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import cases
import decks
import drmdp
import reference
from drmdp.layout.memory import SweepMemory
from drmdp.operators.exact import ExactOperator
from drmdp.solvers.problem import Problem

MISSING = (("l1", 2), ("l2", 1), ("linf", 2))
missing = pytest.mark.parametrize("pair", MISSING, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")


class General(drmdp.Wasserstein):
    """A ball that its own solver is kept from."""

    @property
    def key(self):
        return self.metric, "p"

    @property
    def priced_by_kernel(self):
        return True


def size_of(case):
    return np.nanmax(np.abs(case.model.cost_range)) + np.abs(case.value).max() + 1e-200


@missing
def test_nature_plays_kernels_of_the_ambiguity(pair):
    for case in cases.cases(pair, 10, seed=44):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        sure = Problem(ExactOperator(model, ambiguity.fitted(model), threads=1)).proved(value)
        kernels = np.asarray(sure.nature.kernels)
        own = model.available & ~model.terminal[:, None]
        kernels[:, ~own] = reference.dense_kernels(model)[:, ~own]
        assert (
            reference.violation(model, ambiguity, kernels)[~model.terminal].max(initial=0.0)
            <= 1e-12
        ), case.name
        mean = np.tensordot(model.weights, kernels, axes=1)
        np.testing.assert_allclose(
            mean[own], np.asarray(sure.kernel)[own], rtol=0, atol=1e-13, err_msg=case.name
        )


def reductions(pair, n, seed):
    for case in cases.cases(pair, n, seed):
        model, value, S = case.model, case.value, case.model.n_states
        general = General(case.ambiguity.radius, *pair, case.ambiguity.support)
        found = ExactOperator(model, general.fitted(model), threads=1).update(value, 0, S)
        wanted = ExactOperator(model, case.ambiguity, threads=1).update(value, 0, S)
        assert np.all(np.abs(found.value - wanted.value) <= 1e-9 * size_of(case)), case.name


def test_the_general_solver_at_order_2_is_the_tuned_one():
    reductions(("l2", 2), 15, seed=45)


@pytest.mark.fuzz
@pytest.mark.parametrize("pair", [("l2", 2), ("linf", 1)])
def test_the_general_solver_is_the_tuned_one_where_there_is_one(pair):
    reductions(pair, 300, seed=45)


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_the_value_falls_with_the_order_down_to_that_of_infinity(metric):
    model = drmdp.instances.perturb(drmdp.instances.garnet(6, 3, branching=4, seed=3), 4)
    values = []
    for order in (1, 1.0001, 1.5, 3, 40, 4000, 1e9, 1e300, math.inf):
        solution = drmdp.solve(model, drmdp.Wasserstein(0.2, metric, order), rtol=1e-9)
        assert solution.gap <= 1e-9 * solution.scale
        values.append(solution.value)
    for larger, smaller in itertools.pairwise(values):
        assert np.all(smaller <= larger + 1e-7)
    for value, off in zip(values[-4:-1], (1e-4, 1e-8, 1e-8), strict=True):
        np.testing.assert_allclose(value, values[-1], rtol=off)


@pytest.mark.fuzz
@pytest.mark.parametrize("order", [1, 1.001, 1.05, 1.2, 3, 100])
@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_the_mean_kernel_of_a_solution_is_certified(metric, order):
    model = drmdp.instances.perturb(drmdp.instances.garnet(6, 3, branching=4, seed=3), 5)
    ambiguity = drmdp.Wasserstein(0.2, metric, order)
    found = drmdp.solve(model, ambiguity, rtol=1e-9)
    assert drmdp.certify(model, ambiguity, found.policy, found.kernel).gap <= 1e-8 * found.scale


EXTREME = (1.0001, 1.1, 1.5, 3, 10, 100, 1e4, 1e9, 1e300)


@pytest.mark.fuzz
@pytest.mark.parametrize("rectangular", ["s", "sa"])
@pytest.mark.parametrize("order", EXTREME)
@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_every_order_certifies_itself(metric, order, rectangular, monkeypatch):
    kind = decks.wasserstein(metric, order, rectangular)
    monkeypatch.setitem(decks.SETS, "extreme", kind)
    for case in decks.deck("extreme", 100, 47):
        assert decks.judge(case, twin=False).own.max() <= 1e-9, case.name


@pytest.mark.parametrize("order", [1e3, 1e4, 1e9, 1e300])
def test_radii_whose_powers_vanish_are_measured(order):
    """Nature has all she wants at radii well below the budget; a single kernel, so that no order
    differs.
    """
    rng = np.random.default_rng(49)
    for case in range(5):
        model = drmdp.Model(
            rng.dirichlet(np.ones(3), size=(3, 2)), costs=rng.random((3, 2)), discount=0.9
        )
        value, radius = rng.normal(size=3), rng.uniform(0.8, 0.99)
        step, limit = (
            drmdp.bellman(model, drmdp.Wasserstein(radius, "linf", p, rectangular="sa"), value)
            for p in (order, math.inf)
        )
        assert np.all(step.upper - step.lower <= 1e-10 * np.ptp(value)), case
        np.testing.assert_allclose(step.value, limit.value, rtol=1e-10, err_msg=str(case))


def tied(seed, A, N, S=6):
    """A problem whose actions all but tie at a value; kernels differ widely."""
    rng = np.random.default_rng([seed, 48])
    kernels = rng.dirichlet(np.full(S, rng.choice([0.3, 1, 3])), size=(N, S, A)) * (
        rng.random((N, S, A, S)) < 0.8
    )
    kernels[..., 0] += kernels.sum(axis=3) == 0
    kernels /= kernels.sum(axis=3, keepdims=True)
    value, radius = rng.normal(size=S), 10 ** rng.uniform(-3, 0.2)
    costs = rng.choice([0, 1e-9, 0.01, 0.1]) * rng.random((S, A)) - 0.9 * (
        kernels.mean(axis=0) * value
    ).sum(axis=2)
    return drmdp.Model(kernels, costs=costs, discount=0.9), value, radius


def check_tied(order, cases):
    """Nature's answers jump at order 1: no mixture of few of them is near."""
    for case in cases:
        model, value, radius = tied(*case)
        found = drmdp.bellman(model, drmdp.Wasserstein(radius, "l2", order), value)
        assert (found.upper - found.lower).max() <= 1e-9 * np.ptp(value), case


def test_tied_actions_are_mixed_at_order_1():
    check_tied(1, [(seed, 6, 6) for seed in range(4)])


@pytest.mark.fuzz
@pytest.mark.parametrize("size", [(2, 12), (4, 4), (8, 8)])
def test_many_tied_actions_are_mixed_at_order_1(size):
    check_tied(1, [(seed, *size) for seed in range(40)])


def one_state(rows, costs, weights):
    """State 0 with these rows (N, A, S) and costs (A, S); all others end."""
    N, A, S = np.shape(rows)
    kernels, stakes = np.zeros((N, S, A, S)), np.zeros((S, A, S))
    kernels[..., 0], kernels[:, 0], stakes[0] = 1, rows / np.sum(rows, axis=2, keepdims=True), costs
    return drmdp.Model(kernels, costs=stakes, discount=0.5, weights=weights, terminal=range(1, S))


@pytest.mark.parametrize("radius", [1.425, 1.43])
def test_steps_that_went_round_in_circles_at_order_1_settle(radius):
    """A hair below saturation; orders above 1 did."""
    a, b, _, d = np.eye(4)
    rows = [[[0.6, 0.02, 0.33, 0.05], b, d], [b, a, b], [d, d, [0.83, 0, 0, 0.17]], [d, d, b]]
    costs = [[0.363, 1, 0.635, 0.777], [0.287, 0.72, 0.129, 0.498], [0.692, 0.707, 0, 0.572]]
    model = one_state(rows, costs, [0.61, 0.07, 0.16, 0.16])
    found = drmdp.bellman(model, drmdp.Wasserstein(radius, "l2", 1, "all"), np.zeros(4))
    assert (found.upper - found.lower)[0] <= 1e-11


@pytest.mark.parametrize("played", [1e-3, 1e-4, 1e-5])
def test_a_kernel_that_moves_in_a_hardly_played_action_only_has_a_price(played):
    """It spends less than doubles can tell, at an order near 1."""
    half, top = [0.5, 0.5], [0, 1]
    model = one_state([[half, top], [top, half]], [[0, 1], [0, 1]], [0.5, 0.5])
    operator = ExactOperator(model, drmdp.Wasserstein(0.05, "l1", 1.01, "all").fitted(model), 1)
    found = Problem(operator).proved(np.zeros(2), np.array([[1 - played, played], [0, 0]]))
    assert (found.upper_step - found.lower_step)[0] <= 1e-12


@missing
def test_one_action_needs_no_share(pair):
    model = drmdp.instances.perturb(drmdp.instances.garnet(6, 1, branching=4, seed=4), 3)
    found = [
        drmdp.solve(model, drmdp.Wasserstein(0.3, *pair, rectangular=r), rtol=1e-9).value
        for r in ("s", "sa")
    ]
    np.testing.assert_allclose(*found, rtol=1e-8)


@missing
def test_the_value_grows_with_the_radius_from_the_nominal_one(pair):
    model = drmdp.instances.perturb(drmdp.instances.garnet(6, 3, branching=4, seed=5), 3)
    nominal = drmdp.solve(model, drmdp.Wasserstein(0.0), rtol=1e-9).value
    most = drmdp.Wasserstein(1.0, *pair).saturation(model).max()
    values = [
        drmdp.solve(model, drmdp.Wasserstein(r, *pair), rtol=1e-9).value
        for r in (0, 1e-9, 0.01, 0.3, most, 9)
    ]
    np.testing.assert_allclose(values[0], nominal, rtol=1e-8)
    for smaller, larger in itertools.pairwise(values):
        assert np.all(smaller <= larger + 1e-7)
    np.testing.assert_allclose(values[-2], values[-1], rtol=1e-7)


def spoiled(rng, memory):
    """A memory in which some numbers are anything."""
    junk = (0.0, -1.0, np.nan, np.inf, -np.inf, 1e-300, 1e300, 1.0, 0.1)

    def some(array):
        wrong = rng.random(array.shape) < rng.choice([0.1, 0.5, 1.0])
        noise = np.where(
            rng.random(array.shape) < 0.5,
            rng.choice(junk, size=array.shape),
            array * rng.random(array.shape),
        )
        return np.where(wrong, noise, array)

    return SweepMemory(*map(some, memory))


@missing
def test_corrupted_claims_never_falsify_a_bound(pair):
    rng = np.random.default_rng(46)
    for case in cases.cases(pair, 12, seed=46):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        operator = ExactOperator(model, ambiguity.fitted(model), threads=1)
        found = operator.update(value, 0, model.n_states)
        truth = Problem(operator).prove(value, found, False)
        for _ in range(6):
            claim = dataclasses.replace(found, claim=spoiled(rng, found.claim))
            sure = Problem(operator).prove(value, claim, False)
            assert np.all(sure.lower_step <= truth.upper_step), case.name
            assert np.all(sure.upper_step >= truth.lower_step), case.name


@pytest.mark.parametrize("order", [0, 0.5, -1, math.nan, "2", True, None, [2]])
def test_what_is_no_order_is_refused(order):
    if order is None:
        assert drmdp.Wasserstein(0.1, "l1", None).order == 1
        return
    with pytest.raises(drmdp.InputError, match="order is a number from 1 on or inf, got"):
        drmdp.Wasserstein(0.1, "l1", order)


def test_orders_tell_balls_apart():
    ambiguity = drmdp.Wasserstein(0.1, "l1", 1.5)
    assert repr(ambiguity) == "Wasserstein(radius=0.1, metric='l1', order=1.5, support='observed')"
    assert ambiguity == drmdp.Wasserstein(0.1, "l1", 1.5) != drmdp.Wasserstein(0.1, "l1", 1.25)
    assert ambiguity.short == "(l1, 1.5)"
    assert ambiguity.facts()["order"].startswith("1.5: ")
    assert drmdp.Wasserstein(0.1, "l1", 3).order == 3


@missing
def test_saturation_is_where_nature_is_unconstrained(pair):
    model = drmdp.instances.perturb(drmdp.instances.garnet(5, 2, branching=3, seed=6), 3)
    far = drmdp.Wasserstein(1.0, *pair).saturation(model)
    value = np.random.default_rng(0).normal(size=5)
    top = np.where(model.observed(0, 5), value, -np.inf).max(axis=2)
    wanted = (model.costs + model.discount * top).min(axis=1)
    found = ExactOperator(model, drmdp.Wasserstein(far, *pair), threads=1).update(value, 0, 5)
    np.testing.assert_allclose(found.value, wanted, rtol=1e-12)
