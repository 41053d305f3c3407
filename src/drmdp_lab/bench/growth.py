"""How the cost of a warm sweep grows, what two threads gain, and what one state costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import instances
from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator
from drmdp.model import Model
from drmdp.sets import PAIRS, Wasserstein
from drmdp_lab.bench.sweeps import nominal_seconds

BASE = {"N": 40, "S": 40, "A": 20}
SIZES = {"N": (10, 20, 40, 80), "S": (20, 40, 80, 160), "A": (10, 20, 40, 80)}
RADIUS = 0.5
SPARSE = (10_000, 30_000, 100_000)
REACHES = (4, 16, 64)


@dataclass(frozen=True)
class GrowthRow:
    """CPU time of a warm sweep ~ size^exponent, all else fixed."""

    metric: str
    order: float
    size: str  # N, S, A of Garnets, or nnz of sparse ones
    exponent: float
    ms: dict[str, float]


def warm(model: Model, ball: Wasserstein, sweeps: int = 8, repeats: int = 5) -> float:
    """Median CPU seconds of a sweep after some of value iteration."""
    operator, value = ExactOperator(model, ball, threads=1), np.zeros(model.n_states)
    for _ in range(sweeps):
        value = operator.update(value, 0, model.n_states).value
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        value = operator.update(value, 0, model.n_states).value
        times.append(time.process_time() - begin)
    return float(np.median(times))


def slope(sizes: Any, times: Any) -> float:
    """Least-squares exponent."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth() -> Iterator[GrowthRow]:
    """The table of exponents, six pairs on Garnets."""
    for metric, order in PAIRS:
        ball = Wasserstein(RADIUS, metric, order, support="all")
        for name, sizes in SIZES.items():
            ms = {}
            for size in sizes:
                n = BASE | {name: size}
                model = instances.perturb(instances.garnet(n["S"], n["A"]), n["N"])
                ms[str(size)] = 1e3 * warm(model, ball)
            yield GrowthRow(metric, order, name, slope(np.array(sizes), np.array(list(ms.values()))), ms)
    for support in ("all", "observed"):
        ms, entries = {}, []
        for size in SPARSE:
            model = sparse_garnet(size)
            entries.append(model.blocks.indices.size)
            ms[str(size)] = 1e3 * warm(model, Wasserstein(RADIUS, support=support), sweeps=4, repeats=3)
        yield GrowthRow("l2", 2, f"nnz, {support}", slope(np.array(entries), np.array(list(ms.values()))), ms)
    yield from lists()


def lists() -> Iterator[GrowthRow]:
    """Transport of order 1 on a ring of sparse models: with the entries at lists of one length, and with the lists of one model."""
    ms, entries = {}, []
    for size in SPARSE:
        model = sparse_garnet(size)
        entries.append(model.blocks.indices.size)
        ms[str(size)] = 1e3 * warm(model, _near(size, 4), sweeps=4, repeats=3)
    yield GrowthRow("transport", 1, "nnz, lists of 9", slope(np.array(entries), np.array(list(ms.values()))), ms)
    model, ms = sparse_garnet(SPARSE[0]), {}
    for reach in REACHES:
        ms[str(2 * reach + 1)] = 1e3 * warm(model, _near(SPARSE[0], reach), sweeps=4, repeats=3)
    lengths = np.array([2 * reach + 1 for reach in REACHES])
    yield GrowthRow("transport", 1, "length of the lists", slope(lengths, np.array(list(ms.values()))), ms)


def _near(n_states: int, reach: int) -> Wasserstein:
    """Mass goes to the next states on a ring, as many on either side, each at its distance."""
    here = np.repeat(np.arange(n_states), 2 * reach)
    far = np.tile(np.concatenate([np.arange(-reach, 0), np.arange(1, reach + 1)]), n_states)
    costs = sparse.csr_array((np.abs(far).astype(float), (here, (here + far) % n_states)), shape=(n_states, n_states))
    return Wasserstein(RADIUS, metric="transport", order=1, ground=costs, support="all")


def sparse_garnet(n_states: int, discount: float = 0.95) -> Model:
    """A = 4, N = 10, 8 next states a pair."""
    nominal = instances.garnet(n_states, 4, branching=8, discount=discount, sparse=True)
    return instances.perturb(nominal, 10, same_support=True)


@dataclass(frozen=True)
class ThreadRow:
    """Wall seconds of a sweep on one thread and on two, best of repeats."""

    one: float
    two: float
    speedup: float


def threads(n_states: int = 20_000, repeats: int = 5) -> Iterator[ThreadRow]:
    """A sweep of a sparse Garnet."""
    model, best = sparse_garnet(n_states), []
    for n in (1, 2):
        operator, value, times = ExactOperator(model, Wasserstein(RADIUS, support="all"), n), np.zeros(n_states), []
        for _ in range(repeats + 2):
            begin = time.perf_counter()
            value = operator.update(value, 0, n_states).value
            times.append(time.perf_counter() - begin)
            operator = ExactOperator(
                model, Wasserstein(RADIUS, support="all"), n
            )  # cold again: a sweep of about 100 ms
        best.append(min(times[2:]))
    yield ThreadRow(best[0], best[1], best[0] / best[1])


@dataclass(frozen=True)
class StateRow:
    """A cold update of one state, CPU."""

    rows: str
    metric: str
    order: float
    ms: float
    nominal_sweeps: float  # over that state


def states() -> Iterator[StateRow]:
    """N = 1, S = A = 100, radius .5."""
    S = A = 100
    rng = np.random.default_rng(0)
    full = rng.dirichlet(np.ones(S), size=(S, A))
    thin = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            thin[s, a, rng.choice(S, 10, replace=False)] = rng.dirichlet(np.ones(10))
    costs, value = rng.uniform(0, 10, (S, A)), rng.uniform(0, 10, S)
    for rows, kernel in (("dense", full), ("10 nonzeros", thin)):
        model = Model(kernel, costs=costs, discount=0.8)
        nominal = nominal_seconds(model) / S
        for metric, order in PAIRS:
            ball = Wasserstein(RADIUS, metric, order, support="all")
            ExactOperator(model, ball, 1).update(value, 0, S)
            fresh = iter([ExactOperator(model, ball, 1) for _ in range(12)])
            times = [cpu_once(next(fresh), value) for _ in range(12)]
            each = float(np.median(times)) / S
            yield StateRow(rows, metric, order, 1e3 * each, each / nominal)


def cpu_once(operator: ExactOperator, value: Array) -> float:
    """CPU seconds of one sweep."""
    begin = time.process_time()
    operator.update(value, 0, value.size)
    return time.process_time() - begin
