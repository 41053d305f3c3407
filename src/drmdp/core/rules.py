"""Where events lead: next states and costs of ranges of states, from a table, a compiled function or one of NumPy.

All three give the same arrays, so that whoever reads them has the same bits. Functions are asked again in every sweep, and what they say is checked
each time: a next state outside the model is an error that names state, action and event.

What goes to another process is the name of a function, "module:name", never its code.
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
from drmdp.errors import InputError, shown

NONE = np.zeros((0, 0, 0))


@dataclass(frozen=True)
class Table:
    """Next states (S, A, E) and costs (S, A, E), or none."""

    next: Any
    costs: Any = None
    compiled = False

    def rows(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        """Next states and costs of the states lo … hi − 1, whose available pairs count."""
        return self.next[lo:hi], NONE if self.costs is None else self.costs[lo:hi]

    def part(self, lo: int, hi: int) -> Table:
        """That of the states lo … hi − 1, counted from 0."""
        return Table(self.next[lo:hi], None if self.costs is None else self.costs[lo:hi])


@dataclass(frozen=True)
class Function:
    """A function of state, action and event: of NumPy arrays, or compiled by Numba."""

    function: Callable[..., Any]
    n_states: int
    n_actions: int
    n_events: int
    sign: float = 1.0  # of what it tells, to make it costs
    first: int = 0  # state that ranges are counted from

    def __getstate__(self) -> dict[str, Any]:
        """The name of the function stands for it."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"function": name_of(self.function)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The function is what has that name here."""
        vars(self).update(state | {"function": named(state["function"])})

    def part(self, lo: int, hi: int) -> Function:
        """That of the states lo … hi − 1, counted from 0."""
        return replace(self, first=self.first + lo)

    @property
    def compiled(self) -> bool:
        """Whether Numba compiled it."""
        return hasattr(self.function, "py_func")

    @cached_property
    def by_row(self) -> bool:
        """Whether it fills the arrays of a pair, (state, action, next, cost), instead of answering for an event."""
        return self.compiled and len(inspect.signature(self.function.py_func).parameters) == 4  # type: ignore[attr-defined]

    @cached_property
    def with_costs(self) -> bool:
        """Whether it tells costs too."""
        if self.by_row:
            return True
        return isinstance(self._asked(0, 0, 0), tuple)

    @cached_property
    def _loop(self) -> Any:
        return _by_row(self.function) if self.by_row else _by_event(self.function, self.with_costs)

    def rows(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        """Next states and costs of the states lo … hi − 1, whose available pairs count."""
        lo, hi = self.first + lo, self.first + hi
        shape = (hi - lo, self.n_actions, self.n_events)
        if not self.compiled:
            return self._vectors(lo, hi, available)
        there, costs = np.zeros(shape, np.int32), np.zeros(shape if self.with_costs else (0, 0, 0))
        try:
            bad = self._loop(lo, self.n_states, available, there, costs, np.empty(self.n_events, np.int64))
        except Exception as error:
            self._locate(lo, available, error)
            raise
        if bad >= 0:
            self._refuse(lo, bad)
        return there, costs if self.sign > 0 else 0.0 - costs

    def _vectors(self, lo: int, hi: int, available: BoolArray) -> tuple[Any, Array]:
        A, E = self.n_actions, self.n_events
        s, a, e = np.arange(lo, hi)[:, None, None], np.arange(A)[None, :, None], np.arange(E)[None, None, :]
        found = self._asked(s, a, e)
        there, costs = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        shape = (hi - lo, A, E)
        if np.asarray(there).dtype.kind not in "iu":
            raise InputError(f"transition: next states are {np.asarray(there).dtype}, expected whole numbers")
        try:
            there = np.where(available[:, :, None], np.broadcast_to(there, shape), 0)
            prices = NONE if costs is None else np.ascontiguousarray(np.broadcast_to(costs, shape), dtype=np.float64)
        except (ValueError, TypeError):
            raise InputError(
                f"transition: asked with arrays {s.shape}, {a.shape} and {e.shape}, expected {shape}, got {np.shape(there)}"
            ) from None
        bad = (there < 0) | (there >= self.n_states)
        if bad.any():
            k = int(np.argmax(bad))
            self._refuse(lo, k, there.flat[k])
        return there.astype(np.int32), prices if self.sign > 0 else 0.0 - prices

    def _asked(self, *names: Any) -> Any:
        try:
            return self.function(*names)
        except Exception as error:
            if np.ndim(names[0]) == 0:
                error.add_note(f"drmdp asked for transition{names}")
            raise

    def _locate(self, lo: int, available: BoolArray, error: Exception) -> None:
        """Note which pair or event a compiled function raises an error for."""
        row, cost = np.empty(self.n_events, np.int64), np.zeros(self.n_events)
        for s, a in np.argwhere(available).tolist():
            for given in [(row, cost)] if self.by_row else [(e,) for e in range(self.n_events)]:
                try:
                    self.function(lo + s, a, *given)
                except Exception:
                    where = "" if self.by_row else f", {given[0]}"
                    error.add_note(f"drmdp asked for transition({lo + s}, {a}{where})")
                    return

    def _refuse(self, lo: int, k: int, there: Any = None) -> None:
        """Name the entry k of the states from lo on; compiled functions are asked once more where it leads."""
        s, rest = divmod(k, self.n_actions * self.n_events)
        a, e = divmod(rest, self.n_events)
        if self.by_row:
            row = np.full(self.n_events, -1)
            self.function(lo + s, a, row, np.zeros(self.n_events))
            there = row[e]
        elif there is None:
            found = self.function(lo + s, a, e)
            there = found[0] if isinstance(found, tuple) else found
        raise InputError(
            f"transition({lo + s}, {a}, {e}) leads to state {shown(int(there))}, expected 0 … {self.n_states - 1:,}"
        )


def name_of(function: Any) -> str:
    """The name, "module:name", by which any process finds a function; refused if there is none."""
    plain = getattr(function, "py_func", function)
    module, name = getattr(plain, "__module__", None), getattr(plain, "__qualname__", repr(plain))
    try:
        known = module not in (None, "__main__") and named(f"{module}:{name}") is function
    except InputError:
        known = False
    if not known:
        raise InputError(
            f"transition: workers find a function by its name, and {f'{module}:{name}'!r} is none that they know: put it at the top of a "
            "module that can be imported, or write model.tabulate() to a .drmdp directory and solve its path"
        )
    return f"{module}:{name}"


def named(name: str) -> Any:
    """The function of a name."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"transition: {name!r} cannot be found in this process: {error}") from None
    return found


@lru_cache(64)
def _by_event(function: Any, with_costs: bool) -> Any:
    """A loop over pairs and events, compiled once for all that ask the function; it returns where a next state is none, or −1."""
    import numba  # which compiled the function

    @numba.njit(nogil=True, error_model="numpy")
    def priced(lo, n_states, available, there, costs, row):  # type: ignore[no-untyped-def]
        n, A, E = there.shape
        for s in range(n):
            for a in range(A):
                if available[s, a]:
                    for e in range(E):
                        t, x = function(lo + s, a, e)
                        if t < 0 or t >= n_states:
                            return (s * A + a) * E + e
                        there[s, a, e] = t
                        costs[s, a, e] = x
        return -1

    @numba.njit(nogil=True, error_model="numpy")
    def free(lo, n_states, available, there, costs, row):  # type: ignore[no-untyped-def]
        n, A, E = there.shape
        for s in range(n):
            for a in range(A):
                if available[s, a]:
                    for e in range(E):
                        t = function(lo + s, a, e)
                        if t < 0 or t >= n_states:
                            return (s * A + a) * E + e
                        there[s, a, e] = t
        return -1

    return priced if with_costs else free


@lru_cache(64)
def _by_row(function: Any) -> Any:
    """The same for a function that fills the arrays of a pair."""
    import numba

    @numba.njit(nogil=True, error_model="numpy")
    def pairs(lo, n_states, available, there, costs, row):  # type: ignore[no-untyped-def]
        n, A, E = there.shape
        for s in range(n):
            for a in range(A):
                if available[s, a]:
                    row[:] = -1
                    function(lo + s, a, row, costs[s, a])
                    for e in range(E):
                        if row[e] < 0 or row[e] >= n_states:
                            return (s * A + a) * E + e
                        there[s, a, e] = row[e]
        return -1

    return pairs
