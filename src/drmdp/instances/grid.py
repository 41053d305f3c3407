"""Grid: a torus with random short moves, sparse at any size."""

from __future__ import annotations

import math

import numpy as np

from drmdp._typing import IntArray
from drmdp.core.random import Seed
from drmdp.core.validation import integer
from drmdp.errors import InputError
from drmdp.instances._build import SPREAD, bump, log_normal, random_kernel, resample, subsets
from drmdp.instances._source import Drawn, ProblemSource, family, streams

DIRECTIONS = {
    "up": (-1, 0),
    "right": (0, 1),
    "down": (1, 0),
    "left": (0, -1),
    "up-right": (-1, 1),
    "down-right": (1, 1),
    "down-left": (1, -1),
    "up-left": (-1, -1),
}
REACH, SUCCESSORS = 2, 8


@family
def grid(
    n_states: int,
    n_kernels: int = 10,
    seed: Seed = 0,
    discount: float = 0.95,
    *,
    n_actions: int = 4,
    sparse: bool = False,
) -> ProblemSource:
    """Walk on a √S × √S torus, state row·√S + column.

    Each pair (s, a) reaches 8 distinct states, drawn uniformly among those at most 2 steps (up,
    right, down, left) from the cell next to s in the direction of a; nominal probabilities are the
    gaps between sorted uniform cuts. The kernels are samples on that support: nominal probabilities
    times exp(.3 z), z standard normal, normalised. The cost of a state is U + 10·exp(−½(d/5)²),
    with U uniform in [0, 1] and d the distance, not around the torus, to row and column √S/2. Ours,
    for large sparse problems.

    Parameters
    ----------
    n_states : int, the square of at least 3
        How many states.
    n_kernels : int
        How many kernels are drawn.
    seed : int or numpy.random.Generator
        Of the random draws.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    n_actions : int, at most 8
        up, right, down, left, then the diagonals up-right, down-right, down-left, up-left.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.grid(100, n_kernels=5)
    >>> model.actions
    ('up', 'right', 'down', 'left')
    >>> (model.kernels > 0).sum(axis=3)[:, 42].tolist()
    [[8, 8, 8, 8], [8, 8, 8, 8], [8, 8, 8, 8], [8, 8, 8, 8], [8, 8, 8, 8]]
    """
    S, N = integer("n_states", n_states, 9), integer("n_kernels", n_kernels, 1)
    A = integer("n_actions", n_actions, 1, len(DIRECTIONS))
    side = math.isqrt(S)
    if side * side != S:
        squares = f"{side**2} or {(side + 1) ** 2}"
        raise InputError(f"n_states: expected a square such as {squares}, got {S}")
    steps = np.array(list(DIRECTIONS.values())[:A])
    down, right = _offsets(side)
    stream = streams(seed, "grid")

    def draw(lo: int, hi: int) -> Drawn:
        rng = stream(lo)
        row, column = np.divmod(np.arange(lo, hi), side)
        costs = rng.random(hi - lo) + bump(np.hypot(row - side / 2, column - side / 2))
        pick = subsets(rng, (hi - lo) * A, down.size, SUCCESSORS)
        to_row = (row[:, None] + steps[:, 0]).reshape(-1, 1) + down[pick]
        to_column = (column[:, None] + steps[:, 1]).reshape(-1, 1) + right[pick]
        successors = np.sort(to_row % side * side + to_column % side, axis=1)
        nominal = random_kernel(rng, S, A, successors)
        kernels = resample(nominal, N, log_normal(rng, SPREAD))
        return Drawn(kernels, np.repeat(costs[:, None], A, axis=1))

    return ProblemSource(S, A, N, SUCCESSORS, discount, sparse, draw, actions=list(DIRECTIONS)[:A])


def _offsets(side: int) -> tuple[IntArray, IntArray]:
    """Moves of at most two steps, without those that reach the same cell of a tiny torus."""
    steps = np.argwhere(np.ones((2 * REACH + 1, 2 * REACH + 1))) - REACH
    steps = steps[np.abs(steps).sum(axis=1) <= REACH]
    down, right = np.unique(steps % side, axis=0).T
    return down, right
