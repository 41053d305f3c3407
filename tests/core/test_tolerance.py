"""The tolerance: relative or absolute, at any scale and discount; and the end of double precision,
which comes at once.
"""

import math

import numpy as np
import pytest

import drmdp
from drmdp.core.tolerance import Tolerance, scale_of
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS
from drmdp.solution import reached
from drmdp.solvers import loop
from drmdp.solvers.policy_iteration import PolicyIteration
from drmdp.solvers.problem import Problem

BALLS = [(*pair, support) for pair in PAIRS for support in ("observed", "all")]
each_ambiguity = pytest.mark.parametrize(
    "ambiguity", BALLS, ids=[f"{m}-{p:g}-{support}" for m, p, support in BALLS]
)
SIZES = ((4, 3, 4), (5, 3, 4), (50, 4, 10))
SOON = 12
"""Iterations of policy iteration that are few."""


def money(size, most, discount, seed=0):
    """Return a model with Dirichlet(½) rows and uniform costs up to `most`, as an accountant would
    have it.
    """
    (S, A, N), rng = size, np.random.default_rng(seed)
    return drmdp.Model(
        rng.dirichlet(np.full(S, 0.5), (N, S, A)),
        costs=rng.uniform(0, most, (S, A)),
        discount=discount,
    )


def check(model, ambiguity, largest):
    """Solve with the default, to a billionth, and as near as can be: few iterations, and what was
    promised.
    """
    for settings, gap in (({}, 1e-6), ({"rtol": 1e-9}, 1e-9)):
        found = drmdp.solve(model, ambiguity, **settings)
        scale = max(np.abs(found.value).max(), largest)
        assert found.status == "solved", repr(found)
        assert found.gap <= gap * scale
        assert found.scale == scale
        assert found.n_iters <= SOON, repr(found)
    found = drmdp.solve(model, ambiguity, rtol=0)
    assert found.status == "precision_limit"
    assert found.gap <= 1e-9 * scale
    assert found.n_iters <= SOON, repr(found)
    assert reached(found)


@each_ambiguity
def test_costs_in_money_at_discounts_next_to_one(ambiguity):
    for size in SIZES:
        for most, discount in ((1e4, 0.99999), (1e6, 0.999), (1e9, 0.9999), (1e9, 0.99999)):
            model = money(size, most, discount)
            check(model, drmdp.Wasserstein(0.3, *ambiguity), np.abs(model.costs).max())


@pytest.mark.fuzz
@each_ambiguity
def test_costs_in_money_of_all_sizes(ambiguity):
    for size in (*SIZES, (200, 4, 10)):
        for most in (1e4, 1e6, 1e9):
            for discount in (0.999, 0.9999, 0.99999):
                for seed, radius in enumerate((0.01, 0.3, 1.0)):
                    model = money(size, most, discount, seed)
                    check(model, drmdp.Wasserstein(radius, *ambiguity), np.abs(model.costs).max())


@pytest.mark.parametrize("name", [name for name in drmdp.METHODS if name != "gauss-seidel"])
@pytest.mark.parametrize("discount", [0.999, 0.99999])
def test_every_method_ends_when_double_precision_does(name, discount):
    """Gauss–Seidel, which does not see the span, is tried where it converges at all."""
    method = drmdp.FirstOrder.fast() if name == "first-order" else name
    for pair in PAIRS[:1] if name == "first-order" else PAIRS:
        model, ambiguity = (
            money((4, 3, 4), 1e6, discount),
            drmdp.Wasserstein(0.3, *pair, "observed"),
        )
        for rtol, statuses in ((1e-9, {"solved"}), (0, {"precision_limit"})):
            found = drmdp.solve(model, ambiguity, method, rtol=rtol)
            assert found.status in statuses
            assert found.gap <= 1e-9 * found.scale
            assert found.n_iters < 3000


def test_gauss_seidel_ends_when_double_precision_does():
    for pair in PAIRS:
        found = drmdp.solve(
            money((4, 3, 4), 1e6, 0.9), drmdp.Wasserstein(0.3, *pair, "all"), "gauss-seidel", rtol=0
        )
        assert found.status == "precision_limit"
        assert found.gap <= 1e-11 * found.scale
        assert found.n_iters < 400


def test_an_evaluation_without_records_ends_too():
    """Each point of Hoffman–Karp is evaluated to a residual that rounding may never reach."""

    class Holding(PolicyIteration):
        """Never accepts Newton's point, so that every policy is evaluated."""

        def step(self, problem, state):
            state.pause = max(state.pause, 1)
            return super().step(problem, state)

    for most, discount in ((1e6, 0.999), (1e9, 0.99999)):
        model, ambiguity = money((5, 3, 4), most, discount), drmdp.Wasserstein(0.3, "l2", 2, "all")
        found = loop.run(
            Holding(),
            Problem(ExactOperator(model, ambiguity)),
            start=None,
            tolerance=Tolerance(0.0),
        )
        assert found.status == "precision_limit"
        assert found.history[-1].iteration < 40
        assert (found.upper - found.lower).max() <= 1e-9 * np.abs(found.upper).max()


def test_scale_and_level_of_the_costs():
    """The same digits whatever the currency; costs that cancel in the value still count."""
    ambiguity = drmdp.Wasserstein(0.4, support="all")
    base = drmdp.instances.perturb(drmdp.instances.garnet(15, 4, seed=3), 4)
    counts = set()
    for scale in (1e-9, 1.0, 1e9):
        found = drmdp.solve(
            drmdp.Model(base.kernels, costs=scale * base.costs, discount=base.discount), ambiguity
        )
        assert found.status == "solved"
        assert found.tolerance == pytest.approx(1e-6 * np.abs(found.value).max())
        counts.add(found.n_iters)
    assert len(counts) == 1
    even = drmdp.Model(np.eye(2)[None, :, None, :][:, ::-1], costs=[[5.0], [-5.0]], discount=0.5)
    found = drmdp.solve(even, drmdp.Wasserstein(0))
    assert found.scale == 5.0
    assert np.abs(found.value).max() == pytest.approx(10 / 3)


