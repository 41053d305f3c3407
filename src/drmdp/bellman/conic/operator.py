"""Robust Bellman operators by conic programming: slow, independent, for all six balls.

For one state with z_a(t) = c(s,a,t) + λ v(t), strong duality turns the update into one program over N-tuples,

    F(v) = max { γ : γ ≤ Σ_i w_i y_ia·z_a for every available a,  y in the ball },

whose duals on the first constraints are the optimal policy; with a policy x fixed it is max Σ_a x_a Σ_i w_i y_ia·z_a.
ℓ1 and ℓ∞ balls are linear programs for HiGHS, ℓ2 balls second-order cone programs for Clarabel. A program is built once
per state; afterwards only the stakes change, and HiGHS starts from its last basis.

The programs see stakes below each action's top, normalised to [−1, 0], and displacements (y − ŷ)/ρ, ρ = min(θ, 1), so
neither the scale and level of the costs nor a small radius costs digits; actions that cannot be optimal are not bent.
The ℓ2 ball is stated as a norm cone: as a sum of squares it loses half the digits at small
radii. Two cases need no program: radius 0 (y = ŷ) and constant stakes. What the solvers return is not believed: values,
steps and bounds come from `drmdp.certificate.dense`, applied to their duals and kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Tabled, Update
from drmdp.certificate import dense as certificate
from drmdp.certificate.dense import Witness
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.core.interrupts import put_off
from drmdp.errors import InputError
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load


@dataclass(frozen=True)
class Entries:
    """The free probabilities y_ia(t) of one state, one entry for each allowed (a, i, t), kernels of weight 0 left out."""

    a: Any  # (E,) action, counted among the available ones
    i: Any  # (E,) kernel
    t: Any  # (E,) next state
    nominal: Array  # (E,)
    weights: Array  # (N,)
    n_actions: int
    radius: float
    scale: float  # ρ

    @property
    def row(self) -> Any:
        """Number a·N + i of the row an entry belongs to."""
        return self.a * self.weights.size + self.i


@dataclass(frozen=True)
class Answer:
    """Solver output for normalised stakes."""

    policy: Array  # (A,)
    multipliers: Array  # (1,) or (N,)
    thresholds: Array  # (A, N)
    displacement: Array  # (y − ŷ)/ρ per entry, (E,)


class Program(Protocol):
    """A conic program of one state, built once."""

    def update(self, stakes: Array, room: Array) -> Answer:
        """Solve max γ: γ ≤ room_a + Σ_i w_i stakes·(y − ŷ)/ρ for every a; stakes are per entry, (E,), room (A,)."""

    def evaluate(self, stakes: Array) -> Answer:
        """Solve max Σ_i w_i stakes·(y − ŷ)/ρ; stakes (E,) include the policy, which the answer leaves out."""


class ConicOperator:
    """Bellman operator of a (model, ball) on Clarabel (ℓ2) and HiGHS (ℓ1, ℓ∞)."""

    chunk = 1
    accuracy = 0.0  # that of the solvers

    def __init__(self, model: Model, ball: AmbiguitySet, threads: int | None = None) -> None:
        self.model, self.ball, self.threads = model, ball, workers.count(threads)
        program = entry_of(ball).program
        if not program:
            raise InputError(f"{ball.short} has no conic program; take the exact backend")
        self._new: Any = load(program)
        self._radii = ball.radii(model)
        self._programs: dict[int, tuple[Entries, Program]] = {}

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""
        return self._sweep(value, None, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature maximise."""
        return self._sweep(value, policy, start, stop)

    def _sweep(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        model, n = self.model, stop - start
        A, S = model.n_actions, model.n_states
        N = int((model.weights > 0).sum())
        u = value - levels.level(value)
        multipliers = np.zeros((n, N) if self.ball.by_kernel else n)
        witness = Witness(np.zeros((n, A)), multipliers, np.zeros((n, A, N)), np.zeros((n, A, N, S)))
        for s in range(start, stop):
            if not model.terminal[s]:
                with put_off():  # or Clarabel takes it for bad data
                    self._solve(s, u, None if policy is None else policy[s], witness, s - start)
        fixed = policy is not None
        new, low, high, kernel = certificate.derive(model, self.ball, value, witness, start, stop, fixed)
        return Update(new, low, high, witness.policy, Tabled(kernel), witness)

    def _solve(self, s: int, u: Array, policy: Array | None, witness: Witness, k: int) -> None:
        """Fill row k of a witness with the solution of state s."""
        entries, program = self._program(s)
        own = np.flatnonzero(self.model.available[s])
        z = self.model.stakes(u, s, s + 1)[0][own]  # (A', S)
        allowed = self.ball.allowed(self.model, s, s + 1)[0][own]
        top = np.where(allowed, z, -np.inf).max(axis=1)
        below = z[entries.a, entries.t] - top[entries.a]
        nominal = np.zeros(own.size)  # of z minus the top
        np.add.at(nominal, entries.a, entries.weights[entries.i] * entries.nominal * below)
        nominal += top - top.min()
        witness.kernels[k] = self.model.blocks.dense(s, s + 1)[0][:, self.model.weights > 0]
        if policy is None:
            witness.policy[k, own[np.argmin(nominal if entries.radius == 0 else top)]] = 1
            # 0 is what the best action costs against an unconstrained nature: others that cost as much anyway are out
            matters = nominal < 0
            matters[np.argmin(top)] = True
            share = matters.astype(float)
        else:
            witness.policy[k] = policy
            share = policy[own]
        stakes = share[entries.a] * below
        unit = -stakes.min()
        if entries.radius == 0 or not unit > 0:
            return
        if policy is None:
            room = np.where(matters, np.minimum((nominal - nominal.min()) / unit, 2.0), 2.0)
            answer = program.update(stakes / unit, room / entries.scale)
            share = np.where(matters, answer.policy, 0.0)
            share = share / share.sum()
            witness.policy[k] = 0
            witness.policy[k, own] = share
        else:
            answer = program.evaluate(stakes / unit)
        witness.multipliers[k] = unit * (answer.multipliers if self.ball.by_kernel else answer.multipliers[0])
        witness.thresholds[k, own] = unit * answer.thresholds + (share * (top - top.min()))[:, None]
        moved = np.maximum(entries.nominal + entries.scale * answer.displacement, 0.0)
        bent = matters[entries.a] if policy is None else share[entries.a] > 0
        witness.kernels[k, own[entries.a], entries.i, entries.t] = np.where(bent, moved, entries.nominal)

    def _program(self, s: int) -> tuple[Entries, Program]:
        if s not in self._programs:
            model = self.model
            own, kernels = model.available[s], model.weights > 0
            nominal = model.blocks.dense(s, s + 1)[0][own][:, kernels]  # (A', N', S)
            allowed = np.broadcast_to(self.ball.allowed(model, s, s + 1)[0][own][:, None, :], nominal.shape)
            a, i, t = np.nonzero(allowed)
            radius = float(self._radii[s])
            entries = Entries(
                a, i, t, nominal[a, i, t], model.weights[kernels], int(own.sum()), radius, min(radius, 1.0) or 1.0
            )
            self._programs[s] = entries, self._new(entries, self.ball)
        return self._programs[s]
