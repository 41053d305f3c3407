"""How the cost of a warm sweep grows with the states, actions, kernels and next states of a pair,
all else fixed, and what two threads gain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp import instances
from drmdp.api import solve
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS, AmbiguitySet, Wasserstein
from drmdp_lab.paper.pages.select import fit

BASE = {"N": 40, "S": 40, "A": 20}
SIZES = {"N": (20, 40, 80, 160), "S": (20, 40, 80, 160), "A": (20, 40, 80, 160)}
NEXT, NEXT_STATES = (4, 8, 16, 32, 64), 1000
"""Next states of a pair, and the states of the sparse models that have so many."""
SEEDS = 3
RADIUS = 0.5
SPARSE = (10_000, 30_000, 100_000)
REACHES = (4, 16, 64)


@dataclass(frozen=True)
class GrowthRow:
    """CPU time of a warm sweep ~ size^exponent, all else fixed."""

    set: str
    size: str  # N, S, A of Garnets, K and nnz of sparse ones, where nature stays on what is seen
    exponent: float
    half: float  # half width of its 95 % interval (Student's t over the single runs)
    ms: dict[str, float]  # medians


def warm(model: Model, ambiguity: AmbiguitySet, sweeps: int = 8, repeats: int = 5) -> float:
    """Median CPU seconds of a sweep after some of value iteration."""
    operator, value = ExactOperator(model, ambiguity, threads=1), np.zeros(model.n_states)
    for _ in range(sweeps):
        value = operator.update(value, 0, model.n_states).value
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        value = operator.update(value, 0, model.n_states).value
        times.append(time.process_time() - begin)
    return float(np.median(times))


def growth_row(label: str, name: str, seconds: dict[str, list[float]], sizes: Any) -> GrowthRow:
    """A row of the single runs at each size; `sizes` are those that time is held against."""
    xs = np.repeat(np.asarray(sizes, dtype=float), [len(own) for own in seconds.values()])
    found = fit(xs, np.concatenate(list(seconds.values())))
    ms = {size: 1e3 * float(np.median(own)) for size, own in seconds.items()}
    return GrowthRow(label, name, found.value, found.half, ms)


def growth() -> Iterator[GrowthRow]:
    """The table of exponents, six pairs."""
    dense = [Wasserstein(RADIUS, *pair, support="all") for pair in PAIRS]
    for name, sizes in SIZES.items():

        def made(size: int, seed: int, name: str = name) -> Model:
            n = BASE | {name: size}
            return instances.perturb(instances.garnet(n["S"], n["A"], seed=seed), n["N"], seed=seed)

        yield from _rows(name, sizes, dense, made)

    def listed(size: int, seed: int) -> Model:
        nominal = instances.garnet(NEXT_STATES, 4, branching=size, sparse=True, seed=seed)
        return instances.perturb(nominal, 10, same_support=True, seed=seed)

    yield from _rows("K", NEXT, [Wasserstein(RADIUS, *pair) for pair in PAIRS], listed)
    for support in ("all", "observed"):
        seconds, entries = {}, []
        for size in SPARSE:
            model = sparse_garnet(size)
            entries.append(model.blocks.indices.size)
            ball = Wasserstein(RADIUS, support=support)
            seconds[str(size)] = [warm(model, ball, 4, 1) for _ in range(SEEDS)]
        yield growth_row("(l2, 2)", f"nnz, {support}", seconds, entries)
    yield from lists()


def _rows(
    name: str, sizes: tuple[int, ...], sets: list[Wasserstein], made: Any
) -> Iterator[GrowthRow]:
    """A row for each set; every model is made once."""
    seconds: list[dict[str, list[float]]] = [{} for _ in sets]
    for size in sizes:
        for seed in range(SEEDS):
            model = made(size, seed)
            for own, ambiguity in zip(seconds, sets, strict=True):
                own.setdefault(str(size), []).append(warm(model, ambiguity))
    for own, ambiguity in zip(seconds, sets, strict=True):
        yield growth_row(ambiguity.short, name, own, sizes)


def lists() -> Iterator[GrowthRow]:
    """Transport of order 1 on a ring of sparse models: with the entries at lists of one length, and
    with the lists of one model.
    """
    seconds, entries = {}, []
    for size in SPARSE:
        model, ball = sparse_garnet(size), _near(size, 4)
        entries.append(model.blocks.indices.size)
        seconds[str(size)] = [warm(model, ball, 4, 1) for _ in range(SEEDS)]
    yield growth_row("transport", "nnz, lists of 9", seconds, entries)
    model, seconds = sparse_garnet(SPARSE[0]), {}
    lengths = [2 * reach + 1 for reach in REACHES]
    for reach, length in zip(REACHES, lengths, strict=True):
        ball = _near(SPARSE[0], reach)
        seconds[str(length)] = [warm(model, ball, 4, 1) for _ in range(SEEDS)]
    yield growth_row("transport", "length of the lists", seconds, lengths)


def _near(n_states: int, reach: int) -> Wasserstein:
    """Mass goes to the next states on a ring, as many on either side, each at its distance."""
    here = np.repeat(np.arange(n_states), 2 * reach)
    far = np.tile(np.concatenate([np.arange(-reach, 0), np.arange(1, reach + 1)]), n_states)
    costs = sparse.csr_array(
        (np.abs(far).astype(float), (here, (here + far) % n_states)), shape=(n_states, n_states)
    )
    return Wasserstein(RADIUS, metric="transport", order=1, ground=costs, support="all")


def sparse_garnet(n_states: int, discount: float = 0.95) -> Model:
    """A = 4, N = 10, 8 next states a pair."""
    nominal = instances.garnet(n_states, 4, branching=8, discount=discount, sparse=True)
    return instances.perturb(nominal, 10, same_support=True)


@dataclass(frozen=True)
class ThreadRow:
    """Wall seconds on one thread and on two, the least of repeats in turn."""

    instance: str
    what: str
    one: float
    two: float
    two_over_one: float
    cpu_two_over_one: float


def threads(states: tuple[int, ...] = (1000, 30_000), repeats: int = 3) -> Iterator[ThreadRow]:
    """A cold sweep and a solve to a relative gap of 1e-3, on sparse Garnets."""
    for n in states:
        model = sparse_garnet(n)
        ball = Wasserstein(RADIUS, support="all")

        def sweep(count: int, model: Model = model, ball: Wasserstein = ball) -> None:
            operator = ExactOperator(model, ball, count)
            operator.update(np.linspace(0, 10, model.n_states), 0, model.n_states)

        def whole(count: int, model: Model = model, ball: Wasserstein = ball) -> None:
            model.cache.clear()
            solve(model, ball, rtol=1e-3, threads=count, progress=False)

        for what, call in (("cold sweep", sweep), ("solve", whole)):
            call(2)
            walls, cpus = np.min(
                [[_clocked(call, k) for k in (1, 2)] for _ in range(repeats)], axis=0
            ).T
            one, two = walls.tolist()
            name = f"sparse {n}/4/10"
            yield ThreadRow(name, what, one, two, two / one, float(cpus[1] / cpus[0]))


def _clocked(call: Any, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of a call with so many threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    call(count)
    return time.perf_counter() - wall, time.process_time() - cpu
