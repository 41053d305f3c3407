"""The Bellman operator of one fixed kernel: nature has moved already.

    F_y(v)_s = min_a Σ_t y(t|s,a) (c(s,a,t) + λ v(t)),

an ordinary MDP. It starts the robust methods (y the mean kernel) and gives the lower half of a certificate (y nature's
kernel): its solution is what the best policy against y costs.
"""

from __future__ import annotations

import numpy as np

from drmdp import certificate
from drmdp._typing import Array
from drmdp.bellman.operator import Update
from drmdp.certificate import EPS
from drmdp.model import Model


class NominalOperator:
    """Bellman operator of a fixed (S, A, S) kernel."""

    ball = None

    def __init__(self, model: Model, kernel: Array) -> None:
        self.model, self.kernel, self.chunk = model, kernel, model.n_states

    def update(self, value: Array, start: int, stop: int) -> Update:
        """Take the best action in the states start … stop − 1."""
        stake, margin = self._stakes(value, start, stop)
        best = np.where(self.model.available[start:stop], stake, np.inf).argmin(axis=1)
        policy = np.zeros_like(stake)
        policy[np.arange(stop - start), best] = 1
        policy[self.model.terminal[start:stop]] = 0
        return self._result(value, policy, stake, margin, start, stop)

    def evaluate(self, value: Array, policy: Array, start: int, stop: int) -> Update:
        """Follow `policy`, (S, A)."""
        stake, margin = self._stakes(value, start, stop)
        return self._result(value, policy[start:stop], stake, margin, start, stop)

    def _stakes(self, value: Array, start: int, stop: int) -> tuple[Array, Array]:
        """Σ_t y(t|s,a) z(s,a,t) at v without its level, and its rounding margin, (n, A) each."""
        u = value - certificate.level(value)
        y = self.kernel[start:stop]
        z = np.where(y > 0, self.model.stakes(u, start, stop), 0.0)
        gain = y * z
        size = np.abs(gain).sum(axis=2) + np.abs(z).max(axis=2) + 2 * self.model.discount * np.abs(u).max()
        return gain.sum(axis=2), (2 * self.model.n_states + 32) * EPS * size

    def _result(self, value: Array, policy: Array, stake: Array, margin: Array, start: int, stop: int) -> Update:
        model, shift = self.model, certificate.level(value)
        here, ends = value[start:stop] - shift, model.terminal[start:stop]
        mean = (policy * stake).sum(axis=1)
        off = (policy * (margin + (model.n_actions + 8) * EPS * np.abs(stake))).sum(axis=1)
        low = certificate.steps(here, shift, model.discount, ends, mean - off, -1)
        high = certificate.steps(here, shift, model.discount, ends, mean + off, +1)
        return Update(value[start:stop] + (low + high) / 2, low, high, policy, self.kernel[start:stop])
