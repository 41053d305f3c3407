"""Every method on every family, the reductions to known cases, and the one loop: its limits, its
ends, its records.
"""

import math
import signal
import subprocess
import sys
from functools import cache
from unittest import mock

import numpy as np
import pytest
from scipy import sparse

import cases
import drmdp
from drmdp import instances
from drmdp.core.tolerance import Tolerance
from drmdp.criteria import newton_systems
from drmdp.operators import operator as operators
from drmdp.operators.conic.operator import ConicOperator
from drmdp.operators.exact import ExactOperator
from drmdp.operators.nominal import NominalOperator
from drmdp.operators.operator import Update
from drmdp.sets import PAIRS
from drmdp.solvers import loop, mean_start, policy_iteration
from drmdp.solvers.incumbent import Incumbent
from drmdp.solvers.problem import MethodState, Problem
from drmdp.solvers.stopping import RULES

INF = math.inf
METHODS = {name: method() for name, method in drmdp.METHODS.items() if name != "first-order"}
"""First-order has a file of its own."""
NEWTON, PLAIN = METHODS["policy-iteration"], METHODS["value-iteration"]
EVERY_METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
CONIC = {name: type(method)(backend="conic") for name, method in METHODS.items()}
WITH_PROGRAMS = pytest.mark.parametrize("method", CONIC.values(), ids=CONIC)
"""Slower, but what a sweep says of itself is what is proved of it: histories end with the digits of
the solution.
"""
EVERY_PAIR = pytest.mark.parametrize(
    "pair", PAIRS, ids=[f"{metric}-{order:g}" for metric, order in PAIRS]
)


@cache
def problem(name):
    """Return a model and a ball: each family, and between them each pair."""
    perturb = instances.perturb
    return {
        "garnet": lambda: (
            perturb(instances.garnet(5, 3, 0.4, discount=0.8), 3),
            drmdp.Wasserstein(0.3, support="all"),
        ),
        "machine": lambda: (
            perturb(instances.machine(6, 0.9), 3),
            drmdp.Wasserstein(0.2, "l1", 1, support="all"),
        ),
        "forest": lambda: (
            perturb(instances.forest(5, 0.9), 3),
            drmdp.Wasserstein(0.1, "l2", INF, support="all"),
        ),
        "ring": lambda: (
            instances.ring(7, 3, discount=0.9),
            drmdp.Wasserstein(0.1, "linf", 1, support="all"),
        ),
        "cycle": lambda: (
            instances.cycle(6, 2, discount=0.8),
            drmdp.Wasserstein(0.1, "l1", INF, support="all"),
        ),
        "grid": lambda: (
            instances.grid(9, 2, discount=0.8),
            drmdp.Wasserstein(0.05, "linf", INF, support="all"),
        ),
        "tiny": lambda: (
            perturb(instances.garnet(3, 2, 0.7, 9, 0.5), 2, 9),
            drmdp.Wasserstein(0.3, "l1", 1, support="all"),
        ),
    }[name]()


FAMILIES = ("garnet", "machine", "forest", "ring", "cycle", "grid")
EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES)


@cache
def answer(name):
    """Return a tight solution of a problem."""
    solution = drmdp.solve(*problem(name), NEWTON, tol=1e-7)
    assert solution.status == "solved"
    return solution


def agree(one, other):
    """Whether two certified intervals meet; the optimum is in both."""
    return np.all(one.lower <= other.upper) and np.all(other.lower <= one.upper)


def near(one, other):
    """Whether two values agree within the gaps that were certified for them."""
    return agree(one, other) and np.abs(one.value - other.value).max() <= one.gap + other.gap


# ---------------------------------------------------------------------- every method, every family


@EVERY_METHOD
@EVERY_FAMILY
def test_every_method_solves_every_family(method, family):
    model, ambiguity = problem(family)
    tol = 1e-4
    solution = drmdp.solve(model, ambiguity, method, tol=tol)
    assert solution.status == "solved"
    assert solution.gap <= tol
    assert near(solution, answer(family))
    assert np.all(solution.value == (solution.lower if model.maximise else solution.upper))
    assert np.allclose(solution.policy.sum(axis=1), 1)
    assert np.all(solution.policy >= 0)
    assert solution.settings["method"] == next(
        name for name, own in METHODS.items() if own is method
    )
    assert solution.settings["backend"] == "exact"
    assert solution.duality_gap == pytest.approx(model.initial @ (solution.upper - solution.lower))


@WITH_PROGRAMS
def test_every_method_solves_with_conic_programs(method):
    found = drmdp.solve(*problem("garnet"), method, tol=1e-4)
    assert found.status == "solved"
    assert found.settings["backend"] == "conic"
    assert near(found, answer("garnet"))


@EVERY_METHOD
@pytest.mark.parametrize("limit", [0, 1, 2, 7])
def test_the_value_is_that_of_the_returned_policy(method, limit):
    """Also far from the end: policy and upper bound come from the same sweep."""
    for family in ("garnet", "forest"):
        model, ambiguity = problem(family)
        solution = drmdp.solve(model, ambiguity, method, tol=1e-9, max_iters=limit)
        worst = drmdp.evaluate(model, ambiguity, solution.policy, tol=1e-7)
        sign = -1 if model.maximise else 1
        assert np.all(sign * worst.value <= sign * solution.value + worst.gap)
        assert agree(solution, answer(family))


@EVERY_METHOD
def test_sparse_models_are_solved_like_dense_ones(method):
    kinds = {"n_kernels": 2, "discount": 0.8}
    dense, thin = instances.ring(5, **kinds), instances.ring(5, **kinds, sparse=True)
    for support in ("all", "observed", "state"):
        ambiguity = drmdp.Wasserstein(0.1, "l1", 1, support)
        found = [drmdp.solve(model, ambiguity, method, tol=1e-2) for model in (dense, thin)]
        assert near(*found)
        assert found[1].status == "solved"
        again = drmdp.solve(thin, ambiguity, method, tol=1e-2, start=found[0].policy)
        assert near(found[0], again)
        none = drmdp.solve(thin, ambiguity, method, max_seconds=0)
        assert agree(none, found[0])
        assert np.shape(none.kernel) == np.shape(found[0].kernel)


