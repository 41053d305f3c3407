"""What the choice of a radius costs: radii a second along a path, and a year of logs by month."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import drmdp
from drmdp.sets import Wasserstein
from drmdp_lab.bench.growth import sparse_garnet

STATES = (10, 30, 100, 300, 1000)
RADII = 50
ROWS = 100_000
"""Of the log: as many steps of machines that wear."""
MACHINES, WEAR = 20, 12


@dataclass(frozen=True)
class RadiiRow:
    """A path from 0 to saturation, A = 4, N = 10, 8 next states a pair, discount .95."""

    states: int
    set: str
    radii: int
    solved: int  # to a relative gap of 1e-6
    seconds: float  # CPU
    radii_a_second: float
    sweeps_a_radius: float


def radii(states: tuple[int, ...] = STATES, count: int = RADII) -> Iterator[RadiiRow]:
    """The table; paths of less than a second are made again and the least counts."""
    for metric, order in (("l1", 1), ("l2", 2)):
        ambiguity: Any = Wasserstein(0.0, metric, order)
        for n in states:
            model = sparse_garnet(n)
            times: list[float] = []
            while not times or (sum(times) < 1 and len(times) < 5):
                model.cache.clear()
                begin = time.process_time()
                path = drmdp.radius.path(model, ambiguity, count, threads=1, progress=False)
                times.append(time.process_time() - begin)
            solved = sum(point.status == "solved" for point in path.points)
            passes = float(path.kernel_passes.mean())
            least = min(times)
            yield RadiiRow(n, f"({metric}, {order})", count, solved, least, solved / least, passes)


@dataclass(frozen=True)
class YearRow:
    """A stage of the way from a log to a policy."""

    stage: str
    rows: int
    states: int
    kernels: int
    seconds: float  # wall
    cpu_seconds: float


def log_of(rows: int, seed: int = 0) -> dict[str, Any]:
    """Columns of a simulated log: machines that wear, faster in some months, and are replaced."""
    rng = np.random.default_rng(seed)
    month = np.arange(rows) * 12 // rows
    wear = rng.integers(0, MACHINES, rows)
    act = rng.integers(0, 2, rows)
    pace = 0.2 + 0.03 * np.abs(month - 6)
    after = np.minimum(wear + rng.binomial(WEAR, pace / WEAR), MACHINES - 1)
    return {
        "month": month,
        "state": wear,
        "action": np.where(act == 1, "replace", "run"),
        "next_state": np.where(act == 1, 0, after),
        "cost": 10.0 * act + wear,
    }


def year(rows: int = ROWS) -> Iterator[YearRow]:
    """One row for each stage, after a first round with a small log, which loads what is needed."""
    _stages(12_000)
    yield from _stages(rows)


def _stages(rows: int) -> list[YearRow]:
    log, found = log_of(rows), []

    def timed(stage: str, call: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        took = time.perf_counter() - wall, time.process_time() - cpu
        found.append((stage, *took))
        return result

    model = timed(
        "estimate by month",
        lambda: drmdp.estimate(log, cost="cost", by="month", discount=0.95),
    )
    ball = Wasserstein(0.0)
    choice = timed(
        "cross-validate 20 radii",
        lambda: drmdp.radius.cross_validate(model, ball, threads=1, progress=False),
    )
    timed("solve", lambda: drmdp.solve(model, ball.with_radius(choice.radius), threads=1))
    sizes = rows, model.n_states, model.n_kernels
    return [YearRow(stage, *sizes, *took) for stage, *took in found]
