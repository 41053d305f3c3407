"""Decks of problems with few kinds of states, small and large, whose exact values `lumped` knows.

As in `cases`, each property is dealt from a deck that is dealt out before it is shuffled again, so
every kind of every property occurs within few problems, in ever new combinations. Next to nothing
is smooth here: most states lead to one or a few states, so that nature brings tiny masses to very
many, whose sums are where rounding adds up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lumped import Lumped

DECKS = {
    "rows": ("funnel", "funnel", "apart", "spread", "spread", "wide"),
    "A": (1, 1, 2, 2, 2, 3, 4),
    "actions": ("copies", "dearer", "other", "other"),
    "N": (1, 1, 2, 2, 3),
    "kernels": ("equal", "other", "other"),
    "weights": ("even", "random", "zero", "tiny"),
    "costs": ("levels", "levels", "random", "ties", "near", "wide", "next"),
    "values": ("random", "levels", "near", "far"),
    "level": (0.0, 0.0, 0.0, 1e6),
    "scale": (1.0, 1.0, 1.0, 1e9, 1e-9, 1e-150, 1e-300),
    "discount": (0.5, 0.9, 0.99, 0.99, 0.999, 0.99999, 0.0),
    "radius": ("0", "1e-9", "1e-3", *("moderate",) * 5, "almost", "saturating", "beyond", "varied"),
    "support": ("all", "all", "observed", "state"),
    "sign": ("costs", "costs", "rewards"),
    "dtype": ("float64", "float64", "float32"),
    "closed": ("none", "none", "action", "terminal"),
    "start": ("cold", "cold", "value"),
}
"""Rows: all to one state, every row to a state of its own, over a few states, or over half of all
states.

Further actions are copies, the same rows at another cost, or other rows; further kernels are copies
or have other rows. Costs and values take few levels, differ by some ulps, or by nine orders of
magnitude.
"""

MOST = 300_000
"""Probabilities of a model."""


class Case(NamedTuple):
    """A problem, and a value by kind to step from; the name tells all that was dealt."""

    name: str
    problem: Lumped
    value: np.ndarray  # (G,), in costs


def cases(pair: tuple[str, float], n: int, seed: int, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Yield n problems for the ball, of about these numbers of states in turn; the same ones for
    the same seed.
    """
    hands = {
        name: _deal(np.random.default_rng([seed, k]), deck)
        for k, (name, deck) in enumerate(DECKS.items())
    }
    for number in range(n):
        draw = {name: next(hand) for name, hand in hands.items()} | {
            "S": sizes[number % len(sizes)]
        }
        rng = np.random.default_rng([seed, len(DECKS), number])
        problem, value = _problem(rng, pair, draw)
        shown = "-".join(
            f"{draw[name]:g}" if isinstance(draw[name], float) else str(draw[name])
            for name in DECKS
        )
        yield Case(
            f"{pair[0]}-{pair[1]:g}-{seed}.{number}-S{problem.kind.size}-{shown}", problem, value
        )


def _deal(rng, deck):
    while True:
        for k in rng.permutation(len(deck)):
            yield deck[k]


def _problem(rng, pair, draw):
    """The problem without its radius, then with it."""
    sizes = _sizes(rng, draw["S"])
    kernels = _kernels(rng, sizes, draw)
    N, G, A, _ = kernels.shape
    costs = _costs(rng, G, A, draw)
    available, terminal = np.ones((G, A), dtype=bool), np.zeros(G, dtype=bool)
    if draw["closed"] == "action":
        available[rng.integers(G), rng.integers(A)] = A == 1
    elif draw["closed"] == "terminal":
        terminal[rng.integers(2)] = True
    value = np.where(terminal, 0.0, draw["scale"] * _levels(rng, G, draw["values"]))
    problem = Lumped(
        sizes,
        kernels,
        draw["scale"] * (costs + draw["level"]),
        draw["discount"],
        pair,
        np.ones(G),
        draw["support"],
        _weights(rng, N, draw["weights"]),
        available,
        terminal,
        draw["sign"] == "rewards",
        draw["dtype"],
        is_sparse=bool(sizes.sum() > 200 or rng.random() < 0.5),
    )
    return problem.at(radius=_radius(rng, problem, draw["radius"])), value


