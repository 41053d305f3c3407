"""No bound is false, at any size and scale: thousands of problems whose exact values are known
(`lumped`, `oracle`).

About a hundred in the default suite, more than twenty thousand in `make fuzz`.
"""

import itertools
import math

import numpy as np
import pytest

import drmdp
from lumped import Lumped, false_bounds
from lumped_cases import SIX, cases
from oracle_l2 import Unproved

SMALL, MIDDLE, LARGE = (4, 8, 20, 60, 150), (500, 1_000, 3_000), (10_000, 30_000)
FEW = {pair: (10, 1, 0) if pair[0] == "linf" else (16, 1, 0) for pair in SIX}
"""Problems of each ball in the default suite: small, middle, large."""
MANY = {
    ("l1", 1): (3600, 340, 40),
    ("l2", 2): (3400, 340, 40),
    ("linf", 1): (2600, 340, 40),
    ("l1", math.inf): (3600, 340, 40),
    ("l2", math.inf): (2200, 240, 40),
    ("linf", math.inf): (3600, 340, 40),
}
PORTIONS = (100, 34, 10)
"""Problems in one test of the long run, which are spread over the cores."""
FUNNEL = ("S", "other", "radius", "discount", "pair", "A", "N")
METHODS = ("value-iteration", "gauss-seidel", "anderson", "accelerated", "first-order")


def named(pair):
    return f"{pair[0]}-{pair[1]:g}"


# ---------------------------------------------------------------------- one problem


def in_costs(problem, lower, upper):
    """Bounds by kind, (G,) each, as costs."""
    first = problem.first
    return (-upper[first], -lower[first]) if problem.rewards else (lower[first], upper[first])


