"""Trajectories of a policy under a kernel, many at a time.

All trajectories take a step together: actions from the rows of the policy, next states from the
rows of the kernel, both by inversion of cumulative sums over the positive entries. In a terminal
state the process stays, without action or cost.

A plan has a policy for each step, and may have a model and a kernel for each; whoever gets to its
end is paid the final value of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core import validation as checks
from drmdp.core.compact import KernelTuple
from drmdp.core.names import is_name
from drmdp.core.random import Seed, generator
from drmdp.core.validation import integer
from drmdp.errors import InputError
from drmdp.io.files import require
from drmdp.model import Model, check_model
from drmdp.model.events import EventModel
from drmdp.policies import fixed_kernel as fixed
from drmdp.solution import HorizonSolution
from drmdp.solvers.horizon.stages import is_plan, is_sequence, length_of, models_of, policies_of
from drmdp.ui.progress import stage


@dataclass(frozen=True, eq=False)
class Trajectories:
    """n trajectories of T steps; numbers of states and actions.

    Attributes
    ----------
    states : (n, T + 1)
        Numbers of the states.
    actions : (n, T)
        Numbers of the actions; −1 in terminal states.
    costs : (n, T)
        Costs, or rewards if the model has rewards.
    discount : float
        Of the steps.
    final : (n,)
        Value of the last state after the last stage of a plan; else 0.
    """

    states: IntArray
    actions: IntArray
    costs: Array
    discount: float
    final: Array

    @property
    def totals(self) -> Array:
        """Discounted sum of each trajectory, (n,)."""
        T = self.costs.shape[1]
        running = self.costs @ self.discount ** np.arange(T)
        return np.asarray(running + self.discount**T * self.final)


STEPS = 100
"""Length of trajectories unless told otherwise."""


class _Rows:
    """Draws columns from the rows of a matrix of probabilities."""

    def __init__(self, matrix: Any) -> None:
        listed = sparse.csr_array(matrix)
        listed.eliminate_zeros()
        self._first = listed.indptr.astype(np.int64)
        self._columns = listed.indices
        self._sums = np.concatenate([[0.0], np.cumsum(listed.data)])

    def draw(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """One column for each row, none of them empty."""
        lo, hi = self._first[rows], self._first[rows + 1]
        low, high = self._sums[lo], self._sums[hi]
        drawn = low + rng.random(rows.size) * (high - low)
        at = np.searchsorted(self._sums, drawn, side="right") - 1
        return np.asarray(self._columns[np.clip(at, lo, hi - 1)], dtype=np.int64)


class _Events:
    """Draws events of a model; `paid` are the costs of the last ones."""

    def __init__(self, model: EventModel, kernel: int | None) -> None:
        self._model, self.paid = model, np.zeros(0)
        mean = kernel is None
        law = np.einsum("i,cie->ce", model.weights, model.laws) if mean else model.laws[:, kernel]
        self._sums = np.cumsum(law, axis=1)
        self._last = model.n_events - 1 - np.argmax(law[:, ::-1] > 0, axis=1)  # that can be

    def draw(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        """A next state for each pair."""
        model = self._model
        s, a = np.divmod(rows, model.n_actions)
        c = model.classes[s, a].astype(np.int64) if model.classes.size else np.zeros_like(s)
        drawn = (self._sums[c] <= rng.random(s.size)[:, None]).sum(axis=1)
        e = np.minimum(drawn, self._last[c])
        targets, self.paid = np.zeros(s.size, np.int64), np.zeros(s.size)
        for state in np.unique(s).tolist():
            here, table = s == state, model.asked(state, state + 1)
            place = 0, a[here], e[here]
            targets[here], self.paid[here] = table.next[place], table.costs[place]
        return targets


@stage("simulating")
def simulate(
    model: Any,
    policy: ArrayLike,
    kernel: Any = None,
    n: int = 1000,
    steps: int | None = None,
    start: Any = None,
    seed: Seed = 0,
) -> Trajectories:
    """Simulate n trajectories of a policy under a kernel.

    Parameters
    ----------
    model : Model, or a sequence of models
        Several models are those of the steps.
    policy : as for `drmdp.evaluate`
        With three dimensions, or as a list, the policy of each step. A `HorizonSolution` has its
        own discount, costs and final values.
    kernel : optional
        The mean kernel by default; the number or name of an observed one, an (S, A, S) array, a
        sparse (S·A, S) matrix, or nature's kernel of a solution or evaluation. A list, or
        `plan.kernels`, has one for each step.
    n, steps : int
        Trajectories and their length; by default 100 steps, or one for each stage of the policy or
        each model.
    start : name of a state, (S,) distribution, or mapping from states to probabilities, optional
        The model's `initial` by default.
    seed : int or Generator
        Of the random draws.

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.machine(8)
    >>> paths = drmdp.simulate(model, [0] * 8, n=500, steps=20)
    >>> paths.states.shape, paths.actions.shape, paths.costs.shape
    ((500, 21), (500, 20), (500, 20))
    """
    n, longest = integer("n", n, 1), length_of(model, policy)
    steps = integer("steps", (longest or STEPS) if steps is None else steps, 1)
    if longest is not None and longest < steps:
        kind = "plan" if is_plan(policy) else "sequence of models"
        raise InputError(f"steps: the {kind} has {longest:,} stages, got {steps:,} steps")
    require(32.0 * n * steps, f"{n:,} trajectories × {steps:,} steps")
    policies, kernels, models, ends = _course(model, policy, kernel, steps, longest)
    first, rng = models[0], generator(seed, "simulate")
    number = {id(each): m for m, each in enumerate(models)}

    @lru_cache(maxsize=1)  # steps that follow each other often share them
    def actions_of(i: int) -> _Rows:
        return _Rows(policies[i])

    @lru_cache(maxsize=1)
    def next_of(j: int, m: int) -> Any:
        name = f"kernel of stage {j}" if len(kernels) > 1 else "kernel"
        return _sampler(models[m], kernels[j], name)

    states = np.empty((n, steps + 1), dtype=np.int64)
    actions = np.full((n, steps), -1, dtype=np.int64)
    costs = np.zeros((n, steps))
    states[:, 0] = _start(first, start, n, rng)
    for k in range(steps):
        states[:, k + 1] = states[:, k]
        running = np.flatnonzero(~first.terminal[states[:, k]])
        s = states[running, k]
        i, j, m = (min(k, len(each) - 1) for each in (policies, kernels, models))
        source, rows = models[m], next_of(j, number[id(models[m])])
        prices = rows if isinstance(rows, _Events) else source.costs
        a = actions_of(i).draw(s, rng)
        t = rows.draw(s * first.n_actions + a, rng)
        states[running, k + 1], actions[running, k] = t, a
        costs[running, k] = _costs(prices, first.n_actions, s, a, t)
    final = ends[states[:, -1]]
    return Trajectories(states, actions, -costs if first.maximise else costs, first.discount, final)


def _course(
    model: Any, policy: Any, kernel: Any, steps: int, stages: int | None
) -> tuple[Any, Any, tuple[Model, ...], Array]:
    """Policies (T, S, A), kernels and models of the steps, or one of each for all; final values,
    (S,).
    """
    plan = policy if isinstance(policy, HorizonSolution) else None
    plan = None if plan is not None and plan.noun == "probability" else plan  # it has no costs
    if stages is None:
        check_model(model)
        if model.discounts is not None:
            what = "pairs have their own, and trajectories are added up with one for all"
            raise InputError(f"discount: {what}: change the model's")
        return model.policy(policy)[None], [kernel], (model,), np.zeros(model.n_states)
    ends: tuple[Any, ...] = (None, None)
    if plan is not None:
        ends = None if is_sequence(model) else plan.costs, plan.discount, plan.half_cycle
    models = models_of(model, stages, *ends)[1]
    several = isinstance(kernel, KernelTuple)
    if isinstance(kernel, list | tuple):
        S, A = models[0].available.shape
        several = all(
            np.ndim(k) != 2 or (sparse.issparse(k) and k.shape == (S * A, S)) for k in kernel
        )
    if several and len(kernel) != stages:
        expected = f"one, or one for each of {stages:,} stages"
        raise InputError(f"kernel: expected {expected}, got {len(kernel):,}")
    final = np.zeros(models[0].n_states) if plan is None or steps != stages else plan.final
    return policies_of(models, policy), kernel if several else [kernel], models, final


def _sampler(model: Model, kernel: Any, name: str) -> Any:
    """Sampler of next states: of a kernel, or, where events have costs, of the events of a law."""
    if isinstance(model, EventModel) and fixed.by_events(model, kernel):
        return _Events(model, None if kernel is None else checks.kernel_number(model, kernel, name))
    return _Rows(fixed.matrix_of(model, kernel, name))


def _start(model: Model, start: Any, n: int, rng: np.random.Generator) -> IntArray:
    if start is not None and not isinstance(start, Mapping):
        names = checks.lookup(model.states)
        if (isinstance(start, tuple) and is_name(start) and start in names) or np.ndim(start) == 0:
            return np.full(n, checks.find(names, start, "start", "state"), dtype=np.int64)
    initial = model.initial
    if start is not None:
        initial = checks.distribution("start", start, model.states, "state")
    return _Rows(initial[None, :]).draw(np.zeros(n, dtype=np.int64), rng)


def _costs(prices: Any, n_actions: int, s: IntArray, a: IntArray, t: IntArray) -> Array:
    if isinstance(prices, _Events):
        return prices.paid
    if sparse.issparse(prices):
        return np.asarray(prices[s * n_actions + a, t]).ravel()
    return np.asarray(prices[s, a] if prices.ndim == 2 else prices[s, a, t])
