"""Where a process can be kept from ending, as far as sets tell (`drmdp.sets.confinement`). Guides
and explains; no bound rests on it.

A policy arrives against every nature from the largest set X of states such that from each of them,
playing all actions that cannot lead out of X, nature cannot stay away for ever from the states that
are nearer to the end. Others are *trapped*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from drmdp._typing import BoolArray
from drmdp.criteria.end_components import StateOptions
from drmdp.layout.layout import lay_out
from drmdp.model import Model
from drmdp.sets import AmbiguitySet
from drmdp.sets.confinement import keeps

DIGITS = 40
"""Halvings of a radius."""


def trapped(model: Model, ambiguity: AmbiguitySet) -> BoolArray:
    """States from which no policy is sure to end, (S,)."""
    layout = lay_out(model, ambiguity)
    inside = np.ones(model.n_states, dtype=bool)
    while True:
        reached = _reached(model, ambiguity, layout, inside)
        if (reached == inside).all():
            return ~inside
        inside = reached


def _reached(model: Model, ambiguity: AmbiguitySet, layout: Any, inside: BoolArray) -> BoolArray:
    """States of a set from which the end is sure to be reached without a step that may lead out of
    it.
    """
    A, available = model.n_actions, np.asarray(model.available).ravel()
    options = StateOptions(
        np.arange(available.size) // A, np.asarray(layout.indptr), np.asarray(layout.indices)
    )
    stays = options.stays(np.where(inside, 0, 1), np.arange(available.size))
    safe = available & inside[options.owner] & stays
    if layout.unlisted and not inside.all():
        safe[:] = False
    done = np.array(model.terminal) & inside
    new = np.flatnonzero(done)
    while new.size:
        label = np.where(inside & ~done, 0, 1)
        asked = np.unique(options.leading_to(new) // A)
        asked = np.flatnonzero(inside) if layout.unlisted else asked
        asked = asked[~done[asked] & safe.reshape(-1, A)[asked].any(axis=1)]
        pairs = (asked[:, None] * A + np.arange(A)).ravel()
        stay = keeps(ambiguity, layout, label, pairs[safe[pairs]], together=True)
        new = asked[~stay]
        done[new] = True
    return done


def safe_radius(model: Model, ambiguity: Any) -> float | None:
    """The radius up to which nature can trap nobody that she cannot trap anyhow; None of a set that
    has none, or one for each state.
    """
    radius = getattr(ambiguity, "radius", None)
    if not isinstance(radius, float) or not radius > 0:
        return None
    least = trapped(model, ambiguity.with_radius(0.0).fitted(model)).sum()
    low, high = 0.0, radius
    for _ in range(DIGITS):
        middle = (low + high) / 2
        if trapped(model, ambiguity.with_radius(middle).fitted(model)).sum() > least:
            high = middle
        else:
            low = middle
    return low
