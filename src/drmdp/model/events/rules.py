"""Rules of events: next states and costs of ranges of states, from a table, a compiled function or
a function of NumPy arrays.

All three give the same arrays, hence the same bits. Functions are evaluated again in every sweep,
and their answers are checked each time: a next state outside the model is an error that names
state, action and event.

Another process gets the name of a function, "module:name", never its code.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from drmdp._typing import Array, BoolArray
from drmdp.core.cached import cached_property
from drmdp.errors import InputError, first_place, shown

NO_COSTS = np.zeros((0, 0, 0))


@dataclass(frozen=True)
class EventTable:
    """Next states (S, A, E) and costs (S, A, E), or none."""

    next: Any
    costs: Any = None
    compiled = False

    @property
    def arrays(self) -> list[Any]:
        """Next states, and costs if there are any."""
        return [self.next] if self.costs is None else [self.next, self.costs]

    def rows(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        """Next states and costs of the states lo … hi − 1; only available pairs matter."""
        return self.next[lo:hi], NO_COSTS if self.costs is None else self.costs[lo:hi]

    def part(self, lo: int, hi: int) -> EventTable:
        """The table of the states lo … hi − 1, counted from 0."""
        return EventTable(*(array[lo:hi] for array in self.arrays))


@dataclass(frozen=True)
class EventFunction:
    """A function of state, action and event: of NumPy arrays, or compiled by Numba."""

    function: Callable[..., Any]
    n_states: int
    n_actions: int
    n_events: int
    sign: float = 1.0  # −1: its costs are rewards
    first: int = 0  # state that ranges are counted from
    arrays = ()

    def __getstate__(self) -> dict[str, Any]:
        """The fields, with the name of the function in its place."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"function": name_of(self.function)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The fields, with the function of that name in this process."""
        vars(self).update(state | {"function": named(state["function"])})

    def part(self, lo: int, hi: int) -> EventFunction:
        """The function of the states lo … hi − 1, counted from 0."""
        return replace(self, first=self.first + lo)

    @property
    def compiled(self) -> bool:
        """Whether Numba compiled it."""
        return hasattr(self.function, "py_func")

    @cached_property
    def by_row(self) -> bool:
        """Whether it fills the arrays of a pair, (state, action, next, cost)."""
        plain = getattr(self.function, "py_func", None)
        return plain is not None and len(inspect.signature(plain).parameters) == 4

    @cached_property
    def with_costs(self) -> bool:
        """Whether it returns costs too."""
        return self.by_row or isinstance(self._call(0, 0, 0), tuple)

    @cached_property
    def _loop(self) -> Any:
        return _all_rows(self.function if self.by_row else _rows(self.function, self.with_costs))

    def rows(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        """Next states and costs of the states lo … hi − 1; only available pairs matter."""
        lo, hi = self.first + lo, self.first + hi
        shape = (hi - lo, self.n_actions, self.n_events)
        if not self.compiled:
            return self._vectors(lo, hi, available)
        next_states, row = np.zeros(shape, np.int32), np.empty(self.n_events, np.int64)
        costs = np.zeros(shape if self.with_costs else (*shape[:2], 0))
        try:
            bad = self._loop(lo, self.n_states, available, next_states, costs, row)
        except Exception as error:
            self._locate(lo, available, error)
            raise
        if bad >= 0:
            self._refuse(lo, np.unravel_index(bad, shape))
        return next_states, costs if self.sign > 0 else 0.0 - costs

    def _vectors(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        shape = (hi - lo, self.n_actions, self.n_events)
        s, a, e = np.ogrid[lo:hi, : shape[1], : shape[2]]
        answer = self._call(s, a, e)
        several = isinstance(answer, tuple) and len(answer) == 2
        targets, costs = answer if several else (answer, None)
        dtype = np.asarray(targets).dtype
        if dtype.kind not in "iu":
            raise InputError(f"transition: next states are {dtype}, expected whole numbers")
        try:
            targets = np.where(available[:, :, None], np.broadcast_to(targets, shape), 0)
            prices = NO_COSTS
            if costs is not None:
                prices = np.ascontiguousarray(np.broadcast_to(costs, shape), dtype=np.float64)
        except (ValueError, TypeError):
            asked = f"asked with arrays {s.shape}, {a.shape} and {e.shape}"
            answer = f"expected {shape}, got {np.shape(targets)}"
            raise InputError(f"transition: {asked}, {answer}") from None
        if at := first_place((targets < 0) | (targets >= self.n_states)):
            self._refuse(lo, at, targets[at])
        return targets.astype(np.int32), prices if self.sign > 0 else 0.0 - prices

    def _call(self, *names: Any) -> Any:
        try:
            return self.function(*names)
        except Exception as error:
            if np.ndim(names[0]) == 0:
                error.add_note(f"drmdp asked for transition{names}")
            raise

    def _locate(self, lo: int, available: BoolArray, error: Exception) -> None:
        """Add a note with the pair or event at which a compiled function raises an error."""
        row, cost = np.empty(self.n_events, np.int64), np.zeros(self.n_events)
        for s, a in np.argwhere(available).tolist():
            for last in [(row, cost)] if self.by_row else [(e,) for e in range(self.n_events)]:
                try:
                    self.function(lo + s, a, *last)
                except Exception:
                    event = "" if self.by_row else f", {last[0]}"
                    error.add_note(f"drmdp asked for transition({lo + s}, {a}{event})")
                    return

    def _refuse(self, lo: int, at: Any, target: Any = None) -> None:
        """Name an event of the states from lo on; compiled functions are evaluated again for the
        next state.
        """
        s, a, e = (int(k) for k in at)
        if self.by_row:
            row = np.full(self.n_events, -1)
            self.function(lo + s, a, row, np.zeros(self.n_events))
            target = row[e]
        elif target is None:
            answer = self.function(lo + s, a, e)
            target = answer[0] if isinstance(answer, tuple) else answer
        state = f"state {shown(int(target))}, expected 0 … {self.n_states - 1:,}"
        raise InputError(f"transition({lo + s}, {a}, {e}) leads to {state}")


def name_of(function: Any) -> str:
    """The name, "module:name", by which processes import a function; refused if there is none."""
    plain = getattr(function, "py_func", function)
    module, name = getattr(plain, "__module__", None), getattr(plain, "__qualname__", repr(plain))
    try:
        known = module not in (None, "__main__") and named(f"{module}:{name}") is function
    except InputError:
        known = False
    if not known:
        raise InputError(
            f"transition: workers find a function by its name, and {f'{module}:{name}'!r} is none "
            "that they know: put it at the top of a module that can be imported, or write "
            "model.tabulate() to a .drmdp directory and solve its path"
        )
    return f"{module}:{name}"


def named(name: str) -> Any:
    """The function of a name."""
    module, _, path = name.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in path.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"transition: {name!r} cannot be found in this process: {error}") from None
    return function


@lru_cache(64)
def _rows(function: Any, with_costs: bool) -> Any:
    """Compile a function that fills the arrays of a pair, (state, action, next, cost), from one of
    events.
    """
    import numba  # which compiled the function

    @numba.njit(nogil=True, error_model="numpy")
    def priced(s, a, row, costs):  # type: ignore[no-untyped-def]
        for e in range(row.size):
            row[e], costs[e] = function(s, a, e)

    @numba.njit(nogil=True, error_model="numpy")
    def free(s, a, row, costs):  # type: ignore[no-untyped-def]
        for e in range(row.size):
            row[e] = function(s, a, e)

    return priced if with_costs else free


@lru_cache(64)
def _all_rows(function: Any) -> Any:
    """Compile a loop over pairs, once a function that fills their arrays; it returns the first
    entry without a valid next state, or −1.
    """
    import numba

    @numba.njit(nogil=True, error_model="numpy")
    def pairs(lo, n_states, available, targets, costs, row):  # type: ignore[no-untyped-def]
        n, A, E = targets.shape
        for s in range(n):
            for a in range(A):
                if available[s, a]:
                    row[:] = -1
                    function(lo + s, a, row, costs[s, a])
                    for e in range(E):
                        if row[e] < 0 or row[e] >= n_states:
                            return (s * A + a) * E + e
                        targets[s, a, e] = row[e]
        return -1

    return pairs
