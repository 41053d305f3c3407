"""A model of events seen as one whose next states are its events: what nature sees where she moves laws.

Rows are laws, over all E events; the stake of event e is c(s, a, e) + λ v(f(s, a, e)). Whoever reads dense rows, stakes and what was observed gets those of
events. What is found, rows over events, lands in next states (`landed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.model import Model
from drmdp.model.events import EventModel


def seen_by(nature: str, model: Model) -> Any:
    """The model as a nature sees it that moves "states" or "events"."""
    if nature != "events":
        return model
    if "lifted" not in model.kept:
        assert isinstance(model, EventModel)
        other: Lifted = object.__new__(Lifted)
        other._set(**model.__getstate__(), facts=model.facts)
        model.kept["lifted"] = other
    return model.kept["lifted"]


@dataclass(frozen=True)
class LawRows:
    """Laws as rows of pairs."""

    model: EventModel

    def dense(self, start: int, stop: int) -> Array:
        """Those of the states start … stop − 1, (n, A, N, E); zeros where an action is not available."""
        model = self.model
        classes = (
            model.classes[start:stop] if model.classes.size else np.zeros((stop - start, model.n_actions), np.int64)
        )
        return np.where(model.available[start:stop, :, None, None], model.laws[classes], 0.0)


class Lifted(EventModel):
    """A model of events whose next states are events."""

    @property
    def blocks(self) -> Any:
        """Its rows."""
        return LawRows(self)

    def observed(self, start: int, stop: int) -> BoolArray:
        """Which events some law of positive weight has, (n, A, E)."""
        return np.asarray((self.blocks.dense(start, stop)[:, :, self.weights > 0] > 0).any(axis=2))

    def stakes(self, value: Array, start: int, stop: int) -> Array:
        """Stakes of events, (n, A, E)."""
        asked = self.asked(start, stop)
        costs = asked.costs if self.priced else self._prices[start:stop, :, None]
        there = np.where(asked.available[:, :, None], asked.next, 0)
        return np.asarray(costs + self.discount * value[there])


def width(model: Model) -> int:
    """Entries of a dense row: next states, or events."""
    return model.n_events if isinstance(model, Lifted) else model.n_next


def landed(model: Model, rows: Array, start: int) -> Array:
    """Dense rows (n, A, width) of the states from `start` on as rows over next states."""
    if not isinstance(model, Lifted):
        return rows
    n, A, E = rows.shape
    there = np.where(model.available[start : start + n, :, None], model.asked(start, start + n).next, 0)
    found = np.zeros((n * A, model.n_next))
    np.add.at(found, (np.arange(n * A)[:, None], there.reshape(n * A, E)), rows.reshape(n * A, E))
    return found.reshape(n, A, -1)
