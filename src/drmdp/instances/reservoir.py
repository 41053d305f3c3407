"""Reservoir: release water each month from a dam, with inflows known from a few years only.

Ours. Storage is one of 0 … S − 1 units. In each month a release of a = 0 … 4 units is chosen, at
most what is stored, and an inflow arrives:

    next storage = min(storage − a + inflow, S − 1),        cost = (4 − a)³,

so a shortage of two units costs eight times one of a single unit. A year has a mean inflow m of its
own, 4.5 times a Gamma variable with mean 1 and deviation .4, and monthly inflows are Poisson(m),
cut at 14. Each kernel is one year: its rows hold the shares of the inflows that were recorded in
that year's months, or, without a record, the law of the year.

Dry years last, and the mean kernel does not know it: it draws every month from another year. That
is why caution pays here on years that were not observed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array

from drmdp._typing import Array, BoolArray
from drmdp.core.random import Seed, generator
from drmdp.core.storage import Kernels, compress_sparse
from drmdp.core.validation import integer
from drmdp.instances._source import Drawn, ProblemSource, family

DEMAND, POWER = 4, 3
MEAN, DEVIATION, LARGEST = 4.5, 0.4, 14


@family
def reservoir(
    n_states: int = 21,
    n_kernels: int = 8,
    seed: Seed = 0,
    discount: float = 0.97,
    *,
    months: int | None = 12,
    sparse: bool = False,
) -> ProblemSource:
    """Release water month by month; each kernel is one observed year.

    Parameters
    ----------
    n_states : int, at least 2
        Storage 0 … S − 1.
    n_kernels : int
        Number of years.
    seed : int or numpy.random.Generator
        Of the random draws.
    discount : float in [0, 1]
        What a cost of the next step is worth now.
    months : int or None
        Months on record in each year. None takes the law of each year itself, which is what a
        policy meets.
    sparse : bool
        How kernels are given back; the numbers are the same.

    Examples
    --------
    >>> from drmdp import instances
    >>> model = instances.reservoir()
    >>> model.n_states, model.actions[-1], model.available[1].tolist()
    (21, 'release 4', [True, True, False, False, False])
    """
    S, N = integer("n_states", n_states, 2), integer("n_kernels", n_kernels, 1)
    record = None if months is None else integer("months", months, 1)
    rng = generator(seed, "reservoir")
    years = [_inflows(rng, record) for _ in range(N)]
    release = np.arange(DEMAND + 1)
    shortage = (DEMAND - release.astype(float)) ** POWER

    def draw(lo: int, hi: int) -> Drawn:
        available = release <= np.arange(lo, hi)[:, None]
        names = [f"storage {x}" for x in range(lo, hi)]
        costs = np.tile(shortage, (hi - lo, 1))
        return Drawn(_kernels(years, available, lo, S), costs, names, available)

    labels: Any = {"actions": [f"release {a}" for a in release]}
    labels["kernel_names"] = [f"year {i + 1}" for i in range(N)]
    return ProblemSource(S, len(release), N, LARGEST + 1, discount, sparse, draw, **labels)


def _inflows(rng: np.random.Generator, months: int | None) -> Array:
    """Shares of the inflows 0 … 14 in the record of a year, or their law."""
    from scipy.special import gammaln  # takes a third of a second, and has no other use in drmdp

    mean = MEAN * rng.gamma(1 / DEVIATION**2, DEVIATION**2)
    k = np.arange(LARGEST + 1)
    law = np.exp(k * np.log(mean) - mean - gammaln(k + 1))
    law[-1] += max(1 - law.sum(), 0.0)
    law /= law.sum()
    return law if months is None else np.asarray(rng.multinomial(months, law) / months)


def _kernels(years: list[Array], available: BoolArray, lo: int, S: int) -> Kernels:
    n, A = available.shape
    s, a = np.nonzero(available)
    rest, row = np.repeat(lo + s - a, LARGEST + 1), np.repeat(s * A + a, LARGEST + 1)
    to = np.minimum(rest + np.tile(np.arange(LARGEST + 1), s.size), S - 1)
    matrices = [coo_array((np.tile(year, s.size), (row, to)), shape=(n * A, S)) for year in years]
    return compress_sparse(matrices, available)
