"""The oracle for large models is checked by hand, against `rational` and `reference`, and against
itself on smaller ones.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import cases
import drmdp
import oracle
import oracle_l2
import oracle_l2_search
import rational
import reference
from drmdp.sets import PAIRS
from lumped import Lumped, apart, false_bounds

EVERY_PAIR = pytest.mark.parametrize(
    "pair", PAIRS, ids=[f"{metric}-{order:g}" for metric, order in PAIRS]
)


def funnel(S, pair, radius, other=0.51, discount=0.99):
    """All states lead to state 1, which is free; state 0 costs 1 and the S − 2 others `other`."""
    kernels = np.zeros((1, 3, 1, 3))
    kernels[0, :, 0, 1] = 1
    sizes, costs = np.array([1, 1, S - 2]), np.array([[1.0], [0.0], [other]])
    return Lumped(sizes, kernels, costs, discount, pair, np.full(3, radius))


def by_hand(S, pair, radius, other, discount):
    """Values of the three kinds of the funnel: c + λ m/(1 − λ), m the most that one step can be
    made to cost.

    ℓ1 moves the mass θ/2 to state 0, ℓ∞ moves θ. ℓ2 moves along the stakes minus their mean: mass
    leaves state 1 in the proportion 1 of which state 0 gets `rise` and each of the others `rise` −
    (1 − other), all positive if `other` is more than half.
    """
    theta, c, lam = Decimal(radius), Decimal(other), Decimal(discount)
    if pair[0] == "l2":
        rise = (1 + (S - 2) * (1 - c)) / S
        each = rise - (1 - c)
        length = ((1 - rise) ** 2 + rise**2 + (S - 2) * each**2).sqrt()
        most = theta / length * (rise + (S - 2) * each * c)
    else:
        most = theta / 2 if pair[0] == "l1" else theta
    return [own + lam * most / (1 - lam) for own in (Decimal(1), Decimal(0), c)]


@EVERY_PAIR
@pytest.mark.parametrize("S", [10, 10_000, 1_000_000])
def test_the_funnel_by_hand(pair, S):
    with localcontext() as context:
        context.prec = 60
        exact = [Fraction(v) for v in by_hand(S, pair, 0.5, 0.51, 0.99)]
    low, high = funnel(S, pair, 0.5).optimum()
    for below, v, above in zip(low, exact, high, strict=True):
        assert above - below < Fraction(1, 10**24)
        assert below - Fraction(1, 10**28) <= v <= above + Fraction(1, 10**28)


def test_steps_are_those_of_the_rational_oracle():
    """The program over pieces against the one over moves of mass, exactly, every state being of its
    own kind.
    """
    rng = np.random.default_rng(0)
    for name, model, ambiguity in rational.cases(72, seed=5):
        value = [
            Fraction(int(v), 8)
            for v in np.where(model.terminal, 0, rng.integers(-20, 20, model.n_states))
        ]
        exact = rational.bellman(model, ambiguity, value)
        assert apart(model, ambiguity).bellman(value) == (exact, exact), name


def test_fixed_points_are_those_of_the_rational_oracle():
    for name, model, ambiguity in rational.cases(24, seed=6):
        low, high = apart(model, ambiguity).optimum()
        for below, above, least, most in zip(
            low, high, *rational.optimum(model, ambiguity), strict=True
        ):
            assert below <= most, name
            assert least <= above, name


@EVERY_PAIR
@pytest.mark.parametrize("n", [6, pytest.param(18, marks=pytest.mark.fuzz)])
def test_steps_are_those_of_the_reference(pair, n):
    """A program that is solved here by pieces is solved there by cvxpy, and both are proved."""
    unproved = 0
    for name, model, ambiguity, value in cases.cases(pair, n, seed=9):
        if model.n_kernels * model.n_actions * model.n_states > 40:
            continue  # the exact programs take seconds
        try:
            low, high = apart(model, ambiguity).bellman(value)
        except oracle_l2.Unproved:
            unproved += 1
            continue
        off = reference.tolerance(model, ambiguity, value, 1e-14)
        for s in range(model.n_states):
            found = reference.solve_state(model, ambiguity, value, s)
            assert float(low[s]) <= found.value + found.gap / 2 + off[s], name
            assert float(high[s]) >= found.value - found.gap / 2 - off[s], name
    assert unproved <= (3 if pair == ("l2", math.inf) else 0)


def kinds(rng, pair, support):
    """Four kinds of 1, 2, 1 and 3 states, two kernels, two actions."""
    sizes = np.array([1, 2, 1, 3])
    kernels = (
        rng.dirichlet(np.ones(4), (2, 4, 2)) * (rng.random((2, 4, 2, 4)) < 0.8)
        + 0.05 * np.eye(4)[0]
    )
    kernels /= (kernels * sizes).sum(axis=3, keepdims=True)
    radius = rng.uniform(0.02, 0.6, 4)
    weights = np.array([0.3, 0.7])
    return Lumped(sizes, kernels, rng.random((4, 2)), 0.75, pair, radius, support, weights)


@EVERY_PAIR
@pytest.mark.parametrize("support", ["all", "observed"])
def test_states_of_a_kind_may_be_told_apart(pair, support):
    """The same model with every state of its own kind has the same values: what makes the oracle
    fit for large models.
    """
    rng = np.random.default_rng(1)
    problem, value, policy = kinds(rng, pair, support), rng.random(4), rng.dirichlet(np.ones(2), 4)
    small = Lumped(
        np.ones(7, dtype=int),
        problem.kernels[:, problem.kind][:, :, :, problem.kind],
        problem.costs[problem.kind],
        problem.discount,
        pair,
        problem.radius[problem.kind],
        support,
        problem.weights,
    )
    for g in (1, 3):
        s = problem.first[g]
        ours, theirs = (
            problem.step(g, fractions(value)),
            small.step(s, fractions(value[problem.kind])),
        )
        assert max(ours.low, theirs.low) <= min(ours.high, theirs.high)
        fixed = problem.step(g, fractions(value), policy)
        theirs = small.step(s, fractions(value[problem.kind]), policy[problem.kind])
        assert max(fixed.low, theirs.low) <= min(fixed.high, theirs.high)
        assert fixed.high >= ours.low  # no policy is better than the best


def fractions(v):
    return [Fraction(float(x)) for x in v]


@EVERY_PAIR
def test_the_model_of_kinds_is_the_model_that_is_meant(pair):
    """What the package is given, read back state by state, is the problem of which the oracle
    speaks.
    """
    rng = np.random.default_rng(2)
    for is_sparse in (True, False):
        problem = kinds(rng, pair, "observed").at(is_sparse=is_sparse, dtype="float32")
        value = rng.random(4)
        whole = apart(problem.model, problem.ambiguity)
        assert problem.model.is_sparse == is_sparse
        for s in (0, 2, 6):
            ours = problem.step(problem.kind[s], fractions(value))
            theirs = whole.step(s, fractions(problem.expand(value)))
            assert (
                float(theirs.low - ours.high) < 1e-14
            )  # its rows are divided by their sums in float64
            assert float(ours.low - theirs.high) < 1e-14


@pytest.mark.parametrize("order", [2, math.inf])
def test_proofs_hold_for_any_candidate(order):
    """`worth` is at most F and `price` at least F, whatever they are given."""
    rng = np.random.default_rng(3)

    def decimals(array):
        return [Decimal(float(x)) for x in array]

    for _ in range(10):
        problem = kinds(rng, ("l2", order), "all")
        game, _, _ = problem.game(0, [Fraction(float(v)) for v in rng.random(4)])
        step = oracle.play(game)
        with localcontext() as context:
            context.prec = 60
            state, base, unit = oracle_l2._normalised(game)
            for _ in range(10):
                y = [
                    [decimals(rng.normal(0.2, 1, 4).clip(-0.1)) for _ in range(2)] for _ in range(2)
                ]
                mu = decimals(10 ** rng.uniform(-3, 1, 2))
                mu = mu if order == math.inf else [mu[0]] * 2
                tau = [decimals(rng.normal(0, 1, 2)) for _ in range(2)]
                x = decimals(rng.dirichlet(np.ones(2)))
                x[1] = 1 - x[0]
                assert base + unit * Fraction(oracle_l2.worth(state, y, None)) <= step.high
                assert base + unit * Fraction(oracle_l2.price(state, x, mu, tau)) >= step.low


def test_an_unfinished_search_proves_nothing(monkeypatch):
    game, _, _ = kinds(np.random.default_rng(4), ("l2", 2), "all").game(
        0, [Fraction(g) for g in range(4)]
    )
    found = next(oracle_l2_search.candidates(oracle_l2._normalised(game)[0], None))
    nominal = [[list(row.chance) for row in rows] for rows in oracle_l2._normalised(game)[0].rows]
    monkeypatch.setattr(oracle_l2, "candidates", lambda *_: [(found[0], nominal, found[2])])
    with pytest.raises(oracle_l2.Unproved):
        oracle.play(game)


def test_false_bounds_are_seen():
    low = high = [Fraction(1, 3), Fraction(1)]
    third = 1 / 3  # a little less
    assert false_bounds([third, 1.0], [np.nextafter(third, 1), 1.0], low, high) == []
    assert false_bounds([-np.inf, 0.0], [np.inf, 2.0], low, high) == []
    assert "lower" in false_bounds([np.nextafter(third, 1), 1.0], [1.0, 1.0], low, high)[0]
    assert "upper" in false_bounds([0.0, 1.0], [third, 1.0], low, high)[0]
    assert len(false_bounds([np.nan, 1.0], [1.0, np.nan], low, high)) == 2


@EVERY_PAIR
def test_the_package_agrees_on_small_problems(pair):
    rng = np.random.default_rng(5)
    for support in ("all", "observed"):
        problem = kinds(rng, pair, support)
        low, high = problem.optimum()
        found = drmdp.solve(problem.model, problem.ambiguity, tol=1e-8)
        assert np.abs(found.value[problem.first] - [float(v) for v in low]).max() < 1e-8
        assert false_bounds(found.lower[problem.first], found.upper[problem.first], low, high) == []