def _sizes(rng, S):
    """Two single states, then one to three kinds that share the others."""
    G = int(rng.integers(1, 4))
    parts = rng.dirichlet(np.full(G, 0.5))
    return np.concatenate([[1, 1], 1 + (parts * max(S - 2 - G, 0)).astype(int)])


def _kernels(rng, sizes, draw):
    """(N, G, A, G) rows that give the same probability to all states of a kind."""
    G, A, N = sizes.size, draw["A"], draw["N"]
    if draw["rows"] == "wide":
        A, N = min(A, 2), min(N, 2)
    masses = np.zeros((N, G, A, G))
    for i, g, a in np.ndindex(N, G, A):
        masses[i, g, a] = _masses(rng, sizes, g, draw["rows"])
    if draw["kernels"] == "equal":
        masses[:] = masses[:1]
    if draw["actions"] != "other":
        masses[:] = masses[:, :, :1]
    if A > 2:
        masses[:, :, 2:] = masses[:, :, 1:2]
    return masses / sizes


def _masses(rng, sizes, g, kind):
    """Mass of each kind in one row; kinds of many states get some only from few states."""
    G, single = sizes.size, sizes == 1
    row = np.zeros(G)
    if kind == "funnel":
        row[1] = 1
    elif kind == "apart":
        row[rng.choice(np.flatnonzero(single))] = 1
    elif kind == "spread" or sizes[g] * sizes.max() > MOST:
        row[single] = rng.dirichlet(np.full(single.sum(), 0.5))
    else:
        row = rng.dirichlet(np.full(G, 0.5))
    row[row < 1e-6] = 0
    return row / row.sum()


def _levels(rng, G, kind):
    """G numbers of order 1."""
    if kind == "levels":
        return np.concatenate([[1.0, 0.0], rng.choice([0.3, 0.499, 0.5, 0.51, 0.7, 0.999], G - 2)])
    if kind == "ties":
        return rng.integers(2, size=G).astype(float)
    if kind == "near":
        return rng.integers(2, size=G) + rng.choice([0, 1e-15, 3e-14, 1e-13, 2e-13, 1e-12, 1e-9], G)
    if kind in ("wide", "far"):
        return rng.random(G) * 10.0 ** rng.integers(-9, 1, size=G)
    return rng.random(G)


def _costs(rng, G, A, draw):
    """(G, A), or (G, A, G) for small models; a third and fourth action are copies of the second, or
    too dear.
    """
    costs = _levels(rng, G, draw["costs"])[:, None] + np.zeros(A)
    if draw["costs"] == "next" and draw["S"] <= 200:
        costs = costs[:, :, None] + rng.choice([0.0, 1.0], (G, 1, 1)) * rng.random((G, A, G))
    if draw["actions"] == "other":
        costs[:, 1:2] += rng.choice([0.0, 1e-12, 0.05]) * rng.random(costs[:, 1:2].shape)
    elif draw["actions"] == "dearer":
        costs[:, 1:] = costs[:, :1] + rng.choice([0.0, 1e-12, 1e-3, 0.1])
    else:
        costs[:, 1:] = costs[:, :1]
    costs[:, 2:] = costs[:, 1:2] + rng.choice([0.0, 9.0])
    return costs


def _weights(rng, N, kind):
    if kind == "even" or N == 1:
        return None
    w = rng.dirichlet(np.ones(N)) + 0.01
    if kind in ("zero", "tiny"):
        w[rng.integers(N)] = 0.0 if kind == "zero" else 1e-12
    return w / w.sum()


def _radius(rng, problem, kind):
    """Radius by kind, in units of where nature is unconstrained."""
    G = problem.sizes.size
    full = problem.ambiguity.saturation(problem.model, problem.first)

    def of(kind, g):
        relative = {
            "moderate": rng.uniform(0.02, 0.6),
            "almost": 1 - 10.0 ** rng.integers(-14, -1),
            "saturating": 1.0,
        }
        return (
            relative[kind] * full[g]
            if kind in relative
            else {"beyond": 2 * full.max() + 1}.get(kind) or float(kind)
        )

    if kind == "varied":
        return np.array(
            [
                of(rng.choice([own for own in DECKS["radius"] if own != "varied"]), g)
                for g in range(G)
            ]
        )
    return np.full(G, of(kind, int(rng.integers(G))))


SIX = (("l1", 1), ("l2", 2), ("linf", 1), ("l1", math.inf), ("l2", math.inf), ("linf", math.inf))
