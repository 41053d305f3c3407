"""The exact operators against the conic ones, cold and warm, and the certificate of what they hand
over.
"""

from dataclasses import replace

import numpy as np
import pytest

import cases
import drmdp
import reference
from drmdp.core import threads as workers
from drmdp.operators.conic.operator import ConicOperator
from drmdp.operators.exact import MANY, ExactOperator
from drmdp.sets import PAIRS
from drmdp.solvers.problem import Problem

IDS = [f"{metric}-{order:g}" for metric, order in PAIRS]
MARGIN = 2000  # ulps of costs and values: rounding margins grow with the number of terms


def allowed(case, relative=1e-8, ulps=MARGIN, policy=None):
    size = np.max(np.abs(case.model.cost_range)) + np.abs(case.value).max()
    spread = reference.tolerance(case.model, case.ambiguity, case.value, relative, policy)
    return spread + ulps * np.finfo(float).eps * size


def agrees(case, found, wanted, slack):
    assert np.all(np.abs(found.value - wanted.value) <= slack), f"{case.name}: value"
    assert np.all(found.upper_step - found.lower_step <= slack), f"{case.name}: own bounds apart"


def proved(case, operator, value, found, wanted, slack, fixed):
    """The re-derived bounds are tight and contradict nothing that the conic certificate proved."""
    sure = Problem(operator).prove(value, found, fixed)
    assert np.all(sure.upper_step - sure.lower_step <= slack), (
        f"{case.name}: certified bounds apart"
    )
    assert np.all(sure.lower_step <= wanted.upper_step), f"{case.name}: lower bound"
    assert np.all(sure.upper_step >= wanted.lower_step), f"{case.name}: upper bound"
    return sure


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
@pytest.mark.parametrize("n", [14, pytest.param(40, marks=pytest.mark.fuzz)])
def test_agrees_with_the_conic_operator_cold_and_warm(pair, n):
    rng = np.random.default_rng(5)
    for case in cases.cases(pair, n, seed=5):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        S = model.n_states
        wanted = ConicOperator(model, ambiguity).update(value, 0, S)
        operator, slack = ExactOperator(model, ambiguity, threads=1), allowed(case)
        for warm in (False, True):
            if warm:  # from an unrelated value
                noise = rng.standard_normal(S) * max(np.ptp(value), 1e-9)
                operator.update(np.where(model.terminal, 0, value + noise), 0, S)
            found = operator.update(value, 0, S)
            agrees(case, found, wanted, slack)
            sure = proved(case, operator, value, found, wanted, allowed(case, 1e-9), fixed=False)
        kernel = np.asarray(sure.kernel)
        np.testing.assert_allclose(
            kernel.sum(axis=2)[model.available], 1, rtol=0, atol=1e-12, err_msg=case.name
        )
        assert kernel.min() >= -1e-15, f"{case.name}: negative probability"
        z = np.where(kernel > 0, reference.stakes(model, value), 0)
        best = np.where(model.available, (kernel * z).sum(axis=2), np.inf).min(axis=1)
        best[model.terminal] = 0
        assert np.all(np.abs(best - wanted.value) <= slack), (
            f"{case.name}: nature's kernel does not attain the value"
        )


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
@pytest.mark.parametrize("n", [20, pytest.param(40, marks=pytest.mark.fuzz)])
def test_the_kernels_behind_the_mean_are_in_the_ambiguity(pair, n):
    for case in cases.cases(pair, n, seed=7):
        model, ambiguity, value = case.model, case.ambiguity, case.value
        operator = ExactOperator(model, ambiguity, threads=1)
        sure = Problem(operator).proved(value)
        kernels = np.asarray(sure.nature.kernels)
        own = model.available & ~model.terminal[:, None]
        assert kernels.shape == (model.n_kernels, *own.shape, model.n_states)
        kernels[:, ~own] = reference.dense_kernels(model)[:, ~own]
        assert (
            reference.violation(model, ambiguity, kernels)[~model.terminal].max(initial=0.0)
            <= 1e-12
        ), case.name
        mean = np.tensordot(model.weights, kernels, axes=1)
        np.testing.assert_allclose(
            mean[own], np.asarray(sure.kernel)[own], rtol=0, atol=1e-13, err_msg=case.name
        )


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
@pytest.mark.parametrize("n", [14, pytest.param(30, marks=pytest.mark.fuzz)])
def test_a_fixed_policy_agrees_with_the_conic_operator(pair, n):
    rng = np.random.default_rng(6)
    for case in cases.cases(pair, n, seed=6):
        model, value, S = case.model, case.value, case.model.n_states
        policy = rng.dirichlet(np.ones(model.n_actions), size=S) * model.available
        policy /= np.maximum(policy.sum(axis=1, keepdims=True), 1e-300)
        wanted = ConicOperator(model, case.ambiguity).evaluate(value, policy, 0, S)
        operator = ExactOperator(model, case.ambiguity, threads=1)
        found = operator.evaluate(value, policy, 0, S)
        slack = allowed(case, policy=policy)
        agrees(case, found, wanted, slack)
        proved(case, operator, value, found, wanted, allowed(case, 1e-9, policy=policy), fixed=True)


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_the_number_of_threads_changes_nothing(pair, monkeypatch):
    monkeypatch.setattr(workers, "SMALL", 0)
    model = drmdp.instances.perturb(drmdp.instances.garnet(25, 6, seed=2), 5)
    ambiguity = drmdp.Wasserstein(0.4, *pair, support="all")
    one, three = (drmdp.solve(model, ambiguity, tol=1e-8, threads=threads) for threads in (1, 3))
    for name in ("value", "policy", "lower", "upper", "kernel"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name))


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_sparse_storage_gives_the_same_answer(pair):
    """40 states with few successors: dense storage lists them all or not, sparse storage never
    does.
    """
    for radius in (0.05, 0.6):
        ambiguity = drmdp.Wasserstein(radius, *pair, support="all")
        dense, thin = (
            drmdp.solve(
                drmdp.instances.ring(40, 4, discount=0.9, sparse=sparse), ambiguity, tol=1e-6
            )
            for sparse in (False, True)
        )
        assert dense.status == thin.status == "solved"
        np.testing.assert_allclose(dense.value, thin.value, rtol=0, atol=2e-6)