# ---------------------------------------------------------------------- reductions


@EVERY_PAIR
def test_radius_zero_is_the_mdp_of_the_mean_kernel(pair):
    from quantecon.markov import DiscreteDP  # three seconds

    for number, (name, model, ambiguity, _) in enumerate(cases.cases(pair, 12, seed=3)):
        if model.terminal.any() or model.next_costs:
            continue
        mean = model.mean_kernel
        mean = (
            mean.toarray().reshape(model.n_states, -1, model.n_states)
            if model.is_sparse
            else mean.copy()
        )
        mean[~model.available] = 1 / model.n_states  # not read, but checked
        rewards = np.where(model.available, -model.costs, -np.inf)
        expected = (
            DiscreteDP(rewards, mean, max(model.discount, 1e-9)).solve(method="policy_iteration").v
        )
        still = drmdp.Wasserstein(0, *pair, ambiguity.support)
        size = np.abs(model.cost_range).max() / (1 - model.discount)
        method = list(METHODS.values())[number % len(METHODS)] if model.discount < 0.99 else NEWTON
        found = drmdp.solve(model, still, method, tol=1e-7 * size)
        assert found.status == "solved", name
        assert (
            np.abs((found.value if model.maximise else -found.value) - expected).max()
            <= 2e-7 * size
        ), name


def test_with_one_kernel_orders_one_and_infinity_are_the_same():
    for name, model, ambiguity, _ in cases.cases(("l1", 1), 30, seed=5):
        if model.n_kernels == 1:
            other = drmdp.Wasserstein(ambiguity.radius, "l1", INF, ambiguity.support)
            size = np.abs(model.cost_range).max() / (1 - model.discount)
            assert near(
                *(drmdp.solve(model, own, NEWTON, tol=1e-7 * size) for own in (ambiguity, other))
            ), name


@EVERY_PAIR
def test_an_unconstrained_nature_has_a_closed_form(pair):
    """With c(s, a) she goes where v is largest: v = m + λ max(m)/(1−λ), m = min_a c."""
    for family in ("garnet", "forest"):
        model, _ = problem(family)
        full = drmdp.Wasserstein(1, *pair, support="all").saturation(model)
        least = model.costs.min(axis=1)
        expected = least + model.discount * least.max() / (1 - model.discount)
        for radius in (full, 3 * full.max()):
            found = drmdp.solve(
                model, drmdp.Wasserstein(radius, *pair, support="all"), NEWTON, tol=1e-6
            )
            assert found.status == "solved"
            assert (
                np.abs((-found.value if model.maximise else found.value) - expected).max() <= 1e-6
            )


@EVERY_PAIR
def test_the_value_never_falls_with_the_radius(pair):
    model, _ = problem("garnet")
    full = drmdp.Wasserstein(1, *pair, support="all").saturation(model).max()
    found = [
        drmdp.solve(model, drmdp.Wasserstein(share * full, *pair, support="all"), NEWTON, tol=1e-6)
        for share in (0, 1e-6, 0.05, 0.2, 0.5, 0.9, 1)
    ]
    values = np.array([solution.value for solution in found])
    assert np.diff(values, axis=0).min() >= -1e-6
    assert np.all(values[4] > values[0] + 0.1)


@EVERY_PAIR
def test_the_operator_is_a_monotone_contraction_that_commutes_with_shifts(pair):
    rng = np.random.default_rng(7)
    for name, model, ambiguity, value in cases.cases(pair, 10, seed=7):
        size = max(np.ptp(value), np.abs(model.cost_range).max(), 1e-12)
        other = value + size * rng.standard_normal(value.size)
        higher = np.maximum(value, other)
        k = size * rng.standard_normal()
        one, two, top, moved = (
            drmdp.bellman(model, ambiguity, v) for v in (value, other, higher, value + k)
        )
        assert np.all(one.lower <= top.upper), name
        assert np.all(two.lower <= top.upper), name
        apart = model.discount * np.abs(np.where(model.terminal, 0, value - other)).max()
        assert np.all(one.lower - two.upper <= apart * (1 + 1e-12)), name
        assert np.all(two.lower - one.upper <= apart * (1 + 1e-12)), name
        if not model.terminal.any():
            shift = model.discount * k
            slack = 1e-14 * (np.abs(value).max() + abs(k) + size)
            assert np.all(moved.lower <= one.upper + shift + slack), name
            assert np.all(moved.upper >= one.lower + shift - slack), name


@EVERY_METHOD
def test_rewards_are_negated_costs(method):
    model, ambiguity = problem("machine")
    earned = drmdp.Model(model.kernels, rewards=-model.costs, discount=model.discount)
    paid, got = (drmdp.solve(own, ambiguity, method, tol=1e-4) for own in (model, earned))
    assert np.array_equal(got.lower, -paid.upper)
    assert np.array_equal(got.upper, -paid.lower)
    assert np.array_equal(got.value, got.lower)
    assert np.array_equal(got.policy, paid.policy)
    assert [(-r.upper, -r.lower, r.gap) for r in got.history] == [
        (r.lower, r.upper, r.gap) for r in paid.history
    ]
    warm = drmdp.solve(earned, ambiguity, method, tol=1e-4, start=got)
    assert near(warm, got)
    assert warm.n_iters < got.n_iters


@EVERY_PAIR
def test_a_terminal_state_is_an_absorbing_one_that_costs_nothing(pair):
    """With support "observed"; otherwise nature would revive the dead."""
    rng = np.random.default_rng(0)
    kernels = rng.dirichlet(np.ones(5), (3, 5, 2))
    costs = rng.uniform(-1, 2, (5, 2))
    kernels[:, 3] = np.eye(5)[3]
    costs[3] = 0
    ambiguity = drmdp.Wasserstein(0.3, *pair, "observed")
    ending = drmdp.Model(kernels, costs=costs, discount=0.9, terminal=[3])
    staying = drmdp.Model(kernels, costs=costs, discount=0.9)
    found = [drmdp.solve(model, ambiguity, NEWTON, tol=1e-6) for model in (ending, staying)]
    assert near(*found)
    assert found[0].value[3] == found[0].lower[3] == found[0].upper[3] == 0
    assert np.all(found[0].policy[3] == 0)


