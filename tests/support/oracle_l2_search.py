"""Where the saddle points of `oracle_l2` come from. Nothing here needs to be right: its answers are
proved there.

A row answers the strength t by y = (ŷ + t z − τ)⁺, with sum 1: the nearest row of its value. While
the active groups do not change, its value is linear in t and its squared distance is α t² + β. So
equations in t have explicit solutions on each piece.

* **Order 2**: E_a(γ), the least Σ_i w_i |y_ia − ŷ_ia|² that brings action a to γ, is convex with derivative 2 t_a, and
  F is where Σ_a E_a(γ) = θ², by Newton's method from above. The policy is proportional to t.
* **Order ∞**: F = min_x Σ_i w_i G_i(x), G_i(x) the most kernel i gains within θ against the policy
x, with t = κ_i x_a. Equal
  kernels move alike, as in order 2. Else, copies of an action are played alike, and policies of one
  or two kinds of action are tried: the derivative along the segment between them has one sign
  change, and nature mixes her answers from both sides of it. Games that need three kinds stay
  unsolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

ZERO, ONE = Decimal(0), Decimal(1)
LAST = Decimal(10) ** -60
"""Rounding of any result, relative to the range of the stakes."""
EDGE = Decimal(10) ** -40
"""Smallest probability that the search for a mixed policy tries."""

Numbers = list[Decimal]
Tuple = list[list[Numbers]]
Candidate = tuple[Numbers, Tuple, Numbers]
"""Policy, rows [a][i] and the strength κ of each kernel."""


class Row(NamedTuple):
    """One kernel's row of one action, by groups; stakes in units of their range, the highest of the
    action being 0.
    """

    size: Numbers
    stake: Numbers
    chance: Numbers


class State(NamedTuple):
    """A game in decimals."""

    rows: list[list[Row]]  # [a][i]
    cost: Numbers  # highest stake of each action, the lowest of them being 0
    weights: Numbers
    each: bool  # order ∞
    radius: Decimal


class Answer(NamedTuple):
    """What a row does at a strength t."""

    y: Numbers
    tau: Decimal
    value: Decimal
    square: Decimal  # distance², which is α t² + β
    curve: Decimal  # α, which also is the slope of the value
    rest: Decimal  # β


def dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    """Σ a b."""
    return sum((p * q for p, q in zip(a, b, strict=True)), ZERO)


def value_of(row: Row, y: Numbers) -> Decimal:
    """Σ y z."""
    return sum((k * z * p for k, z, p in zip(row.size, row.stake, y, strict=True)), ZERO)


def candidates(state: State, policy: Numbers | None) -> Iterator[Candidate]:
    """Saddle points, or nature's answer to a policy."""
    if policy is not None:
        yield policy, *_respond(state, policy)
        return
    if state.radius == 0:
        nominal = _nominal(state)
        x = [Decimal(int(a == nominal.index(min(nominal)))) for a in range(len(nominal))]
        yield (
            x,
            [[list(row.chance) for row in rows] for rows in state.rows],
            [ZERO] * len(state.weights),
        )
    elif not state.each or all(row == rows[0] for rows in state.rows for row in rows):
        yield _joint(state)
    else:
        yield _joint(state)
        yield from _mixtures(state)


def _nominal(state: State) -> Numbers:
    return [
        cost + dot(state.weights, [value_of(row, row.chance) for row in rows])
        for rows, cost in zip(state.rows, state.cost, strict=True)
    ]


# ---------------------------------------------------------------------- one row


