"""Ring and cycle: problems whose chains mix slowly, which the paper's domains do not test.

Ours. Both have S states in a circle and three actions. Each kernel is a sample of its own: row (s,
a) is drawn from Dirichlet(30·p(a)), p being the table of the family. The cost of state s, counted
from 0, under action a is

    U + .05·a + 10·exp(−½((s − S/2)/5)²),    U uniform in [0, 1], one draw per state:

a hill that the agent wants to keep away from. With the same seed, both families have the same
costs.
"""

from __future__ import annotations

import numpy as np

from drmdp.core.random import Seed
from drmdp.core.validation import integer
from drmdp.instances._build import bump, kernel_of, resample
from drmdp.instances._source import Drawn, ProblemSource, family, streams

CONCENTRATION = 30
"""A row of a sampled kernel is as noisy as the shares in this many observations."""

RING = (
    ("left", {-1: 0.5, 0: 0.3, 1: 0.15, 2: 0.05}),
    ("stay", {-1: 0.1, 0: 0.6, 1: 0.2, 2: 0.1}),
    ("right", {-1: 0.05, 0: 0.15, 1: 0.5, 2: 0.3}),
)
CYCLE = (("step", {1: 1.0}), ("hurry", {1: 0.7, 2: 0.3}), ("leap", {3: 1.0}))
Table = tuple[tuple[str, dict[int, float]], ...]
"""For each action its name and the probability of each move."""


@family
def ring(
    n_states: int,
    n_kernels: int = 10,
    seed: Seed = 0,
    discount: float = 0.95,
    *,
    sparse: bool = False,
) -> ProblemSource:
    """Walk on a circle: from s to s−1, s, s+1 or s+2; information travels slowly.

    The samples scatter around p = (.5, .3, .15, .05) for *left*, (.1, .6, .2, .1) for *stay* and
    (.05, .15, .5, .3) for *right*. A state costs between 0 and 1, and up to 10 more near S/2: a
    hill to keep away from.

    Parameters
    ----------
    n_states : int, at least 4
        How many states.
    n_kernels : int
        How many kernels are drawn.
    seed : int or numpy.random.Generator
        Of the random draws.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.ring(50, n_kernels=10)
    >>> model.actions
    ('left', 'stay', 'right')
    >>> model.mean_kernel[7, 0].nonzero()[0].tolist()
    [6, 7, 8, 9]
    """
    return _chain(RING, n_states, n_kernels, seed, discount, sparse)


@family
def cycle(
    n_states: int,
    n_kernels: int = 10,
    seed: Seed = 0,
    discount: float = 0.95,
    *,
    sparse: bool = False,
) -> ProblemSource:
    """Travel round a circle, always forwards; nearly periodic.

    *step* leads to s+1 and *leap* to s+3, for certain; *hurry* leads to s+1 or s+2, around p = (.7,
    .3). Costs are those of `ring`.

    Parameters
    ----------
    n_states : int, at least 4
        How many states.
    n_kernels : int
        How many kernels are drawn.
    seed : int or numpy.random.Generator
        Of the random draws.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.cycle(50, n_kernels=10)
    >>> model.actions
    ('step', 'hurry', 'leap')
    >>> [model.mean_kernel[48, a].nonzero()[0].tolist() for a in range(3)]
    [[49], [0, 49], [1]]
    """
    return _chain(CYCLE, n_states, n_kernels, seed, discount, sparse)


def _chain(
    table: Table, n_states: int, n_kernels: int, seed: Seed, discount: float, is_sparse: bool
) -> ProblemSource:
    S, N, A = integer("n_states", n_states, 4), integer("n_kernels", n_kernels, 1), len(table)
    stream = streams(seed, "chain")

    def draw(lo: int, hi: int) -> Drawn:
        rng, s = stream(lo), np.arange(lo, hi)
        costs = rng.random((hi - lo, 1)) + 0.05 * np.arange(A) + bump(s - S / 2)[:, None]
        rows = enumerate(row for _, row in table)
        moves = [(s, a, (s + step) % S, p) for a, row in rows for step, p in row.items()]
        nominal = kernel_of(lo, hi, S, A, moves)
        # independent gamma variables, normalised, are a Dirichlet sample
        return Drawn(resample(nominal, N, lambda p: rng.standard_gamma(CONCENTRATION * p)), costs)

    actions, most = [name for name, _ in table], max(len(row) for _, row in table)
    return ProblemSource(S, A, N, most, discount, is_sparse, draw, actions=actions)