@EVERY_METHOD
def test_unavailable_actions_are_never_played(method):
    kernels = np.random.default_rng(1).dirichlet(np.ones(3), (2, 3, 3))
    costs = np.array([[1.0, 2.0, -np.inf], [np.nan, 1.0, 3.0], [2.0, 1.0, -100.0]])
    available = np.array([[True, True, False], [False, True, True], [True, True, False]])
    kernels[:, ~available] = np.nan
    model = drmdp.Model(kernels, costs=costs, discount=0.8, available=available)
    ambiguity = drmdp.Wasserstein(0.2, "l1", 1, support="all")
    for limit in (0, None):
        found = drmdp.solve(model, ambiguity, method, tol=1e-5, max_iters=limit)
        assert np.all(found.policy[~available] == 0)
        assert np.allclose(found.policy.sum(axis=1), 1)
    # the same, the third action being a copy of one that is there
    full_kernels, full_costs = np.nan_to_num(kernels), np.where(available, costs, 0)
    for s, (closed, copy) in enumerate([(2, 0), (0, 1), (2, 1)]):
        full_kernels[:, s, closed], full_costs[s, closed] = kernels[:, s, copy], 1e3
    full = drmdp.Model(full_kernels, costs=full_costs, discount=0.8)
    assert near(found, drmdp.solve(full, ambiguity, NEWTON, tol=1e-5))


@EVERY_METHOD
@pytest.mark.parametrize("stop", RULES)
def test_discount_zero(method, stop):
    model, ambiguity = problem("garnet")
    model = drmdp.Model(model.kernels, costs=model.costs, discount=0)
    found = drmdp.solve(model, ambiguity, type(method)(stop=stop), tol=1e-9)
    assert found.status == "solved"
    assert found.n_iters <= 30
    assert np.abs(found.value - model.costs.min(axis=1)).max() <= 1e-9


@EVERY_METHOD
@EVERY_PAIR
def test_one_state_one_action_one_kernel(method, pair):
    model = drmdp.Model(np.ones((1, 1, 1)), costs=[[3.0]], discount=0.75)
    found = drmdp.solve(model, drmdp.Wasserstein(0.5, *pair, support="all"), method, tol=1e-9)
    assert found.status == "solved"
    assert found.value == pytest.approx([12], abs=1e-9)
    assert np.array_equal(found.policy, [[1]])


@EVERY_METHOD
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scaling_the_costs_scales_the_value(method, scale):
    for name in ("tiny", "garnet") if method is NEWTON else ("tiny",):
        model, ambiguity = problem(name)
        scaled = drmdp.Model(model.kernels, costs=scale * model.costs, discount=model.discount)
        found = drmdp.solve(scaled, ambiguity, method, tol=1e-5 * scale)
        assert found.status == "solved"
        assert np.abs(found.value / scale - answer(name).value).max() <= 1.1e-5
        assert abs(found.n_iters - drmdp.solve(model, ambiguity, method, tol=1e-5).n_iters) <= 1


def test_costs_of_zero():
    model, ambiguity = problem("tiny")
    free = drmdp.Model(model.kernels, costs=0 * model.costs, discount=0.9)
    for method in METHODS.values():
        found = drmdp.solve(free, ambiguity, method, tol=0)
        assert found.status == "solved"
        assert np.all(found.value == 0)


# ---------------------------------------------------------------------- stopping


def record(**fields):
    usual = {
        "iteration": 3,
        "seconds": 1.0,
        "residual": 1.0,
        "lower": 0.0,
        "upper": 1.0,
        "gap": 1.0,
    }
    return drmdp.Record(**{**usual, "kernel_passes": 4.0, **fields})


@pytest.mark.parametrize(
    ("rule", "fields", "discount", "stops"),
    [
        ("certified", {"gap": 0.1, "residual": 9.0}, 0.9, True),
        ("certified", {"gap": 0.1000001, "residual": 0.0}, 0.9, False),
        ("certified", {"gap": math.nan}, 0.9, False),
        ("puterman", {"residual": 0.1 * 0.25 / 1.5, "gap": 9.0}, 0.75, True),
        ("puterman", {"residual": 0.1001 * 0.25 / 1.5}, 0.75, False),
        ("puterman", {"residual": math.nan, "gap": 0.0}, 0.75, False),
        ("puterman", {"residual": 1e9}, 0.0, True),
        ("paper", {"residual": 0.0999 * 1.5 / 0.25, "gap": 9.0}, 0.75, True),
        ("paper", {"residual": 0.1 * 1.5 / 0.25}, 0.75, False),
        ("paper", {"residual": 0.0}, 0.0, False),
    ],
)
def test_rules_are_functions_of_a_record(rule, fields, discount, stops):
    assert RULES[rule](record(**fields), 0.1, discount) is stops


@pytest.mark.parametrize(
    "method",
    [m for name, m in METHODS.items() if name != "policy-iteration"],
    ids=lambda m: type(m).__name__,
)
def test_puterman_keeps_its_promise(method):
    model, ambiguity = problem("ring")
    tol = 0.5
    found = drmdp.solve(model, ambiguity, type(method)(stop="puterman"), tol=tol)
    exact = answer("ring")
    assert found.status == "solved"
    assert 2 * 0.9 * found.history[-1].residual <= 0.1 * tol
    worst = drmdp.evaluate(model, ambiguity, found.policy, tol=1e-6)
    assert np.all(worst.lower <= exact.upper + tol)
    assert near(found, exact)
    assert found.kernel_passes > drmdp.solve(model, ambiguity, method, tol=tol).kernel_passes


