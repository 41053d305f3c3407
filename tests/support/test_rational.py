"""The oracle is checked by hand, against scipy, and against enumeration; what it proves itself, it
proves exactly.
"""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import drmdp
import rational

CASES = list(rational.cases(96, seed=0))
OFTEN = 40
"""Of these cases; the others are in the long runs."""


def dealt(some):
    """Cases as parameters."""
    marks = {True: [], False: pytest.mark.fuzz}
    return [
        pytest.param(*case[1:], id=case[0], marks=marks[k < OFTEN])
        for k, case in enumerate(CASES)
        if some(case)
    ]


EVERY_CASE = pytest.mark.parametrize(("model", "ambiguity"), dealt(lambda case: True))


# ---------------------------------------------------------------------- linear programs


def program(rng):
    """Draw a small program with many ties and zeros, as (c, A, b); some are unbounded."""
    m, n = rng.integers(1, 7), rng.integers(1, 6)
    A = rng.integers(-2, 4, size=(m, n)) * (rng.random((m, n)) < 0.7)
    return rng.integers(-2, 4, size=n), A, rng.integers(0, 4, size=m)


def maximise(c, A, b, denominator=1):
    """Hand integer data, all divided by `denominator`, to the exact method."""
    rows = [{j: Fraction(int(a), denominator) for j, a in enumerate(row) if a} for row in A]
    return rational.maximise(
        [Fraction(int(x), denominator) for x in c], rows, [Fraction(int(x)) for x in b]
    )


def test_linear_programs_agree_with_scipy():
    rng = np.random.default_rng(0)
    statuses = []
    for _ in range(150):
        c, A, b = program(rng)
        reference = linprog(-c / 3, A / 3, b)
        statuses.append(reference.status)
        if reference.status == 0:
            ours = maximise(c, A, b, denominator=3)
            assert float(ours.value) == pytest.approx(-reference.fun, abs=1e-9)
            assert float(ours.value) == pytest.approx(
                float(c / 3 @ np.array(ours.primal, dtype=float)), abs=1e-12
            )
        else:
            with pytest.raises(ValueError, match="unbounded"):
                maximise(c, A, b, denominator=3)
    assert {0, 3} <= set(statuses)


def test_linear_program_by_hand():
    # max 3x + 2y, x + y ≤ 4, x + 3y ≤ 6, x ≤ 3: at (3, 1), prices 2, 0, 1
    value, primal, dual = maximise([3, 2], [[1, 1], [1, 3], [1, 0]], [4, 6, 3])
    assert (value, primal, dual) == (11, [3, 1], [2, 0, 1])


def test_bland_rule_ends_where_the_usual_one_cycles():
    # Beale's example: from the slack basis the largest-coefficient rule returns to it after six
    # degenerate pivots
    c = [Fraction(3, 4), Fraction(-20), Fraction(1, 2), Fraction(-6)]
    A = [[Fraction(1, 4), -8, -1, 9], [Fraction(1, 2), -12, Fraction(-1, 2), 3], [0, 0, 1, 0]]
    rows = [{j: Fraction(a) for j, a in enumerate(row) if a} for row in A]
    value, primal, _ = rational.maximise(c, rows, [Fraction(0), Fraction(0), Fraction(1)])
    assert (value, primal) == (Fraction(5, 4), [1, 0, 1, 0])


def test_negative_bounds_are_refused():
    with pytest.raises(ValueError, match="negative"):
        maximise([1], [[1]], [-1])


@pytest.mark.parametrize(
    ("primal", "dual", "rule"),
    [
        ([3, 2], [2, 0, 1], "primal feasible"),
        ([3, -1], [2, 0, 1], "primal feasible"),
        ([3, 1], [1, 0, 1], "dual feasible"),
        ([3, 1], [4, 0, -1], "dual feasible"),
        ([2, 1], [2, 0, 1], "of equal objective"),
        ([3, 1], [3, 0, 1], "of equal objective"),
    ],
)
def test_wrong_solutions_are_not_verified(primal, dual, rule):
    rows = [{0: 1, 1: 1}, {0: 1, 1: 3}, {0: 1}]
    assert rational.verified([3, 2], rows, [4, 6, 3], [3, 1], [2, 0, 1]).value == 11
    with pytest.raises(ArithmeticError, match=f"not {rule}"):
        rational.verified([3, 2], rows, [4, 6, 3], primal, dual)