@pytest.mark.parametrize("threads", [0, -1, "two"])
def test_a_bad_number_of_threads_is_refused(threads):
    with pytest.raises(drmdp.InputError, match="threads"):
        drmdp.solve(
            drmdp.instances.machine(5), drmdp.Wasserstein(0.1, support="all"), threads=threads
        )


def test_the_environment_sets_the_number_of_threads(monkeypatch):
    monkeypatch.setenv("DRMDP_THREADS", "many")
    with pytest.raises(drmdp.InputError, match="'many'"):
        drmdp.solve(drmdp.instances.machine(5), drmdp.Wasserstein(0.1, support="all"))


@pytest.mark.parametrize("support", ["all", "observed", "state"])
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_float32_storage_is_the_model_of_the_rounded_rows(pair, support):
    nominal = drmdp.instances.garnet(60, 3, branching=5, discount=0.9, sparse=True)
    model = drmdp.instances.perturb(nominal, 4, same_support=True)
    single = model.astype(np.float32)
    assert single.blocks.data.dtype == np.float32
    double = drmdp.Model(single.kernels, costs=single.costs, discount=0.9)
    ambiguity = drmdp.Wasserstein(0.3, *pair, support)
    found, wanted = (
        drmdp.solve(single, ambiguity, tol=1e-8),
        drmdp.solve(double, ambiguity, tol=1e-8),
    )
    assert found.status == "solved"
    np.testing.assert_allclose(found.value, wanted.value, atol=2e-8, rtol=0)
    np.testing.assert_allclose(np.asarray(found.kernel).sum(axis=2), 1, rtol=0, atol=1e-14)
    assert np.abs(found.value - drmdp.solve(model, ambiguity, tol=1e-8).value).max() < 1e-5


