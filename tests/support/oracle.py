"""Exact robust values where next states come in few kinds, whatever their number: the oracle for
large models.

A `Game` is one state of the problem. Next states with the same stake and the same probabilities
form a group, and the average of a solution over all permutations inside the groups is a solution,
so one number a group is enough: a state with a million next states in four groups is a problem of
four numbers. With z the stakes,

    F = max γ   s.t.   γ ≤ Σ_i w_i y_ia·z_a for every action a,   (y_1, …, y_N) in the ball.

**ℓ1 and ℓ∞** are solved in rational arithmetic. Kernel i gains Σ_a V_ia(·), each concave and
piecewise linear: in the mass that action a is granted (ℓ1), moved from the lowest stakes to the
highest one; in the radius r of the kernel (ℓ∞), where

    V(r) = min_τ  τ + Σ_t (z − τ) ŷ + r Σ_{z>τ} (z − τ) + Σ_{z<τ} (τ − z) min(r, ŷ),      τ one of the stakes.

So F is a small linear program over the pieces, and `rational.maximise` proves its own answer. (ℓ1,
1) depends on the mean kernel only. **ℓ2** is left to `oracle_l2`, in decimals that are proved by
weak duality.

**Fixed points.** F is a contraction of modulus λ, so |F(v) − v| ≤ (1 − λ) e proves |v* − v| ≤ e; v is found by Newton's method.
Nothing here uses the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import rational

Vector = list[Fraction]
BITS = 160
"""Digits of the iterates, or their number would double with every step."""
WIDTH = Fraction(1, 2**90)
"""Largest width of an enclosure of a fixed point, relative to the largest value."""


class Group(NamedTuple):
    """Next states that are alike."""

    size: int
    stake: Fraction
    chance: tuple[Fraction, ...]  # probability of each of them in each kernel


class Game(NamedTuple):
    """One state: the agent minimises, nature maximises."""

    actions: list[list[Group]]  # what nature may use, by action
    weights: Vector  # positive, with sum 1
    metric: str
    order: float
    radius: Fraction


class Step(NamedTuple):
    """low ≤ F ≤ high and a saddle point: the policy, and the mean kernel as the mass of each group,
    by action.
    """

    low: Fraction
    high: Fraction
    policy: Vector
    kernel: list[Vector]


def play(game: Game, policy: Sequence[Fraction] | None = None) -> Step:
    """Value of a game, or of nature's problem if the policy is given."""
    if game.metric == "l2":
        import oracle_l2

        return oracle_l2.play(game, policy)
    solve = {"l1": _play_l1, "linf": _play_linf}[game.metric]
    return solve(game, policy)


def nominal(game: Game) -> Vector:
    """Value of each action under the mean kernel."""
    return [
        sum((g.size * g.stake * mean(game, g) for g in groups), Fraction(0))
        for groups in game.actions
    ]


def mean(game: Game, group: Group) -> Fraction:
    """Mean probability of a state of the group."""
    return sum((w * p for w, p in zip(game.weights, group.chance, strict=True)), Fraction(0))


# ---------------------------------------------------------------------- ℓ1


def _play_l1(game: Game, policy: Sequence[Fraction] | None) -> Step:
    """Columns: γ, then the mass that leaves a group for the highest one, for each kernel and
    action.
    """
    joint = game.order == 1
    weights = [Fraction(1)] if joint else game.weights
    rows = range(len(weights))
    keys, limits, gains = [], [], []
    for i in rows:
        for a, groups in enumerate(game.actions):
            top = max(g.stake for g in groups)
            for k, g in enumerate(groups):
                chance = mean(game, g) if joint else g.chance[i]
                if g.stake < top and chance > 0:
                    keys.append((i, a, k))
                    limits.append(g.size * chance)
                    gains.append(weights[i] * (top - g.stake))
    budgets = [[j for j, key in enumerate(keys) if key[0] == i] for i in rows]
    value, x, moved = _program(
        game, policy, keys, limits, gains, budgets, [game.radius / 2] * len(budgets)
    )
    kernel = [[g.size * mean(game, g) for g in groups] for groups in game.actions]
    for (i, a, k), mass in zip(keys, moved, strict=True):
        groups = game.actions[a]
        top = max(range(len(groups)), key=lambda n: groups[n].stake)
        kernel[a][k] -= weights[i] * mass
        kernel[a][top] += weights[i] * mass
    return Step(value, value, x, kernel)


