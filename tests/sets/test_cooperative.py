"""A nature that helps: what it reduces to, and that it is proved."""

import math

import numpy as np
import pytest

import drmdp

SETS = {
    "l1-1": drmdp.Wasserstein(0.3, "l1"),
    "l2-2": drmdp.Wasserstein(0.3, "l2", support="all"),
    "linf-1": drmdp.Wasserstein(0.1, "linf", 1),
    "l1-inf": drmdp.Wasserstein(0.3, "l1", math.inf),
    "l2-inf": drmdp.Wasserstein(0.2, "l2", math.inf),
    "linf-inf": drmdp.Wasserstein(0.1, "linf", math.inf, support="all"),
    "l2-sa": drmdp.Wasserstein(0.3, "l2", rectangular="sa"),
    "kl": drmdp.Divergence(0.1, "kl"),
    "reweighting": drmdp.Reweighting(0.2, "kl"),
    "reweighting-sa": drmdp.Reweighting(0.2, "tv", "sa"),
    "cvar": drmdp.Reweighting(kind="cvar", level=0.5),
}
DEFAULT = ("l1-1", "linf-inf", "reweighting", "reweighting-sa")


def problem(**settings):
    rng = np.random.default_rng(4)
    kernels = rng.dirichlet(np.full(5, 0.5), size=(3, 5, 3))
    available = np.ones((5, 3), dtype=bool)
    available[1, 0] = False
    settings = {
        "costs": rng.random((5, 3)),
        "discount": 0.9,
        "available": available,
        "terminal": [3],
    } | settings
    return drmdp.Model(kernels, **settings)


def negated(model, actions):
    """The model in which only these actions are played, and its rewards are its costs."""
    own = np.zeros((5, 3), dtype=bool)
    own[np.arange(5), actions] = True
    own |= ~(own & model.available).any(axis=1, keepdims=True)
    return drmdp.Model(
        model.kernels,
        costs=-np.asarray(model.costs),
        discount=0.9,
        available=own & model.available,
        terminal=model.terminal,
    )


def check(ambiguity):
    model = problem()
    found = drmdp.solve(model, ambiguity, tol=1e-8, nature="cooperative")
    assert found.status == "solved"
    assert set(np.unique(found.policy)) <= {0, 1}
    nominal = drmdp.solve(model, drmdp.Wasserstein(0), tol=1e-8)
    adverse = drmdp.solve(model, ambiguity, tol=1e-8)
    assert (found.lower <= nominal.upper).all()
    assert (nominal.lower <= adverse.upper).all()
    assert found.value.sum() < nominal.value.sum() < adverse.value.sum()
    value = nominal.value
    step = drmdp.bellman(model, ambiguity, value, nature="cooperative")
    want = np.full(5, np.inf)
    for a in range(3):  # one action in every state, and the adversary of the negated problem
        own = negated(model, a)
        worst = drmdp.bellman(own, ambiguity, -value)
        played = model.available[:, a]
        want = np.where(played, np.minimum(want, -worst.value), want)
    want[3] = 0
    np.testing.assert_allclose(step.value, want, atol=1e-8)
    assert (step.lower <= want + 1e-8).all()
    assert (step.upper >= want - 1e-8).all()
    assert (step.upper - step.lower).max() < 1e-8
    x = (
        np.where(model.available, 0.5, 0) * (np.arange(3) != 2)
        + model.available * (np.arange(3) == 2) * 0.5
    )
    x = np.where(
        model.available.sum(axis=1, keepdims=True) > 0,
        x / np.maximum(x.sum(axis=1, keepdims=True), 1e-9),
        0,
    )
    best = drmdp.evaluate(model, ambiguity, x, tol=1e-8, nature="cooperative")
    turned = drmdp.Model(
        model.kernels,
        costs=-np.asarray(model.costs),
        discount=0.9,
        available=model.available,
        terminal=model.terminal,
    )
    np.testing.assert_allclose(
        best.value, -drmdp.evaluate(turned, ambiguity, x, tol=1e-8).value, atol=1e-7
    )
    mean = drmdp.evaluate(model, drmdp.Wasserstein(0), x, tol=1e-8).value
    assert (best.lower <= mean + 1e-8).all()
    np.testing.assert_allclose(
        drmdp.evaluate(model, ambiguity, found, nature="cooperative").value, found.value, atol=1e-5
    )
    rows = np.asarray(found.kernel)[model.available]
    np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-9)
    attained = drmdp.solve(
        drmdp.Model(
            np.where(model.available[:, :, None], np.asarray(found.kernel), np.eye(5)[:, None]),
            costs=model.costs,
            discount=0.9,
            available=model.available,
            terminal=model.terminal,
        ),
        drmdp.Wasserstein(0),
        tol=1e-8,
    )
    np.testing.assert_allclose(attained.value, found.value, atol=1e-6)


@pytest.mark.parametrize("name", DEFAULT)
def test_the_best_that_a_set_allows_is_found_and_proved(name):
    check(SETS[name])


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [name for name in SETS if name not in DEFAULT])
def test_the_best_that_every_set_allows_is_found_and_proved(name):
    check(SETS[name])


@pytest.mark.parametrize("name", ["l1-1", "reweighting"])
def test_her_kernel_has_a_row_for_each_pair(name):
    model = problem()
    found = drmdp.solve(model, SETS[name], nature="cooperative")
    np.testing.assert_allclose(
        np.asarray(found.kernel).sum(axis=2), np.where(model.available, 1.0, 0.0), atol=1e-12
    )


def test_intervals_help_too():
    check(drmdp.Intervals.of(problem(), margin=0.05))


def test_paths_and_plans_take_it():
    model, ambiguity = problem(), drmdp.Wasserstein(0.3, "l1")
    path = drmdp.radius.path(model, ambiguity, [0, 0.1, 0.3, 1], nature="cooperative")
    assert (np.diff(path.worst) <= 1e-9).all()
    found = drmdp.solve(model, ambiguity, nature="cooperative")
    np.testing.assert_allclose(path.points[2].value, found.value, atol=1e-5)
    plan = drmdp.finite_horizon(model, ambiguity, 200, nature="cooperative")
    np.testing.assert_allclose(plan.value[0], found.value, atol=1e-6)
    chosen = drmdp.radius.cross_validate(model, ambiguity, [0, 0.1], nature="cooperative")
    assert chosen.radius in (0, 0.1)
    rewarded = drmdp.Model(
        model.kernels,
        rewards=-np.asarray(model.costs),
        discount=0.9,
        available=model.available,
        terminal=model.terminal,
    )
    np.testing.assert_allclose(
        drmdp.solve(rewarded, ambiguity, nature="cooperative").value, -found.value, atol=1e-5
    )


def test_what_it_cannot_do_is_said():
    model, ambiguity = problem(), drmdp.Wasserstein(0.3, "l1")
    found = drmdp.solve(model, ambiguity, nature="cooperative")
    for call, message in (
        (
            lambda: drmdp.certify(model, ambiguity, found, nature="cooperative"),
            "nature: a kernel shows what an adversary can do",
        ),
        (
            lambda: drmdp.solve(model, ambiguity, nature="friendly"),
            "nature is 'adversarial' or 'cooperative', got 'friendly'",
        ),
        (
            lambda: drmdp.solve(model, ambiguity, backend="conic", nature="cooperative"),
            "backend: with a cooperative nature it is 'exact'",
        ),
        (
            lambda: drmdp.solve(model, ambiguity, "first-order", nature="cooperative"),
            "first-order method is for an adversarial nature",
        ),
    ):
        with pytest.raises(drmdp.InputError, match=message):
            call()
