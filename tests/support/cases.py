"""Small problems for every operator: random ones, and every degeneracy we know of, alone and
combined.

Each property (sizes, rows, costs, values, radius, …) is dealt from a deck that is shuffled and
dealt out before it is shuffled again. So every kind of every property occurs within few cases, in
ever new combinations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

import drmdp
import reference

DECKS = {
    "S": (1, 2, 3, 4, 5, 6, 3, 4, 5, 6),
    "A": (1, 2, 3, 4, 2, 3, 4),
    "N": (1, 2, 3, 4, 2, 3, 4),
    "rows": ("dense", "dense", "sparse", "deterministic", "mixed"),
    "weights": ("equal", "random", "zero"),
    "storage": ("array", "array", "scipy"),
    "cost": ("pair", "pair", "pair", "state", "next", "unseen"),
    "levels": ("spread", "tied", "near", "wide", "balanced", "balanced", "balanced", "balanced"),
    "value": (
        "random",
        "random",
        "random",
        "random",
        "ties",
        "plateau",
        "constant",
        "level",
        "two",
    ),
    "scale": (1.0, 1.0, 1.0, 1e-9, 1e9),
    "sign": ("costs", "costs", "rewards"),
    "discount": (0.5, 0.5, 0.5, 0.9, 0.9, 0.9, 0.99, 0.99, 0.99, 0.0),
    "available": ("every", "every", "some"),
    "terminal": ("none", "none", "some"),
    "support": ("all", "observed", "state"),
    "radius": (
        "0",
        "1e-6",
        "1e-4",
        *("moderate",) * 5,
        "almost",
        "saturating",
        "beyond",
        "varied",
        "varied",
    ),
}
"""The kinds of each property, named once or, to be more frequent, several times.

