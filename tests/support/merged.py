"""Random models of events that lead to two states, and what they are worth, between two fractions.

From state s event e leads to the dear state 1 or to the cheap state 0, so that a row is one
fraction, p_i = Σ p_i(e)/Σ p_i over the events that lead to 1. Nature raises its mean as far as her
set allows, to q_s, whatever values are. With costs c(s) + k [next state 1], the values are those of
a chain:

    v_s = c_s + q_s k + λ (v_0 + q_s (v_1 − v_0)),        v_1 − v_0 = (c_1 − c_0 + (q_1 − q_0) k)/(1 − λ (q_1 − q_0)) > 0.

A second action that costs `DEAR` more is never played. Values rise with both q, so that bounds on
them are bounds on values.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import mpmath as mp
import numpy as np

import drmdp

EPS = float(np.finfo(float).eps)
DEAR = 1000
MOST = 100_000


class Case(NamedTuple):
    """A model of events, a set, and bounds on its values."""

    name: str
    model: drmdp.Model
    ambiguity: object
    low: list
    high: list


def exact(numbers):
    """The sum of numbers ≥ 0 as it is."""
    mantissa, exponent = np.frexp(np.asarray(numbers, dtype=float))
    whole, total = np.ldexp(mantissa, 53).astype(np.int64), Fraction(0)
    for e in np.unique(exponent[whole > 0]).tolist():
        own = whole[exponent == e]
        total += (int((own >> 26).sum()) * 2**26 + int((own & (2**26 - 1)).sum())) * Fraction(
            2
        ) ** (e - 53)
    return total


def law(rng, E):
    """A law of E events, and by how much it misses 1."""
    k = np.arange(E)
    kind = rng.choice(["equal", "random", "steep", "hump", "product", "sparse"])
    p = {
        "equal": lambda: np.ones(E),
        "random": lambda: rng.random(E),
        "steep": lambda: 0.5 ** (np.minimum(k, 900) * rng.choice([0.01, 0.1, 1.0])),
        "hump": lambda: np.exp(-(((k - 0.4 * E) / (0.1 * E + 1)) ** 2)),
        "product": lambda: np.outer(
            rng.random(math.isqrt(E) + 1), rng.random(math.isqrt(E) + 1)
        ).ravel()[:E],
        "sparse": lambda: rng.random(E) * (rng.random(E) < 0.3) + (k == rng.integers(E)),
    }[kind]()
    p = p / p.sum()
    slip = rng.choice(["none", "rounding", "rounding", "much"])
    off = {"none": 0.0, "rounding": 1.9 * (E + 2) * EPS, "much": 8e-10}[slip] * rng.choice([-1, 1])
    return p / float(exact(p)) * (1 + min(off, 9e-10)), f"{kind} {slip}"


def rule(rng, E):
    """Whether events lead to the dear state, from each of two states, (2, E)."""
    k, cut = np.arange(E), rng.integers(E + 1)
    kind = rng.choice(["up", "down", "every", "random", "one", "apart"])
    row = {
        "up": k >= cut,
        "down": k < cut,
        "every": k % rng.integers(2, 6) == 1,
        "random": rng.random(E) < rng.random(),
        "one": np.full(E, bool(rng.integers(2))),
        "apart": k >= cut,
    }[kind]
    return np.stack([row, k % 3 == 1 if kind == "apart" else row]).astype(np.int64), kind


def case(number, seed=0, most=MOST):
    """The case of a number, always the same."""
    rng = np.random.default_rng([seed, number])
    E, N, A, C = (
        int(np.exp(rng.uniform(0, np.log(most)))),
        int(rng.integers(1, 4)),
        int(rng.integers(1, 3)),
        int(rng.integers(1, 3)),
    )
    found = [[law(rng, E) for _ in range(N)] for _ in range(C)]
    there, kind = rule(rng, E)
    weights = rng.dirichlet(np.ones(N)) if rng.random() < 0.5 else np.full(N, 1 / N)
    if N > 1 and rng.random() < 0.2:
        weights[0], weights[1] = 0.0, weights[0] + weights[1]
    discount, k = float(rng.choice([0.5, 0.9, 0.99])), float(rng.choice([0.0, 0.25]))

    def transition(s, a, e):
        t = there[s, e] + 0 * a
        return (t, s + k * t + DEAR * a) if k else t

    model = drmdp.Model.from_events(
        2,
        A,
        E,
        transition,
        np.array([[p for p, _ in own] for own in found]),
        discount=discount,
        weights=weights,
        costs=None if k else np.arange(2.0)[:, None] + DEAR * np.arange(A),
        law=(lambda s, a: (s + 0 * a) % 2) if C > 1 else None,
    )
    p = [[exact(q[there[s] == 1]) / exact(q) for q in model.laws[s % C]] for s in range(2)]
    w = [Fraction(x) / exact(model.weights) for x in model.weights.tolist()]
    name, ambiguity, reached = _set(rng, model, p, w)
    ends = [
        _values([reached[s][side] for s in range(2)], Fraction(k), Fraction(discount))
        for side in range(2)
    ]
    text = f"{number} E{E} N{N} A{A} C{C} {kind} {' '.join(word for _, word in found[0])} {name}"
    return Case(text, model, ambiguity, *ends)


def _values(q, k, discount):
    """v of a chain, see the module."""
    apart = (1 + (q[1] - q[0]) * k) / (1 - discount * (q[1] - q[0]))
    first = (q[0] * k + discount * q[0] * apart) / (1 - discount)
    return [first, first + apart]


SETS = (
    "l1 1",
    "l1 2",
    "l1 inf",
    "l2 1.5",
    "l2 2",
    "l2 inf",
    "linf 1",
    "linf 3",
    "linf inf",
    "line 1",
    "line inf",
    "grid 1",
    "kl",
    "chi2",
    "burg",
    "tv",
    "tv kernels",
    "reweight any",
    "reweight tv",
    "reweight kl",
    "reweight chi2",
    "reweight burg",
    "intervals",
    "l1 events",
    "tv events",
    "kl events",
    "chi2 events",
    "burg events",
)


def _set(rng, model, p, w):
    """A set, its name, and between which fractions the mean of the dear state can be raised, for
    each state.
    """
    name = str(rng.choice(SETS))
    r = float(rng.choice([0.0, 1e-300, 1e-16, 1e-9, 1e-3, 0.05, 0.3]))
    kind, *words = name.split()
    side = {"rectangular": str(rng.choice(["s", "sa"]))}
    if kind == "reweight":
        used = [i for i, x in enumerate(w) if x > 0]
        ambiguity = drmdp.Reweighting(None if words[0] == "any" else r, words[0], **side)
        return (
            f"{name} {r}",
            ambiguity,
            [
                _mixed(words[0], [p[s][i] for i in used], [w[i] for i in used], Fraction(r))
                for s in range(2)
            ],
        )
    if kind == "intervals":
        ambiguity = drmdp.Intervals.of(model, r)
        return (
            f"{name} {r}",
            ambiguity,
            [_between(ambiguity, model, s, Fraction(r)) for s in range(2)],
        )
    moves = {"moves": "events"} if words == ["events"] else {}
    everywhere = rng.random() < 0.3 and kind not in ("line", "grid") and not model.next_costs
    support = {"support": "all"} if everywhere else {}
    if kind in ("kl", "chi2", "burg", "tv"):
        ambiguity = drmdp.Divergence(
            r, kind, "kernels" if words == ["kernels"] else "mean", **side, **support, **moves
        )
    elif kind in ("line", "grid"):
        apart = float(rng.choice([0.1, 3.0]))
        ground = (
            ("line", [0.0, apart]) if kind == "line" else ("grid", np.outer([0, apart], np.ones(7)))
        )
        ambiguity = drmdp.Wasserstein(
            r * apart, "transport", float(words[0]), ground=ground, **side
        )
        unit = Fraction(apart) * (1 if kind == "line" else 7)
    else:
        order = float(words[0]) if words and words != ["events"] else 1.0
        ambiguity = drmdp.Wasserstein(r, kind, order, **side, **support, **moves)
    step = {"l1": (Fraction(r) / 2,) * 2, "l2": _root(Fraction(r) ** 2 / 2)}.get(
        kind, (Fraction(r),) * 2
    )
    if kind in ("line", "grid"):
        step = (Fraction(ambiguity.radius) / unit,) * 2
    each = kind != "tv" and words not in (
        [],
        ["1"],
        ["events"],
    )  # kernels have budgets of their own, or share one by a power above 1
    return (
        f"{ambiguity.short} {r} {' '.join(support)} {side['rectangular']}",
        ambiguity,
        [
            _moved(model, s, kind, p[s], w, step, Fraction(r), each, words, support, moves)
            for s in range(2)
        ],
    )


def _moved(model, s, kind, p, w, step, radius, each, words, support, moves):
    """How far the mean of the dear state can be raised from state s."""
    rows = [(a, x) for a, x in zip(w, p, strict=True) if a > 0]
    mean = sum(a * x for a, x in rows)
    reachable = support and kind not in ("kl", "chi2")
    if moves and reachable:  # all events, which need not lead to all states
        reachable = model.asked(s, s + 1).next[0, 0].any()
    if mean == 1 or (mean == 0 and not reachable):
        return mean, mean
    if kind in ("kl", "chi2", "burg"):
        return _raised(kind, mean, radius)
    if (
        each and words != ["inf"] and any(x + step[1] > 1 for _, x in rows)
    ):  # who is full leaves his budget to others
        return mean, Fraction(1)
    rows = rows if each else [(Fraction(1), mean)]
    return tuple(sum(a * min(Fraction(1), x + far) for a, x in rows) for far in step)


def _root(x):
    """√x, between two fractions."""
    scale = 10 ** (50 + x.denominator.bit_length() // 3)
    floor = math.isqrt(int(x * scale * scale))
    return Fraction(floor, scale), Fraction(floor + 1, scale) if x else Fraction(0)


def _raised(kind, q, radius):
    """The largest m with D((m, 1 − m) ‖ (q, 1 − q)) ≤ radius, between two fractions."""
    if radius == 0 or q == 1:
        return q, q
    if kind == "chi2" or q == 0:
        m = _root(radius * q * (1 - q)) if kind == "chi2" else (Fraction(0), Fraction(1))
        if kind == "burg":
            with mp.workdps(400):
                found = 1 - mp.exp(-_number(radius))
                m = _fraction(found, -1), _fraction(found, +1)
        return tuple(min(Fraction(1), q + x) for x in m)
    with mp.workdps(400):
        a, b, size = _number(q), _number(1 - q), _number(radius)

        def cost(m):
            if kind == "burg":
                return a * mp.log(a / m) + b * mp.log(b / (1 - m)) if m < 1 else mp.inf
            return m * mp.log(m / a) + ((1 - m) * mp.log((1 - m) / b) if m < 1 else 0)

        low, high = a, mp.mpf(1)
        if cost(high) <= size:
            return Fraction(1), Fraction(1)
        for _ in range(1200 if size < 1e-200 else 220):
            m = (low + high) / 2
            low, high = (m, high) if cost(m) <= size else (low, m)
        return _fraction(low, -1), _fraction(high, +1)


def _number(x):
    return mp.mpf(x.numerator) / x.denominator


def _fraction(x, side):
    """A fraction below or above a number of many digits."""
    man, exp = x.man_exp
    return Fraction(int(man)) * Fraction(2) ** int(exp) * (1 + side * Fraction(1, 10**380))


def _mixed(kind, p, w, radius):
    """The largest mean of p under weights near w; of three kernels only where that is easy, else
    between the mean and the largest.
    """
    mean, top = sum(a * b for a, b in zip(w, p, strict=True)), max(p)
    if kind == "any":
        return top, top
    if kind == "tv":
        order, left, total = sorted(range(len(p)), key=lambda i: p[i]), radius, mean
        for i in order:
            moved = min(left, w[i])
            left, total = left - moved, total + moved * (top - p[i])
        return total, total
    if len(p) == 1 or radius == 0 or min(p) == top:
        return (mean, mean) if len(p) == 1 or radius == 0 else (top, top)
    if len(p) > 2:
        return mean, top
    high = 0 if p[0] == top else 1
    return tuple(p[1 - high] + m * (top - p[1 - high]) for m in _raised(kind, w[high], radius))


def _between(ambiguity, model, s, r):
    """What bounds as given, widened by r, allow."""
    k = s * model.n_actions
    first, last = int(ambiguity.bounds.indptr[k]), int(ambiguity.bounds.indptr[k + 1])
    states = ambiguity.bounds.indices[first:last].tolist()
    if len(states) == 1:
        return (Fraction(states[0]),) * 2
    lower, upper = (
        [
            Fraction(x)
            for x in ambiguity.bounds.data[2 * first + i * 2 : 2 * first + i * 2 + 2].tolist()
        ]
        for i in range(2)
    )
    lower, upper = (
        [x / end(1, sum(part)) for x in part] for part, end in ((lower, max), (upper, min))
    )
    q = min(upper[1] + r, 1 - max(lower[0] - r, 0), 1)
    return q, q


def false(case, found):
    """By how much bounds are false, at most; negative where they hold."""
    lower, upper = ([Fraction(x) for x in part.tolist()] for part in (found.lower, found.upper))
    return float(
        max(
            *(a - b for a, b in zip(lower, case.high, strict=True)),
            *(a - b for a, b in zip(case.low, upper, strict=True)),
        )
    )