def faults(name, problem, value, number=3):
    """What is false about a problem: its Bellman step, its solution and, of some, an evaluation and
    a certificate.
    """
    sign, model, ambiguity = -1.0 if problem.rewards else 1.0, problem.model, problem.ambiguity
    step = drmdp.bellman(model, ambiguity, sign * problem.expand(value))
    found = {
        "bellman": false_bounds(*in_costs(problem, step.lower, step.upper), *problem.bellman(value))
    }
    size = max(np.abs(problem.costs).max() / (1 - problem.discount), np.finfo(float).tiny)
    solution = drmdp.solve(
        model, ambiguity, tol=size * (1e-4, 1e-8, 1e-12)[number % 3], max_iters=50
    )
    optimum = problem.optimum(start=sign * solution.value[problem.first])
    found[f"solve ({solution.status})"] = false_bounds(
        *in_costs(problem, solution.lower, solution.upper), *optimum
    )
    if problem.kind.size <= 200 and number % 5 == 0:
        method = METHODS[number // 5 % len(METHODS)]
        if (
            method == "first-order" and model.is_sparse and ambiguity.support == "all"
        ):  # it refuses to list every state
            method = "value-iteration"
        other = drmdp.solve(model, ambiguity, method, tol=size * 1e-6, max_iters=12)
        found[method] = false_bounds(*in_costs(problem, other.lower, other.upper), *optimum)
    if problem.kind.size <= 200 and number % 5 == 1:
        policy = some_policy(problem, number)
        worst = drmdp.evaluate(model, ambiguity, policy[problem.kind], tol=size * 1e-9)
        value = problem.optimum(policy, sign * worst.value[problem.first])
        found["evaluate"] = false_bounds(*in_costs(problem, worst.lower, worst.upper), *value)
    if problem.kind.size <= 200 and number % 5 == 2:
        proof = drmdp.certify(model, ambiguity, solution.policy, solution.kernel)
        found["certify"] = false_bounds(*in_costs(problem, proof.lower, proof.upper), *optimum)
    return [f"{name}: {what}: {wrong}" for what, wrong in found.items() if wrong]


def some_policy(problem, number):
    """Policy by kind, (G, A), in eighths: its rows sum to 1 exactly."""
    rng = np.random.default_rng(number)
    policy = np.zeros(problem.open.shape)
    for g in np.flatnonzero(~problem.ends):
        own = np.flatnonzero(problem.open[g])
        policy[g, own] = rng.multinomial(8, np.full(own.size, 1 / own.size)) / 8
    return policy


# ---------------------------------------------------------------------- decks


def dealt(pair, n, seed, sizes):
    """Deal n problems; returns how many there were, and what was false, or not to be judged by the
    oracle in more than two of a hundred.
    """
    wrong, unjudged, count = [], [], 0
    for number, case in enumerate(cases(pair, n, seed, sizes)):
        try:
            wrong += faults(*case, number)
        except Unproved as error:  # the oracle of l2 proves its own answers, to 35 digits of the range of the stakes
            unjudged.append(f"{case[0]}: {error}")
        count += 1
    return count, wrong if len(unjudged) <= 1 + n // 50 else wrong + unjudged


@pytest.mark.parametrize("pair", SIX, ids=named)
def test_no_bound_is_false(pair):
    for n, seed, sizes in zip(FEW[pair], (1, 2, 3), (SMALL, MIDDLE, LARGE), strict=True):
        assert dealt(pair, n, seed, sizes) == (n, [])


@pytest.mark.parametrize("pair", SIX, ids=named)
@pytest.mark.parametrize("n", [8, pytest.param(24, marks=pytest.mark.fuzz)])
def test_no_bound_of_the_conic_engine_is_false(pair, n):
    for name, problem, value in cases(pair, n, 5, (4, 8)):
        sign = -1.0 if problem.rewards else 1.0
        step = drmdp.bellman(
            problem.model, problem.ambiguity, sign * problem.expand(value), backend="conic"
        )
        assert (
            false_bounds(*in_costs(problem, step.lower, step.upper), *problem.bellman(value)) == []
        ), name


def portions():
    """(ball, how many, seed, sizes) of each test of the long run."""
    for pair, counts in MANY.items():
        for kind, (n, most, sizes) in enumerate(
            zip(counts, PORTIONS, (SMALL, MIDDLE, LARGE), strict=True)
        ):
            for k, first in enumerate(range(0, n, most)):
                yield pair, min(most, n - first), 1000 * (kind + 1) + k, sizes


@pytest.mark.fuzz
@pytest.mark.parametrize("portion", list(portions()), ids=lambda p: f"{named(p[0])}-{p[2]}")
def test_no_bound_is_false_often(portion):
    pair, n, seed, sizes = portion
    assert dealt(pair, n, seed, sizes) == (n, [])


def test_the_decks_are_as_large_as_is_said():
    assert sum(map(sum, FEW.values())) >= 90
    assert sum(n for _, n, _, _ in portions()) == sum(map(sum, MANY.values())) >= 20_000


# ---------------------------------------------------------------------- funnels


def funnel(S, other, radius, discount, pair, A=1, N=1, scale=1.0, dtype="float64"):
    """All states lead to the second one, which is free; the first costs 1, the others `other`:
    nature reaches for all of them.

    Further actions lead to the third state and cost 1/64 more, which nature's budget for both makes
    worth mixing; further kernels lead there too.
    """
    kernels = np.zeros((N, 4, A, 4))
    kernels[:, :, :, 1] = 1
    kernels[:, :, 1:] = kernels[1:] = np.eye(4)[2]
    costs = np.array([1.0, 0.0, 0.125, other])[:, None] + np.arange(A) / 64
    sizes = np.array([1, 1, 1, S - 3])
    return Lumped(sizes, kernels, scale * costs, discount, pair, np.full(4, radius), dtype=dtype)


def funnels(sizes, others, radii, discounts, shapes):
    """Funnels of all combinations, as parameters of a test."""
    return [
        pytest.param(
            S,
            other,
            radius,
            discount,
            pair,
            *shape,
            id="-".join(map(str, (named(pair), S, other, radius, discount, shape))),
        )
        for pair, S, other, radius, discount, shape in itertools.product(
            SIX, sizes, others, radii, discounts, shapes
        )
    ]


def check_funnel(S, other, radius, discount, pair, A, N):
    for scale, dtype in ((1.0, "float64"), (1e-9, "float32")):
        problem = funnel(S, other, radius, discount, pair, A, N, scale, dtype)
        assert faults("funnel", problem, problem.costs[:, 0], number=4) == []


@pytest.mark.parametrize(FUNNEL, funnels([10_000], [0.51], [0.5], [0.99], [(1, 1), (2, 2)]))
def test_many_states_that_share_little_mass(S, other, radius, discount, pair, A, N):
    check_funnel(S, other, radius, discount, pair, A, N)


@pytest.mark.fuzz
@pytest.mark.parametrize(
    FUNNEL,
    funnels(
        [1_000, 10_000, 100_000],
        [0.51, 0.7],
        [0.05, 0.5, 0.9],
        [0.5, 0.99],
        [(1, 1), (2, 1), (3, 2)],
    ),
)
def test_many_states_that_share_little_mass_often(S, other, radius, discount, pair, A, N):
    check_funnel(S, other, radius, discount, pair, A, N)


@pytest.mark.fuzz
@pytest.mark.parametrize(FUNNEL, funnels([1_000_000], [0.51], [0.5], [0.99], [(1, 1), (2, 2)]))
def test_a_million_states_that_share_little_mass(S, other, radius, discount, pair, A, N):
    check_funnel(S, other, radius, discount, pair, A, N)
