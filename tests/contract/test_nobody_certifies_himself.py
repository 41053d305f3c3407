"""Whatever a method or an engine says, what is returned is true."""

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import drmdp
from drmdp.certificate import PairClaim, RobustProver
from drmdp.layout.memory import SweepMemory
from drmdp.layout.point import point_at
from drmdp.operators import operator
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS
from drmdp.solvers.problem import MethodState, Problem

BALLS = [*PAIRS, ("transport", 1), ("transport", np.inf)]
IDS = [f"{metric}-{order:g}" for metric, order in BALLS]


def problem(pair=("l2", 2), support="observed"):
    model = drmdp.instances.perturb(drmdp.instances.garnet(8, 3, seed=3), 4, seed=4)
    ground = ("line", range(8)) if pair[0] == "transport" else None
    return model, drmdp.Wasserstein(0.3, *pair, support, ground=ground)


def truth(model, ambiguity):
    found = drmdp.solve(model, ambiguity, tol=1e-9)
    assert found.status == "solved"
    return found


def check(found, model, ambiguity):
    """The bounds enclose the optimum and the worst case of the policy, and a run that says "solved"
    kept its promise.
    """
    best = truth(model, ambiguity)
    assert (found.lower <= best.upper).all()
    assert (found.upper >= best.lower).all()
    worst = drmdp.evaluate(model, ambiguity, found.policy, tol=1e-9)
    assert (found.upper >= worst.lower).all()
    assert found.gap == (found.upper - found.lower).max()


@dataclass(frozen=True)
class Liar:
    """Ends at once: what it hands over is `lie` of an honest state. Not registered anywhere."""

    lie: object
    backend: str = "exact"
    stop: str = "certified"
    max_iters: ClassVar[int] = 50

    def init(self, problem, value):
        return self.step(problem, MethodState(np.zeros(problem.model.n_states), None))

    def step(self, problem, state):
        honest = problem.sweep(state.value)
        return MethodState(state.value, self.lie(problem, state.value, honest))


def no_gap(problem, value, honest):
    """Both steps are 0: v is the solution."""
    none = np.zeros_like(value)
    return replace(honest, lower_step=none, upper_step=none)


def crossed(problem, value, honest):
    """The lower bound is above the upper one."""
    return replace(honest, lower_step=honest.upper_step + 5, upper_step=honest.lower_step - 5)


def no_claim(problem, value, honest):
    return replace(no_gap(problem, value, honest), claim=None)


def noise(problem, value, honest):
    """A memory of random numbers, some of them none."""
    rng = np.random.default_rng(1)
    spoiled = [
        rng.choice([-1e300, -1, 0, 0.5, 1, 1e300, np.nan, np.inf], part.shape).astype(part.dtype)
        for part in honest.claim
    ]
    return replace(no_gap(problem, value, honest), claim=SweepMemory(*spoiled))


def cheap(problem, value, honest):
    """A policy that is no distribution, and so costs nothing."""
    return replace(no_gap(problem, value, honest), policy=np.zeros_like(honest.policy))


def paradise(problem, value, honest):
    """A kernel far outside the set, from which the lower bound would be far too high, and a
    policy.
    """
    model = problem.model
    kernel = np.zeros((model.n_states, model.n_actions, model.n_states))
    kernel[:, :, model.costs.min(axis=1).argmax()] = (
        1.0  # the state where the best action costs most
    )
    return replace(honest, claim=PairClaim(honest.policy, kernel))


LIES = [no_gap, crossed, no_claim, noise, cheap, paradise]


@pytest.mark.parametrize("pair", BALLS, ids=IDS)
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_method_that_lies_ends_with_true_bounds(lie, pair):
    model, ambiguity = problem(pair)
    found = drmdp.solve(model, ambiguity, Liar(lie), tol=1e-6)
    check(found, model, ambiguity)
    assert found.status != "solved"
    assert found.gap > 1e-3


@pytest.mark.parametrize("stop", ["paper", "puterman"])
def test_a_method_that_stops_by_a_false_residual_has_true_bounds(stop):
    model, ambiguity = problem()
    found = drmdp.solve(model, ambiguity, Liar(no_gap, stop=stop), tol=1e-6)
    assert found.status == "stopped"
    check(found, model, ambiguity)


@pytest.mark.parametrize("spoil", ["shape", "type", "kind"])
def test_a_claim_of_another_shape_is_refused(spoil):
    """It would be read out of bounds."""

    def lie(problem, value, honest):
        by_action, by_kernel, by_row = honest.claim
        wrong = {
            "shape": SweepMemory(by_action[:2], by_kernel, by_row),
            "type": SweepMemory(by_action.astype(np.float32), by_kernel, by_row),
            "kind": "trust me",
        }
        return replace(no_gap(problem, value, honest), claim=wrong[spoil])

    model, ambiguity = problem()
    with pytest.raises(drmdp.InputError, match="claim"):
        drmdp.solve(model, ambiguity, Liar(lie), tol=1e-6)