# ---------------------------------------------------------------------- by hand


def trap(stay, radius, pair, weights=None, **options):
    """State 0 is free and leads to state 1, which costs 1 a step for ever, with probability 1 −
    stay of each kernel.

    The discount is 1/2, so the trap is worth 2, and if nature makes every action lead there with
    probability q, state 0 is worth v = ((1 − q)·v + 2q)/2 = 2q/(1 + q). `stay` is (N, A).
    """
    stay = np.asarray(stay, dtype=float)
    kernels = np.zeros((len(stay), 2, stay.shape[1], 2))
    kernels[:, 0, :, 0], kernels[:, 0, :, 1], kernels[:, 1, :, 1] = stay, 1 - stay, 1
    model = drmdp.Model(kernels, costs=[0.0, 1.0], discount=0.5, weights=weights, **options)
    return model, drmdp.Wasserstein(radius, *pair, support="all")


@pytest.mark.parametrize(
    ("stay", "pair", "q"),
    [
        # one kernel, one action: l1 spends 1/2 on moving 1/4, linf allows 1/2
        ([[1]], ("l1", 1), Fraction(1, 4)),
        ([[1]], ("linf", math.inf), Fraction(1, 2)),
        # two actions share the budget of l1, and the agent mixes; each has its own in linf
        ([[1, 1]], ("l1", math.inf), Fraction(1, 8)),
        ([[1, 1]], ("linf", 1), Fraction(1, 2)),
        # unequal actions: 1/8 and 0, with 1/4 to hand out, are brought to 3/16 each
        ([[7 / 8, 1]], ("l1", 1), Fraction(3, 16)),
        # a kernel of weight 1/4 is already in the trap; the other one moves by what its weight 3/4
        # allows
        ([[0], [1]], ("l1", 1), Fraction(1, 4) + Fraction(1, 4)),
        ([[0], [1]], ("l1", math.inf), Fraction(1, 4) + Fraction(3, 4) * Fraction(1, 4)),
        ([[0], [1]], ("linf", 1), Fraction(1, 4) + Fraction(1, 2)),
        ([[0], [1]], ("linf", math.inf), Fraction(1, 4) + Fraction(3, 4) * Fraction(1, 2)),
    ],
)
def test_trap_by_hand(stay, pair, q):
    model, ambiguity = trap(stay, 0.5, pair, weights=[0.25, 0.75] if len(stay) == 2 else None)
    exact = [2 * q / (1 + q), Fraction(2)]
    assert rational.bellman(model, ambiguity, exact) == exact
    enclosed(exact, *rational.optimum(model, ambiguity))


def test_unavailable_actions_use_no_budget_and_terminal_states_are_worth_nothing():
    # as the first trap, with a second action that cannot be played
    model, ambiguity = trap([[1, 1]], 0.5, ("l1", 1), available={0: [0]})
    enclosed([Fraction(2, 5), Fraction(2)], *rational.optimum(model, ambiguity))
    # the trap ends the process: nature gains nothing by moving there, and cannot move out
    model, ambiguity = trap([[1, 1]], 0.5, ("l1", 1), terminal=[1])
    assert rational.optimum(model, ambiguity) == ([0, 0], [0, 0])
    assert rational.bellman(model, ambiguity, [Fraction(2), Fraction(7)])[1] == 0


