"""The N ordinary decision problems of a model, one a kernel: optima, values, single rows replaced.

Costs, as everywhere inside. Of a kernel, Y has the rows λ ŷ(·|s,a), c̄ their expected costs; μ is
the start. The chain of a policy x is P = Σ_a x_a Y_a.

**Values** solve (I − P) v = Σ_a x_a c̄_a. Where every row sums to λ < 1, v = h + g/(1−λ) with h = 0
in the first state, so that discounts near 1 cost no digits; a long-run average is (1−λ) v at
λ = 1 − `PATIENT`. Without a discount, states that may never arrive cost +∞.

**Optima** by policy iteration; an action is exchanged only for a better one. So a policy that
arrives stays one that arrives, or costs have no bound: a closed class C of the next policy holds an
exchanged state, and by its stationary distribution π·c̄ + π·v < π·v, so that staying in C pays.

**Many policies under one kernel.** With G = (I − P)⁻¹ of the optimum a, and r_b =
c̄_b + Y_b v − v ≥ 0 what b loses once, a policy that plays other actions b in the states D, and
only there, costs

    μ·v' − μ·v = (μG)_D (I − Δ G_·D)⁻¹ r_D,        Δ = (Y_b − Y_a)_D,

as (I − P') (v' − v) = r: |D| equations (Sherman, Morrison and Woodbury), and one inverse for all.

**One row.** With the rows of state s from kernel i and all others of the mean kernel, δ the change
of row s of P and Δc that of its cost,

    μ·v' = μ·v + (μG)_s (δ·v + Δc)/(1 − δ·G_·s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.levels import ended
from drmdp.criteria.total import Stranded, towards_the_end
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.policies import fixed_kernel as fixed
from drmdp.solution import Status

TIE, ROUNDING, ROUNDS = 1e-9, 1e-13, 1000
"""Shares of values by which equals may differ and actions must be better, and rounds at most."""


@dataclass(frozen=True)
class Optimum:
    """The best policy under one kernel."""

    actions: IntArray  # (S,), of a plan (T, S); 0 in terminal states
    value: float  # mean over the start, as a cost
    once: Array  # (S, A) each action, then the best policy, less a constant; of a plan (T, S, A)
    optimal: BoolArray  # which of these are as good as the best
    reached: BoolArray  # states that the start leads to


def _optimal(once: Array, size: float) -> BoolArray:
    near = once <= once.min(axis=-1, keepdims=True) + TIE * size
    return np.asarray(near & np.isfinite(once))


def _leading(steps: Any, states: BoolArray) -> BoolArray:
    """From where some states can be reached: steps (S, S), or several (n, S, S), states (n, S)."""
    while True:
        more = states | ((steps @ states[..., None])[..., 0] > 0)
        if np.array_equal(more, states):
            return np.asarray(more)
        states = more


def _groups(policies: Any, size: int) -> list[Any]:
    """Policies in groups, so many numbers each."""
    step = max(1, fixed.ENTRIES // max(size, 1))
    return [policies[k : k + step] for k in range(0, len(policies), step)]


class Stationary:
    """Policies without stages, of models that fit into dense matrices."""

    def __init__(self, model: Model, criterion: str) -> None:
        self.model, self.criterion, self._ends = model, criterion, criterion == "total"
        average, (S, A) = criterion == "average", model.available.shape
        self._factor: Any = 1 - fixed.PATIENT if average else model.factor
        self._level = not model.terminal.any() and model.discounts is None
        self._unit = fixed.PATIENT if average else 1.0
        self.work = float(S) ** 3 * (100 if self._ends else 4 + 2 * A)  # of candidates, a kernel

    def kernel(self, i: int | None) -> tuple[Array, Array]:
        """Discounted rows (S, A, S) and expected costs (S, A) of a kernel; None is the mean."""
        matrix = fixed.matrix_of(self.model, i)
        rows = fixed.dense(matrix).reshape(*self.model.available.shape, -1)
        factor = np.asarray(self._factor)[..., None]
        return factor * rows, fixed.expected_costs(self.model, matrix)

    def _solved(self, chains: Array, costs: Array) -> tuple[Array, Array]:
        """Values (n, S) of chains (n, S, S), up to a constant, and means over the start (n,)."""
        mu, stuck = self.model.initial, np.zeros(costs.shape, dtype=bool)
        costs, constant = ended(self.model, costs), np.zeros(len(costs))
        if self._ends:
            steps = chains > 0
            arriving = _leading(steps, np.broadcast_to(self.model.terminal, costs.shape))
            stuck = _leading(steps, ~arriving)
            chains = np.where(stuck[:, :, None], 0.0, chains)
        system = np.eye(mu.size) - chains
        if self._level:
            system[:, :, 0] = 1.0
        right = np.where(stuck, 0.0, costs)[:, :, None]
        value: Array = np.asarray(np.linalg.solve(system, right)[:, :, 0], dtype=np.float64)
        if self._level:
            constant = value[:, 0] / (1 - self._factor)
            value[:, 0] = 0.0
        mean = self._unit * (value @ mu + constant)
        value[stuck] = np.inf
        return value, np.where((stuck & (mu > 0)).any(axis=1), np.inf, mean)

    def values(self, kernel: tuple[Array, Array], policies: Array) -> Array:
        """Mean over the start of policies (P, S, A) under a kernel, (P,)."""
        rows, costs = kernel
        groups = _groups(policies, len(costs) ** 2)
        chains = (np.einsum("psa,sat->pst", x, rows) for x in groups)
        prices = ((x * costs).sum(axis=2) for x in groups)
        return np.concatenate([means for _, means in map(self._solved, chains, prices)])

    def optimum(self, kernel: Any, start: IntArray | None, name: str = "mean kernel") -> Optimum:
        """Best policy under a kernel, from the actions of another."""
        model, (rows, costs) = self.model, kernel
        s, price = np.arange(model.n_states), np.where(model.available, costs, np.inf)
        actions = price.argmin(axis=1) if start is None else start
        for k in range(ROUNDS):
            chain = rows[s, actions]
            (value,), (mean,) = self._solved(chain[None], costs[s, actions][None])
            if not np.isfinite(value).all():
                actions = self._arriving(rows, name, k)
                continue
            once = price + rows @ value
            size = float(max(np.abs(value).max(), np.abs(costs).max()))
            better = once.min(axis=1) < once[s, actions] - ROUNDING * size
            if not better.any():
                break
            actions = np.where(better, once.argmin(axis=1), actions)
        reached = _leading(chain.T > 0, model.initial > 0)
        return Optimum(actions, float(mean), once, _optimal(once, size), reached)

    def _arriving(self, rows: Array, name: str, rounds: int) -> IntArray:
        """Actions with which every state arrives, to begin with."""
        if rounds:
            raise InputError(f"{name}: its total has no bound: a circle pays for ever")
        try:
            policy = towards_the_end(self.model, rows.reshape(-1, self.model.n_states))
        except Stranded as error:
            state = self.model.states[int(error.args[0][0])]
            raise InputError(f"{name}: nothing leads from state {state!r} to an end") from None
        return np.asarray(policy.argmax(axis=1))

    def candidates(self, kernel: Any, best: Optimum, others: IntArray) -> Array:
        """Mean over the start of policies with one action a state, (C, S), (C,)."""
        model, a, (rows, _) = self.model, best.actions, kernel
        s, (S, A) = np.arange(model.n_states), model.available.shape
        if self._ends:  # one inverse does not tell whether another policy arrives
            groups = (np.eye(A)[x] for x in _groups(others, S * A))
            return np.concatenate([self.values(kernel, x) for x in groups])
        inverse = np.linalg.inv(np.eye(S) - rows[s, a])
        ahead = (rows.reshape(-1, S) @ inverse).reshape(rows.shape)
        least = np.where(model.terminal, 0.0, best.once[s, a])[:, None]
        visits, loss = model.initial @ inverse, np.where(model.available, best.once - least, 0.0)
        n, regret = int((others != a).sum(axis=1).max(initial=0)), []
        for x in _groups(others, n**2):
            at = np.argsort(x == a, axis=1, kind="stable")[:, :n]  # equal ones change nothing
            new, row, column = np.take_along_axis(x, at, 1), at[:, :, None], at[:, None, :]
            change = ahead[row, new[:, :, None], column] - ahead[row, a[row], column]
            step = np.linalg.solve(np.eye(n) - change, loss[at, new][:, :, None])[:, :, 0]
            regret.append((visits[at] * step).sum(axis=1))
        return best.value + self._unit * np.concatenate(regret)

    def by_state(self, policy: Array) -> Array:
        """Value of a policy (S, A) with the rows of one state from one kernel, (S, N)."""
        model, (rows, costs) = self.model, self.kernel(None)
        chain, price = np.einsum("sa,sat->st", policy, rows), (policy * costs).sum(axis=1)
        (value,), (mean,) = self._solved(chain[None], price[None])
        inverse = np.linalg.inv(np.eye(model.n_states) - chain)
        visits = self._unit * (model.initial @ inverse)
        out = np.empty((model.n_states, model.n_kernels))
        for i in range(model.n_kernels):
            rows, costs = self.kernel(i)
            delta = np.einsum("sa,sat->st", policy, rows) - chain
            gain = visits * (delta @ value + (policy * costs).sum(axis=1) - price)
            rest = 1 - (delta * inverse.T).sum(axis=1)  # 0 where it does not arrive any more
            out[:, i] = mean + np.where(rest > TIE, gain / np.maximum(rest, TIE), np.inf)
        return out


class Large:
    """Policies without stages in very many states: by Krylov steps, to `fixed.ACCURACY`."""

    work = np.inf

    def __init__(self, model: Model, criterion: str) -> None:
        self.model, self.criterion = model, criterion

    def kernel(self, i: int | None) -> Any:
        """A sparse matrix (S·A, S)."""
        return fixed.matrix_of(self.model, i)

    def values(self, kernel: Any, policies: Array) -> Array:
        """Mean over the start of policies (P, S, A) under a kernel, (P,)."""
        runs = [fixed.by_steps(self.model, x, kernel, self.criterion) for x in policies]
        means = [float(self.model.initial @ run.middle) for run in runs]
        return np.where([run.status is Status.unbounded for run in runs], np.inf, means)

    def optimum(self, kernel: Any, start: IntArray | None, name: str = "mean kernel") -> Optimum:
        """Best policy under a kernel."""
        model, average = self.model, self.criterion == "average"
        run = fixed.by_steps(model, None, kernel, self.criterion)
        if run.status not in (Status.solved, Status.precision_limit):
            raise InputError(f"{name}: {run.status.sentence}")
        value: Any = run.best.sweeps[1].value if average else run.middle  # type: ignore[union-attr]
        costs = fixed.expected_costs(model, kernel)
        later = (1.0 if average else model.factor) * (kernel @ value).reshape(costs.shape)
        once, size = np.where(model.available, costs + later, np.inf), float(np.abs(value).max())
        reached = _leading(fixed.chain(run.policy, kernel).T, model.initial > 0)
        actions, mean = run.policy.argmax(axis=1), float(model.initial @ run.middle)
        return Optimum(actions, mean, once, _optimal(once, 10 * size), reached)


class Staged:
    """Plans over finitely many stages: kernel i is that of every stage, of its model."""

    criterion = "stages"

    def __init__(self, models: Sequence[Model], final: Array) -> None:
        self.model, self._models, self._final = models[0], models, final
        self.work = 200.0 * len(models) * self.model.available.size * self.model.n_states
        for t, other in enumerate(models):
            for kind in ("n_kernels", "kernel_names", "weights"):
                if not np.array_equal(getattr(other, kind), getattr(self.model, kind)):
                    rule = "differ from those of stage 0: a kernel is to stay true for all stages"
                    raise InputError(f"stage {t}: its {kind.removeprefix('n_')} {rule}")

    def kernel(self, i: int | None) -> list[fixed.Stage]:
        """Matrix (S·A, S) and expected costs (S, A) of each stage."""
        return fixed.stages_under(self._models, i)

    def values(self, kernel: Any, policies: Array) -> Array:
        """Mean over the start of plans (P, T, S, A) under a kernel, (P,)."""
        values = fixed.plan_values(self.model, kernel, policies, self._final)
        return np.asarray(values[:, 0] @ self.model.initial)

    def optimum(self, kernel: Any, start: IntArray | None, name: str = "") -> Optimum:
        """Best plan under a kernel, by backward induction."""
        T, model, value = len(kernel), self.model, self._final
        once = np.empty((T, *model.available.shape))
        for t in reversed(range(T)):
            q = fixed.action_values(model, kernel[t], value[None])[0]
            once[t] = np.where(self._models[t].available, q, np.inf)
            value = ended(model, once[t].min(axis=1))
        actions, reached = once.argmin(axis=2), np.empty(once.shape[:2], dtype=bool)
        now = model.initial > 0
        for t in range(T):
            reached[t] = now
            now = fixed.chain(np.eye(model.n_actions)[actions[t]], kernel[t][0]).T @ now > 0
        size = float(np.abs(once[np.isfinite(once)]).max(initial=0.0))
        return Optimum(actions, float(value @ model.initial), once, _optimal(once, size), reached)

    def candidates(self, kernel: Any, best: Optimum, others: IntArray) -> Array:
        """Mean over the start of plans with one action a state, (C, T, S), (C,)."""
        pure, groups = np.eye(self.model.n_actions), _groups(others, best.once.size)
        return np.concatenate([self.values(kernel, pure[x]) for x in groups])

    def by_state(self, policy: Array) -> Array:
        """Value of a plan (T, S, A) with the rows of one state from one kernel, (S, N)."""
        model, rate, s = self.model, self.model.discount, np.arange(self.model.n_states)

        def chains(i: int | None) -> Any:
            pairs = zip(policy, self.kernel(i), strict=True)
            chained = ((fixed.chain(x, rows), (x * c).sum(axis=1)) for x, (rows, c) in pairs)
            return [(fixed.dense(matrix), costs) for matrix, costs in chained]

        mean, out = chains(None), np.empty((model.n_states, model.n_kernels))
        for i in range(model.n_kernels):
            value = np.tile(self._final, (s.size, 1))  # a line for each state that is replaced
            for (rows, price), (other, prices) in zip(mean[::-1], chains(i)[::-1], strict=True):
                replaced = prices + rate * (other * value).sum(axis=1)
                value = price + rate * value @ rows.T
                value[s, s] = replaced
                value = ended(model, value)
            out[:, i] = value @ model.initial
        return out