def test_a_claim_is_read_whatever_its_strides_and_a_policy_of_another_shape_is_refused():
    model, ambiguity = problem()
    value, prover = np.zeros(8), RobustProver(model, ambiguity, 1)
    update = ExactOperator(model, ambiguity, 1).update(value, 0, 8)
    strided = update.claim._replace(by_row=np.repeat(update.claim.by_row, 2, axis=2)[:, :, ::2])
    one, other = (
        prover.prove(value, update.policy, claim, False) for claim in (update.claim, strided)
    )
    for name in ("lower_step", "upper_step", "share"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    with pytest.raises(drmdp.InputError, match="policy"):
        prover.prove(value, update.policy[:4], update.claim, False)


class Boaster(ExactOperator):
    """An engine whose own bounds are too good to be true."""

    def _boast(self, update):
        return replace(
            update, lower_step=update.upper_step + 1.0, upper_step=update.lower_step - 1.0
        )

    def update(self, value, start, stop):
        return self._boast(super().update(value, start, stop))

    def evaluate(self, value, policy, start, stop):
        return self._boast(super().evaluate(value, policy, start, stop))


@pytest.fixture
def boaster(monkeypatch):
    monkeypatch.setitem(operator.ENGINES, "boaster", f"{__name__}:Boaster")
    return "boaster"


def test_an_engine_that_boasts_has_true_bounds(boaster):
    model, ambiguity = problem()
    found = drmdp.solve(
        model, ambiguity, drmdp.ValueIteration(backend=boaster), tol=1e-6, max_iters=20
    )
    check(found, model, ambiguity)
    assert found.status != "solved"
    step, honest = (
        drmdp.bellman(model, ambiguity, np.arange(8.0), backend=backend)
        for backend in (boaster, "exact")
    )
    assert np.array_equal(step.lower, honest.lower)
    assert np.array_equal(step.upper, honest.upper)


class Swapper(ExactOperator):
    """An engine that evaluates the best policy instead of the one it is asked about."""

    def evaluate(self, value, policy, start, stop):
        return super().update(value, start, stop)


def test_an_engine_that_evaluates_another_policy_proves_nothing_of_it(monkeypatch):
    monkeypatch.setitem(operator.ENGINES, "swapper", f"{__name__}:Swapper")
    model, ambiguity = problem()
    worst_action = np.eye(3)[model.costs.argmax(axis=1)]
    want = drmdp.evaluate(model, ambiguity, worst_action, tol=1e-9)
    found = drmdp.evaluate(model, ambiguity, worst_action, backend="swapper", max_seconds=5)
    assert (found.upper >= want.lower).all()
    assert (found.lower <= want.upper).all()
    plan = Problem(Swapper(model, ambiguity)).proved(want.lower, worst_action)
    assert (want.lower + plan.upper_step >= want.lower - 1e-9).all()


def test_an_honest_third_engine_needs_one_line(monkeypatch):
    monkeypatch.setitem(operator.ENGINES, "third", "drmdp.operators.exact:ExactOperator")
    model, ambiguity = problem()
    found = drmdp.solve(model, ambiguity, drmdp.PolicyIteration(backend="third"))
    assert found.status == "solved"
    assert drmdp.finite_horizon(model, ambiguity, 3, backend="third").status == "solved"
    assert drmdp.evaluate(model, ambiguity, found.policy, backend="third").status == "solved"


def counted(off):
    """Values and bounds by operators whose counts of states in order are off."""
    rng = np.random.default_rng(0)
    S, A, N = 24, 2, 2
    kernels = np.zeros((N, S, A, S))
    for index in np.ndindex(N, S, A):
        kernels[index][rng.choice(S, 3, replace=False)] = rng.dirichlet(np.ones(3))
    model, value = (
        drmdp.Model(kernels, costs=rng.random((S, A)), discount=0.9),
        np.linspace(0, 1, S),
    )

    def looked(*given, **settings):
        point = point_at(*given, **settings)
        u = point.order.u
        u = u if off == 0 else np.append(u[0], u[:-1]) if off > 0 else np.append(u[1:], -1.0)
        return point._replace(order=point.order._replace(u=u))

    found = []
    for order in (2, np.inf):
        operator = ExactOperator(model, drmdp.Wasserstein(0.4, "l2", order, "all"), threads=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules[ExactOperator.__module__], "point_at", looked)
            update = operator.update(value, 0, S)
        proof = Problem(operator).prove(value, update, False)
        found.append((update.value, value + proof.lower_step, value + proof.upper_step))
    return found


@pytest.mark.parametrize("off", [-1, 1])
def test_a_wrong_count_in_an_operator_is_seen_and_makes_no_bound_false(off):
    for (value, lower, upper), (other, below, above) in zip(counted(0), counted(off), strict=True):
        assert (upper - lower).max() < 1e-9
        assert np.abs(value - other).max() > 1e-6  # whoever compares values sees it
        assert (below <= upper).all()
        assert (above >= lower).all()