def test_an_irrational_value():
    """Two actions with different worst next states, worth 2 and 1: v is a root of 9v² − 15v + 2.

    Nature moves masses f and 1/4 − f such that both actions cost v/2 + f(2 − v)/2 = v/2 + (1/4 −
    f)(1 − v)/2, hence v/2 = (1/4)·(2 − v)(1 − v)/(2·(3 − 2v)). Reaching state 1 by the second
    action is repaid by a reward.
    """
    kernels = np.zeros((3, 2, 3))
    kernels[range(3), :, range(3)] = 1
    costs = np.broadcast_to([[[0.0]], [[1.0]], [[0.5]]], (3, 2, 3)).copy()
    costs[0, 1, 1] = -1
    model = drmdp.Model(kernels, costs=costs, discount=0.5)
    low, high = rational.optimum(model, drmdp.Wasserstein([0.5, 0, 0], "l1", 1, support="all"))
    enclosed([None, Fraction(2), Fraction(1)], low, high)
    signs = [9 * v * v - 15 * v + 2 for v in (low[0], high[0])]
    assert signs[0] > 0 > signs[1]
    assert float(low[0]) == pytest.approx((15 - math.sqrt(153)) / 18, abs=1e-14)


@pytest.mark.parametrize("pair", rational.PAIRS, ids=str)
def test_a_game_on_which_newton_alone_cycles(pair):
    """Nature is free: F(v) = min(5 + 3v/4, max(3 + 3v/4, 16)) = v at 16, where the process ends for
    a cost of 16.

    Newton's method goes from 0 to 20 (by the first action), on to 12 (by the second one) and back
    to 20.
    """
    kernels = np.zeros((2, 2, 2))
    kernels[:, :, 0] = 1
    costs = np.zeros((2, 2, 2))
    costs[0] = [[5, 0], [3, 16]]
    model = drmdp.Model(kernels, costs=costs, discount=0.75, terminal=[1])
    ambiguity = drmdp.Wasserstein(4, *pair, support="all")
    assert [
        rational.bellman(model, ambiguity, [Fraction(v), Fraction(0)])[0] for v in (0, 20, 12, 16)
    ] == [5, 18, 14, 16]
    enclosed([Fraction(16), Fraction(0)], *rational.optimum(model, ambiguity))


def enclosed(exact, low, high):
    assert all(0 <= b - a <= rational.WIDTH for a, b in zip(low, high, strict=True))
    assert all(x is None or a <= x <= b for a, x, b in zip(low, exact, high, strict=True))


# ---------------------------------------------------------------------- against scipy


def literal_step(model, ambiguity, value):
    """F(v) by HiGHS, the ball written as it is defined, with variables γ, y_iat, |y_iat − ŷ_iat| and d_i."""
    out = np.zeros(model.n_states)
    for s in np.flatnonzero(~model.terminal):
        own = model.available[s]
        near = model.blocks.dense(s, s + 1)[0][own].transpose(1, 0, 2)  # (N, A, S)
        allowed = ambiguity.allowed(model, s, s + 1)[0][own]
        z = np.where(allowed, model.stakes(value, s, s + 1)[0][own], 0)
        out[s] = literal_program(
            near, allowed, z, model.weights, ambiguity.radii(model)[s], ambiguity
        )
    return out


def literal_program(near, allowed, z, weights, radius, ambiguity):
    N, A, S = near.shape
    index = np.arange(1, 1 + 2 * N * A * S + N)
    y, gap = index[: 2 * N * A * S].reshape(2, N, A, S)
    d = index[2 * N * A * S :]
    rows, bounds = [], []

    def at_most(bound, *terms):
        row = np.zeros(1 + index.size)
        for columns, coefficients in terms:
            row[columns] = coefficients
        rows.append(row)
        bounds.append(bound)

    for a in range(A):
        at_most(0, (0, 1), (y[:, a], -weights[:, None] * z[a]))
    for at in np.ndindex(N, A, S):
        at_most(near[at], (y[at], 1), (gap[at], -1))
        at_most(-near[at], (y[at], -1), (gap[at], -1))
        if ambiguity.metric == "linf":
            at_most(0, (gap[at], 1), (d[at[0]], -1))
    for i in range(N):
        if ambiguity.metric == "l1":
            at_most(0, (gap[i], 1), (d[i], -1))
        if ambiguity.order == math.inf and weights[i] > 0:
            at_most(radius, (d[i], 1))
    if ambiguity.order == 1:
        at_most(radius, (d, weights))
    sums = np.zeros((N * A, 1 + index.size))
    for k, columns in enumerate(y.reshape(N * A, S)):
        sums[k, columns] = 1
    box = np.tile([0.0, np.inf], (1 + index.size, 1))
    box[0, 0] = -np.inf
    box[y, 1] = allowed
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    objective = -np.eye(1, 1 + index.size)[0]
    result = linprog(objective, np.array(rows), bounds, sums, np.ones(N * A), box, options=options)
    assert result.status == 0
    return -result.fun


