"""Sets that pose the programs of their states themselves: what `mixing` and `boxes` share.

What nature chooses in a state is no tuple of rows near the data. A subclass solves one state; here the states are gone through, and what was found is handed
over as the claim that the exact operator would make.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.operator import Tabled, Update
from drmdp.core import levels
from drmdp.core.interrupts import put_off
from drmdp.layout.layout import lay_out
from drmdp.layout.memory import Memory, empty_memory
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.registry import entry_of


@dataclass(frozen=True)
class Game:
    """One state: its available actions and what they cost in each next state."""

    s: int
    own: Any  # (A',)
    z: Array  # (A', S) below the top of the action, 0 where nature cannot go
    top: Array  # (A',)
    unit: Array  # (A',) range of each action's stakes, as `drmdp.layout.point` sees it
    policy: Array | None  # (A',) if it is given


class DirectOperator(ABC):
    """The sweeps of a set that poses its own programs."""

    def __init__(self, model: Model, ball: AmbiguitySet) -> None:
        self.model, self.ball = model, ball
        self.layout = lay_out(model, ball)
        self._memory = empty_memory(model.n_states, model.n_actions, self.layout.weights.size, entry_of(ball).keeps)

    @abstractmethod
    def solve(self, game: Game, memory: Memory) -> tuple[Array, Array]:
        """Policy (A',) and nature's mean rows (A', S) in a state; what the certificate needs goes into the memory."""

    def sweep(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        """Update the states start … stop − 1, or evaluate a policy (S, A)."""
        model, shift = self.model, levels.level(value, self.model)
        u, n = value - shift, stop - start
        memory = Memory(*(part.copy() for part in self._memory))
        x, kernel, new = np.zeros((n, model.n_actions)), np.zeros((n, model.n_actions, model.n_next)), np.zeros(n)
        for s in range(start, stop):
            if model.terminal[s]:
                continue
            own = np.flatnonzero(model.available[s])
            allowed = self.ball.allowed(model, s, s + 1)[0][own]
            z = model.stakes(u, s, s + 1)[0][own]
            top = np.where(allowed, z, -np.inf).max(axis=1)
            z = np.where(allowed, z - top[:, None], 0.0)
            unit = np.full(own.size, model.discount * np.ptp(u)) if self.layout.common else -z.min(axis=1)
            with put_off():
                share, rows = self.solve(Game(s, own, z, top, unit, None if policy is None else policy[s, own]), memory)
            x[s - start, own], kernel[s - start, own] = share, rows
            worth = (rows * z).sum(axis=1) + top
            new[s - start] = worth.min() if policy is None else share @ worth
        self._memory = memory
        low, high, found = levels.both_steps(u[start:stop], shift, model, new, new, slice(start, stop))
        return Update(found, low, high, x, Tabled(kernel), memory)
