"""Trajectories of a policy under a kernel, many at a time.

All trajectories take a step together: actions from the rows of the policy, next states from the rows of the kernel, both by
inversion of cumulative sums over the positive entries. In a terminal state the process stays, without action or cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, ArrayLike, IntArray
from drmdp.core import validation as checks
from drmdp.core.files import require
from drmdp.core.names import is_name
from drmdp.core.progress import stage
from drmdp.core.random import Seed, generator
from drmdp.core.validation import whole
from drmdp.errors import InputError
from drmdp.model import Model, check_model
from drmdp.policies import fixed_kernel as fixed


@dataclass(frozen=True, eq=False)
class Trajectories:
    """n trajectories of T steps; numbers of states and actions."""

    states: IntArray  # (n, T + 1)
    actions: IntArray  # (n, T); −1 in terminal states
    costs: Array  # (n, T) in the user's sign: rewards, if the model has rewards
    discount: float

    @property
    def totals(self) -> Array:
        """Discounted sum of each trajectory, (n,)."""
        return np.asarray(self.costs @ self.discount ** np.arange(self.costs.shape[1]))


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
        at = np.searchsorted(self._sums, low + rng.random(rows.size) * (high - low), side="right") - 1
        return np.asarray(self._columns[np.clip(at, lo, hi - 1)], dtype=np.int64)


@stage("simulating")
def simulate(
    model: Model,
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
    policy : as for `drmdp.evaluate`, or (T, S, A), or a `HorizonSolution`
        With three dimensions, the policy of each step.
    kernel : optional
        The mean kernel by default; the number or name of an observed one, an (S, A, S) array, a sparse (S·A, S) matrix, or
        nature's kernel of a solution or evaluation.
    n, steps : int
        Trajectories and their length; by default 100 steps, or one for each stage of the policy.
    start : name of a state, (S,) distribution, or mapping from states to probabilities, optional
        The model's `initial` by default.
    seed : int or Generator

    Examples
    --------
    >>> import drmdp
    >>> model = drmdp.instances.machine(8)
    >>> paths = drmdp.simulate(model, [0] * 8, n=500, steps=20)
    >>> paths.states.shape, paths.actions.shape, paths.costs.shape
    ((500, 21), (500, 20), (500, 20))
    """
    check_model(model)
    policy = checks.policy_of(policy, model)
    staged = isinstance(policy, np.ndarray) and policy.ndim == 3
    steps = (len(policy) if staged else STEPS) if steps is None else steps
    n, steps = whole("n", n, 1), whole("steps", steps, 1)
    require(32.0 * n * steps, f"{n:,} trajectories × {steps:,} steps")
    if staged and len(policy) < steps:
        raise InputError(f"steps: the policy has {len(policy):,} stages, got {steps:,} steps")
    policies = [_Rows(model.policy(x)) for x in (policy if staged else [policy])]
    matrix = fixed.matrix_of(model, kernel)
    rng = generator(seed, "simulate")
    rows, prices = _Rows(matrix), model.costs
    states = np.empty((n, steps + 1), dtype=np.int64)
    actions = np.full((n, steps), -1, dtype=np.int64)
    costs = np.zeros((n, steps))
    states[:, 0] = _start(model, start, n, rng)
    for k in range(steps):
        here = states[:, k]
        states[:, k + 1] = here
        own = np.flatnonzero(~model.terminal[here])
        s = here[own]
        a = policies[min(k, len(policies) - 1)].draw(s, rng)
        t = rows.draw(s * model.n_actions + a, rng)
        states[own, k + 1], actions[own, k] = t, a
        costs[own, k] = _costs(prices, model.n_actions, s, a, t)
    return Trajectories(states, actions, -costs if model.maximise else costs, model.discount)


def _start(model: Model, start: Any, n: int, rng: np.random.Generator) -> IntArray:
    if start is not None and not isinstance(start, Mapping):
        names = checks.lookup(model.states)
        if (isinstance(start, tuple) and is_name(start) and start in names) or np.ndim(start) == 0:
            return np.full(n, checks.find(names, start, "start", "state"), dtype=np.int64)
    initial = model.initial if start is None else checks.distribution("start", start, model.states, "state")
    return _Rows(initial[None, :]).draw(np.zeros(n, dtype=np.int64), rng)


def _costs(prices: Any, n_actions: int, s: IntArray, a: IntArray, t: IntArray) -> Array:
    if sparse.issparse(prices):
        return np.asarray(prices[s * n_actions + a, t]).ravel()
    return np.asarray(prices[s, a] if prices.ndim == 2 else prices[s, a, t])
