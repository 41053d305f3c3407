"""Models of events beside the stored models that they stand for, and event models of any size that
nobody could store.

The model is perishable stock of three ages, m units each: S = m³ states, A order quantities, E
levels of demand, N laws of demand. Oldest units are sold first, what is ordered arrives next, and
what is left of the oldest is thrown away.

* `events`: CPU seconds of a warm (l2, 2) sweep of one thread, in turn on the kernels and on the
table, costs (S, A); the least of several.
* `events_large`: a model asked of its function, event costs, solved to a certified relative gap in
a process of its own, on all threads.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from drmdp._typing import Array
from drmdp.api import solve
from drmdp.core.tolerance import largest_cost
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.operators.exact import ExactOperator
from drmdp.sets.wasserstein import Wasserstein
from drmdp.solvers.policy_iteration import PolicyIteration, newton, nominal_value
from drmdp.solvers.problem import Problem

DISCOUNT, RADIUS, GAP = 0.95, 0.1, 1e-3
SIZES = ((30, 10, 20, 10), (30, 10, 20, 100), (46, 4, 8, 10), (46, 4, 8, 100))
"""Units, actions, events and laws of the sweeps."""
REPEATS = 5


@dataclass(frozen=True)
class EventsRow:
    """Warm sweeps, microseconds a state."""

    n_states: int
    actions: int
    events: int
    laws: int
    stored: float
    table: float
    ratio: float


@dataclass(frozen=True)
class LargeRow:
    """One solve."""

    n_states: int
    actions: int
    events: int
    laws: int
    status: str
    gap: float  # relative to what values can be at most
    sweeps: float
    seconds: float  # wall
    cpu_seconds: float
    bytes_a_state: float  # peak of the process beyond what it had before the model
    peak_gb: float  # of the whole process


def demand(n_laws: int, n_events: int, seed: int = 0) -> Array:
    """Laws of demand (N, E) that scatter around a hump."""
    level = np.arange(n_events) / n_events
    hump = level**3 * np.exp(-9 * level) + 1e-3
    laws = hump * np.exp(0.3 * np.random.default_rng(seed).standard_normal((n_laws, n_events)))
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


def rule(units: int, n_actions: int, n_events: int) -> Any:
    """The compiled transition (state, action, next, cost), all events of a pair at once."""
    batch, level = max(1, (units - 1) // max(n_actions - 1, 1)), max(1, 2 * units // n_events)

    @numba.njit
    def transition(s, a, there, cost):
        old, middle, fresh = s % units, s // units % units, s // units // units
        for e in range(there.size):
            wanted = e * level
            waste = max(old - wanted, 0)
            wanted = max(wanted - old, 0)
            aged = max(middle - wanted, 0)
            wanted = max(wanted - middle, 0)
            kept = max(fresh - wanted, 0)
            short = max(wanted - fresh, 0)
            there[e] = (a * batch * units + kept) * units + aged
            cost[e] = 3.0 * a * batch + 5.0 * short + 7.0 * waste + kept + aged

    return transition


def model_of(units: int, A: int, E: int, N: int, store: bool) -> EventModel:
    """The model, its costs those of events."""
    laws = demand(N, E)
    made: EventModel = Model.from_events(
        units**3, A, E, rule(units, A, E), laws, discount=DISCOUNT, store=store
    )
    return made


def priced(model: EventModel) -> EventModel:
    """The same with costs (S, A), expected under the mean law."""
    table: Any = model.rule
    made: EventModel = Model.from_events(
        model.n_states,
        model.n_actions,
        model.n_events,
        lambda s, a, e: table.next[s, a, e],
        model.laws,
        discount=DISCOUNT,
        costs=table.costs @ (model.weights @ model.laws[0]),
        store=True,
    )
    return made


def events(sizes: tuple[tuple[int, int, int, int], ...] = SIZES) -> Iterator[EventsRow]:
    """The table of warm sweeps: at a Newton point, from the memory of the sweep before."""
    for units, A, E, N in sizes:
        table = priced(model_of(units, A, E, N, store=True))
        runs = [_Warm(one) for one in (table.stored(), table)]
        times = [[run.sweep() for run in runs] for _ in range(REPEATS)]
        stored, own = (1e6 * least / table.n_states for least in np.min(times, axis=0))
        yield EventsRow(table.n_states, A, E, N, stored, own, own / stored)


class _Warm:
    """A sweep that can be made again and again from the same memory."""

    def __init__(self, model: Model) -> None:
        self.operator = ExactOperator(model, Wasserstein(RADIUS), threads=1)
        goal = GAP * largest_cost(model) / (1 - model.discount)
        self.operator.accuracy = 0.1 * (1 - model.discount) * goal
        problem = Problem(self.operator)
        start = nominal_value(problem)
        state: Any = PolicyIteration().init(problem, start)
        self.point = newton(problem, state.value, state.update)
        self.warm_start = self.operator.warm_start

    def sweep(self) -> float:
        self.operator.warm_start = self.warm_start
        begin = time.process_time()
        self.operator.update(self.point, 0, self.point.size)
        return time.process_time() - begin


def events_large(n_states: int, laws: tuple[int, ...] = (10, 100)) -> Iterator[LargeRow]:
    """The table of large solves, the number of states rounded to a cube."""
    for N in laws:
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "drmdp_lab.bench.events",
                str(round(n_states ** (1 / 3))),
                "4",
                "8",
                str(N),
            ],
            stdout=subprocess.PIPE,
            check=True,
        )
        yield LargeRow(**json.loads(run.stdout))


def _peak() -> float:
    """Largest resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _solve(units: int, A: int, E: int, N: int) -> dict[str, Any]:
    ambiguity = Wasserstein(RADIUS)
    solve(model_of(14, A, E, N, store=False), ambiguity, tol=10.0)  # load what is needed
    before = _peak()
    begin, cpu = time.perf_counter(), time.process_time()
    model = model_of(units, A, E, N, store=False)
    most = largest_cost(model) / (1 - model.discount)
    solution = solve(model, ambiguity, tol=GAP * most)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "n_states": model.n_states,
        "actions": A,
        "events": E,
        "laws": N,
        "status": str(solution.status),
        "gap": solution.gap / most,
        "sweeps": solution.kernel_passes,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "bytes_a_state": (_peak() - before) / model.n_states,
        "peak_gb": _peak() / 1e9,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_solve(*map(int, sys.argv[1:]))))
