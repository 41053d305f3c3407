"""The ℓ2 games of `oracle`, to 35 digits and proved: see there for what a game is.

How a solution is found (`oracle_l2_search`) does not matter. `worth` measures a tuple of rows,
pulls it into the ball and returns what it gives nature; `price` is the Lagrangian at a policy,
multipliers and thresholds. By weak duality F lies between these two, whatever they were given, and
`play` returns them, widened by the last digits of the arithmetic, if they are close enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import oracle
from oracle_l2_search import (
    EDGE,
    LAST,
    ONE,
    ZERO,
    Numbers,
    Row,
    State,
    answer,
    candidates,
    dot,
    value_of,
)

DIGITS = 85
CLOSE = Decimal(10) ** -35
"""Largest admitted distance of the two bounds, in units of the range of the stakes."""


class Unproved(ArithmeticError):  # noqa: N818
    """The bounds did not meet."""


def play(game: oracle.Game, policy: Sequence[Fraction] | None = None) -> oracle.Step:
    """Value of a game, or of nature's problem if the policy is given, enclosed; and a saddle
    point.
    """
    with localcontext(Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)):
        state, base, unit = _normalised(game)
        if unit == 0:
            return _trivial(game, policy)
        given = None if policy is None else [_decimal(p) for p in policy]
        width = Decimal("inf")
        for x, y, kappa in candidates(state, given):
            low, high = worth(state, y, given), _price(state, x, kappa)
            width = min(width, high - low)
            if width <= CLOSE:
                break
        else:
            raise Unproved(f"the bounds are {width:.3g} apart")
        kernel = [
            [
                g.size
                * Fraction(sum(w * row[k] for w, row in zip(state.weights, own, strict=True)))
                for k, g in enumerate(groups)
            ]
            for own, groups in zip(y, game.actions, strict=True)
        ]
        bounds = (base + unit * Fraction(own) for own in (low - LAST, high + LAST))
        return oracle.Step(*bounds, [Fraction(p) for p in x], kernel)


def _normalised(game: oracle.Game) -> tuple[State, Fraction, Fraction]:
    """The game in units of the range of its stakes, the least of the actions' highest stakes being
    0; that, and the unit.
    """
    tops = [max(g.stake for g in groups) for groups in game.actions]
    base = min(tops)
    unit = max(
        top - min(g.stake for g in groups) for top, groups in zip(tops, game.actions, strict=True)
    )
    shrink = 1 / unit if unit else Fraction(0)

    def row(i: int, top: Fraction, groups: list[oracle.Group]) -> Row:
        columns = [
            (Decimal(g.size), _decimal((g.stake - top) * shrink), _decimal(g.chance[i]))
            for g in groups
        ]
        return Row(*(list(column) for column in zip(*columns, strict=True)))

    rows = [
        [row(i, top, groups) for i in range(len(game.weights))]
        for top, groups in zip(tops, game.actions, strict=True)
    ]
    cost = [_decimal((top - base) * shrink) for top in tops]
    weights = [_decimal(w) for w in game.weights]
    return State(rows, cost, weights, game.order == math.inf, _decimal(game.radius)), base, unit


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _trivial(game: oracle.Game, policy: Sequence[Fraction] | None) -> oracle.Step:
    """Nature can change nothing."""
    each = oracle.nominal(game)
    best = each.index(min(each))
    x = [Fraction(int(a == best)) for a in range(len(each))] if policy is None else list(policy)
    value = sum((p * own for p, own in zip(x, each, strict=True)), Fraction(0))
    kernel = [[g.size * oracle.mean(game, g) for g in groups] for groups in game.actions]
    return oracle.Step(value, value, x, kernel)


# ---------------------------------------------------------------------- proofs


def worth(state: State, y: list[list[Numbers]], policy: Numbers | None) -> Decimal:
    """Least value of an action, or the policy's, under a tuple [a][i] of rows, once it is in the
    ball.
    """
    moves = [
        [_move(row, own) for row, own in zip(rows, given, strict=True)]
        for rows, given in zip(state.rows, y, strict=True)
    ]
    spent = [
        sum(
            (
                dot(rows[i].size, [m * m for m in own[i]])
                for rows, own in zip(state.rows, moves, strict=True)
            ),
            ZERO,
        )
        for i in range(len(state.weights))
    ]
    far = spent if state.each else [dot(state.weights, spent)] * len(spent)
    share = [min(ONE, state.radius / own.sqrt()) if own > 0 else ONE for own in far]
    each = []
    for rows, own, cost in zip(state.rows, moves, state.cost, strict=True):
        new = [
            [p + part * m for p, m in zip(row.chance, move, strict=True)]
            for row, move, part in zip(rows, own, share, strict=True)
        ]
        each.append(
            cost + dot(state.weights, [value_of(row, y) for row, y in zip(rows, new, strict=True)])
        )
    return min(each) if policy is None else dot(policy, each)


def _move(row: Row, given: Numbers) -> Numbers:
    """Difference of a row, made a distribution, from the data; none if it is empty."""
    clean = [max(p, ZERO) for p in given]
    total = dot(row.size, clean)
    return [p / total - q if total > 0 else ZERO for p, q in zip(clean, row.chance, strict=True)]


def price(state: State, x: Numbers, mu: Numbers, tau: list[Numbers]) -> Decimal:
    """Σ_i w_i [R_i + μ_i θ²] ≥ what nature gains against the policy x, for all μ > 0 and τ [a][i];
    order 2: all μ alike.
    """
    free = total = dot(x, state.cost)
    for i, w in enumerate(state.weights):
        bound = mu[i] * state.radius * state.radius
        for rows, own, thresholds in zip(state.rows, x, tau, strict=True):
            bound += thresholds[i]
            for k, z, p in zip(*rows[i], strict=True):
                d = own * z - thresholds[i]
                bound += k * (
                    d * p + d * d / (4 * mu[i]) if p + d / (2 * mu[i]) > 0 else -mu[i] * p * p
                )
        total += w * (min(bound, ZERO) if state.each else bound)
    return min(total, free)  # an unconstrained nature gains no more


def _price(state: State, x: Numbers, kappa: Numbers) -> Decimal:
    """The price at μ = 1/(2κ) and the thresholds of the rows at the strengths κ x."""
    strength = [min(max(k, EDGE**2), EDGE**-3) for k in kappa]
    tau = [
        [answer(row, k * own).tau / k for row, k in zip(rows, strength, strict=True)]
        for rows, own in zip(state.rows, x, strict=True)
    ]
    return price(state, x, [1 / (2 * k) for k in strength], tau)