def _program(
    game: Game,
    policy: Sequence[Fraction] | None,
    keys: list,
    limits: Vector,
    gains: Vector,
    budgets: list,
    most: Vector,
) -> tuple[Fraction, Vector, Vector]:
    """Maximise γ ≤ nominal_a + Σ_j gains_j m_j over m ≤ limits, and Σ of each budget's m at most
    `most`.

    With a policy, γ is at most the mean over the actions instead. Returns γ, the policy and m.
    """
    one, start = Fraction(1), nominal(game)
    level = min(start) - 1  # γ ≥ 0 in the program, and it must not bind
    if policy is None:
        rows = [
            {0: one} | {1 + j: -gains[j] for j, key in enumerate(keys) if key[1] == a}
            for a in range(len(start))
        ]
        bounds = [own - level for own in start]
    else:
        rows = [{0: one} | {1 + j: -gains[j] * policy[key[1]] for j, key in enumerate(keys)}]
        bounds = [sum((x * own for x, own in zip(policy, start, strict=True)), Fraction(0)) - level]
    for j, limit in enumerate(limits):
        rows.append({1 + j: one})
        bounds.append(limit)
    for budget, limit in zip(budgets, most, strict=True):
        rows.append({1 + j: one for j in budget})
        bounds.append(limit)
    found = rational.maximise([one] + [Fraction(0)] * len(keys), rows, bounds)
    x = found.dual[: len(start)] if policy is None else list(policy)
    return found.value + level, x, found.primal[1:]


# ---------------------------------------------------------------------- ℓ∞


def _play_linf(game: Game, policy: Sequence[Fraction] | None) -> Step:
    """Order ∞: every radius is θ and the agent needs one action. Order 1: columns γ and the pieces
    of each kernel's radius.
    """
    N = len(game.weights)
    if game.order == math.inf:
        radii = [min(game.radius, Fraction(1))] * N
        kernel = _bent(game, radii)
        each = [
            sum((m * g.stake for m, g in zip(masses, groups, strict=True)), Fraction(0))
            for masses, groups in zip(kernel, game.actions, strict=True)
        ]
        best = each.index(min(each))
        x = [Fraction(int(a == best)) for a in range(len(each))] if policy is None else list(policy)
        value = sum((p * own for p, own in zip(x, each, strict=True)), Fraction(0))
        return Step(value, value, x, kernel)
    one, start = Fraction(1), nominal(game)
    level = min(start) - 1
    ends = [_ends(game, i) for i in range(N)]
    columns = [(i, lo, hi) for i in range(N) for lo, hi in itertools.pairwise(ends[i])]
    gains = [
        [
            w * (_worth(groups, i, hi) - _worth(groups, i, lo)) / (hi - lo)
            for i, lo, hi in columns
            for w in [game.weights[i]]
        ]
        for groups in game.actions
    ]
    if policy is not None:
        gains = [
            [
                sum((x * own[j] for x, own in zip(policy, gains, strict=True)), Fraction(0))
                for j in range(len(columns))
            ]
        ]
        start = [sum((x * own for x, own in zip(policy, start, strict=True)), Fraction(0))]
    rows = [{0: one} | {1 + j: -gain for j, gain in enumerate(own)} for own in gains]
    bounds = [own - level for own in start]
    for j, (_, lo, hi) in enumerate(columns):
        rows.append({1 + j: one})
        bounds.append(hi - lo)
    rows.append({1 + j: game.weights[i] for j, (i, _, _) in enumerate(columns)})
    bounds.append(game.radius)
    found = rational.maximise([one] + [Fraction(0)] * len(columns), rows, bounds)
    radii = [Fraction(0)] * N
    for (i, _, _), part in zip(columns, found.primal[1:], strict=True):
        radii[i] += part
    x = found.dual[: len(start)] if policy is None else list(policy)
    value = found.value + level
    return Step(value, value, x, _bent(game, radii))


def _ends(game: Game, i: int) -> Vector:
    """Radii from 0 to the most kernel i may have, between which its gain is linear, for every
    action.
    """
    most = min(game.radius / game.weights[i], Fraction(1))
    ends = {Fraction(0), most}
    for groups in game.actions:
        kinks = sorted({Fraction(0), most, *(g.chance[i] for g in groups if g.chance[i] < most)})
        for lo, hi in itertools.pairwise(kinks):
            ends |= {lo, hi} | set(_corners(groups, i, lo, hi))
    return sorted(ends)