def test_costs_of_zero():
    model = drmdp.Model(np.full((2, 1, 2), 0.5), costs=np.zeros((2, 1)), discount=0.9)
    for method in drmdp.METHODS:
        found = drmdp.solve(model, drmdp.Wasserstein(0.3, support="all"), method)
        assert (found.status, found.gap, found.scale) == ("solved", 0.0, 0.0)
        assert "relative" not in found.gap_in_words


def test_an_absolute_tolerance_overrules_the_relative_one():
    model, ambiguity = drmdp.instances.machine(10), drmdp.Wasserstein(0.5, support="all")
    loose = drmdp.solve(model, ambiguity, "value-iteration", tol=1.0, rtol=0)
    assert loose.status == "solved"
    assert 1e-3 < loose.gap <= 1.0
    assert (loose.tolerance, loose.settings["tol"], loose.settings["rtol"]) == (1.0, 1.0, 0.0)
    near = drmdp.solve(model, ambiguity, "value-iteration", tol=1e-9, rtol=1.0)
    assert near.gap <= 1e-9


def test_everybody_takes_the_same_pair():
    model = drmdp.instances.perturb(drmdp.instances.machine(6, discount=0.9), 3)
    ambiguity = drmdp.Wasserstein(0.3, support="all")
    best = drmdp.solve(model, ambiguity)
    calls = {
        "evaluate": lambda **given: drmdp.evaluate(model, ambiguity, best.policy, **given),
        "path": lambda **given: drmdp.radius.path(model, ambiguity, [0.1, 0.3], **given).points[1],
        "horizon": lambda **given: drmdp.finite_horizon(model, ambiguity, 5, **given),
        "values": lambda **given: (
            drmdp.policies.values(model, ambiguity, best.policy, **given).worst
        ),
    }
    for name, call in calls.items():
        for given in ({}, {"rtol": 1e-3}, {"tol": 1e-4}, {"tol": 1e-4, "rtol": 0}):
            found = call(**given)
            assert found.status == "solved", name
            assert found.gap <= Tolerance(**given).goal(found.scale)
        assert call(tol=0).status == "precision_limit", name
        for given in ({"tol": -1}, {"rtol": math.nan}):
            with pytest.raises(drmdp.InputError, match="must be finite and not negative"):
                call(**given)
    assert drmdp.radius.cross_validate(model, ambiguity, [0.0, 0.1], rtol=1e-4).status == "solved"
    assert drmdp.policies.deterministic(model, ambiguity, best, rtol=1e-4).loss.max() >= 0


def test_a_small_absolute_tolerance_of_a_horizon_is_a_matter_of_status_only():
    model, ambiguity = (
        drmdp.instances.machine(6, discount=0.9),
        drmdp.Wasserstein(0.3, support="all"),
    )
    plans = [drmdp.finite_horizon(model, ambiguity, 5, tol=tol) for tol in (1.0, 0.0)]
    assert [str(plan.status) for plan in plans] == ["solved", "precision_limit"]
    assert np.array_equal(plans[0].value, plans[1].value)
    assert plans[0].scale == scale_of(model, plans[0].value)


def test_the_operator_is_asked_for_what_the_tolerance_needs():
    """A tenth of it, per state; what is known of the scale only ever makes it coarser."""
    model, ambiguity = money((50, 4, 10), 1.0, 0.99), drmdp.Wasserstein(0.3, support="all")
    operator, seen = ExactOperator(model, ambiguity), []
    usual = operator.update
    operator.update = lambda *given: seen.append(operator.accuracy) or usual(*given)
    found = loop.run(PolicyIteration(), Problem(operator), start=None, tolerance=Tolerance())
    finest = 0.1 * (1 - 0.99) * 1e-6
    assert seen[0] == pytest.approx(finest * np.abs(model.costs).max())
    assert seen[-1] == pytest.approx(finest * np.abs(found.upper).max(), rel=1e-2)
    assert sorted(seen) == seen


@pytest.mark.parametrize(
    ("history", "goal", "ends"),
    [
        ([(8.0, 1.0), (2.0, 1.0), (1.9, 1.0)], 0.5, 3),  # hopeless: the floor is above the goal
        ([(4.0, 1.0), (4.0, 1.0)], 0.5, 2),
        ([(4.0, 1.0)] * 9, 2.0, 6),  # the goal might be reached: it gets its chances
        ([(4.1, 1.0)] * 9, 0.5, None),  # not noise yet
        ([(4.0, 1.0), (1.9, 1.0), (0.9, 1.0), (0.4, 1.0), (0.1, 1.0)], 0.01, 2),
        ([(math.nan, math.nan)] * 9, 0.5, None),
    ],
)
def test_when_a_run_is_given_up(history, goal, ends):
    watch = loop.Watch()
    answers = [watch.stalled(size, floor, goal) for size, floor in history]
    assert (answers.index(True) + 1 if True in answers else None) == ends


def test_reached():
    made = drmdp.Evaluation
    numbers = {"value": np.ones(1), "kernel": None, "scale": 100.0}
    for status, gap, good in (
        ("solved", 50.0, True),
        ("precision_limit", 1e-7, True),
        ("precision_limit", 1.1e-7, False),
        ("time_limit", 0.0, False),
        ("iteration_limit", 1e-9, False),
    ):
        own = made(lower=np.zeros(1), upper=np.full(1, gap), status=drmdp.Status(status), **numbers)
        assert reached(own) is good
