"""Where the process starts: as episodes began, as transitions did, in every state alike, or as the user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.text import count
from drmdp.core.validation import Names, find, lookup
from drmdp.errors import InputError
from drmdp.estimate.count import Cells
from drmdp.estimate.rules import names_by_text

STARTS = ("first", "rows", "uniform")


def start_of(
    given: Any, typed: bool, cells: Cells, starts: Mapping[Any, int] | None, terminal: BoolArray
) -> tuple[Any, str | None]:
    """The start distribution, and where it comes from, in words; terminal states have 0 unless the user says otherwise.

    `given` is one of `STARTS`, the name of a state, or what a model takes; by default "first", and "rows" where nobody knows how episodes began. `starts` tells
    in which states how many episodes began.
    """
    if given is not None and not isinstance(given, str | int):
        return given, None
    rule = given if given is not None else "rows" if starts is None else "first"
    if rule not in ("first", "rows") or (given is not None and given in lookup(cells.states)):
        return stated(rule, cells.states, terminal, typed)
    mass, unit = _mass(rule, cells, starts)
    mass = np.where(terminal, 0.0, mass)
    if not mass.any():
        return stated("uniform", cells.states, terminal, False)
    return mass / mass.sum(), f"as the {count(round(float(mass.sum())), unit)} began"


def stated(given: Any, states: Names, terminal: BoolArray, typed: bool) -> tuple[Array, str]:
    """A start in every state alike, but for terminal ones, or in one; `typed` names may mean integers."""
    known = lookup(states)
    if given in STARTS and given in known:
        raise InputError(f"`initial={given!r}` is a rule and a state: give {{{given!r}: 1}} for the state")
    if given == "uniform":
        mass = np.where(terminal & ~terminal.all(), 0.0, 1.0)
        return mass / mass.sum(), "in every state alike"
    name = names_by_text(states, [given], "state to start in")[0] if typed else given
    s = find(known, name, "`initial`", f"rule ({', '.join(STARTS)}) or state")
    return np.eye(1, terminal.size, s)[0], f"in state {states[s]!r}"


def _mass(rule: str, cells: Cells, starts: Mapping[Any, int] | None) -> tuple[Array, str]:
    """How often each state was begun in, and by what."""
    S = len(cells.states)
    if rule == "rows":
        own = np.where(cells.rows > 0, cells.count, 0.0)  # without rows of other stages
        return np.bincount(cells.pair // len(cells.actions), own, S).astype(np.float64), "transition"
    if starts is None:
        raise InputError("`initial='first'` needs `episode`, and `time` to tell which row of an episode is the first")
    numbers = {str(label): n for label, n in starts.items()}  # a state of no transition is none of the model's
    return np.array([numbers.get(str(name), 0) for name in cells.states], dtype=float), "episode"