def answer(row: Row, t: Decimal) -> Answer:
    """What the row does at the strength t; the piece is the one to the right of t."""
    key = [p + t * z for p, z in zip(row.chance, row.stake, strict=True)]
    count, total, tau = ZERO, -ONE, ZERO
    for k in sorted(range(len(key)), key=lambda k: -key[k]):
        if count > 0 and key[k] * count <= total:
            break
        count += row.size[k]
        total += row.size[k] * key[k]
        tau = total / count
    y = [max(own - tau, ZERO) for own in key]
    active, count, centre = _rising(row, [own - tau for own in key], LAST * (1 + t))
    held, curve, rest = ZERO, ZERO, ZERO
    for k, z, p, on in zip(*row, active, strict=True):
        held += k * p * on
        curve += k * (z - centre) ** 2 * on
        rest += k * p * p * (not on)
    rest += (held - 1) ** 2 / count
    square = sum((k * (p - q) ** 2 for k, p, q in zip(row.size, y, row.chance, strict=True)), ZERO)
    return Answer(y, tau, value_of(row, y), square, curve, rest)


def _rising(row: Row, above: Numbers, tie: Decimal) -> tuple[list[bool], Decimal, Decimal]:
    """Groups with mass for strengths just larger, how many states that are, and their mean
    stake.
    """
    active = [own > tie for own in above]
    count = sum((k for k, on in zip(row.size, active, strict=True) if on), ZERO)
    total = sum((k * z for k, z, on in zip(row.size, row.stake, active, strict=True) if on), ZERO)
    for k in sorted(range(len(above)), key=lambda k: -row.stake[k]):
        if not active[k] and abs(above[k]) <= tie and (count == 0 or row.stake[k] * count > total):
            active[k] = True
            count += row.size[k]
            total += row.size[k] * row.stake[k]
    return active, count, total / count


# ---------------------------------------------------------------------- order 2


def _joint(state: State) -> Candidate:
    """Newton's method on γ, from the value of an unconstrained nature down."""
    nominal, gamma, square = _nominal(state), ZERO, state.radius**2
    reached: list = [(ZERO, [])] * len(nominal)
    for _ in range(400):
        reached = [
            _reach(state, a, gamma - state.cost[a], reached[a][0])
            if gamma > own
            else (ZERO, _at(state, a, ZERO))
            for a, own in enumerate(nominal)
        ]
        push = sum((t for t, _ in reached), ZERO)
        over = (
            sum(
                (dot(state.weights, [own.square for own in answers]) for _, answers in reached),
                ZERO,
            )
            - square
        )
        if over <= LAST * square or push == 0 or gamma - over / (2 * push) == gamma:
            break
        gamma -= over / (2 * push)
    y = [[own.y for own in answers] for _, answers in reached]
    x = [t / push for t, _ in reached] if push > 0 else []
    if gamma == 0:  # nature is unconstrained: the lowest of the highest stakes counts
        x, push = [Decimal(int(a == state.cost.index(ZERO))) for a in range(len(nominal))], EDGE**-2
    return x, y, [push] * len(state.weights)


def _at(state: State, a: int, t: Decimal) -> list[Answer]:
    return [answer(row, t) for row in state.rows[a]]


def _reach(state: State, a: int, target: Decimal, start: Decimal) -> tuple[Decimal, list[Answer]]:
    """Least strength at which the rows of an action have that mean value: tangents to a concave
    function lead there from the left.
    """
    t, left = start, start == 0
    for _ in range(1000):
        answers = _at(state, a, t)
        short = target - dot(state.weights, [own.value for own in answers])
        slope = dot(state.weights, [own.curve for own in answers])
        if left and (short <= LAST or slope == 0):
            break
        t, left = (t + short / slope, True) if slope > 0 else (ZERO, True)
        t = max(t, ZERO)
    return t, answers


# ---------------------------------------------------------------------- nature's answer to a policy


def _respond(state: State, x: Numbers, near: Numbers | None = None) -> tuple[Tuple, Numbers]:
    """Rows, and κ of each kernel; `near` is a guess of κ."""
    near = near or [ONE] * len(state.weights)
    N, square = len(state.weights), state.radius**2
    if state.each:
        parts = [[(ONE, x[a], rows[i]) for a, rows in enumerate(state.rows)] for i in range(N)]
        kappa = [_strength(own, square, k) for own, k in zip(parts, near, strict=True)]
    else:
        every = [
            (w, x[a], row)
            for a, rows in enumerate(state.rows)
            for w, row in zip(state.weights, rows, strict=True)
        ]
        kappa = [_strength(every, square, near[0])] * N
    rows = [
        [answer(row, k * own).y for row, k in zip(rows, kappa, strict=True)]
        for own, rows in zip(x, state.rows, strict=True)
    ]
    return rows, kappa


