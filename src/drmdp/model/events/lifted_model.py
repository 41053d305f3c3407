"""A model of events as one whose next states are its events, for a nature that moves laws.

Rows are laws, over all E events; the stake of event e is c(s, a, e) + λ v(f(s, a, e)). Dense rows,
stakes and flags of what was observed are those of events. Rows over events become rows over next
states by `landed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.model import Model
from drmdp.model.events import EventModel
from drmdp.model.events.laws import RuleAnswer


def seen_by(nature: str, model: Model) -> Any:
    """The model of a nature that moves "states" or "events"."""
    if nature != "events":
        return model
    if "lifted" not in model.cache:
        assert isinstance(model, EventModel)
        other: LiftedModel = object.__new__(LiftedModel)
        other._set(**model.__getstate__(), facts=model.facts)
        model.cache["lifted"] = other
    return model.cache["lifted"]


class LiftedModel(EventModel):
    """A model of events whose next states are events."""

    @property
    def blocks(self) -> Any:
        """Laws as rows: this model itself, for its `dense` rows."""
        return self

    def dense(self, start: int, stop: int) -> Array:
        """Rows of the states start … stop − 1, (n, A, N, E); zeros where an action is not
        available.
        """
        available = self.available[start:stop]
        none = np.zeros(available.shape, np.int64)
        classes = self.classes[start:stop] if self.classes.size else none
        return np.where(available[:, :, None, None], self.laws[classes], 0.0)

    def observed(self, start: int, stop: int) -> BoolArray:
        """Flags of the events that a law of positive weight has, (n, A, E)."""
        return np.asarray((self.dense(start, stop)[:, :, self.weights > 0] > 0).any(axis=2))

    def stakes(self, value: Array, start: int, stop: int) -> Array:
        """Stakes of events, (n, A, E)."""
        answer = self.asked(start, stop)
        costs = answer.costs if self.priced else self._prices[start:stop, :, None]
        return np.asarray(costs + self.discount * value[_targets(answer)])


def width(model: Model) -> int:
    """Entries of a dense row: next states, or events."""
    return model.n_events if isinstance(model, LiftedModel) else model.n_next


def landed(model: Model, rows: Array, start: int) -> Array:
    """Dense rows (n, A, width) of the states from `start` on as rows over next states."""
    if not isinstance(model, LiftedModel):
        return rows
    n, A, E = rows.shape
    targets = _targets(model.asked(start, start + n)).reshape(n * A, E)
    over_states = np.zeros((n * A, model.n_next))
    np.add.at(over_states, (np.arange(n * A)[:, None], targets), rows.reshape(n * A, E))
    return over_states.reshape(n, A, -1)


def _targets(answer: RuleAnswer) -> Any:
    """Next states (n, A, E), 0 where an action is not available."""
    return np.where(answer.available[:, :, None], answer.next, 0)
