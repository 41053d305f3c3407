"""Sets that pose the programs of their states themselves: what `mixing` and `boxes` share.

What nature chooses in a state is no tuple of rows near the data. A subclass solves one state; here the states are gone through. The claim is what the exact
operator leaves when it evaluates the policy, with the numbers by kernel that were found here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array
from drmdp.bellman.exact import ExactOperator
from drmdp.bellman.operator import Tabled, Update
from drmdp.core import levels
from drmdp.core.interrupts import put_off
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.sets import AmbiguitySet


@dataclass(frozen=True)
class Game:
    """One state: its available actions and what they cost in each next state."""

    s: int
    own: Any  # (A',)
    z: Array  # (A', S) below the top of the action, 0 where nature cannot go
    top: Array  # (A',)
    policy: Array | None  # (A',) if it is given


class DirectOperator(ABC):
    """The sweeps of a set that poses its own programs."""

    def __init__(self, model: Model, ball: AmbiguitySet) -> None:
        self.model, self.ball = model, ball
        self.layout = lay_out(model, ball)
        self._twin = ExactOperator(model, ball, 1)

    @abstractmethod
    def solve(self, game: Game, kept: Array) -> tuple[Array, Array]:
        """Policy (A',) and nature's mean rows (A', S) in a state; what the certificate needs by kernel goes into `kept`."""

    def sweep(self, value: Array, policy: Array | None, start: int, stop: int) -> Update:
        """Update the states start … stop − 1, or evaluate a policy (S, A)."""
        model, shift = self.model, levels.level(value, self.model)
        u, n = value - shift, stop - start
        kept = self._twin.left.memory.by_kernel.copy()
        x, kernel, new = np.zeros(model.available.shape), np.zeros((n, model.n_actions, model.n_next)), np.zeros(n)
        for s in range(start, stop):
            if model.terminal[s]:
                continue
            own = np.flatnonzero(model.available[s])
            allowed = self.ball.allowed(model, s, s + 1)[0][own]
            z = model.stakes(u, s, s + 1)[0][own]
            top = np.where(allowed, z, -np.inf).max(axis=1)
            z = np.where(allowed, z - top[:, None], 0.0)
            with put_off():
                share, rows = self.solve(Game(s, own, z, top, None if policy is None else policy[s, own]), kept[s])
            x[s, own], kernel[s - start, own] = share, rows
            worth = (rows * z).sum(axis=1) + top
            new[s - start] = worth.min() if policy is None else share @ worth
        low, high, found = levels.both_steps(u[start:stop], shift, model, new, new, slice(start, stop))
        claim = self._twin.evaluate(value, x, start, stop).claim
        # of an action that is not played nobody was asked, says a 0
        asked = np.where((x > 0) | (not self.ball.by_pair), claim.by_action, 1.0)
        return Update(found, low, high, x[start:stop], Tabled(kernel), claim._replace(by_action=asked, by_kernel=kept))