def test_the_printed_rule_is_fooled_by_slow_mixing_and_ours_is_not():
    model, ambiguity = (
        instances.ring(30, 2, discount=0.95),
        drmdp.Wasserstein(0.02, "l1", 1, support="all"),
    )
    promise = 0.1
    exact = drmdp.solve(model, ambiguity, NEWTON, tol=1e-6)
    printed = drmdp.solve(model, ambiguity, drmdp.ValueIteration(stop="paper"), tol=promise)
    ours = drmdp.solve(model, ambiguity, PLAIN, tol=promise)
    off = {
        name: (drmdp.evaluate(model, ambiguity, found.policy, tol=1e-4).lower - exact.upper).max()
        for name, found in {"printed": printed, "ours": ours}.items()
    }
    assert off["printed"] > 50 * promise  # the policy is really that bad
    assert printed.gap > off["printed"]  # the certificate knows
    assert printed.status == "stopped"
    assert "solved" not in printed.status.sentence
    assert "the rule asked for" in printed.status.sentence
    assert off["ours"] <= promise
    assert ours.gap <= promise
    assert ours.status == "solved"


def test_accelerated_iterates_that_diverge_are_noticed():
    model, ambiguity = (
        instances.cycle(12, 2, discount=0.99),
        drmdp.Wasserstein(0.02, "l1", 1, support="all"),
    )
    found = drmdp.solve(model, ambiguity, CONIC["accelerated"], tol=1e-4)
    assert found.status == "diverged"
    assert found.n_iters < 300
    sizes = [r.residual for r in found.history[:-1]]
    assert sizes[-1] > 100 * sizes[0]
    assert np.isfinite([found.lower, found.upper]).all()
    assert agree(found, drmdp.solve(model, ambiguity, NEWTON, tol=1e-4))
    # the best sweep is kept, not the last
    least = min(r.gap for r in found.history)
    assert found.gap == pytest.approx(least, rel=1e-12)  # the last digits are the proof's
    assert least <= found.history[0].gap
    worst = drmdp.evaluate(model, ambiguity, found.policy, tol=1e-3)
    assert np.all(worst.lower <= found.upper)


# ---------------------------------------------------------------------- Anderson, Gauss–Seidel,
# policy iteration


@EVERY_FAMILY
def test_anderson_is_never_much_worse_than_value_iteration(family):
    model, ambiguity = problem(family)
    plain, mixed = (
        drmdp.solve(model, ambiguity, METHODS[name], tol=1e-5)
        for name in ("value-iteration", "anderson")
    )
    assert mixed.kernel_passes <= 1.5 * plain.kernel_passes + 2
    if family in ("cycle", "ring"):
        assert mixed.kernel_passes <= 0.7 * plain.kernel_passes


def test_anderson_takes_plain_steps_where_extrapolation_fails():
    """Every extrapolated point is made bad: then each third sweep is lost, and the rest is value
    iteration.
    """
    model, ambiguity = problem("machine")
    plain = drmdp.solve(model, ambiguity, PLAIN, tol=1e-5)
    noise = np.random.default_rng(0).standard_normal((1000, model.n_states))
    with mock.patch(
        "drmdp.solvers.anderson._mix",
        side_effect=lambda points, _: points[-1] + noise[len(points)] * 9,
    ):
        found = drmdp.solve(model, ambiguity, METHODS["anderson"], tol=1e-5)
    assert found.n_iters == plain.n_iters
    assert found.kernel_passes == plain.kernel_passes + found.n_iters // 2
    assert np.abs(found.value - plain.value).max() < 1e-9


@pytest.mark.parametrize("memory", [1, 2, 20])
def test_anderson_with_any_memory(memory):
    found = drmdp.solve(*problem("ring"), drmdp.Anderson(memory=memory), tol=1e-5)
    assert near(found, answer("ring"))
    assert found.settings["memory"] == memory


@pytest.mark.parametrize(
    ("block_size", "check_every"), [(1, 1), (1, 3), (2, 5), (3, 4), (6, 2), (9, 1)]
)
def test_gauss_seidel_blocks_and_checks(block_size, check_every):
    model, ambiguity = problem("machine")
    method = drmdp.GaussSeidel(block_size=block_size, check_every=check_every)
    found = drmdp.solve(model, ambiguity, method, tol=1e-3)
    assert found.status == "solved"
    assert near(found, answer("machine"))
    assert [r.iteration for r in found.history] == list(range(0, found.n_iters + 1, check_every))
    # a pass is as much work as a sweep, and each check is one more
    assert found.kernel_passes == pytest.approx(1 + found.n_iters + found.n_iters / check_every)
    if (
        block_size >= model.n_states and check_every == 1
    ):  # value iteration, every second value being certified
        plain = drmdp.solve(model, ambiguity, PLAIN, tol=0, max_iters=2 * found.n_iters)
        assert found.gap == pytest.approx(plain.gap, rel=1e-6)


def test_gauss_seidel_uses_the_newest_values():
    """From 0, with deterministic moves s → s − 1, one pass is enough."""
    kernel = np.zeros((4, 1, 4))
    kernel[[0, 1, 2, 3], 0, [0, 0, 1, 2]] = 1
    model = drmdp.Model(kernel, costs=[0.0, 1.0, 1.0, 1.0], discount=0.5)
    still = drmdp.Wasserstein(0, "l1", 1, support="all")
    first = drmdp.solve(model, still, drmdp.GaussSeidel(check_every=1), tol=1e-12)
    assert first.n_iters == 1
    assert first.value == pytest.approx([0, 1, 1.5, 1.75], abs=1e-12)
    assert drmdp.solve(model, still, PLAIN, tol=1e-12).n_iters == 3


@EVERY_PAIR
def test_policy_iteration_solves_a_game_on_which_newton_alone_cycles(pair):
    found = drmdp.solve(*cases.game(pair), NEWTON, tol=1e-6)
    assert found.status == "solved"
    assert found.value == pytest.approx([16, 0], abs=1e-6)
    assert found.n_iters < 40
    with mock.patch.object(policy_iteration, "ACCEPT", INF):
        found = drmdp.solve(*cases.game(pair), NEWTON, tol=1e-6, max_iters=40)
    assert found.status == "iteration_limit"
    assert found.gap > 1


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("right", ["random", "constant", "level"])
def test_sparse_chains_are_solved_well_enough_also_with_terminal_states(discount, right):
    rng = np.random.default_rng(0)
    chain = rng.dirichlet(np.ones(30), 30) * (np.arange(30)[:, None] > 2)
    r = {
        "random": rng.standard_normal(30),
        "constant": np.ones(30),
        "level": 1 + 1e-3 * rng.standard_normal(30),
    }[right]
    r[:3] = 0
    exact = newton_systems.solve(chain, discount, r)
    assert np.allclose(exact - discount * chain @ exact, r)
    found = newton_systems.solve(sparse.csr_array(chain), discount, r)
    assert np.abs(found - discount * chain @ found - r).max() <= 1e-2 * np.abs(r).max()


