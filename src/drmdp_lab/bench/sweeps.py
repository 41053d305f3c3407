"""What a robust sweep costs in nominal sweeps.

Times are CPU times of one thread, and every figure that is compared is a ratio inside one run: to
one *nominal sweep over all N kernels*, the plain products ŷ_ia·v for every state, action and
kernel, compiled by Numba in any order of additions. Both are measured in turn, and the least time
of each counts: what else the machine does makes both longer, and never shorter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from drmdp import instances
from drmdp._typing import Array
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.operators.exact import ExactOperator
from drmdp.sets import PAIRS, AmbiguitySet, Divergence, Intervals, Reweighting, Wasserstein

ANY_ORDER = {"reassoc", "contract", "nsz", "arcp"}
SWEEPS, LAST, REPEATS = 14, 6, 5
ACCURACY = 1e-10
"""Certified for each state, in ranges of its stakes."""


@dataclass(frozen=True)
class SweepRow:
    """Cost of sweeps of one set on one instance, in nominal sweeps."""

    instance: str
    set: str
    radius: float
    nominal_ms: float
    warm: float
    cold: float
    passes: float  # over the candidate rows, warm


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _dot(y, v):
    total = 0.0
    for j in range(y.size):
        total += y[j] * v[j]
    return total


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _nominal(layout, value, out):
    S, A = layout.available.shape
    N = layout.weights.size
    own = np.empty(S)
    for s in range(S):
        best = np.inf
        for a in range(A):
            lo, hi = layout.indptr[s * A + a], layout.indptr[s * A + a + 1]
            K = hi - lo
            for j in range(K):
                own[j] = value[layout.indices[lo + j]]
            total = 0.0
            for i in range(N):
                total += layout.weights[i] * _dot(
                    layout.data[N * lo + i * K : N * lo + (i + 1) * K], own[:K]
                )
            best = min(best, layout.costs[s, a] + layout.discount * total)
        out[s] = best


def cpu(call: Callable[[], Any], repeats: int) -> float:
    """Median CPU seconds of a call, short calls being repeated until they can be measured."""
    begin = time.process_time()
    call()
    once = max(time.process_time() - begin, 1e-7)
    inner = max(1, int(2e-3 / once))
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(inner):
            call()
        times.append((time.process_time() - begin) / inner)
    return float(np.median(times))


def unit_seconds() -> float:
    """What times of a run are held against: a nominal sweep of a Garnet, S = A = N = 30, no code of
    ours; the least of three.
    """
    model = instances.perturb(instances.garnet(30, 30), 30)
    return min(nominal_seconds(model) for _ in range(3))


def nominal_seconds(model: Model, repeats: int = 7) -> float:
    """CPU seconds of a nominal sweep over all N kernels."""
    layout = lay_out(model, Wasserstein(1.0, support="all"))
    value, out = np.linspace(0, 1, model.n_states), np.empty(model.n_states)
    return cpu(lambda: _nominal(layout, value, out), repeats)


def sweep_row(name: str, model: Model, ambiguity: AmbiguitySet) -> SweepRow:
    """Measure warm and cold sweeps along value iteration."""
    ExactOperator(model, ambiguity, threads=1).update(
        np.zeros(model.n_states), 0, model.n_states
    )  # loads what is needed
    nominal, cold, warm = np.inf, np.inf, np.full(SWEEPS, np.inf)
    for _ in range(REPEATS):
        nominal = min(nominal, nominal_seconds(model, 3))
        operator = ExactOperator(model, ambiguity, threads=1)
        value, times = _iterate(operator, model)
        warm = np.minimum(warm, times)
        cold = min(
            cold, _timed(ExactOperator(model, ambiguity, threads=1), value, operator.accuracy)
        )
    return SweepRow(
        name,
        ambiguity.short,
        float(ambiguity.radius),
        1e3 * nominal,
        float(np.median(warm[-LAST:])) / nominal,
        cold / nominal,
        operator.passes,
    )


def _iterate(operator: ExactOperator, model: Model) -> tuple[Array, list[float]]:
    """Where value iteration arrives, and the seconds of its sweeps."""
    value, times = np.zeros(model.n_states), []
    for _ in range(SWEEPS):
        operator.accuracy = ACCURACY * model.discount * float(np.ptp(value))
        begin = time.process_time()
        update = operator.update(value, 0, model.n_states)
        times.append(time.process_time() - begin)
        value = update.value
    return value, times


def _timed(operator: ExactOperator, value: Array, accuracy: float) -> float:
    operator.accuracy = accuracy
    begin = time.process_time()
    operator.update(value, 0, value.size)
    return time.process_time() - begin


def near_tied(model: Model, seed: int = 0) -> Model:
    """Replace the costs by b_s + U[0, 1], so that up to all actions are active."""
    rng = np.random.default_rng([seed, 77])
    S, A = model.n_states, model.n_actions
    costs = rng.uniform(0, 10, S)[:, None] + rng.uniform(0, 1, (S, A))
    return Model(model.kernels, costs=costs, discount=model.discount)


def paper_garnets() -> Iterator[tuple[str, Model]]:
    """The paper's Garnets at (S, A, N) = (30, 30, 70) and (70, 30, 30), and the same with nearly
    tied costs.
    """
    for S, A, N in ((30, 30, 70), (70, 30, 30)):
        model = instances.perturb(instances.garnet(S, A), N)
        yield f"garnet {S}/{A}/{N}", model
        yield f"tied {S}/{A}/{N}", near_tied(model)


def sweeps() -> Iterator[SweepRow]:
    """The table of sweep costs."""
    for name, model in paper_garnets():
        for metric, order in PAIRS:
            for radius in (0.1, 0.5, math.sqrt(0.2 * model.n_actions)):
                yield sweep_row(name, model, Wasserstein(radius, metric, order, support="all"))


def sets() -> Iterator[SweepRow]:
    """The same for every other set: a budget for each action, divergences, re-weighting, transport,
    intervals.
    """
    kinds = ("kl", "burg", "chi2", "tv")
    for S, A, N in ((30, 30, 30), (70, 30, 30)):
        model = instances.perturb(instances.garnet(S, A), N)
        found: list[AmbiguitySet] = [
            Wasserstein(0.3, *pair, support="all", rectangular="sa") for pair in PAIRS
        ]
        for rectangular in ("s", "sa"):
            found += [
                Divergence(0.1, kind, around, "all", rectangular)
                for kind in kinds
                for around in ("mean", "kernels")
            ]
            found += [Reweighting(0.1, kind, rectangular) for kind in kinds]
            found += [
                Reweighting(kind="cvar", level=0.2, rectangular=rectangular),
                Reweighting(kind="any", rectangular=rectangular),
            ]
        line = np.abs(np.subtract.outer(np.arange(S), np.arange(S))).astype(float)
        found += [
            Wasserstein(0.3, metric="transport", order=order, ground=line, support="all")
            for order in (1, math.inf)
        ]
        for ambiguity in [*found, Intervals.of(model, 0.01)]:
            yield sweep_row(f"garnet {S}/{A}/{N}", model, ambiguity.fitted(model))