cost: by pair (s, a), by state, by next state, or the same with NaN at transitions that nature may
not use (for which support is not "all"). levels: tied, nearly tied, over nine orders of magnitude,
or balanced such that the nominal values of the actions tie, exactly or nearly, which is where
policies mix. value: ties, plateaus equal up to a few ulps, a common level of 1e6, two values.
radius: relative to where nature is unconstrained, or one per state.
"""


class Case(NamedTuple):
    """A problem for one Bellman update; the name tells what is special and serves as a test id."""

    name: str
    model: drmdp.Model
    ambiguity: drmdp.Wasserstein
    value: np.ndarray  # (S,), in costs also for a model of rewards; 0 in terminal states


def cases(pair: tuple[str, float], n: int, seed: int = 0) -> Iterator[Case]:
    """Yield n problems for the (metric, order) pair, the same ones for the same seed.

    The problems of two pairs differ in their radii only. Rows and costs of unavailable pairs and
    terminal states are NaN, for nobody may read them.
    """
    for number, (rng, draw, model, value, support) in enumerate(problems(n, seed)):
        radius = _radius(
            rng,
            drmdp.Wasserstein(2.0 * model.n_actions, *pair, support),
            model,
            value,
            draw["radius"],
        )
        ambiguity = drmdp.Wasserstein(radius, *pair, support)
        yield Case(named(number, draw, model, ambiguity), model, ambiguity, value)


def problems(n: int, seed: int = 0) -> Iterator[tuple]:
    """A generator for what else is to be drawn, what was drawn, model, value and support of n
    problems, the same ones for the same seed.
    """
    hands = {
        name: dealt(np.random.default_rng([seed, k]), deck)
        for k, (name, deck) in enumerate(DECKS.items())
    }
    for number in range(n):
        draw = {name: next(hand) for name, hand in hands.items()}
        rng = np.random.default_rng([seed, len(DECKS), number])
        yield rng, draw, *_problem(rng, draw)


def dealt(rng, deck):
    """The kinds of a property for ever: the deck is shuffled, dealt out, and shuffled again."""
    while True:
        for k in rng.permutation(len(deck)):
            yield deck[k]


def named(number, draw, model, ambiguity):
    """What is special about a problem."""
    S, A, N = model.n_states, model.n_actions, model.n_kernels
    words = [f"{number:03d}", f"S{S}A{A}N{N}", f"{draw['rows']}-rows", f"{draw['value']}-value"]
    words += [f"{draw['levels']}-{draw['sign']}-by-{draw['cost']}"]
    words += [f"radius-{draw['radius']}", f"discount-{draw['discount']:g}"]
    special = {
        f"scale-{draw['scale']:g}": draw["scale"] != 1,
        f"{draw['weights']}-weights": draw["weights"] != "equal" and N > 1,
        ambiguity.support: ambiguity.support != "all",
        "scipy": model.is_sparse,
        "closed": not model.available[~model.terminal].all(),
        "terminal": model.terminal.any(),
    }
    return "-".join(words + [word for word, holds in special.items() if holds])


def _problem(rng, draw):
    """Model, value and support."""
    S, A, N = draw["S"], draw["A"], draw["N"]
    available, terminal = _open_pairs(rng, S, A, draw)
    closed = ~available | terminal[:, None]
    kernels, weights = _rows(rng, (N, S, A, S), draw["rows"]), _weights(rng, N, draw["weights"])
    value = np.where(terminal, 0, _value(rng, S, draw["value"]))
    costs = _costs(rng, np.tensordot(weights, kernels, axes=1), draw["discount"] * value, draw)
    costs *= draw["scale"] if draw["sign"] == "costs" else -draw["scale"]
    seen = (kernels > 0).any(axis=0)
    costs[terminal if costs.ndim == 1 else closed] = np.nan
    kernels[:, closed] = np.nan
    support = draw["support"]
    if draw["cost"] == "unseen":
        every = draw["storage"] != "scipy"  # sparse costs are those of seen transitions
        support = "state" if every and support == "state" else "observed"
        known = seen | (
            (seen & ~closed[:, :, None]).any(axis=1, keepdims=True) & (support == "state")
        )
        costs[~known] = np.nan
    if draw["storage"] == "scipy":
        kernels = [sparse.csr_array(kernel.reshape(S * A, S)) for kernel in kernels]
        if draw["cost"] == "unseen":  # zeros are stored too
            pair, t = np.nonzero(seen.reshape(S * A, S))
            costs = sparse.csr_array(
                (costs.reshape(S * A, S)[pair, t], (pair, t)), shape=(S * A, S)
            )
    model = drmdp.Model(
        kernels,
        **{draw["sign"]: costs},
        discount=draw["discount"],
        weights=weights,
        available=available,
        terminal=terminal,
    )
    return model, draw["scale"] * value, support


def _open_pairs(rng, S, A, draw):
    """Available pairs, at least one a state, and terminal states, never all."""
    available, terminal = np.ones((S, A), dtype=bool), np.zeros(S, dtype=bool)
    if draw["available"] == "some":
        available = rng.random((S, A)) < 0.6
        available[np.arange(S), rng.integers(A, size=S)] = True
    if draw["terminal"] == "some" and S > 1:
        terminal = rng.random(S) < 0.3
        terminal[rng.permutation(S)[:2]] = True, False
    return available, terminal


def _rows(rng, shape, kind):
    """Distributions along the last axis."""
    y = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    if kind != "dense":
        y *= rng.random(shape) < 0.5
    certain = (y.sum(axis=-1) == 0) | (
        rng.random(shape[:-1]) < {"mixed": 0.3, "deterministic": 1}.get(kind, 0)
    )
    y[certain] = np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])][certain]
    return y / y.sum(axis=-1, keepdims=True)


def _weights(rng, N, kind):
    w = np.ones(N) if kind == "equal" else rng.dirichlet(np.ones(N)) + 0.01
    if kind == "zero" and N > 1:
        w[rng.integers(N)] = 0
    return w / w.sum()


def _value(rng, S, kind):
    if kind == "ties":
        return rng.integers(3, size=S) - 1.0
    if kind == "plateau":
        return (
            (1 + rng.integers(2, size=S))
            / 3
            * (1 + rng.integers(-3, 4, size=S) * np.finfo(float).eps)
        )
    if kind == "two":
        return rng.integers(2, size=S) * rng.choice([1e-3, 1.0, 1e3])
    return {"constant": rng.normal(), "level": 1e6}.get(kind, 0.0) + rng.normal(size=S) * (
        kind != "constant"
    )


def _costs(rng, mean, future, draw):
    """Costs of order 1; `mean` is the mean kernel, (S, A, S), and `future` is λ v."""
    shape, kind = mean.shape[:2], draw["levels"]
    by_next = rng.random(mean.shape) * (draw["cost"] in ("next", "unseen"))
    by_next = np.where(rng.random((*shape, 1)) < 0.3, np.round(by_next), by_next)
    level = rng.random(shape)
    if kind == "tied":
        level = np.round(level)
    elif kind == "near":
        level = 0.5 + rng.choice([0, 1e-15, 1e-12, 1e-9, 1e-6], size=shape)
    elif kind == "wide":
        level = level * 10.0 ** rng.integers(-3, 7, size=shape)
    elif kind == "balanced":
        level = level * rng.choice([0, 1e-9, 0.01, 0.3]) * np.ptp(future) - (
            mean * (by_next + future)
        ).sum(axis=2)
    return {"state": level[:, 0], "pair": level}.get(draw["cost"], level[:, :, None] + by_next)


def _radius(rng, large, model, value, kind):
    """Radius of that kind, in units of the distance of the worst kernels of all, those of the
    `large` ball.
    """
    z = np.where(reference.support(model, large), reference.stakes(model, value), -np.inf)
    kernels = reference.dense_kernels(model)
    worst = np.broadcast_to(np.eye(model.n_states)[z.argmax(axis=2)], kernels.shape)
    far = reference.distance(model, large, worst)

    def of(kind, s):
        relative = {
            "moderate": rng.uniform(0.02, 0.5),
            "almost": 1 - 10.0 ** rng.integers(-12, -1),
            "saturating": 1,
        }
        return (
            relative[kind] * far[s]
            if kind in relative
            else {"beyond": large.radius}.get(kind) or float(kind)
        )

    if kind == "varied":
        kinds = rng.choice(
            [kind for kind in DECKS["radius"] if kind != "varied"], size=model.n_states
        )
        return np.array([of(own, s) for s, own in enumerate(kinds)])
    return float(of(kind, rng.choice(np.flatnonzero(~model.terminal))))


def game(pair: tuple[str, float]) -> tuple[drmdp.Model, drmdp.Wasserstein]:
    """Return a game on which Newton's method alone goes 12, 20, 12, …; its value is 16 (see
    `test_rational`).
    """
    kernels = np.zeros((2, 2, 2))
    kernels[:, :, 0] = 1
    costs = np.zeros((2, 2, 2))
    costs[0] = [[5, 0], [3, 16]]
    return drmdp.Model(kernels, costs=costs, discount=0.75, terminal=[1]), drmdp.Wasserstein(
        4, *pair, support="all"
    )