@pytest.mark.parametrize("terminal", [None, [0]])
def test_models_too_large_for_plain_arrays_are_started_alike(terminal):
    base = instances.grid(9, 2, discount=0.9, sparse=True)
    model = drmdp.Model(base.kernels, costs=base.costs, discount=0.9, terminal=terminal)
    ambiguity = drmdp.Wasserstein(0.2, "l1", 1, support="all")
    usual = drmdp.solve(model, ambiguity, NEWTON, tol=1e-6)
    with mock.patch.object(operators, "DENSE", 0), mock.patch.object(policy_iteration, "DENSE", 0):
        large = drmdp.solve(model, ambiguity, NEWTON, tol=1e-6)
        again = drmdp.solve(model, ambiguity, NEWTON, tol=1e-6, start=usual.policy)
    assert near(large, usual)
    assert near(again, usual)
    assert large.n_iters <= usual.n_iters + 3


def test_newton_leaves_terminal_states_at_zero_even_if_systems_are_solved_roughly(monkeypatch):
    base = instances.grid(9, 2, sparse=True)
    model = drmdp.Model(base.kernels, costs=base.costs, discount=0.3, terminal=[0])
    own = Problem(NominalOperator(model, model.mean_kernel))
    there = MethodState(np.zeros(9), own.sweep(np.zeros(9)))
    monkeypatch.setattr(operators, "DENSE", 0)
    assert newton_systems.solve(there.update.chain, 0.3, there.residual)[0] != 0
    assert policy_iteration.newton(own, there.value, there.update)[0] == 0


# ---------------------------------------------------------------------- the loop


class Hooked:
    """An operator that calls hook(number of the call, update) after every call, and counts
    states.
    """

    def __init__(self, operator, hook=lambda call, update: update):
        self.operator, self.hook, self.calls, self.states = operator, hook, 0, 0

    def __getattr__(self, name):
        return getattr(self.operator, name)

    def update(self, value, start, stop):
        return self._after(self.operator.update(value, start, stop), start, stop)

    def evaluate(self, value, policy, start, stop):
        return self._after(self.operator.evaluate(value, policy, start, stop), start, stop)

    def _after(self, update, start, stop):
        self.calls += 1
        self.states += stop - start
        return self.hook(self.calls, update)


def hooked(name, hook=lambda call, update: update):
    return Hooked(ConicOperator(*problem(name)), hook)


def run(method, operator, **settings):
    tolerance = Tolerance(settings.pop("tol", 1e-6))
    return loop.run(method, Problem(operator), start=None, tolerance=tolerance, **settings)


def test_policy_and_bounds_are_those_of_the_best_sweep():
    """Bounds of different sweeps hold of the optimum together, but not of the policy."""
    sweeps = [([0, 0], [1, 10]), ([1, 0], [6, 5]), ([0, 0], [4, 9])]  # their gaps are 10, 5 and 9
    model = drmdp.Model(np.full((2, 3, 2), 0.5), costs=[[0.0, 10.0, 20.0]] * 2, discount=0)
    policies = np.eye(3)[[[0, 0], [1, 1], [2, 2]]]

    best, gaps = (
        Incumbent(Problem(ConicOperator(model, drmdp.Wasserstein(0, "l1", 1, support="all")))),
        [],
    )
    for sides, policy in zip(sweeps, policies, strict=True):
        low, high = (np.array(side, dtype=float) for side in sides)
        best.take(np.zeros(2), Update(low, low, high, policy, None))
        gaps.append(best.gap)
    assert best.bounds.upper == pytest.approx([6, 5], abs=1e-12)
    assert np.array_equal(best.policy, policies[1])
    assert gaps == pytest.approx([10, 5, 5])


def valid(outcome, name):
    """Whether the bounds of an early end are finite and true."""
    exact = answer(name)
    finite = np.isfinite([outcome.lower, outcome.upper]).all() and np.isfinite(outcome.policy).all()
    return finite and np.all(outcome.lower <= exact.upper) and np.all(outcome.upper >= exact.lower)


@WITH_PROGRAMS
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_iteration_limit(method, limit):
    found = drmdp.solve(*problem("ring"), method, tol=1e-12, max_iters=limit)
    assert found.status == "iteration_limit"
    assert found.n_iters == limit
    assert agree(found, answer("ring"))
    assert found.history[-1].gap == pytest.approx(found.gap)
    assert np.isfinite(
        found.history[-1].residual
    )  # the last point is certified, whatever the method's own rhythm


def test_limits_of_their_own():
    assert all(0 < method.max_iters < 10**6 for method in METHODS.values())


