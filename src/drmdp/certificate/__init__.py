"""Claims become bounds here, and nowhere else.

Whoever solves hands over a *claim*: the few numbers that explain a sweep (`drmdp.layout.memory.Memory`), kernels of a conic program with
such numbers for its policy (`dense.Witness`), or a policy with a kernel (`Pair`). A claim may be wrong. A `Prover` reads the data itself and turns a claim into
bounds that hold whatever the claim is worth; a poor claim gives wide bounds. Only the loop of `drmdp.solvers`, and the verbs that make a single sweep, ask
it. A `Pair` is judged by two runs of that loop (`drmdp.solvers.judge`), whose sweeps are proved here.

* `compressed` proves sweeps over compressed data, by routines of `drmdp._native` (`native`);
* `dense` proves what kernels of a conic program attain, in plain NumPy;
* `fixed_kernel` proves sweeps with one kernel that stays;
* `membership` brings kernels of any origin into the set, by `membership_linear` and `membership_squares` where it has to search.

This package imports neither operators nor methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from drmdp._typing import Array
from drmdp.certificate import compressed, dense
from drmdp.core import levels
from drmdp.errors import InputError, shown
from drmdp.layout.events import spread_out
from drmdp.layout.memory import Memory, shapes_of
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of


@dataclass(frozen=True)
class Pair:
    """The claim that a policy is good and that a kernel shows it; judged by the values of both."""

    policy: Array  # (S, A)
    kernel: Any  # mean kernel, (S, A, S), or sparse (S·A, S)
    kernels: Any = None  # the N kernels it is the mean of, (N, S, A, S), or N sparse matrices (S·A, S)
    precision: float = 0.0  # error that its values may have, in the unit of the costs


@dataclass(frozen=True)
class Proof:
    """What is proved of a sweep at v: L − v ≤ F(v) − v ≤ U − v, (S,) each, and how nature's claim had to be changed for it."""

    lower_step: Array
    upper_step: Array
    share: Array | None = None  # (S, N) of nature's move that is surely allowed
    kernel: Any = None  # or her mean kernel that is


class Prover(Protocol):
    """Proves what is claimed of sweeps of one problem."""

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> Proof:
        """Bound F at `value` from a policy (S, A) and a claim; `fixed`: F^x of that policy instead."""


@dataclass(frozen=True)
class RobustProver:
    """Proves sweeps against a set."""

    model: Model
    ball: AmbiguitySet
    threads: int

    def prove(self, value: Array, policy: Array, claim: Any, fixed: bool) -> Proof:
        """Bound F, or F^x, at `value`; a claim of another shape than the set's is refused."""
        model, shape = self.model, (self.model.n_states, self.model.n_actions)
        if np.shape(policy) != shape:
            raise InputError(f"policy: expected shape {shape}, got {np.shape(policy)}")
        if isinstance(claim, dense.Witness):
            above = self.prove(value, policy, claim.memory, fixed=True).upper_step
            low, _, kernel = dense.attained(
                model, self.ball, value, claim.kernels, 0, shape[0], policy if fixed else None
            )
            return Proof(low, above, kernel=kernel)
        layout = spread_out(model, self.ball)
        memory = self.checked(claim, layout)
        u, shift = levels.around(value, model)
        x = np.ascontiguousarray(policy, dtype=np.float64)
        found = compressed.derive(self.ball, layout, u, x, memory, fixed, self.threads)
        low, high, _ = levels.both_steps(u[model.own], shift, model, found.low, found.high)
        return Proof(low, high, found.share)

    def checked(self, claim: Any, layout: Any) -> Memory:
        """The claim, if it has the shapes that the set keeps."""
        (S, A), N = layout.available.shape, layout.weights.size
        keeps = entry_of(self.ball).keeps
        if not isinstance(claim, Memory):
            raise InputError(f"claim: expected a Memory, a Witness or a Pair, got {shown(claim)}")
        for name, part, shape in zip(Memory._fields, claim, shapes_of(S, A, N, keeps), strict=True):
            if getattr(part, "shape", None) != shape or getattr(part, "dtype", None) != np.float64:
                raise InputError(f"claim: {name}: expected numbers of shape {shape}, got {shown(part)}")
        return Memory(*(np.ascontiguousarray(part) for part in claim))