def _corners(groups: list[Group], i: int, lo: Fraction, hi: Fraction) -> list[Fraction]:
    """Corners in (lo, hi), where no probability lies, of the least of the lines of all
    thresholds.
    """
    lines = [_line(groups, i, g.stake, lo) for g in groups]
    corners, (at, slope) = [], min(lines)
    here = lo
    while True:
        crossings = [
            ((level - at) / (slope - other), other, level)
            for level, other in lines
            if other < slope and level > at
        ]
        crossings = [crossing for crossing in crossings if here < lo + crossing[0] < hi]
        if not crossings:
            return corners
        step, slope, at = min(crossings)
        here = lo + step
        corners.append(here)


def _line(groups: list[Group], i: int, tau: Fraction, r: Fraction) -> tuple[Fraction, Fraction]:
    """The bound of the threshold τ on the worth at r, and its slope to the right of r."""
    level, slope = tau, Fraction(0)
    for g in groups:
        d, p = g.size * (g.stake - tau), g.chance[i]
        if d > 0:
            slope += d
            level += d * p
        elif p > r:
            slope -= d
            level += d * p
    return level + slope * r, slope


def _worth(groups: list[Group], i: int, r: Fraction) -> Fraction:
    """Best value of a row within r of kernel i's, by its definition: take what may be taken, and
    give it to the highest.
    """
    return sum((m * g.stake for m, g in zip(_row(groups, i, r), groups, strict=True)), Fraction(0))


def _row(groups: list[Group], i: int, r: Fraction) -> Vector:
    left = [max(g.chance[i] - r, Fraction(0)) for g in groups]
    supply = 1 - sum((g.size * p for g, p in zip(groups, left, strict=True)), Fraction(0))
    masses = [g.size * p for g, p in zip(groups, left, strict=True)]
    for k in sorted(range(len(groups)), key=lambda n: -groups[n].stake):
        room = groups[k].size * (groups[k].chance[i] + r - left[k])
        take = min(room, supply)
        masses[k] += take
        supply -= take
    return masses


def _bent(game: Game, radii: Vector) -> list[Vector]:
    rows = [[_row(groups, i, r) for i, r in enumerate(radii)] for groups in game.actions]
    return [
        [
            sum((w * row[k] for w, row in zip(game.weights, own, strict=True)), Fraction(0))
            for k in range(len(own[0]))
        ]
        for own in rows
    ]


# ---------------------------------------------------------------------- fixed points


def fixed_point(
    step: Callable[[int, Vector], Step],
    chain: Callable[[int, Step], tuple[Fraction, Vector]],
    discount: Fraction,
    start: Vector,
) -> tuple[Vector, Vector]:
    """Enclose the fixed point of v ↦ (step(s, v))_s, a contraction of modulus λ: (low, high).

    `chain(s, …)` gives the cost of a step's saddle point and the mass of each next state, times λ.
    Newton's method: the next iterate is the value of the saddle points; where that does not halve
    the error, plain steps are taken.
    """
    v = start
    steps, error = _sweep(step, v, discount)
    patience = 1
    while error > WIDTH * max(map(abs, v)):
        rows = [chain(s, own) for s, own in enumerate(steps)]
        matrix = [
            [int(s == t) - m for t, m in enumerate(masses)] for s, (_, masses) in enumerate(rows)
        ]
        trial = rounded(rational.solve(matrix, [cost for cost, _ in rows]))
        trial_steps, trial_error = _sweep(step, trial, discount)
        if trial_error <= error / 2:
            v, steps, error = trial, trial_steps, trial_error
            continue
        for _ in range(patience):
            v = rounded([(own.low + own.high) / 2 for own in steps])
            steps, error = _sweep(step, v, discount)
        patience *= 2
        if patience > 1000:
            raise ArithmeticError("no enclosure found")
    return [x - error for x in v], [x + error for x in v]


def _sweep(
    step: Callable[[int, Vector], Step], v: Vector, discount: Fraction
) -> tuple[list[Step], Fraction]:
    steps = [step(s, v) for s in range(len(v))]
    off = max(max(x - own.low, own.high - x) for own, x in zip(steps, v, strict=True))
    return steps, off / (1 - discount)


def rounded(v: Vector) -> Vector:
    """The same numbers to `BITS` digits of the largest."""
    top = max(map(abs, v))
    if top == 0:
        return v
    unit = Fraction(2) ** (math.floor(math.log2(top.numerator) - math.log2(top.denominator)) - BITS)
    return [round(x / unit) * unit for x in v]