class Clock:
    """A clock that the test moves; `loop` sees it instead of ours."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def tick(self, call, update):
        self.time += 1
        return update


@EVERY_METHOD
@pytest.mark.parametrize("seconds", [0, 2, 10, 21])
def test_time_is_up_inside_a_sweep(method, seconds):
    """The sweep is left; only a run without any makes one to its end."""
    clock = Clock()
    operator = hooked("ring", clock.tick)  # a second a state
    with mock.patch.object(loop, "clock", clock):
        found = run(method, operator, deadline=seconds, tol=0)
    assert found.status == "time_limit"
    done = seconds + 1 if seconds else 1
    assert operator.calls == (done if done >= 7 else done + 7)
    assert valid(found, "ring")
    assert found.seconds == operator.calls


def test_time_is_up_before_the_start():
    clock = Clock()
    clock.now = mock.Mock(side_effect=range(1000))  # a second a look
    operator = hooked("ring")
    with mock.patch.object(loop, "clock", clock):
        found = run(NEWTON, operator, deadline=2)
    assert found.status == "time_limit"
    assert clock.now.call_count < 20  # the nominal problem it starts from is under the limit too
    assert operator.states == 7  # one sweep, at the newest point of that problem
    assert valid(found, "ring")


def test_a_run_that_is_cut_short_at_once_returns_a_policy_worth_having():
    model, ambiguity = (
        instances.perturb(instances.garnet(60, 3, discount=0.95), 3),
        drmdp.Wasserstein(0.3, support="all"),
    )
    found = drmdp.solve(model, ambiguity, max_seconds=0)
    assert found.status == "time_limit"
    assert (found.n_iters, found.kernel_passes) == (0, 1)
    worst = model.initial @ drmdp.evaluate(model, ambiguity, found.policy).value
    any_policy = model.initial @ drmdp.evaluate(model, ambiguity, np.zeros(60, dtype=int)).value
    best = model.initial @ drmdp.solve(model, ambiguity).value
    assert worst - best < 0.5 * (any_policy - best)


def test_the_nominal_start_is_not_lost_when_a_run_is_cut_short_in_it():
    """The policy returned is that of a sweep at the newest point of the nominal problem: nearly the
    optimal one.
    """
    model, ambiguity = (
        instances.perturb(instances.garnet(80, 3, discount=0.99), 3),
        drmdp.Wasserstein(0.05, support="all"),
    )
    best = drmdp.solve(model, ambiguity)
    for error in (KeyboardInterrupt, None):
        clock, calls = Clock(), []

        def third(*args, error=error, clock=clock, calls=calls, usual=mean_start.improve):
            calls.append(1)
            if len(calls) == 3:
                clock.time += 10
                if error is not None:
                    raise error
            return usual(*args)

        operator = ExactOperator(model, ambiguity)
        with (
            mock.patch.object(mean_start, "improve", third),
            mock.patch.object(loop, "clock", clock),
        ):
            found = run(drmdp.PolicyIteration(), operator, deadline=5)
        assert found.status == ("interrupted" if error else "time_limit")
        assert found.history[-1].kernel_passes == 1
        assert (found.upper - found.lower).max() < 0.1 * np.abs(best.value).max()
        worst = drmdp.evaluate(model, ambiguity, found.policy).value
        assert (worst - best.value).max() < 0.001 * np.abs(best.value).max()


@EVERY_METHOD
def test_the_callback_sees_every_record_and_can_stop(method):
    records = []
    model, ambiguity = problem("tiny")
    found = drmdp.solve(model, ambiguity, method, tol=1e-3, callback=records.append)
    assert tuple(records) == found.history
    assert found.status == "solved"
    for answer_of in (True, np.True_):
        stopped = drmdp.solve(
            model, ambiguity, method, tol=1e-3, callback=lambda r, yes=answer_of: yes
        )
        assert stopped.status == "stopped"
        assert len(stopped.history) == 1
        assert agree(stopped, found)
    for other in (None, False, 1, "yes", 0.5):
        assert (
            drmdp.solve(model, ambiguity, method, tol=1e-3, callback=lambda r, no=other: no).status
            == "solved"
        )


def test_an_error_in_the_callback_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        drmdp.solve(*problem("tiny"), PLAIN, callback=lambda r: 1 / 0)


def test_a_solved_problem_is_solved_even_if_the_callback_says_stop():
    found = drmdp.solve(*problem("tiny"), PLAIN, tol=1e-3, callback=lambda r: r.gap <= 1e-3)
    assert found.status == "solved"


@WITH_PROGRAMS
@pytest.mark.parametrize("family", ["tiny", "forest"])
def test_history(method, family):
    model, ambiguity = problem(family)
    found = drmdp.solve(model, ambiguity, method, tol=1e-4)
    columns = {
        name: np.array([getattr(r, name) for r in found.history])
        for name in drmdp.Record.__dataclass_fields__
    }
    assert columns["iteration"][0] == 0
    assert np.all(np.diff(columns["iteration"]) >= 1)
    assert np.all(np.diff(columns["seconds"]) >= 0)
    assert np.all(np.diff(columns["kernel_passes"]) >= 1)
    assert np.all(np.diff(columns["gap"]) <= 0)
    assert np.all(columns["lower"] <= columns["upper"])
    assert np.all(columns["lower"] <= model.initial @ answer(family).upper)
    assert np.all(columns["upper"] >= model.initial @ answer(family).lower)
    assert np.all(columns["upper"] - columns["lower"] <= columns["gap"] * (1 + 1e-12))
    digits = 1e-12 * np.abs(found.value).max()  # the last ones are the proof's
    assert columns["gap"][-1] == pytest.approx(found.gap, rel=1e-6, abs=digits)
    assert columns["residual"][-1] < columns["residual"][0]
    assert found.seconds >= columns["seconds"][-1]


@EVERY_METHOD
@pytest.mark.parametrize("call", [1, 5, 12, 23])
def test_ctrl_c_inside_a_sweep(method, call):
    def interrupt(number, update):
        if number == call:
            raise KeyboardInterrupt
        return update

    operator = hooked("ring", interrupt)
    found = run(method, operator, tol=0)
    assert found.status == "interrupted"
    assert operator.calls == (call if call >= 7 else call + 7)  # one sweep is finished
    assert valid(found, "ring")
    assert found.history[-1].gap == pytest.approx((found.upper - found.lower).max())


def test_ctrl_c_outside_the_sweeps():
    (model, ambiguity), best = problem("ring"), answer("ring")
    with mock.patch.object(mean_start, "improve", side_effect=KeyboardInterrupt):
        found = drmdp.solve(model, ambiguity, NEWTON)  # in the nominal problem it starts from
        assert found.status == "interrupted"
        assert agree(found, best)
        found = drmdp.evaluate(model, ambiguity, np.zeros(7))
        assert found.status == "interrupted"
    with (
        mock.patch.object(NominalOperator, "update", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        drmdp.certify(model, ambiguity, np.zeros(7), model.mean_kernel)
    with (
        mock.patch.object(NominalOperator, "evaluate", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        drmdp.solve(model, ambiguity, NEWTON, start=answer("ring").policy)
    found = drmdp.solve(model, ambiguity, PLAIN, callback=mock.Mock(side_effect=KeyboardInterrupt))
    assert found.status == "interrupted"


def test_ctrl_c_in_earnest():
    script = """