@EVERY_CASE
def test_bellman_agrees_with_scipy(model, ambiguity):
    rng = np.random.default_rng(1)
    v = rng.integers(-100, 101, size=model.n_states) / 16
    exact = rational.bellman(model, ambiguity, [Fraction(x) for x in v])
    assert np.array(exact, dtype=float) == pytest.approx(
        literal_step(model, ambiguity, v), abs=1e-8
    )


@EVERY_CASE
def test_enclosures_hold_a_fixed_point_of_scipy(model, ambiguity):
    low, high = rational.optimum(model, ambiguity)
    enclosed([None] * model.n_states, low, high)
    assert all(low[s] == high[s] == 0 for s in np.flatnonzero(model.terminal))
    v = np.array(low, dtype=float)
    assert v == pytest.approx(literal_step(model, ambiguity, v), abs=1e-8 * (1 - model.discount))


@pytest.mark.parametrize(("model", "ambiguity"), dealt(lambda case: 0 < case[1].discount <= 0.5))
def test_enclosures_agree_with_value_iteration(model, ambiguity):
    v = np.zeros(model.n_states)
    for _ in range(32):  # 2⁻³²·|v*|, and |v*| ≤ 4
        v = literal_step(model, ambiguity, v)
    assert v == pytest.approx(
        np.array(rational.optimum(model, ambiguity)[0], dtype=float), abs=1e-8
    )


@EVERY_CASE
def test_steps_return_a_saddle_point(model, ambiguity):
    problem = rational._problem(model, ambiguity)
    v = [Fraction(5 * t - 4, 8) for t in range(model.n_states)]
    for s in np.flatnonzero(~model.terminal):
        value, policy, kernel = rational._step(problem, s, v)
        own = problem.states[s]
        assert sum(policy) == 1
        assert min(policy) >= 0
        assert all(sum(row) == 1 and min(row) >= 0 for row in kernel)
        paid = [
            sum(row[t] * (own.costs[k][t] + problem.discount * v[t]) for t in own.allowed[k])
            for k, row in enumerate(kernel)
        ]
        assert value == min(paid) == sum(x * z for x, z in zip(policy, paid, strict=True))


# ---------------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=name)
        for name, model, ambiguity in CASES
        if np.max(ambiguity.radius) == 0
    ],
)
@pytest.mark.parametrize("pair", rational.PAIRS, ids=str)
def test_radius_zero_is_the_mdp_of_the_mean_kernel(model, pair):
    S = model.n_states
    mean = sum(
        Fraction(w) * fractions(k, model) for w, k in zip(model.weights, model.kernels, strict=True)
    )
    costs = np.nan_to_num(model.costs) if isinstance(model.costs, np.ndarray) else model.costs
    paid = (mean * fractions(costs, model)).sum(axis=2)
    choices = [np.flatnonzero(own) if own.any() else [None] for own in model.available]
    values = []
    for policy in itertools.product(*choices):
        matrix = [[Fraction(int(s == t)) for t in range(S)] for s in range(S)]
        right = [Fraction(0)] * S
        for s, a in enumerate(policy):
            if a is not None:
                matrix[s] = [
                    x - Fraction(model.discount) * p
                    for x, p in zip(matrix[s], mean[s, a], strict=True)
                ]
                right[s] = paid[s, a]
        values.append(rational.solve(matrix, right))
        assert [sum(x * v for x, v in zip(row, values[-1], strict=True)) for row in matrix] == right
    exact = [min(own) for own in zip(*values, strict=True)]
    ambiguity = drmdp.Wasserstein(0, *pair, "observed")
    assert rational.bellman(model, ambiguity, exact) == exact
    enclosed(exact, *rational.optimum(model, ambiguity))


