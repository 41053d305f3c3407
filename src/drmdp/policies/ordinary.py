"""The N ordinary decision problems of a model, one a kernel: optima, values of policies, and what single rows change.

Costs, as everywhere inside. Of kernel i, Y has the rows λ ŷ_i(·|s,a), c̄ their expected costs, and μ is the start. The chain of a policy x is P = Σ_a x_a Y_a.

**Values** solve (I − P) v = Σ_a x_a c̄_a, by elimination. Where every row sums to λ < 1, v = h + g/(1−λ) with h = 0 in the first state, so that discounts near
1 cost no digits; a long-run average is (1−λ) v at λ = 1 − `PATIENT`. Without a discount, states that may never arrive cost +∞.

**Optima** by policy iteration. An action is exchanged only for one that is better. So a policy that arrives stays one that arrives (*proof*: a closed class C
of the next one holds an exchanged state, and by its stationary distribution π, π·c̄ + π·v < π·v: going round in C earns for ever).

**Many policies under one kernel.** With G = (I − P)⁻¹ of the optimum a, and r(s,b) = c̄_b + Y_b v − v ≥ 0 what b loses once, a policy that plays other
actions b in the states D, and only there, costs

    μ·v' − μ·v = (μG)_D (I − Δ G_·D)⁻¹ r_D,        Δ = Y_b − Y_a in D,

|D| equations (Sherman, Morrison and Woodbury), as (I − P') (v' − v) = r. One inverse a kernel serves all policies.

**One row.** With the rows of state s from kernel i and all others of the mean kernel, δ = (Σ_a x_a (Y^i − Y)_a)_s, and Δc the same of the costs,

    μ·v' = μ·v + (μG)_s (δ·v + Δc)/(1 − δ·G_·s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from drmdp._typing import Array, BoolArray, IntArray
from drmdp.core.levels import ended
from drmdp.criteria.total import Stranded, towards_the_end
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.policies import fixed_kernel as fixed
from drmdp.solution import Status

TIE, ROUNDING, ROUNDS = 1e-9, 1e-13, 1000
"""Of values: shares by which equals may differ, and by which an action must be better; and how often actions are exchanged at most."""


@dataclass(frozen=True)
class Optimum:
    """The best policy under one kernel."""

    actions: IntArray  # (S,), of a plan (T, S); 0 in terminal states
    value: float  # mean over the start, as a cost
    once: Array  # (S, A) what each action costs now, up to a constant, and the best policy afterwards; inf where it is not available. (T, S, A)
    optimal: BoolArray  # which actions are as good as the best, likewise
    reached: BoolArray  # states that the start leads to, likewise without actions


def _optimal(once: Array, size: float, tie: float = TIE) -> BoolArray:
    return (once <= once.min(axis=-1, keepdims=True) + tie * size) & np.isfinite(once)


def leading(steps: BoolArray, states: BoolArray) -> BoolArray:
    """From where some states can be reached: steps (n, S, S), states (n, S)."""
    while True:
        more = states | (steps & states[:, None, :]).any(axis=2)
        if np.array_equal(more, states):
            return more
        states = more


class Stationary:
    """Policies without stages, of models that fit into dense matrices."""

    def __init__(self, model: Model, criterion: str) -> None:
        self.model, self.criterion, self._ends = model, criterion, criterion == "total"
        average = criterion == "average"
        self._factor: Any = 1 - fixed.PATIENT if average else model.factor
        self._level = not model.terminal.any() and model.discounts is None and not self._ends
        self._unit = fixed.PATIENT if average else 1.0

    def work(self, n: int) -> float:
        """Operations that n candidates take under a kernel, about."""
        S, A = self.model.available.shape
        return float(S) ** 3 * (n if self._ends else 4 + 2 * A)

    def kernel(self, i: int | None) -> tuple[Array, Array]:
        """Discounted rows (S, A, S) and expected costs (S, A) of a kernel; None is the mean."""
        matrix = fixed.matrix_of(self.model, i)
        rows = (matrix.toarray() if sparse.issparse(matrix) else matrix).reshape(*self.model.available.shape, -1)
        factor = self._factor if np.ndim(self._factor) == 0 else self._factor[:, :, None]
        return factor * rows, fixed.expected_costs(self.model, matrix)

    def _solved(self, chains: Array, costs: Array) -> tuple[Array, Array]:
        """Values (n, S), up to a constant, of chains (n, S, S), and their means over the start (n,)."""
        mu, stuck = self.model.initial, np.zeros(costs.shape, dtype=bool)
        if self._ends:
            arriving = leading(chains > 0, np.broadcast_to(self.model.terminal, costs.shape))
            stuck = leading(chains > 0, ~arriving)
            chains, costs = np.where(stuck[:, :, None], 0.0, chains), np.where(stuck, 0.0, costs)
        system = np.eye(mu.size) - chains
        if self._level:
            system[:, :, 0] = 1.0
        value = np.linalg.solve(system, costs[:, :, None])[:, :, 0]
        constant = np.zeros(len(value))
        if self._level:
            constant = value[:, 0] / (1 - self._factor)
            value[:, 0] = 0.0
        mean = np.where((stuck & (mu > 0)).any(axis=1), np.inf, self._unit * (value @ mu + constant))
        value[stuck] = np.inf
        return value, mean

    def values(self, kernel: tuple[Array, Array], policies: Array) -> Array:
        """Mean over the start of policies (P, S, A) under a kernel, (P,)."""
        rows, costs = kernel
        return np.concatenate(
            [
                self._solved(np.einsum("psa,sat->pst", x, rows), ended(self.model, (x * costs).sum(axis=2)))[1]
                for x in _some(policies, rows.shape[0] ** 2)
            ]
        )

    def optimum(self, kernel: tuple[Array, Array], start: IntArray | None, name: str = "the mean kernel") -> Optimum:
        """Best policy under a kernel, from the actions of another."""
        model, (rows, costs) = self.model, kernel
        s, once = np.arange(model.n_states), np.where(model.available, costs, np.inf)
        actions = np.where(model.terminal, 0, once.argmin(axis=1)) if start is None else start
        for k in range(ROUNDS):
            chain = rows[s, actions]
            value, mean = self._solved(chain[None], ended(model, costs[s, actions])[None])
            if not np.isfinite(value).all():
                if k:
                    raise InputError(
                        f"{name}: its total cost has no lower bound: going round in circles earns for ever"
                    )
                actions = self._arriving(rows, name)
                continue
            q = once + rows @ value[0]
            size = float(max(np.abs(value).max(), np.abs(costs).max()))
            better = q.min(axis=1) < q[s, actions] - ROUNDING * size
            if not better.any():
                break
            actions = np.where(better, q.argmin(axis=1), actions)
        reached = leading(chain.T[None] > 0, model.initial[None] > 0)[0]
        return Optimum(actions, float(mean[0]), q, _optimal(q, size), reached)

    def _arriving(self, rows: Array, name: str) -> IntArray:
        try:
            return np.asarray(towards_the_end(self.model, rows.reshape(-1, self.model.n_states)).argmax(axis=1))
        except Stranded as error:
            state = self.model.states[int(error.args[0][0])]
            raise InputError(
                f"{name}: nothing leads from state {state!r} to an end, so its total cost is infinite"
            ) from None

    def candidates(self, kernel: tuple[Array, Array], best: Optimum, others: IntArray) -> Array:
        """Mean over the start of policies with one action a state, (C, S), (C,)."""
        (rows, costs), s, a = kernel, np.arange(self.model.n_states), best.actions
        S = s.size
        if self._ends:  # whether a policy arrives is no question of one inverse
            return np.concatenate(
                [self._solved(rows[s, x], ended(self.model, costs[s, x]))[1] for x in _some(others, S**2)]
            )
        inverse = np.linalg.inv(np.eye(S) - rows[s, a])
        ahead = (rows.reshape(-1, S) @ inverse).reshape(rows.shape)
        least = np.where(self.model.terminal, 0.0, best.once[s, a])
        visits, loss = self.model.initial @ inverse, np.where(self.model.available, best.once - least[:, None], 0.0)
        n = int((others != a).sum(axis=1).max(initial=0))
        regret = []
        for x in _some(others, n**2):
            there = np.argsort(x == a, axis=1, kind="stable")[
                :, :n
            ]  # those that differ first; what is equal changes nothing
            new, row, column = np.take_along_axis(x, there, 1), there[:, :, None], there[:, None, :]
            change = ahead[row, new[:, :, None], column] - ahead[row, a[row], column]
            step = np.linalg.solve(np.eye(n) - change, loss[there, new][:, :, None])[:, :, 0]
            regret.append((visits[there] * step).sum(axis=1))
        return best.value + self._unit * np.concatenate(regret)

    def by_state(self, policy: Array) -> tuple[float, Array]:
        """Value of a policy (S, A) under the mean kernel, and (S, N) with the rows of one state from one kernel."""
        model, (rows, costs) = self.model, self.kernel(None)
        chain, price = np.einsum("sa,sat->st", policy, rows), (policy * costs).sum(axis=1)
        (value,), (mean,) = self._solved(chain[None], ended(model, price)[None])
        if not np.isfinite(mean):
            raise InputError(
                "this policy never arrives under the mean kernel, whose rows were to be replaced one at a time"
            )
        inverse = np.linalg.inv(np.eye(model.n_states) - chain)
        visits = self._unit * (model.initial @ inverse)
        out = np.empty((model.n_states, model.n_kernels))
        for i in range(model.n_kernels):
            rows, costs = self.kernel(i)
            delta = np.einsum("sa,sat->st", policy, rows) - chain
            gain = delta @ value + (policy * costs).sum(axis=1) - price
            left = 1 - (delta * inverse.T).sum(axis=1)  # 0 where it never arrives any more
            out[:, i] = mean + np.where(left > TIE, visits * gain / np.where(left > TIE, left, 1.0), np.inf)
        return float(mean), out


def _some(policies: Any, size: int) -> Sequence[Any]:
    """Policies in groups that need so many numbers each, in all not too many."""
    step = max(1, fixed.ENTRIES // max(size, 1))
    return [policies[k : k + step] for k in range(0, len(policies), step)]


class Large:
    """Policies without stages of models with very many states: by Krylov steps, to `fixed.ACCURACY`."""

    def __init__(self, model: Model, criterion: str) -> None:
        self.model, self.criterion = model, criterion

    def work(self, n: int) -> float:
        """More than is taken."""
        return np.inf

    def kernel(self, i: int | None) -> Any:
        """A sparse matrix (S·A, S)."""
        return fixed.matrix_of(self.model, i)

    def values(self, kernel: Any, policies: Array) -> Array:
        """Mean over the start of policies (P, S, A) under a kernel, (P,)."""
        runs = [fixed.by_steps(self.model, x, kernel, criterion=self.criterion) for x in policies]
        return np.array([np.inf if own.status is Status.unbounded else self.model.initial @ own.middle for own in runs])

    def optimum(self, kernel: Any, start: IntArray | None, name: str = "the mean kernel") -> Optimum:
        """Best policy under a kernel."""
        model, outcome = self.model, fixed.by_steps(self.model, None, kernel, criterion=self.criterion)
        if outcome.status not in (Status.solved, Status.precision_limit):
            raise InputError(f"{name}: {outcome.status.sentence}")
        average = self.criterion == "average"
        value: Any = outcome.best.sweeps[1].value if average else outcome.middle
        costs = fixed.expected_costs(model, kernel)
        factor = 1.0 if average else model.factor
        once = np.where(model.available, costs + factor * (kernel @ value).reshape(costs.shape), np.inf)
        size = float(max(np.abs(value).max(), np.abs(costs).max()))
        chain, reached = fixed.chain(outcome.policy, kernel).T, model.initial > 0
        while (more := reached | (chain @ reached > 0)).sum() > reached.sum():
            reached = more
        best = outcome.policy.argmax(axis=1)
        return Optimum(best, float(model.initial @ outcome.middle), once, _optimal(once, size, 10 * TIE), reached)


class Staged:
    """Plans over finitely many stages: kernel i is that of every stage, of its model."""

    criterion = "stages"

    def __init__(self, models: Sequence[Model], final: Array) -> None:
        self.model, self._models, self._final = models[0], models, final
        for t, other in enumerate(models):
            for kind in ("n_kernels", "kernel_names", "weights"):
                if not np.array_equal(getattr(other, kind), getattr(self.model, kind)):
                    raise InputError(
                        f"stage {t}: its {kind} differ from those of stage 0, and a kernel stays the same for all stages"
                    )

    def work(self, n: int) -> float:
        """Operations that n candidates take under a kernel, about."""
        return 2.0 * n * len(self._models) * self.model.blocks.indices.size

    def kernel(self, i: int | None) -> list[tuple[Any, Array]]:
        """Matrix (S·A, S) and expected costs (S, A) of each stage."""
        matrices = {id(model): fixed.matrix_of(model, i) for model in {id(own): own for own in self._models}.values()}
        return [(matrices[id(own)], fixed.expected_costs(own, matrices[id(own)])) for own in self._models]

    def _once(self, kernel: Any, t: int, value: Array) -> Array:
        """What actions cost at a stage, (n, S, A), and values (n, S) from the next one on."""
        matrix, costs = kernel[t]
        return np.asarray(costs + self.model.discount * (matrix @ value.T).T.reshape(len(value), *costs.shape))

    def _start(self, n: int) -> Array:
        return np.broadcast_to(self._final, (n, self._final.size))

    def values(self, kernel: Any, policies: Array) -> Array:
        """Mean over the start of plans (P, T, S, A) under a kernel, (P,)."""
        value = self._start(len(policies))
        for t in reversed(range(len(kernel))):
            value = ended(self.model, (policies[:, t] * self._once(kernel, t, value)).sum(axis=2))
        return np.asarray(value @ self.model.initial)

    def optimum(self, kernel: Any, start: IntArray | None, name: str = "") -> Optimum:
        """Best plan under a kernel, by backward induction."""
        T, value, costs = len(kernel), self._start(1), []
        for t in reversed(range(T)):
            q = np.where(self._models[t].available, self._once(kernel, t, value)[0], np.inf)
            value = ended(self.model, q.min(axis=1))[None]
            costs.append(q)
        once = np.stack(costs[::-1])
        actions, size = once.argmin(axis=2), float(np.abs(once[np.isfinite(once)]).max(initial=0.0))
        reached, now = np.zeros(actions.shape, dtype=bool), self.model.initial > 0
        for t in range(T):
            reached[t] = now
            now = fixed.chain(np.eye(once.shape[2])[actions[t]], kernel[t][0]).T @ now > 0
        return Optimum(actions, float(value[0] @ self.model.initial), once, _optimal(once, size), reached)

    def candidates(self, kernel: Any, best: Optimum, others: IntArray) -> Array:
        """Mean over the start of plans with one action a state, (C, T, S), (C,)."""
        value = self._start(len(others))
        for t in reversed(range(len(kernel))):
            q = self._once(kernel, t, value)
            value = ended(self.model, np.take_along_axis(q, others[:, t, :, None], 2)[:, :, 0])
        return np.asarray(value @ self.model.initial)

    def by_state(self, policy: Array) -> tuple[float, Array]:
        """Value of a plan (T, S, A) under the mean kernels, and (S, N) with the rows of one state from one kernel at all stages."""
        model, rate = self.model, self.model.discount

        def chains(i: int | None) -> list[tuple[Array, Array]]:
            played = [
                (fixed.chain(x, matrix), (x * c).sum(axis=1))
                for x, (matrix, c) in zip(policy, self.kernel(i), strict=True)
            ]
            return [(rows.toarray() if sparse.issparse(rows) else rows, price) for rows, price in played]

        mean, out, s = chains(None), np.empty((model.n_states, model.n_kernels)), np.arange(model.n_states)
        for i in range(model.n_kernels):
            value = self._start(model.n_states)  # a row for each state whose rows are replaced
            for (rows, price), (others, prices) in reversed(list(zip(mean, chains(i), strict=True))):
                there = prices + rate * (others * value).sum(axis=1)
                value = price + rate * value @ rows.T
                value[s, s] = there
                value = ended(model, value)
            out[:, i] = value @ model.initial
        return float(self.values(self.kernel(None), policy[None])[0]), out
