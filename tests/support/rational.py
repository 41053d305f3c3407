"""Exact robust values of tiny problems, in rational arithmetic: the oracle that no rounding can
excuse.

For the polyhedral balls, ("l1" | "linf", 1 | inf), one robust Bellman step at a state is a linear program,

    F(v)_s = max γ   s.t.   γ ≤ Σ_i w_i y_ia·z_a for every available action a,   (y_1, …, y_N) in the ball of s,

with z_a = c(s, a, ·) + λ v, since nature's maximum and the agent's minimum may be exchanged; the
multipliers of the γ rows are the agent's policy. Every number is the exact rational value of the
stored float, and the rows of the kernels and the weights must sum to 1 as rationals. F is a
monotone contraction, so F(low) ≥ low proves low ≤ v* and F(high) ≤ high proves v* ≤ high; v* itself
is in general irrational (F is piecewise rational, not piecewise linear).

Values are costs to the agent, who minimises: for a model built from rewards they are the negatives
of the user's. Nothing here uses the package beyond reading the attributes of `Model` and
`Wasserstein`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import drmdp

Vector = list[Fraction]
Row = dict[int, Fraction]

PAIRS = (("l1", 1), ("l1", math.inf), ("linf", 1), ("linf", math.inf))
GRID = 2**120
"""Iterates are rounded to multiples of 1/GRID, or their digits would double with every step."""
WIDTH = Fraction(1, 10**25)
"""Largest width of an enclosure."""


# ---------------------------------------------------------------------- linear programs


class Optimum(NamedTuple):
    """Value, primal and dual solution of a linear program, proven optimal."""

    value: Fraction
    primal: Vector
    dual: Vector


def maximise(
    objective: Sequence[Fraction], rows: Sequence[Row], bounds: Sequence[Fraction]
) -> Optimum:
    """Solve max c·x s.t. A x ≤ b, x ≥ 0 exactly, for b ≥ 0; rows map a column to its coefficient.

    Simplex method from the feasible x = 0 with Bland's rule, which cannot cycle, on a condensed
    tableau. A row

        Σ_j a_j x_j + scale·(its basic variable) = right-hand side         (j over the nonbasic variables)

    is kept as the integers [a_0, …, a_(n−1), right-hand side, scale] without common factor; scale >
    0. The last row is the objective. Variables are numbered x_0, …, x_(n−1), then the slacks.
    """
    n, m = len(objective), len(rows)
    if min(bounds, default=0) < 0:
        raise ValueError("bounds must not be negative: the method starts at x = 0")
    tableau = [
        _integers([row.get(j, 0) for j in range(n)], b) for row, b in zip(rows, bounds, strict=True)
    ]
    tableau.append(_integers([-c for c in objective], 0))
    nonbasic, basic = list(range(n)), list(range(n, n + m))
    while True:
        falling = [j for j in range(n) if tableau[-1][j] < 0]
        if not falling:
            break
        j = min(falling, key=nonbasic.__getitem__)
        limits = [
            (Fraction(row[n], row[j]), basic[r], r)
            for r, row in enumerate(tableau[:-1])
            if row[j] > 0
        ]
        if not limits:
            raise ValueError("the linear program is unbounded")
        r = min(limits)[2]
        _pivot(tableau, r, j)
        basic[r], nonbasic[j] = nonbasic[j], basic[r]
    primal, dual = [Fraction(0)] * n, [Fraction(0)] * m
    for r, label in enumerate(basic):
        if label < n:
            primal[label] = Fraction(tableau[r][n], tableau[r][-1])
    for j, label in enumerate(nonbasic):
        if label >= n:
            dual[label - n] = Fraction(tableau[-1][j], tableau[-1][-1])
    return verified(objective, rows, bounds, primal, dual)


def verified(
    objective: Sequence[Fraction],
    rows: Sequence[Row],
    bounds: Sequence[Fraction],
    primal: Vector,
    dual: Vector,
) -> Optimum:
    """Prove that `primal` and `dual` are optimal for the program of `maximise`: feasible, and of
    equal value.
    """
    reduced = list(objective)  # c − Aᵀ·dual
    slack = list(bounds)  # b − A·primal
    for i, row in enumerate(rows):
        for j, a in row.items():
            reduced[j] -= a * dual[i]
            slack[i] -= a * primal[j]
    value = sum((c * x for c, x in zip(objective, primal, strict=True)), Fraction(0))
    other = sum((b * u for b, u in zip(bounds, dual, strict=True)), Fraction(0))
    for fails, rule in (
        (min([*primal, *slack]) < 0, "primal feasible"),
        (min(dual, default=0) < 0 or max(reduced) > 0, "dual feasible"),
        (value != other, "of equal objective"),
    ):
        if fails:
            raise ArithmeticError(f"linear program: the solution is not {rule}")
    return Optimum(value, primal, dual)


def _integers(coefficients: Sequence[Fraction | int], bound: Fraction | int) -> list[int]:
    scale = math.lcm(*(a.denominator for a in coefficients), bound.denominator)
    return [a.numerator * (scale // a.denominator) for a in (*coefficients, bound, 1)]


def _pivot(tableau: list[list[int]], r: int, j: int) -> None:
    """Exchange the basic variable of row r with the nonbasic one of column j."""
    chosen = tableau[r]
    p = chosen[j]
    chosen[j], chosen[-1] = chosen[-1], p
    for i, row in enumerate(tableau):
        f = row[j]
        if i == r or f == 0:
            continue
        row[j] = 0  # the column now belongs to the leaving variable
        new = [p * a - f * b for a, b in zip(row, chosen, strict=True)]
        new[-1] = p * row[-1]
        common = math.gcd(*new)
        tableau[i] = new if common == 1 else [a // common for a in new]


# ---------------------------------------------------------------------- problems


@dataclass(frozen=True)
class _State:
    """One state that is not terminal, its available actions only."""

    actions: list[int]  # their numbers in the model
    kernels: list[list[Vector]]  # ŷ_ia(t), as [i][a][t], of the kernels with positive weight
    costs: list[list[Fraction | None]]  # c(a, t), as [a][t]; None where mass cannot go
    allowed: list[list[int]]  # next states of each action
    radius: Fraction


@dataclass(frozen=True)
class _Problem:
    """Model and ball as rationals."""

    states: list[_State | None]  # None where terminal
    weights: Vector  # the positive ones
    discount: Fraction
    metric: str
    order: float


class _Step(NamedTuple):
    """F(v) at one state and a saddle point: the policy and the mean kernel Σ_i w_i y_i, by
    available action.
    """

    value: Fraction
    policy: Vector
    kernel: list[Vector]


def _problem(model: drmdp.Model, ambiguity: drmdp.Wasserstein) -> _Problem:
    if (ambiguity.metric, ambiguity.order) not in PAIRS:
        raise ValueError(f"({ambiguity.metric!r}, {ambiguity.order!r}) is not polyhedral")
    S, A = model.n_states, model.n_actions
    used = [i for i in range(model.n_kernels) if model.weights[i] > 0]
    weights = [_fraction(model.weights[i]) for i in used]
    if sum(weights) != 1:
        raise ValueError("the weights do not sum to 1 exactly")
    given = model.kernels
    kernels = [_dense(given[i], (S, A, S)) for i in used]
    costs = _dense(model.costs, (S, A, S))
    radii = np.broadcast_to(ambiguity.radius, S)

    def state(s: int) -> _State | None:
        if model.terminal[s]:
            return None
        actions = [a for a in range(A) if model.available[s, a]]
        rows = [[[_fraction(p) for p in kernel[s, a]] for a in actions] for kernel in kernels]
        if any(sum(row) != 1 for own in rows for row in own):
            raise ValueError(f"state {s} has a row that does not sum to 1 exactly")
        seen = [
            {t for t in range(S) if any(own[k][t] > 0 for own in rows)} for k in range(len(actions))
        ]
        places = {
            "observed": seen,
            "state": [set().union(*seen)] * len(seen),
            "all": [set(range(S))] * len(seen),
        }
        allowed = [sorted(own) for own in places[ambiguity.support]]
        paid = [
            [_fraction(costs[s, a, t]) if t in allowed[k] else None for t in range(S)]
            for k, a in enumerate(actions)
        ]
        return _State(actions, rows, paid, allowed, _fraction(radii[s]))

    states = [state(s) for s in range(S)]
    return _Problem(states, weights, _fraction(model.discount), ambiguity.metric, ambiguity.order)


def _dense(given: Any, shape: tuple[int, int, int]) -> np.ndarray:
    """(S, A), (S, A, S) or sparse (S·A, S) numbers as (S, A, S)."""
    if sparse.issparse(given):
        return given.toarray().reshape(shape)
    return np.broadcast_to(given[:, :, None] if given.ndim == 2 else given, shape)


def _fraction(number: float) -> Fraction:
    return Fraction(float(number))


def _step(problem: _Problem, s: int, v: Vector) -> _Step:
    """One Bellman step at state s, by the linear program of `_program`."""
    own = problem.states[s]
    if own is None:
        return _Step(Fraction(0), [], [])
    stakes = [
        {t: own.costs[k][t] + problem.discount * v[t] for t in allowed}
        for k, allowed in enumerate(own.allowed)
    ]
    # γ ≥ 0 in the program, and it must not bind: then complementarity makes the policy sum to 1
    level = min(min(z.values()) for z in stakes) - 1
    objective, rows, bounds, moves = _program(problem, own, stakes, level)
    value, primal, dual = maximise(objective, rows, bounds)
    kernel = [[Fraction(0)] * len(v) for _ in own.actions]
    for w, rows_of in zip(problem.weights, own.kernels, strict=True):
        for k, row in enumerate(rows_of):
            for t, p in enumerate(row):
                kernel[k][t] += w * p
    for (i, k, t, u), j in moves.items():
        kernel[k][t] -= problem.weights[i] * primal[j]
        kernel[k][u] += problem.weights[i] * primal[j]
    return _Step(value + level, dual[: len(own.actions)], kernel)


def _program(
    problem: _Problem, own: _State, stakes: list[dict[int, Fraction]], level: Fraction
) -> tuple[Vector, list[Row], Vector, dict[tuple[int, int, int, int], int]]:
    """Maximise γ over γ, distances d_i and the mass m_ia(t, u) ≥ 0 that nature moves from t to u.

    Every y_ia is ŷ_ia with Σ_u m_ia(t, u) ≤ ŷ_ia(t) moved, without passing on what came in, and
    then the ℓ1 distance is 2 Σ m; other ways of moving only make that sum larger. Columns: γ, d_1,
    …, d_N, then the moves. Rows: γ for each action first.
    """
    one, n = Fraction(1), len(problem.weights)
    keys = [
        (i, k, t, u)
        for i, rows_of in enumerate(own.kernels)
        for k, row in enumerate(rows_of)
        for t in own.allowed[k]
        for u in own.allowed[k]
        if t != u and row[t] > 0
    ]
    moves = {key: 1 + n + j for j, key in enumerate(keys)}
    rows: list[Row] = []
    bounds: Vector = []

    def at_most(row: Row, bound: Fraction) -> None:
        rows.append(row)
        bounds.append(bound)

    for k, z in enumerate(stakes):
        nominal = sum(
            w * own.kernels[i][k][t] * z[t]
            for i, w in enumerate(problem.weights)
            for t in own.allowed[k]
        )
        gains = {
            j: problem.weights[i] * (z[t] - z[u]) for (i, a, t, u), j in moves.items() if a == k
        }
        at_most({0: one, **gains}, nominal - level)
    for i in range(n):
        for k, row in enumerate(own.kernels[i]):
            for t in own.allowed[k]:
                others = [u for u in own.allowed[k] if u != t]
                out = {moves[i, k, t, u]: one for u in others if row[t] > 0}
                into = [moves[i, k, u, t] for u in others if row[u] > 0]
                at_most(out, row[t])
                if problem.metric == "linf":
                    lost = out | dict.fromkeys(into, -one)
                    at_most({1 + i: -one} | lost, Fraction(0))
                    at_most({1 + i: -one} | {j: -a for j, a in lost.items()}, Fraction(0))
        if problem.metric == "l1":
            at_most(
                {1 + i: -one} | {j: 2 * one for (who, *_), j in moves.items() if who == i},
                Fraction(0),
            )
        if problem.order == math.inf:
            at_most({1 + i: one}, own.radius)
    if problem.order == 1:
        at_most({1 + i: w for i, w in enumerate(problem.weights)}, own.radius)
    return [one] + [Fraction(0)] * (n + len(moves)), rows, bounds, moves


# ---------------------------------------------------------------------- the oracle


def bellman(model: drmdp.Model, ambiguity: drmdp.Wasserstein, v: Sequence[Fraction]) -> Vector:
    """F(v), exactly; 0 in terminal states. Other states see `v` as it is, also where it is that of
    a terminal one.
    """
    problem = _problem(model, ambiguity)
    return [_step(problem, s, list(v)).value for s in range(model.n_states)]


def optimum(model: drmdp.Model, ambiguity: drmdp.Wasserstein) -> tuple[Vector, Vector]:
    """Return (low, high) with low ≤ v* ≤ high, proven, and high − low ≤ WIDTH.

    Newton's method: the next iterate is the value of the pair of strategies that is optimal at this
    one. Where that fails to halve the residual, plain steps F, which always converge, are taken
    instead, more each time.
    """
    problem = _problem(model, ambiguity)
    v = [Fraction(0)] * model.n_states
    steps, shift = _sweep(problem, v)
    patience = 1
    while 2 * shift > WIDTH:
        trial = _rounded(_pair_value(problem, steps))
        trial_steps, trial_shift = _sweep(problem, trial)
        if trial_shift <= shift / 2:
            v, steps, shift = trial, trial_steps, trial_shift
            continue
        for _ in range(patience):
            v = _rounded([step.value for step in steps])
            steps, shift = _sweep(problem, v)
        patience *= 2
        if patience > 10_000:
            raise ArithmeticError("no enclosure found: the grid is too coarse for this discount")
    shifts = [0 if state is None else shift for state in problem.states]
    low = [x - e for x, e in zip(v, shifts, strict=True)]
    high = [x + e for x, e in zip(v, shifts, strict=True)]
    for s in range(model.n_states):
        if _step(problem, s, low).value < low[s] or _step(problem, s, high).value > high[s]:
            raise ArithmeticError(
                f"not an enclosure at state {s}: F is not a monotone contraction?"
            )
    return low, high


def _sweep(problem: _Problem, v: Vector) -> tuple[list[_Step], Fraction]:
    """F at every state, and by how much v must be shifted down and up to enclose v*: |F(v) − v| / (1 − λ)."""
    steps = [_step(problem, s, v) for s in range(len(v))]
    residual = max(abs(step.value - x) for step, x in zip(steps, v, strict=True))
    return steps, Fraction(math.ceil(residual / (1 - problem.discount) * GRID), GRID)


def _rounded(v: Vector) -> Vector:
    return [Fraction(round(x * GRID), GRID) for x in v]


def _pair_value(problem: _Problem, steps: list[_Step]) -> Vector:
    """Value of the policy and the kernel of the steps: v = Σ_a x_a y_a·(c_a + λ v)."""
    S = len(steps)
    matrix = [[Fraction(int(s == t)) for t in range(S)] for s in range(S)]
    right = [Fraction(0)] * S
    for s, (own, step) in enumerate(zip(problem.states, steps, strict=True)):
        for k in range(len(step.policy)):
            for t in own.allowed[k]:
                mass = step.policy[k] * step.kernel[k][t]
                matrix[s][t] -= problem.discount * mass
                right[s] += mass * own.costs[k][t]
    return solve(matrix, right)


def solve(matrix: Sequence[Vector], right: Vector) -> Vector:
    """Solve a square system with a dominant diagonal, as I − λP has: no row interchange is
    needed.
    """
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        rows[k] = [a / rows[k][k] for a in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[k] != 0:
                rows[i] = [a - row[k] * b for a, b in zip(row, rows[k], strict=True)]
    return [row[-1] for row in rows]


# ---------------------------------------------------------------------- cases

RADII = ("zero", "small", "moderate", "saturating", "beyond", "by-state")
DISCOUNTS = (0, 1 / 2, 3 / 4, 7 / 8, 15 / 16, 127 / 128)


def cases(n: int, seed: int) -> Iterator[tuple[str, drmdp.Model, drmdp.Wasserstein]]:
    """Yield n tiny problems with dyadic data, as (name, model, ball); the k-th depends on seed and
    k only.

    The four balls take turns, and so do the kinds of radius; everything else is drawn, and told by
    the name.
    """
    for k in range(n):
        rng = np.random.default_rng([seed, k])
        metric, order = PAIRS[k % 4]
        S, A = [(1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 2), (3, 3)][rng.integers(7)]
        N = int(rng.integers(1, 4))
        model, features = _model(rng, S, A, N)
        support = (
            "observed"
            if model.costs_missing
            else str(rng.choice(["observed", "state", "all", "all"]))
        )
        kind = RADII[k // 4 % len(RADII)]
        radius = _radius(rng, kind, model, drmdp.Wasserstein(0, metric, order, support))
        ambiguity = drmdp.Wasserstein(radius, metric, order, support)
        shape = f"S{S}A{A}N{N}-discount{model.discount:g}"
        yield (
            "-".join([f"{seed}.{k}", metric, f"{order}", kind, shape, support, *features]),
            model,
            ambiguity,
        )


def _model(rng: np.random.Generator, S: int, A: int, N: int) -> tuple[drmdp.Model, list[str]]:
    features = {
        name
        for name, chance in {
            "weights": 0.6,
            "unavailable": 0.3,
            "terminal": 0.25,
            "next-costs": 0.4,
            "ties": 0.2,
            "deterministic": 0.2,
            "rewards": 0.2,
            "sparse": 0.2,
            "missing-costs": 0.15,
        }.items()
        if rng.random() < chance
    }
    if N == 1:
        features -= {"weights"}
    elif N == 3:
        features |= {"weights"}  # thirds are not dyadic
    if S == 1:
        features -= {"terminal"}
    if A == 1:
        features -= {"unavailable"}
    if "missing-costs" in features:
        features |= {"next-costs"}
    kernels = np.array(
        [_row(rng, S, "deterministic" in features) for _ in range(N * S * A)]
    ).reshape(N, S, A, S)
    costs = rng.integers(-32, 33, size=(S, A, S) if "next-costs" in features else (S, A)) / 16
    if "ties" in features:
        costs = np.sign(costs)
        kernels[:, :, -1] = kernels[:, :, 0]
    available = np.ones((S, A), dtype=bool)
    if "unavailable" in features:
        available[rng.integers(S), rng.integers(A)] = False
        kernels = np.where(available[:, :, None], kernels, np.nan)  # they are never read
    terminal = np.zeros(S, dtype=bool)
    if "terminal" in features:
        terminal[rng.integers(S)] = True
    if "missing-costs" in features:
        costs = np.where((kernels > 0).any(axis=0), costs, np.nan)
    if "sparse" in features:
        kernels = [sparse.csr_array(np.nan_to_num(kernel).reshape(S * A, S)) for kernel in kernels]
        if "missing-costs" in features:
            costs = sparse.csr_array(np.nan_to_num(costs).reshape(S * A, S))
    weights = [None, None, [[2, 6], [5, 3], [0, 8]], [[4, 2, 2], [1, 6, 1], [5, 0, 3]]][N]
    given = {"rewards" if "rewards" in features else "costs": costs}
    model = drmdp.Model(
        kernels,
        **given,
        discount=rng.choice(DISCOUNTS),
        weights=np.array(weights[rng.integers(3)]) / 8 if "weights" in features else None,
        available=available,
        terminal=terminal,
    )
    return model, sorted(features)


def _row(rng: np.random.Generator, S: int, deterministic: bool) -> np.ndarray:
    """Draw a distribution in multiples of 1/64, on all states or fewer."""
    size = 1 if deterministic else rng.integers(1, S + 1)
    row = np.zeros(S)
    row[rng.permutation(S)[:size]] = rng.multinomial(64, rng.dirichlet(np.ones(size))) / 64
    return row


def _radius(
    rng: np.random.Generator, kind: str, model: drmdp.Model, ambiguity: drmdp.Wasserstein
) -> Any:
    """Draw a radius, read against the saturation of the model; dyadic like the data."""
    full = ambiguity.saturation(model)
    return {
        "zero": 0.0,
        "small": 2.0 ** -rng.integers(4, 12),
        "moderate": full.max() * rng.integers(1, 8) / 8,
        "saturating": full,
        "beyond": 2 * full.max() + 1,
        "by-state": full * rng.integers(0, 9, size=full.size) / 8,
    }[kind]