def fractions(array, model):
    """Kernel or costs as an (S, A, S) array of Fractions."""
    array = array.toarray() if hasattr(array, "toarray") else array
    array = array[:, :, None] if array.ndim == 2 and array.shape == model.available.shape else array
    array = np.broadcast_to(
        array.reshape(*model.available.shape, -1), (*model.available.shape, model.n_states)
    )
    return np.vectorize(Fraction, otypes=[object])(array)


@pytest.mark.parametrize(
    ("model", "ambiguity"),
    [
        pytest.param(*case[1:], id=case[0])
        for case in CASES
        if re.search("saturating|beyond", case[0])
    ],
)
def test_beyond_saturation_the_worst_next_state_is_certain(model, ambiguity):
    v = [Fraction(3 * t - 4, 8) for t in range(model.n_states)]
    z = model.stakes(np.array(v, dtype=float), 0, model.n_states)  # exact: short dyadic numbers
    worst = np.where(ambiguity.allowed(model, 0, model.n_states), z, -np.inf).max(axis=2)
    expected = np.where(model.terminal, 0, np.where(model.available, worst, np.inf).min(axis=1))
    assert rational.bellman(model, ambiguity, v) == expected.tolist()


# ---------------------------------------------------------------------- cases and bad input


def test_cases_are_reproducible_and_cover_what_they_promise():
    again = list(rational.cases(10, seed=0))
    assert [(name, model, ambiguity) for name, model, ambiguity in CASES[:10]] == again
    assert [model for _, model, _ in rational.cases(10, seed=1)] != [model for _, model, _ in again]
    assert len({(ambiguity.pair, name.split("-")[3]) for name, _, ambiguity in CASES}) == 4 * len(
        rational.RADII
    )
    facts = {
        "unavailable": lambda m, b: not m.available[~m.terminal].all(),
        "terminal": lambda m, b: m.terminal.any(),
        "next-costs": lambda m, b: m.next_costs,
        "missing-costs": lambda m, b: m.costs_missing,
        "rewards": lambda m, b: m.maximise,
        "sparse": lambda m, b: m.is_sparse,
        "observed": lambda m, b: b.support == "observed",
        "state": lambda m, b: b.support == "state",
        "discount0-": lambda m, b: m.discount == 0,
        "S3A3N3": lambda m, b: (m.n_states, m.n_actions, m.n_kernels) == (3, 3, 3),
    }
    for feature, fact in facts.items():
        assert any(
            feature in name and fact(model, ambiguity) for name, model, ambiguity in CASES
        ), feature
    assert any((model.weights == 0).any() for _, model, _ in CASES)


def test_data_that_is_not_exact_is_refused():
    rows = np.full((1, 1, 1), 1.0)
    with pytest.raises(ValueError, match="not polyhedral"):
        rational.bellman(
            drmdp.Model(rows, costs=[0.0], discount=0.5),
            drmdp.Wasserstein(1, support="all"),
            [Fraction(0)],
        )
    ambiguity = drmdp.Wasserstein(1, "l1", 1, support="all")
    thirds = drmdp.Model([rows] * 3, costs=[0.0], discount=0.5)
    with pytest.raises(ValueError, match="weights do not sum"):
        rational.bellman(thirds, ambiguity, [Fraction(0)])
    tenths = drmdp.Model(np.full((2, 1, 2), [0.1, 0.9]), costs=[0.0, 0.0], discount=0.5)
    with pytest.raises(ValueError, match="state 0 has a row"):
        rational.optimum(tenths, ambiguity)
