"""Robust Bellman operators by conic programming: slow, independent, for every set that states a
program.

For one state with z_a(t) = c(s,a,t) + λ v(t), strong duality turns the update into one program over
N-tuples,

    F(v) = max { γ : γ ≤ Σ_i w_i y_ia·z_a for every available a,  y in the set },

whose duals on the first constraints are the optimal policy; with a policy x fixed it is max Σ_a x_a
Σ_i w_i y_ia·z_a. With a budget for each action there is a program for each pair, with one action,
and the best one is played. ℓ1, ℓ∞ and tv are linear programs for HiGHS, ℓ2 and χ² second-order cone
programs for Clarabel, KL and Burg have exponential cones, other orders than those of the paper
power cones. A program is built once per state; afterwards only the stakes change, and HiGHS starts
from its last basis. Sets whose choice is no tuple of rows (`direct`) pose their programs
themselves. Where nature moves laws, events are the next states (`drmdp.model.events.lifted_model`).

The programs see stakes below each action's top, normalised to [−1, 0], and displacements (y − ŷ)/ρ,
ρ = min(θ, 1), so neither the scale and level of the costs nor a small radius costs digits; actions
that cannot be optimal are not bent. The ℓ2 set is stated as a norm cone: as a sum of squares it
loses half the digits at small radii. Two cases need no program: radius 0 (y = ŷ) and constant
stakes. The answers of the solvers are not trusted: from below counts what their kernels attain
(`drmdp.certificate.dense`), from above what their policy costs at most: the exact operator
evaluates it, and its memory is proved as after all its sweeps. Both come from programs of which the
exact operator knows nothing, so that a wrong answer of either shows.

**A program** is of a class of `cone` or `linear`, which scales displacements for small radii, ρ =
min(θ^power, 1), and says whether rows never leave the support of the row they are compared with
(`own_support`). `update(stakes, room)` gives the policy (A,) and the displacements (y − ŷ)/ρ (E,)
of max γ: γ ≤ room_a + Σ_i w_i stakes·(y − ŷ)/ρ for every a, with stakes per entry, (E,), and room
(A,); `evaluate(stakes)` gives those of max Σ_i w_i stakes·(y − ŷ)/ρ, stakes including the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import dense
from drmdp.certificate.dense import KernelWitness
from drmdp.core import levels
from drmdp.core import threads as workers
from drmdp.errors import InputError
from drmdp.layout.memory import of_states
from drmdp.model import Model
from drmdp.model.events.lifted_model import seen_by
from drmdp.operators.exact import ExactOperator
from drmdp.operators.operator import Update, tabled
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of, load
from drmdp.ui.interrupts import put_off


@dataclass(frozen=True)
class Entries:
    """The free probabilities y_ia(t) of one state, one entry for each allowed (a, i, t), kernels of
    weight 0 left out.
    """

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


class ConicOperator:
    """Bellman operator of a (model, set) on Clarabel and HiGHS."""

    accuracy = 0.0  # that of the solvers

    def __init__(self, model: Model, ambiguity: AmbiguitySet, threads: int | None = None) -> None:
        self.model, self.ambiguity, self.threads = model, ambiguity, workers.count(threads)
        program = entry_of(ambiguity).program
        if not program:
            raise InputError(f"{ambiguity.short} has no conic program; take the exact backend")
        self._new: Any = load(program)
        self._direct: Any = self._new(model, ambiguity) if hasattr(self._new, "sweep") else None
        self.chunk = 1 if self._direct is None else model.n_states
        self._twin = ExactOperator(model, ambiguity, self.threads)
        self._radii = ambiguity.radii(model)
        self._lifted = seen_by(ambiguity.moves, model)
        # entries and program by state and, with a budget each, action
        self._programs: dict[tuple[int, int], tuple[Entries, Any]] = {}

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Minimise over the policy, let nature maximise, for the states start … stop − 1."""
        return self._sweep(value, None, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Keep the policy (S, A), let nature maximise."""
        return self._sweep(value, policy, start, stop)

    def _sweep(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        if self._direct is not None:
            return self._direct.sweep(value, policy, start, stop)  # type: ignore[no-any-return]
        model, states, fixed = self.model, slice(start, stop), policy is not None
        kernels, _ = self._rows(start, stop)
        x = np.where(model.available, 0.0 if policy is None else policy, 0.0)
        u = value - levels.level(value, model)
        for s in range(start, stop):
            if not model.terminal[s]:
                with put_off():  # or Clarabel takes it for bad data
                    self._fill(s, u, x[s], kernels[s - start], fixed)
        played = x[states] if fixed else None
        low, new, mean = dense.attained(model, self.ambiguity, value, kernels, start, played)
        above = self._twin.evaluate(value, x, start, stop)
        claim = KernelWitness(kernels, of_states(above.claim, states))
        return Update(new, low, above.upper_step, x[states], tabled(mean), claim)

    def _fill(self, s: int, u: Array, x: Array, kernels: Array, fixed: bool) -> None:
        """Fill the kernels (A, N, S) of state s, and the policy (A,) unless it is fixed."""
        actions = np.flatnonzero(self.model.available[s])
        z = self._lifted.stakes(u, s, s + 1)[0][actions]  # (A', S)
        allowed = self.ambiguity.allowed(self._lifted, s, s + 1)[0][actions]
        top = np.where(allowed, z, -np.inf).max(axis=1)
        if not self.ambiguity.by_pair:
            played = x[actions] if fixed else None
            x[actions], kernels[actions] = self._solve(s, actions, z, top, played)
            return
        for j in range(actions.size):
            kernels[actions[j]] = self._solve(s, actions[[j]], z[[j]], top[[j]], np.ones(1))[1][0]
        if not fixed:
            w = self._rows(s, s + 1)[1]
            below = np.where(allowed, z - top[:, None], 0.0)
            mean = np.einsum("i,ait->at", w, kernels[actions])
            x[actions[np.argmin((mean * below).sum(axis=1) + top)]] = 1.0

    def _solve(
        self, s: int, actions: Any, z: Array, top: Array, policy: Array | None
    ) -> tuple[Array, Array]:
        """Policy (A',) and kernels (A', N, S) of actions of state s from their stakes and tops;
        `policy` if it is fixed.
        """
        entries, program = self._program(s, actions)
        below = z[entries.a, entries.t] - top[entries.a]
        nominal = np.zeros(actions.size)  # of z minus the top
        np.add.at(nominal, entries.a, entries.weights[entries.i] * entries.nominal * below)
        nominal += top - top.min()
        kernels = self._rows(s, s + 1)[0][0][actions]
        if policy is None:
            share = np.zeros(actions.size)
            share[np.argmin(nominal if entries.radius == 0 else top)] = 1
            # 0 is what the best action costs against an unconstrained nature: others that cost as
            # much anyway are out
            matters = nominal < 0
            matters[np.argmin(top)] = True
            played = matters.astype(float)
        else:
            share = played = policy
        stakes = played[entries.a] * below
        unit = -stakes.min(initial=0.0)
        if (entries.radius == 0 and not self.ambiguity.free) or not unit > 0:
            return share, kernels
        if policy is None:
            room = np.where(matters, np.minimum((nominal - nominal.min()) / unit, 2.0), 2.0)
            share, displacement = program.update(stakes / unit, room / entries.scale)
            share = np.where(matters, share, 0.0)
            share = share / share.sum()
        else:
            displacement = program.evaluate(stakes / unit)
        moved = np.maximum(entries.nominal + entries.scale * displacement, 0.0)
        bent = matters[entries.a] if policy is None else share[entries.a] > 0
        kernels[entries.a, entries.i, entries.t] = np.where(bent, moved, entries.nominal)
        return share, kernels

    def _rows(self, start: int, stop: int) -> tuple[Array, Array]:
        """Centre of the set in the states start … stop − 1: rows (n, A, N, S) and weights (N,)."""
        used = self.model.weights > 0
        rows = self._lifted.blocks.dense(start, stop)[:, :, used]
        rows, w = self.ambiguity.centred(rows, self.model.weights[used])
        return rows.copy(), w

    def _program(self, s: int, actions: Any) -> tuple[Entries, Any]:
        place = (s, int(actions[0]) if self.ambiguity.by_pair else -1)
        if place not in self._programs:
            rows, w = self._rows(s, s + 1)
            nominal = rows[0][actions]  # (A', N, S)
            allowed = self.ambiguity.allowed(self._lifted, s, s + 1)[0][actions][:, None, :]
            allowed = np.broadcast_to(allowed, nominal.shape)
            a, i, t = np.nonzero(allowed & (nominal > 0) if self._new.own_support else allowed)
            radius = float(self._radii[s, actions[0]] if self.ambiguity.by_pair else self._radii[s])
            scale = min(radius**self._new.power, 1.0) or 1.0
            entries = Entries(a, i, t, nominal[a, i, t], w, int(actions.size), radius, scale)
            self._programs[place] = entries, self._new(entries, self.ambiguity)
        return self._programs[place]