def _strength(
    parts: list[tuple[Decimal, Decimal, Row]], square: Decimal, kappa: Decimal
) -> Decimal:
    """κ at which Σ weight·(distance² of the row at κ x) is as given; a very large one if it never
    is.
    """
    low, high = ZERO, EDGE**-3
    for _ in range(2000):
        answers = [(w, x, answer(row, kappa * x)) for w, x, row in parts]
        spent = sum((w * own.square for w, _, own in answers), ZERO)
        curve = sum((w * x * x * own.curve for w, x, own in answers), ZERO)
        rest = sum((w * own.rest for w, _, own in answers), ZERO)
        low, high = (kappa, high) if spent < square else (low, kappa)
        if abs(spent - square) <= LAST * square or high - low <= LAST * high:
            break
        guess = ((square - rest) / curve).sqrt() if curve > 0 and square > rest else low
        kappa = guess if low < guess < high else (low * high).sqrt() if low > 0 else high * EDGE
    return kappa


# ---------------------------------------------------------------------- order ∞


def _mixtures(state: State) -> Iterator[Candidate]:
    """One kind of action, then two kinds."""
    kinds: list[list[int]] = []
    for a, rows in enumerate(state.rows):
        alike = [
            kind
            for kind in kinds
            if (state.rows[kind[0]], state.cost[kind[0]]) == (rows, state.cost[a])
        ]
        if alike:
            alike[0].append(a)
        else:
            kinds.append([a])

    def spread(parts: dict[int, Decimal]) -> Numbers:
        x = [ZERO] * len(state.rows)
        for kind, part in parts.items():
            for a in kinds[kind]:
                x[a] = part / len(kinds[kind])
        return x

    for k in range(len(kinds)):
        x = spread({k: ONE})
        yield x, *_respond(state, x)
    for k in range(len(kinds)):
        for j in range(k):
            yield _balanced(
                state, lambda p, k=k, j=j: spread({k: p, j: ONE - p}), kinds[k][0], kinds[j][0]
            )


def _balanced(
    state: State, policy: Callable[[Decimal], Numbers], one: int, other: int
) -> Candidate:
    """Policy of two kinds at which they cost the same, nature mixing her answers from both
    sides.
    """

    def look(part: Decimal, near: Numbers | None = None) -> tuple[Decimal, Decimal, Tuple, Numbers]:
        y, kappa = _respond(state, policy(part), near)
        cost = [
            state.cost[a]
            + dot(state.weights, [value_of(*own) for own in zip(state.rows[a], y[a], strict=True)])
            for a in (one, other)
        ]
        return part, cost[0] - cost[1], y, kappa

    sides = [look(EDGE), look(ONE - EDGE)]
    if sides[0][1] >= 0 or sides[1][1] <= 0:
        part, _, y, kappa = sides[0] if sides[0][1] >= 0 else sides[1]
        return policy(part), y, kappa
    for trial in range(400):
        (low, f, *_), (high, g, *_) = sides
        part = low - f * (high - low) / (g - f)
        if trial % 3 == 2 or not low < part < high:
            part = (low * high).sqrt() if 4 * low < high < Decimal("0.9") else (low + high) / 2
        if not low < part < high or high - low <= LAST * high:
            break
        own = look(part, sides[0][3])
        sides[0 if own[1] <= 0 else 1] = own
        if abs(own[1]) < LAST:
            sides = [own, own]
            break
    (low, f, first, kappa), (high, g, second, _) = sides
    mix = g / (g - f) if g > f else ONE
    y = [
        [
            [mix * p + (1 - mix) * q for p, q in zip(*rows, strict=True)]
            for rows in zip(*own, strict=True)
        ]
        for own in zip(first, second, strict=True)
    ]
    return policy(low), y, kappa
