"""Transitions that a worker finds by their names."""

import numba
import numpy as np

import drmdp

LARGE = 2197
"""More states than chains are dense for."""


@numba.njit
def scalar(s, a, e):
    """A walk that costs what it meets."""
    there = (7 * s + 31 * a + 13 * e * e) % 2197 if (s + a) % 3 else (s + e // 2) % 2197
    return there, 1.0 + (5 * s + 3 * a + 11 * e) % 17


@numba.njit
def by_row(s, a, there, cost):
    """The same for all events of a pair."""
    for e in range(there.size):
        there[e], cost[e] = scalar(s, a, e)


@numba.njit
def free(s, a, e):
    """Where it leads, alone."""
    return scalar(s, a, e)[0]


def arrays(s, a, e):
    """The same for NumPy."""
    there = np.where((s + a) % 3 != 0, (7 * s + 31 * a + 13 * e * e) % 2197, (s + e // 2) % 2197)
    return there, 1.0 + (5 * s + 3 * a + 11 * e) % 17


RULES = {"scalar": scalar, "by_row": by_row, "free": free, "arrays": arrays}


def model(rule="scalar", store=False, **given):
    """A model of events with classes of laws, an end and closed pairs, asked of a function that has
    a name.
    """
    rng = np.random.default_rng(3)
    available = rng.random((LARGE, 3)) < 0.8
    available[:, 0] = True
    options = {
        "discount": 0.9,
        "law": lambda s, a: (s + a) % 2,
        "weights": [0.5, 0.0, 0.5],
        "available": available,
        "terminal": np.arange(LARGE) % 97 == 5,
        "initial": rng.dirichlet(np.ones(LARGE)),
        "costs": rng.random((LARGE, 3)) if rule == "free" else None,
        "store": store,
    } | given
    laws = rng.dirichlet(np.ones(6), (2, 3))
    laws[0, :, 2] = 0.0
    laws /= laws.sum(axis=2, keepdims=True)
    return drmdp.Model.from_events(drmdp.Grid(13, 13, 13), 3, 6, RULES[rule], laws, **options)
