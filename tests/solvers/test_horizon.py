"""Finite horizons against stage-by-stage conic programs."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from test_radius import small

import drmdp
from cases import cases
from drmdp import InputError, Wasserstein
from drmdp.operators.build import build
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS
from drmdp.solvers.horizon import induction
from drmdp.solvers.problem import Problem
from drmdp.ui import clock

OFF = 0.1


def conic(model, ambiguity, v):
    return drmdp.bellman(model, ambiguity, v, backend="conic").value


@pytest.mark.parametrize("n", [7, pytest.param(15, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("pair", PAIRS)
def test_every_stage_is_a_conic_program(pair, n):
    for case in cases(pair, n, seed=6):
        model, ambiguity, T = case.model, case.ambiguity, 3
        final = -case.value if model.maximise else case.value
        plan = drmdp.finite_horizon(model, ambiguity, T, final=final)
        v = final
        size = max(map(abs, model.cost_range)) + np.abs(final).max()
        assert np.array_equal(plan.value[T], np.where(model.terminal, 0, final))
        for t in reversed(range(T)):
            v = conic(model, ambiguity, v)
            assert np.allclose(plan.value[t], v, atol=2e-6 * size, rtol=0), case.name
            assert (plan.lower[t] <= v + 2e-6 * size).all(), case.name
            assert (plan.upper[t] >= v - 2e-6 * size).all(), case.name
        assert plan.gap <= 1e-8 * size, case.name
        assert (plan.value[:, model.terminal] == 0).all()


@pytest.mark.parametrize("rewards", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_policies_attain_their_values(rewards, sparse):
    model, ambiguity = small(rewards=rewards, sparse=sparse), Wasserstein(0.4, support="all")
    plan = drmdp.finite_horizon(model, ambiguity, 4)
    operator = build(model, ambiguity, "conic")
    sign = -1 if rewards else 1
    u = np.zeros(5)
    for t in reversed(range(4)):
        parts = [operator.evaluate(u, plan.policy[t], s, s + 1).value[0] for s in range(5)]
        u = np.array(parts)
        assert np.allclose(sign * u, plan.value[t], rtol=0, atol=1e-6)
    assert np.allclose(plan.policy.sum(axis=2), ~model.terminal)


@pytest.mark.parametrize("pair", [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_without_discount(pair):
    rng = np.random.default_rng(0)
    kernels = rng.dirichlet(np.ones(4), size=(3, 4, 2))
    costs = rng.random((4, 2))
    half = drmdp.Model(kernels, costs=costs, discount=0.5)
    plan = drmdp.finite_horizon(half, Wasserstein(0.3, *pair, support="all"), 30, discount=1)
    v = np.zeros(4)
    for t in reversed(range(30)):
        v = conic(half, Wasserstein(0.3, *pair, support="all"), 2 * v)  # c + ½ · 2v
        assert np.allclose(plan.value[t], v, atol=1e-5)
    assert plan.gap < 1e-8
    assert plan.value[0].min() > 5  # it adds up


@pytest.mark.parametrize("by_next", [False, True])
@pytest.mark.parametrize("kind", ["costs", "rewards"])
def test_costs_of_stages(kind, by_next):
    rng = np.random.default_rng(1)
    kernels = rng.dirichlet(np.ones(4), size=(3, 4, 2))
    stages = rng.random((3, 4, 2, 4) if by_next else (3, 4, 2))
    base = drmdp.Model(kernels, **{kind: np.zeros((4, 2))}, discount=0.9)
    plan = drmdp.finite_horizon(
        base, Wasserstein(0.3, support="all"), 3, costs=stages, final=[1, 2, 3, 4]
    )
    v = np.array([1.0, 2, 3, 4])
    for t in reversed(range(3)):
        v = conic(
            drmdp.Model(kernels, **{kind: stages[t]}, discount=0.9),
            Wasserstein(0.3, support="all"),
            v,
        )
        assert np.allclose(plan.value[t], v, rtol=0, atol=1e-6)
    assert plan.gap < 1e-9


class Sloppy(Problem):
    """A problem with valid bounds that are `OFF` too wide on both sides, and a value at their lower
    end.
    """

    def proved(self, value, policy=None):
        found = super().proved(value, policy)
        low, high = found.lower_step - OFF, found.upper_step + OFF
        return replace(found, value=found.value - OFF, lower_step=low, upper_step=high)


def test_errors_of_stages_add_up(monkeypatch):
    model, ambiguity = small(), Wasserstein(0.3, support="all")
    exact = drmdp.finite_horizon(model, ambiguity, 6)
    monkeypatch.setattr(induction, "Problem", Sloppy)
    wide = drmdp.finite_horizon(model, ambiguity, 6)
    assert (wide.lower <= exact.lower).all()
    assert (wide.upper >= exact.upper).all()
    assert wide.gap <= 4 * OFF * sum(0.9**k for k in range(6))


def test_long_horizons_end_in_the_solution():
    model, ambiguity = small(), Wasserstein(0.3, support="all")
    solution, seen = drmdp.solve(model, ambiguity), []
    plan = drmdp.finite_horizon(model, ambiguity, 200, callback=seen.append)
    assert seen == list(range(199, -1, -1))
    assert np.allclose(plan.value[0], solution.value, atol=1e-5)
    assert (plan.upper[0] >= solution.lower * (1 - 1e-7)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stages": 0}, "stages: expected a whole number from 1 to 1,000,000, got 0"),
        ({"final": [1, 2]}, r"final: expected shape \(5,\), got \(2,\)"),
        ({"final": [0, 0, 0, 0, 1]}, "final: state 4 is terminal, its value is 0, got 1.0"),
        ({"costs": np.zeros((2, 5, 3))}, r"costs: expected shape \(3, 5, 3\) or"),
        ({"costs": np.full((3, 5, 3), np.inf)}, "costs of stage 0"),
        ({"discount": 1.5}, r"discount: expected a number in \[0, 1\], got 1.5"),
        ({"backend": "magic"}, "unknown backend 'magic'"),
    ],
)
def test_mistakes_are_named(given, message):
    with pytest.raises(InputError, match=message):
        drmdp.finite_horizon(small(), Wasserstein(0.1, support="all"), **{"stages": 3, **given})


# ---------------------------------------------------------------------- cut short


@pytest.mark.parametrize("end", ["time", "interrupt", "at once"])
@pytest.mark.parametrize("staged", [False, True], ids=["one cost", "stage costs"])
@pytest.mark.parametrize("maximise", [False, True], ids=["costs", "rewards"])
def test_a_plan_that_is_cut_short_has_bounds_for_every_stage(monkeypatch, end, staged, maximise):
    """The stages that were reached are those of the whole plan; the others hold for any policy."""
    rng = np.random.default_rng(0)
    given = {"rewards" if maximise else "costs": rng.normal(size=(5, 2))}
    model = drmdp.Model(rng.dirichlet(np.ones(5), (3, 5, 2)), **given, discount=0.9, terminal=[4])
    settings = {"costs": rng.normal(size=(8, 5, 2)) if staged else None, "discount": 1.0}
    ambiguity = drmdp.Wasserstein(0.3, support="all")
    whole = drmdp.finite_horizon(model, ambiguity, 8, **settings)
    assert (whole.status, whole.kernel_passes) == ("solved", 8)
    calls, usual = [], ExactOperator.update

    def update(self, *args):
        calls.append(1)
        if end == "interrupt" and len(calls) == 4:
            raise KeyboardInterrupt
        return usual(self, *args)

    monkeypatch.setattr(ExactOperator, "update", update)
    monkeypatch.setattr(clock, "now", lambda: float(len(calls)))
    limit = {"time": 2, "interrupt": None, "at once": -0.0}[end]
    if end == "at once":
        monkeypatch.setattr(clock, "deadline", lambda seconds: -1.0)
    found = drmdp.finite_horizon(model, ambiguity, 8, **settings, max_seconds=limit)
    done = 0 if end == "at once" else 3
    assert found.status == ("interrupted" if end == "interrupt" else "time_limit")
    assert found.kernel_passes == done
    for name in ("value", "lower", "upper", "policy"):
        np.testing.assert_array_equal(
            getattr(found, name)[8 - done :], getattr(whole, name)[8 - done :]
        )
    assert np.isfinite(found.value).all()
    assert (found.lower <= whole.upper).all()
    assert (found.upper >= whole.lower).all()
    assert (found.lower[:, 4] == 0).all()
    assert np.allclose(found.policy[:, :4].sum(axis=2), 1)
    # the policies that are returned are worth what is said
    for policy in (found.policy, np.full((8, 5, 2), 0.5)):
        v = np.zeros(5)
        for t in reversed(range(8)):
            prices = settings["costs"][t] if staged else given["rewards" if maximise else "costs"]
            v = np.where(
                model.terminal, 0.0, (policy[t] * (prices + model.mean_kernel @ v)).sum(axis=1)
            )
            if policy is found.policy:
                assert (
                    (v >= found.lower[t] - 1e-12).all()
                    if maximise
                    else (v <= found.upper[t] + 1e-12).all()
                )


def test_many_stages_that_are_not_reached_take_no_time_of_their_own(monkeypatch):
    """The range of the costs is looked up once, whatever the number of stages that are filled
    up.
    """
    calls, usual = [], drmdp.Model.cost_range.fget
    monkeypatch.setattr(
        drmdp.Model, "cost_range", property(lambda self: calls.append(1) or usual(self))
    )
    model = drmdp.Model(np.full((2, 1, 2), 0.5), costs=[[1.0], [2.0]], discount=0.5)
    plan = drmdp.finite_horizon(model, drmdp.Wasserstein(0.1), 100_000, max_seconds=0)
    assert plan.status == "time_limit"
    assert len(calls) < 10
    np.testing.assert_allclose([plan.lower[0], plan.upper[0]], [[2, 2], [4, 4]], rtol=1e-12)
    assert (plan.lower[0] <= 2).all()
    assert (plan.upper[0] >= 4).all()
    assert (plan.policy == 1).all()


def test_the_bounds_of_stages_that_were_not_reached_are_rounded_outwards():
    for side in (-1, 1):
        for cost, later in ((0.1, 0.2), (1e16, 1.0), (-0.1, 0.3), (0.0, 0.0)):
            exact = Fraction(cost) + Fraction(later)
            assert side * (Fraction(induction.outside(cost, later, side)) - exact) >= 0


# ---------------------------------------------------------------------- states where nothing
# happens any more


def mortal(terminal=None, kind="costs", next_costs=False, seed=0):
    """Four states, costs up to 10 000; the dead stay dead, for nothing."""
    rng = np.random.default_rng(seed)
    y = rng.dirichlet(np.ones(4), (3, 4, 2))
    y[:, 3] = [0, 0, 0, 1]
    costs = 1e4 * rng.random((4, 2, 4) if next_costs else (4, 2))
    costs[3] = 0
    return drmdp.Model(y, **{kind: costs}, discount=0.99, terminal=terminal)


@pytest.mark.parametrize("kind", ["costs", "rewards"])
@pytest.mark.parametrize("terminal", [None, [3]])
@pytest.mark.parametrize("next_costs", [False, True])
def test_the_dead_are_worth_nothing_exactly(kind, terminal, next_costs):
    plan = drmdp.finite_horizon(mortal(terminal, kind, next_costs), Wasserstein(0.2), 40)
    for bound in (plan.value, plan.lower, plan.upper):
        assert (bound[:, 3] == 0).all()
        assert not np.signbit(bound[:, 3]).any()
    assert (plan.value[0, :3] != 0).all()


def test_states_that_nature_can_revive_are_worth_something():
    plan = drmdp.finite_horizon(mortal(), Wasserstein(0.2, support="all"), 40)
    assert plan.value[0, 3] > 1
    final = [0, 0, 0, 5.0]
    plan = drmdp.finite_horizon(mortal(), Wasserstein(0.2), 2, final=final)
    assert plan.value[0, 3] == pytest.approx(5 * 0.99**2)
    costs = np.stack([mortal().costs, mortal().costs])
    costs[1, 3] = 7
    plan = drmdp.finite_horizon(mortal(), Wasserstein(0.2), 2, costs=costs)
    assert plan.value[0, 3] == pytest.approx(7 * 0.99)


def test_a_way_to_the_dead_is_no_death():
    # 0 → 1 → 2 → 2, the first two for nothing; state 1 has an action that costs
    y = np.zeros((3, 2, 3))
    y[0, :, 1] = y[1, :, 2] = y[2, :, 2] = 1
    model = drmdp.Model(y, rewards=[[0, 0], [0, 3], [0, 0]], discount=0.5)
    plan = drmdp.finite_horizon(model, Wasserstein(0.1), 5)
    assert plan.value[0] == pytest.approx([1.5, 3, 0])
    assert plan.value[0, 2] == 0