def test_storage_types_are_named():
    model = drmdp.instances.garnet(5, 2)
    assert (
        drmdp.Model(
            model.kernels, costs=model.costs, discount=0.8, dtype="float32"
        ).blocks.data.dtype
        == np.float32
    )
    np.testing.assert_array_equal(model.astype("float64").kernels, model.kernels)
    with pytest.raises(drmdp.errors.InputError, match="float64 or float32, got 'int8'"):
        model.astype("int8")


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
def test_nearly_full_rows_are_filled_up_in_a_long_run(pair):
    """From the tenth sweep on a few zeros are read: the bounds stay, and so do those of the
    certificate of an earlier sweep.
    """
    model = drmdp.instances.perturb(
        drmdp.instances.garnet(12, 5, branching=11, seed=4), 6, same_support=True
    )
    operator = ExactOperator(model, drmdp.Wasserstein(0.2, *pair, support="all"))
    value = np.random.default_rng(5).random(12)
    first = operator.update(value, 0, 12)
    for _ in range(MANY - 2):
        assert operator.update(value, 0, 12).nature.layout.unlisted
    last = operator.update(value, 0, 12)
    assert first.nature.layout.unlisted
    assert not last.nature.layout.unlisted
    assert last.nature.layout.indices.size == 12 * 5 * 12
    early, late = (Problem(operator).prove(value, update, fixed=False) for update in (first, last))
    for a, b in ((first, last), (early, late)):
        assert np.allclose(a.lower_step, b.lower_step, rtol=0, atol=1e-9)
        assert np.allclose(a.upper_step, b.upper_step, rtol=0, atol=1e-9)
    for update, proof in ((first, early), (last, late)):  # kernels may tie, what they cost does not
        cost = model.costs + model.discount * np.asarray(proof.kernel) @ value
        np.testing.assert_allclose(
            (update.policy * cost).sum(axis=1), first.value, rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]:g}")
def test_natures_side_of_the_certificate_does_not_depend_on_the_policy(pair):
    """With another policy than the one the witnesses belong to, L stays, and U bounds what that
    policy costs.
    """
    model = drmdp.instances.perturb(drmdp.instances.garnet(10, 4, seed=6), 5)
    operator, value = (
        ExactOperator(model, drmdp.Wasserstein(0.3, *pair, support="all")),
        np.random.default_rng(7).random(10),
    )
    found = operator.update(value, 0, 10)
    own = Problem(operator).prove(value, found, fixed=False)
    other = np.random.default_rng(8).dirichlet(np.ones(4), 10)
    mixed = Problem(operator).prove(
        value, replace(found, policy=0.5 * (found.policy + other)), fixed=False
    )
    assert np.allclose(own.lower_step, mixed.lower_step, rtol=0, atol=1e-12)
    worst = ExactOperator(model, operator.ambiguity).evaluate(
        value, 0.5 * (found.policy + other), 0, 10
    )
    assert (mixed.upper_step >= worst.lower_step - 1e-12).all()


@pytest.mark.parametrize("order", [1.5, 2, 4])
def test_kernels_that_have_nothing_left_to_move_pay_for_what_they_spend(order):
    """l1 of order p: their price in the proof is that of their share of the budget, not 0."""
    for seed in (28, 77, 85, 92):
        rng = np.random.default_rng(seed)
        n_actions = int(rng.integers(1, 3))
        kernels, costs = (
            rng.dirichlet(np.ones(4), size=(3, 4, n_actions)),
            rng.random((4, n_actions)),
        )
        model, value = drmdp.Model(kernels, costs=costs, discount=0.9), rng.normal(size=4)
        for radius in (0.1, 0.3, 0.6, 0.9):
            problem = Problem(ExactOperator(model, drmdp.Wasserstein(radius, "l1", order), 1))
            for policy in (None, np.full((4, n_actions), 1 / n_actions)):
                found = problem.proved(value, policy)
                assert (found.upper_step - found.lower_step < 1e-11).all()


@pytest.mark.parametrize("support", ["observed", "all"])
@pytest.mark.parametrize("accuracy", [2e-4, 2e-2, 0.2])
def test_what_is_asked_roughly_is_proved_as_roughly(accuracy, support):
    """Rows of (l1, 1) jump from vertex to vertex: nature is told those that she is to mix, whatever
    was left out between them.
    """
    nominal = drmdp.instances.garnet(2000, 4, branching=8, discount=0.95, sparse=True)
    model = drmdp.instances.perturb(nominal, 3, same_support=True)
    ambiguity, value = drmdp.Wasserstein(0.1, "l1", 1, support), np.zeros(2000)
    exact = ExactOperator(model, ambiguity, 1)
    for _ in range(20):
        value = exact.update(value, 0, 2000).value
    policy = exact.update(value, 0, 2000).policy
    rough = ExactOperator(model, ambiguity, 1)
    rough.accuracy = accuracy
    for given in (None, policy, policy):
        found = Problem(rough).proved(value, given)
        assert (found.upper_step - found.lower_step <= 2 * accuracy).all()