import drmdp, numpy as np
model, ball = drmdp.instances.ring(20, 3, discount=0.999), drmdp.Wasserstein(0.1, "l1", 1)
found = drmdp.solve(model, ball, drmdp.ValueIteration(), tol=1e-9, callback=lambda r: print("going", flush=True))
good = np.isfinite([found.lower, found.upper]).all() and (found.lower <= found.upper).all() and found.n_iters > 0
print(found.status, good, flush=True)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # as in a terminal, whoever runs the tests
    )
    try:
        for _ in range(3):
            assert child.stdout.readline() == "going\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
    finally:
        child.kill()
    assert out.endswith("interrupted True\n")  # perhaps in the middle of a line
    assert (err, child.returncode) == ("", 0)


@EVERY_METHOD
@pytest.mark.parametrize("bad", [math.nan, math.inf], ids=str)
@pytest.mark.parametrize("call", [1, 9, 20])
def test_numbers_that_are_none_end_the_run(method, bad, call):
    def spoil(number, update):
        if number < call:
            return update
        wrong = np.full(update.value.size, bad)
        return Update(wrong, wrong, wrong, update.policy, update.nature)

    found = run(method, hooked("ring", spoil), tol=0)
    assert found.status == "diverged"
    assert valid(found, "ring")
    assert len(found.history) < 30


@EVERY_METHOD
@pytest.mark.parametrize("pair", [("l1", 1), ("l2", 2), ("linf", INF)], ids=str)
def test_tolerances_below_rounding_end_soon(method, pair):
    model, _ = problem("tiny")
    found = drmdp.solve(model, drmdp.Wasserstein(0.2, *pair, support="all"), method, tol=1e-300)
    assert found.status == "precision_limit"
    assert found.n_iters < 150
    assert found.gap < 1e-9


def test_a_rule_that_rounding_cannot_meet_ends_as_well():
    for tol in (1e-13, 1e-16, 0):
        found = drmdp.solve(*problem("tiny"), drmdp.ValueIteration(stop="puterman"), tol=tol)
        assert found.n_iters < 200
        assert found.gap < 1e-12
        assert (found.status == "solved") == (found.gap <= tol)


@EVERY_METHOD
def test_work_is_counted(method):
    """A pass is a look at every state."""
    operator = hooked("tiny")
    own = Problem(operator)
    found = loop.run(method, own, start=None, tolerance=Tolerance(1e-3))
    assert own.kernel_passes == pytest.approx(operator.states / 3)
    assert found.history[-1].kernel_passes == pytest.approx(own.kernel_passes)


def test_problem_counts_passes():
    operator = hooked("ring")
    own, value = Problem(operator), np.zeros(7)
    own.update(value, 2, 4)
    assert own.kernel_passes == pytest.approx(2 / 7)
    own.sweep(value)
    own.evaluate(value, np.full((7, 3), 1 / 3))
    assert own.kernel_passes == pytest.approx(2 + 2 / 7)
    assert not own.one_sided
    fixed = Problem(operator, np.full((7, 3), 1 / 3))
    assert fixed.one_sided
    same = [fixed.sweep(value), own.evaluate(value, fixed.policy), fixed.update(value, 0, 7)]
    assert np.allclose(same[0].value, same[1].value, rtol=0, atol=1e-9)
    assert np.allclose(same[0].value, same[2].value, rtol=0, atol=1e-9)


def test_a_deadline_does_not_outlive_its_run():
    own = Problem(hooked("tiny"))
    assert (
        loop.run(PLAIN, own, start=None, tolerance=Tolerance(), deadline=0).status == "time_limit"
    )
    assert loop.run(PLAIN, own, start=None, tolerance=Tolerance()).status == "solved"
    own.sweep(np.zeros(3))


# ---------------------------------------------------------------------- starts, input, progress


@EVERY_METHOD
def test_warm_starts_save_iterations(method):
    for family in ("machine", "tiny"):
        model, ambiguity = problem(family)
        cold = drmdp.solve(model, ambiguity, method, tol=1e-4)
        exact = answer(family)
        for start in (exact, exact.value, exact.value.tolist(), cold):
            warm = drmdp.solve(model, ambiguity, method, tol=1e-4, start=start)
            assert warm.status == "solved"
            assert near(warm, cold)
            assert warm.n_iters < cold.n_iters
        policy = drmdp.solve(model, ambiguity, method, tol=1e-4, start=exact.policy)
        assert near(policy, cold)
        assert policy.history[0].gap < drmdp.solve(model, ambiguity, PLAIN, max_iters=0).gap


def test_a_start_is_not_changed_and_terminal_states_are_ignored():
    model, ambiguity = cases.game(("l1", 1))
    start = np.array([12.0, 70.0])
    assert drmdp.bellman(model, ambiguity, start, "conic").value == pytest.approx([14, 0])
    for method in METHODS.values():
        first = drmdp.solve(model, ambiguity, method, max_iters=0, start=start)
        assert np.all((first.lower <= [16, 0]) & (first.upper >= [16, 0]))
        found = drmdp.solve(model, ambiguity, method, tol=1e-6, start=start)
        assert found.value == pytest.approx([16, 0], abs=1e-6)
        assert np.array_equal(start, [12, 70])


def test_a_start_far_away_is_no_divergence():
    model, ambiguity = problem("tiny")
    for method in METHODS.values():
        found = drmdp.solve(model, ambiguity, method, tol=1e-5, start=np.array([1e6, -1e6, 1e5]))
        assert found.status == "solved"
        assert near(found, answer("tiny"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tol": -1.0}, "tol must be finite and not negative, got -1.0"),
        ({"tol": math.nan}, "tol must be finite and not negative, got nan"),
        ({"tol": math.inf}, "tol must be finite"),
        ({"rtol": None}, "rtol: expected a number, got None"),
        ({"rtol": -1e-6}, "rtol must be finite and not negative, got -1e-06"),
        ({"tol": 1.0, "rtol": math.nan}, "rtol must be finite and not negative, got nan"),
        ({"tol": "small"}, "tol: expected a number, got 'small'"),
        ({"tol": [1e-3]}, "tol: expected a number"),
        ({"max_iters": -1}, "max_iters: expected a whole number of at least 0, got -1"),
        ({"max_iters": 2.5}, "max_iters: expected a whole number of at least 0, got 2.5"),
        ({"max_iters": "many"}, "max_iters: expected a whole number of at least 0, got 'many'"),
        ({"max_seconds": -0.5}, "max_seconds must not be negative, got -0.5"),
        ({"max_seconds": math.nan}, "max_seconds must not be negative, got nan"),
        ({"start": [1.0, 2.0]}, r"start: expected shape \(3,\), got \(2,\)"),
        ({"start": [1.0, math.nan, 2.0]}, "start must be finite: state 1 has nan"),
        ({"start": "zero"}, "start: expected an array of numbers"),
        ({"start": [[1.0], [2.0, 3.0]]}, "start: expected an array of numbers"),
        ({"start": np.full((3, 2), 0.25)}, "policy: state 0 sums to 0.5, not 1"),
        ({"start": np.zeros((3, 3))}, r"policy: expected shape \(3, 2\)"),
        ({"start": np.zeros((1, 3, 2))}, r"start: expected shape \(3,\)"),
        (
            {"method": "newton"},
            "unknown method 'newton'; known: auto, policy-iteration, value-iteration",
        ),
        (
            {"method": drmdp.Anderson},
            "method: expected one of policy-iteration.*, or an object with init, step, backend, stop, max_iters",
        ),
        ({"method": None}, "method: expected one of policy-iteration"),
        (
            {"method": drmdp.ValueIteration(backend="gurobi")},
            "unknown backend 'gurobi'; known: .*conic",
        ),
        ({"method": drmdp.ValueIteration(backend=["conic"])}, "unknown backend"),
        (
            {"method": drmdp.ValueIteration(stop="early")},
            "unknown stopping rule 'early'; known: certified, puterman",
        ),
        ({"method": drmdp.ValueIteration(stop=None)}, "unknown stopping rule None"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(drmdp.InputError, match=message):
        drmdp.solve(*problem("tiny"), **settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: drmdp.Anderson(memory=0), "memory: expected a whole number of at least 1, got 0"),
        (
            lambda: drmdp.Anderson(memory=1.5),
            "memory: expected a whole number of at least 1, got 1.5",
        ),
        (
            lambda: drmdp.GaussSeidel(block_size=0),
            "block_size: expected a whole number of at least 1, got 0",
        ),
        (
            lambda: drmdp.GaussSeidel(check_every="2"),
            "check_every: expected a whole number of at least 1, got '2'",
        ),
    ],
)
def test_bad_methods_are_refused(make, message):
    with pytest.raises(drmdp.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, b: drmdp.bellman(m, b, [1.0]), r"value: expected shape \(3,\)"),
        (
            lambda m, b: drmdp.bellman(m, b, [1.0, INF, 0.0]),
            "value must be finite: state 1 has inf",
        ),
        (lambda m, b: drmdp.bellman(m, b, np.zeros(3), backend="x"), "unknown backend 'x'"),
        (
            lambda m, b: drmdp.evaluate(m, b, np.zeros(3), tol=-1),
            "tol must be finite and not negative",
        ),
        (lambda m, b: drmdp.evaluate(m, b, np.zeros(4)), "policy: expected shape"),
        (
            lambda m, b: drmdp.solve(m, drmdp.Wasserstein(np.ones(4), support="all")),
            r"radius has shape \(4,\), the model has 3 states",
        ),
    ],
)
def test_bad_calls_are_refused(call, message):
    with pytest.raises(drmdp.InputError, match=message):
        call(*problem("tiny"))


def test_auto_is_policy_iteration():
    found = drmdp.solve(*problem("tiny"))
    assert found.settings["method"] == "policy-iteration"
    assert found.status == "solved"


def test_evaluation_brackets_the_worst_case():
    model, ambiguity = problem("forest")
    policy = np.random.default_rng(0).dirichlet(np.ones(2), 5)
    found = drmdp.evaluate(model, ambiguity, policy, tol=1e-6)
    assert found.status == "solved"
    assert found.gap <= 1e-6
    assert np.array_equal(found.value, found.lower)  # rewards: the pessimistic side
    # nature's kernel attains it
    chain = np.einsum("sa,sat->st", policy, found.kernel)
    paid = (policy * -model.costs).sum(axis=1)
    attained = np.linalg.solve(np.eye(5) - model.discount * chain, paid)
    assert np.all(np.abs(attained - found.value) <= 1e-6)


@pytest.mark.parametrize("stopping", [False, True])
def test_progress_does_not_change_the_run(stopping, capsys):
    seen = []
    callback = lambda r: seen.append(r) or stopping  # noqa: E731
    model, ambiguity = problem("tiny")
    found = drmdp.solve(model, ambiguity, PLAIN, tol=1e-4, callback=callback, progress=True)
    plain = drmdp.solve(model, ambiguity, PLAIN, tol=1e-4)
    assert found.status == ("stopped" if stopping else "solved")
    assert len(seen) == (1 if stopping else len(plain.history))
    assert capsys.readouterr().out == ""


def test_an_interrupt_during_the_final_proof_loses_nothing(monkeypatch):
    calls, prove = [], Problem.prove

    def once(self, value, update, fixed):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return prove(self, value, update, fixed)

    monkeypatch.setattr(Problem, "prove", once)
    model = drmdp.instances.machine(5)
    method = drmdp.ValueIteration()
    solution = drmdp.solve(
        model, drmdp.Wasserstein(0.2, support="all"), method, tol=1e-9, max_iters=1
    )
    assert solution.status == "interrupted"
    assert len(calls) == 2
    assert np.isfinite(solution.gap)
